#!/usr/bin/env python3
"""Runs clang-tidy 19 over the C++ sources with the commands that a build recorded.

tools/run_clang_tidy.py --build build/clang [-j 2] [--deep] [--changed REF] [FILE ...]

A file that passed is not checked again until its text, one of our headers it includes, its compile
command, the checks or clang-tidy itself changes: the key of the cache (~/.cache/headrace/clang-tidy
or under XDG_CACHE_HOME) is a digest of them all. --deep adds clang's path-sensitive analyzer.
--changed REF checks only what differs from REF (with the files that include a changed header).
Tests and the testing layer are left out unless named: googletest's macros cost a minute a file, and
what tests get wrong the sanitizers see.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CACHE_HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = CACHE_HOME / "headrace" / "clang-tidy"
INCLUDE = re.compile(r'^\s*#\s*include\s*"(headrace/[^"]+)"', re.MULTILINE)
DEEP = (
    "clang-analyzer-core.*,clang-analyzer-cplusplus.*,clang-analyzer-deadcode.*,"
    "clang-analyzer-security.*,clang-analyzer-unix.*,"
    "-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling"
)
NAMES = ("clang-tidy-19", "clang-tidy")


def find_tool() -> str:
    for name in NAMES:
        path = shutil.which(name)
        if path and re.search(r"version 19\.", version(path)):
            return path
    sys.exit("clang-tidy 19 is missing: tools/install_deps.sh installs clang-tidy-19")


@cache
def version(path: str) -> str:
    return subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout


@cache
def closure(path: Path) -> frozenset[Path]:
    """The file and every header of ours that it includes, however far down."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        current = todo.pop()
        if current in seen or not current.is_file():
            continue
        seen.add(current)
        text = current.read_text(errors="replace")
        todo += [ROOT / "cpp" / name for name in INCLUDE.findall(text)]
        todo += [current.parent / name for name in re.findall(r'include "([\w.]+)"', text)]
    return frozenset(seen)


def key_of(entry: dict[str, Any], tool: str, checks: str) -> str:
    digest = hashlib.sha256()
    digest.update((version(tool) + (ROOT / ".clang-tidy").read_text() + checks).encode())
    command = str(entry.get("command") or entry.get("arguments"))
    # Where the checkout lies makes no difference.
    digest.update(command.replace(str(ROOT), ".").encode())
    for path in sorted(closure(Path(entry["file"]))):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def changed_since(ref: str) -> set[Path]:
    diff = ["git", "diff", "--name-only", "-z", ref, "--"]
    new = ["git", "ls-files", "-z", "-o", "--exclude-standard"]
    names = "".join(
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for command in (diff, new)
    )
    return {ROOT / name for name in names.split("\0") if name}


def check(
    entry: dict[str, Any], tool: str, build: Path, use_cache: bool, checks: str
) -> tuple[str, str, float]:
    """(name, output, seconds); the output is empty when nothing was found."""
    path = Path(entry["file"])
    stamp = CACHE / key_of(entry, tool, checks)
    name = str(path.relative_to(ROOT))
    if use_cache and stamp.exists():
        return name, "", 0.0
    start = time.monotonic()
    command = [tool, "-p", str(build), "--quiet", "--warnings-as-errors=*"]
    command += [f"--checks={checks}"] if checks else []
    command.append(str(path))
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    took = time.monotonic() - start
    if result.returncode == 0:
        CACHE.mkdir(parents=True, exist_ok=True)
        stamp.touch()
        return name, "", took
    return name, (result.stdout + result.stderr).strip(), took


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build/clang"))
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--changed", metavar="REF", help="only what differs from this commit")
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--deep", action="store_true", help="with clang's path-sensitive analyzer")
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    tool = find_tool()
    build = ROOT / args.build
    database = build / "compile_commands.json"
    if not database.is_file():
        sys.exit(f"{database} is missing: run `cmake --preset clang` first")
    entries = [
        entry
        for entry in json.loads(database.read_text())
        if (ROOT / "cpp") in Path(entry["file"]).parents
        and (args.files or not re.search(r"_test\.cc$|/testing/", entry["file"]))
    ]
    if args.files:
        wanted = {path.resolve() for path in args.files}
        entries = [entry for entry in entries if Path(entry["file"]) in wanted]
    if args.changed:
        changed = changed_since(args.changed)
        entries = [entry for entry in entries if closure(Path(entry["file"])) & changed]
    failed = 0
    times: list[tuple[float, str]] = []
    with ThreadPoolExecutor(args.jobs) as pool:
        checks = DEEP if args.deep else ""
        run = pool.map(lambda entry: check(entry, tool, build, not args.no_cache, checks), entries)
        for name, output, took in run:
            times.append((took, name))
            if output:
                failed += 1
                print(output, flush=True)
    checked = [item for item in times if item[0] > 0]
    print(
        f"clang-tidy: {len(entries)} files, {len(checked)} not seen before, {failed} with findings"
    )
    for took, name in sorted(checked, reverse=True)[:3]:
        print(f"  {took:6.1f} s  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
