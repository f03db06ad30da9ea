#!/usr/bin/env python3
"""Cut ImageNet-shaped JPEGs out of the photographs in Debian's wallpaper packages.

Nothing is downloaded: the photographs are those that apt installs. Every picture is a random crop
of one of them, scaled, sometimes mirrored, and stored with the sizes, qualities and chroma
subsampling that ImageNet has. A class is a source photograph:

  OUT/<class>/<class>_00000.jpg ...    the pictures
  OUT/manifest.json                    what was made from what, sizes, and one digest of everything

The same seed, count, quality, packages and Pillow give the same bytes, whatever --jobs says: the
digest in the manifest is the proof.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import multiprocessing
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

try:
    import PIL
    from PIL import Image, features
except ImportError:
    sys.exit(
        "make_photos: Pillow is missing; try `tools/peer_envs.py photos` and then "
        "`.venv-photos/bin/python demo/make_photos.py`"
    )

PACKAGES = (
    "plasma-workspace-wallpapers",
    "mate-backgrounds",
    "ukui-wallpapers",
    "lxqt-themes",
    "gnome-backgrounds",
)

# A source below two megapixels gives too few different crops.
MIN_SOURCE_PIXELS = 2_000_000

# Width, height and weight: the usual shapes of ImageNet's training pictures.
SHAPES = (
    (500, 375, 46),
    (375, 500, 16),
    (500, 333, 14),
    (333, 500, 6),
    (500, 500, 4),
    (500, 334, 3),
    (500, 400, 2),
    (400, 300, 2),
    (300, 400, 1),
    (500, 281, 2),
    (640, 480, 2),
    (480, 640, 1),
    (250, 188, 1),
)

# Quality range. Measured means: "plain" 52 KB a picture, "imagenet" 103 KB, close to the 110 KB
# that the originals average.
QUALITIES = {"plain": (92, 98), "imagenet": (98, 100)}

# A crop may be shrunk at most this much: more would make every picture look alike.
MAX_SHRINK = 4.0


class PhotoError(Exception):
    """The pictures cannot be made; the text says why and what to do."""


@dataclass(frozen=True)
class Source:
    """One photograph: its class name and its file."""

    name: str
    path: str
    sha256: str
    width: int
    height: int


@dataclass(frozen=True)
class Task:
    """All pictures of one class, made by one worker so that its source is decoded once."""

    source: Source
    count: int
    seed: int
    quality: str
    folder: str


def package_files(packages: list[str]) -> list[str]:
    """The JPEG files of the given packages; an error names those that are missing."""
    files: list[str] = []
    missing: list[str] = []
    for package in packages:
        try:
            done = subprocess.run(["dpkg-query", "-L", package], capture_output=True, text=True)
        except FileNotFoundError:
            raise PhotoError(
                "no dpkg-query here: on other systems pass --source FOLDER with "
                "JPEG photographs of at least 2 megapixels"
            ) from None
        if done.returncode != 0:
            missing.append(package)
        files += [f for f in done.stdout.splitlines() if f.lower().endswith((".jpg", ".jpeg"))]
    if missing:
        raise PhotoError(
            "not installed: " + ", ".join(missing) + "; try `apt-get install "
            "--no-install-recommends " + " ".join(missing) + "`"
        )
    return files


def class_name(path: str) -> str:
    """A short name from a wallpaper's path: its folder in KDE's layout, else its file name."""
    parts = Path(path).parts
    if "contents" in parts:
        name = parts[parts.index("contents") - 1]
        if "images_dark" in parts:
            name += "-dark"
    else:
        name = re.sub(r"_\d+x\d+$", "", Path(path).stem)
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def find_sources(files: list[str]) -> list[Source]:
    """One source a class, the largest file of each; copies and small pictures are left out."""
    best: dict[str, Source] = {}
    seen: set[str] = set()
    for path in sorted(files):
        if not Path(path).is_file():
            continue
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if digest in seen:
            continue
        seen.add(digest)
        with Image.open(path) as image:
            width, height = image.size
        if width * height < MIN_SOURCE_PIXELS:
            continue
        source = Source(class_name(path), path, digest, width, height)
        known = best.get(source.name)
        if known is None or known.width * known.height < width * height:
            best[source.name] = source
    if not best:
        raise PhotoError("no JPEG photograph of at least 2 megapixels was found")
    return [best[name] for name in sorted(best)]


def cut(image: Image.Image, rng: random.Random, quality: str) -> bytes:
    """One picture as JPEG bytes."""
    width, height = rng.choices([s[:2] for s in SHAPES], weights=[s[2] for s in SHAPES])[0]
    most = min(MAX_SHRINK, image.width / width, image.height / height)
    shrink = rng.uniform(min(1.0, most), most)
    w, h = int(width * shrink), int(height * shrink)
    x, y = rng.randint(0, image.width - w), rng.randint(0, image.height - h)
    picture = image.resize((width, height), Image.Resampling.BICUBIC, box=(x, y, x + w, y + h))
    if rng.random() < 0.5:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    low, high = QUALITIES[quality]
    out = io.BytesIO()
    picture.save(
        out, "JPEG", quality=rng.randint(low, high), subsampling=2 if rng.random() < 0.75 else 0
    )
    return out.getvalue()


def make_class(task: Task) -> list[tuple[str, int, str]]:
    """Makes one class; gives (relative name, bytes, sha256) for each picture."""
    name = task.source.name
    folder = Path(task.folder) / name
    folder.mkdir()
    with Image.open(task.source.path) as opened:
        image = opened.convert("RGB")
    made = []
    for index in range(task.count):
        rng = random.Random(f"headrace-photos-1/{task.seed}/{name}/{index}")
        data = cut(image, rng, task.quality)
        file = f"{name}_{index:05d}.jpg"
        (folder / file).write_bytes(data)
        made.append((f"{name}/{file}", len(data), hashlib.sha256(data).hexdigest()))
    return made


class Progress:
    """A line that is rewritten on a terminal, and a few lines elsewhere."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.start, self.shown = total, 0, time.monotonic(), 0
        self.terminal = sys.stderr.isatty()

    def add(self, count: int) -> None:
        self.done += count
        seconds = time.monotonic() - self.start
        text = f"{self.done:,} of {self.total:,} pictures, {seconds:.0f} s"
        if self.terminal:
            end = "\n" if self.done == self.total else ""
            print(f"\r{text}\x1b[K", end=end, file=sys.stderr, flush=True)
        elif self.done * 5 // self.total > self.shown:
            self.shown = self.done * 5 // self.total
            print(text, file=sys.stderr, flush=True)


