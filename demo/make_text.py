#!/usr/bin/env python3
"""Write JSON lines of real text: the sections of Python's manual, as Debian installs it.

Nothing is downloaded. Each line of OUT is one document, one section of one page:

  {"id": 17, "page": "library/json", "title": "Basic Usage", "text": "..."}

OUT.manifest.json beside it records the number of documents, the bytes and the digest of the file.
The same package gives the same bytes; --count and --seed take a repeatable sample of the documents.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sys
from pathlib import Path

DOC_ROOT = Path("/usr/share/doc")

# Shorter sections are tables of contents and labels.
MIN_TEXT = 200

# A heading is one line of text with a line of one repeated mark below it.
UNDERLINE = re.compile(r"""^([=\-~^"'*+#])\1{2,}\s*$""")


class TextError(Exception):
    """The text cannot be found; the message says what to install."""


def find_pages(source: Path | None) -> tuple[Path, list[Path]]:
    """The folder of reStructuredText sources and its files in a fixed order."""
    folders = (
        [source]
        if source
        else sorted(
            DOC_ROOT.glob("python3.*/html/_sources"),
            key=lambda p: [int(n) for n in re.findall(r"\d+", p.parts[4])],
        )
    )
    for folder in reversed(folders):
        pages = sorted(folder.rglob("*.rst.txt")) or sorted(folder.rglob("*.rst"))
        if pages:
            return folder, pages
    raise TextError(
        f"no pages below {source or DOC_ROOT}; try `apt-get install --no-install-recommends "
        "python3-doc`. Minimal Debian images leave documentation out: there, add "
        "-o Dpkg::Options::='--path-include=/usr/share/doc/python3*'"
    )


def sections(text: str) -> list[tuple[str, str]]:
    """Splits a page at its headings into (title, text) pairs."""
    lines = text.splitlines()
    starts = [0]
    titles = [""]
    for i in range(1, len(lines)):
        title = lines[i - 1].strip()
        if (
            title
            and not lines[i - 1].startswith((" ", ".."))
            and UNDERLINE.match(lines[i])
            and len(lines[i].rstrip()) >= len(title)
            and not UNDERLINE.match(title)
        ):
            starts.append(i - 1)
            titles.append(title)
    ends = [*starts[1:], len(lines)]
    return [
        (title, "\n".join(lines[a:b]).strip() + "\n")
        for title, a, b in zip(titles, starts, ends, strict=True)
    ]


def documents(folder: Path, pages: list[Path]) -> list[dict]:
    found: list[dict] = []
    for page in pages:
        name = str(page.relative_to(folder)).removesuffix(".txt").removesuffix(".rst")
        for title, text in sections(page.read_text("utf-8")):
            if len(text) >= MIN_TEXT:
                found.append({"id": len(found), "page": name, "title": title, "text": text})
    return found


def write_whole(path: Path, data: bytes) -> None:
    """Puts a finished file in place in one step."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: demo/make_text.py demo-out/text.jsonl",
    )
    parser.add_argument("out", type=Path, help="JSON lines file to write")
    parser.add_argument("--count", type=int, help="take only this many documents")
    parser.add_argument("--seed", type=int, default=1, help="which ones --count takes (default 1)")
    parser.add_argument(
        "--source",
        type=Path,
        metavar="FOLDER",
        help="take the .rst files below this folder instead",
    )
    args = parser.parse_args()
    try:
        folder, pages = find_pages(args.source)
    except TextError as error:
        print(f"make_text: {error}", file=sys.stderr)
        return 1
    print(f"reading {len(pages):,} pages of {folder}", file=sys.stderr)
    found = documents(folder, pages)
    if args.count is not None and args.count < len(found):
        rng = random.Random(f"headrace-text-1/{args.seed}")
        found = [found[i] for i in sorted(rng.sample(range(len(found)), max(0, args.count)))]
    data = "".join(json.dumps(d, ensure_ascii=False) + "\n" for d in found).encode()
    manifest = {
        "version": 1,
        "source": str(folder),
        "pages": len(pages),
        "documents": len(found),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(args.out, data)
    write_whole(
        args.out.with_name(args.out.name + ".manifest.json"),
        (json.dumps(manifest, indent=1) + "\n").encode(),
    )
    print(
        f"{args.out}: {len(found):,} documents, {len(data) / 1e6:.1f} MB, "
        f"sha256 {manifest['sha256'][:16]}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