def histogram(sizes: list[int]) -> dict[str, int]:
    """How many pictures there are in each 20 kB step."""
    steps: dict[int, int] = {}
    for size in sizes:
        steps[size // 20_000] = steps.get(size // 20_000, 0) + 1
    return {f"{20 * s}-{20 * s + 20} kB": steps[s] for s in sorted(steps)}


def make(args: argparse.Namespace, sources: list[Source], folder: Path) -> dict:
    """Fills `folder` and gives the manifest."""
    share, rest = divmod(args.count, len(sources))
    tasks = [
        Task(s, share + (i < rest), args.seed, args.quality, str(folder))
        for i, s in enumerate(sources)
        if share + (i < rest)
    ]
    # The large sources first, so that the two processes end together.
    tasks.sort(key=lambda task: -task.source.width * task.source.height)
    progress = Progress(args.count)
    made: list[tuple[str, int, str]] = []
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for part in pool.imap_unordered(make_class, tasks):
            made += part
            progress.add(len(part))
    made.sort()
    whole = hashlib.sha256("".join(f"{name} {digest}\n" for name, _, digest in made).encode())
    sizes = [size for _, size, _ in made]
    return {
        "version": 1,
        "seed": args.seed,
        "count": args.count,
        "quality": args.quality,
        "pillow": PIL.__version__,
        "libjpeg_turbo": features.version("libjpeg_turbo"),
        "classes": len(tasks),
        "bytes": sum(sizes),
        "mean_bytes": round(statistics.fmean(sizes)),
        "median_bytes": round(statistics.median(sizes)),
        "histogram": histogram(sizes),
        "sha256": whole.hexdigest(),
        "sources": [
            {
                "class": t.source.name,
                "file": t.source.path,
                "sha256": t.source.sha256,
                "width": t.source.width,
                "height": t.source.height,
                "pictures": t.count,
            }
            for t in sorted(tasks, key=lambda t: t.source.name)
        ],
    }


def is_ready(out: Path, args: argparse.Namespace) -> bool:
    try:
        manifest = json.loads((out / "manifest.json").read_text())
        return (manifest["seed"], manifest["count"], manifest["quality"], manifest["pillow"]) == (
            args.seed,
            args.count,
            args.quality,
            PIL.__version__,
        )
    except (OSError, ValueError, KeyError):
        return False


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: demo/make_photos.py demo-out/photos --count 4000 --seed 1",
    )
    parser.add_argument("out", type=Path, help="folder to make")
    parser.add_argument("--count", type=int, default=4000, help="pictures in all (default 4000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of every crop (default 1)")
    parser.add_argument(
        "--quality",
        choices=sorted(QUALITIES),
        default="plain",
        help="plain: about 52 KB a picture; imagenet: about 103 KB",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(2, os.cpu_count() or 1),
        help="processes (default 2, or the cores there are)",
    )
    parser.add_argument(
        "--source",
        type=Path,
        action="append",
        metavar="FOLDER",
        help="take the JPEGs below this folder instead of Debian's packages",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT if it is something else")
    args = parser.parse_args()
    if args.count < 1 or args.jobs < 1:
        parser.error("--count and --jobs must be at least 1")
    return args


def main() -> int:
    args = parse()
    if is_ready(args.out, args):
        print(f"{args.out}: ready")
        return 0
    if args.out.exists() and not args.force:
        print(
            f"make_photos: {args.out} exists and was made otherwise; choose another folder or "
            "pass --force",
            file=sys.stderr,
        )
        return 1
    try:
        if args.source:
            files = [
                str(p)
                for folder in args.source
                for p in sorted(folder.rglob("*"))
                if p.suffix.lower() in (".jpg", ".jpeg")
            ]
        else:
            files = package_files(list(PACKAGES))
        sources = find_sources(files)
    except PhotoError as error:
        print(f"make_photos: {error}", file=sys.stderr)
        return 1
    args.out.parent.mkdir(parents=True, exist_ok=True)
    partial = args.out.with_name(f".{args.out.name}.partial-{os.getpid()}")
    try:
        partial.mkdir()
        manifest = make(args, sources, partial)
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        if args.out.exists():
            shutil.rmtree(args.out)
        partial.rename(args.out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(
        f"{args.out}: {manifest['count']:,} pictures of {manifest['classes']} photographs, "
        f"{manifest['bytes'] / 1e6:,.0f} MB, mean {manifest['mean_bytes'] / 1e3:.0f} kB, "
        f"sha256 {manifest['sha256'][:16]}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
