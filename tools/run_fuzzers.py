#!/usr/bin/env python3
"""Runs every libFuzzer target (cpp/headrace/**/*_fuzz.cc) from its seeds in tests/corpus/<name>/.

tools/run_fuzzers.py --build build/clang [--seconds 10] [-j 2] [NAME ...]

A target that was not built or has no seed is an error: a fuzzer that starts from nothing spends its
time on the first bytes. A finding fails the run and names the input that reproduces it. What a run
discovers is kept in build/fuzz/<name>, so that later runs go on from there.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "fuzz"


@dataclass
class Outcome:
    name: str
    problem: str = ""
    text: str = ""


def seeds_of(name: str) -> Path | None:
    """tests/corpus/<name>, the name with or without its _fuzz, when it holds a file."""
    for folder in (name, name.removesuffix("_fuzz")):
        path = ROOT / "tests" / "corpus" / folder
        if path.is_dir() and any(child.is_file() for child in path.iterdir()):
            return path
    return None


def fuzz(source: Path, build: Path, seconds: int) -> Outcome:
    name = source.stem
    program = build / source.parent.relative_to(ROOT) / name
    if not program.is_file():
        return Outcome(name, f"was not built: name {source.name} under FUZZERS of its layer")
    seeds = seeds_of(name)
    if seeds is None:
        folder = name.removesuffix("_fuzz")
        return Outcome(name, f"has no seed: put valid inputs into tests/corpus/{folder}/")
    found, artifacts = WORK / name, WORK / "artifacts" / name
    found.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(artifacts, ignore_errors=True)
    artifacts.mkdir(parents=True)
    command: list[str | Path] = [
        program,
        f"-max_total_time={seconds}",
        "-rss_limit_mb=512",
        "-timeout=10",
        "-print_final_stats=1",
        f"-artifact_prefix={artifacts}/",
        found,
        seeds,
    ]
    start = time.monotonic()
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    log = result.stderr
    runs = re.search(r"number_of_executed_units:\s*(\d+)", log)
    covered = re.findall(r"\bcov: (\d+)", log)
    took = time.monotonic() - start
    if result.returncode == 0:
        edges = covered[-1] if covered else "?"
        count = int(runs[1]) if runs else 0
        return Outcome(name, text=f"{count} runs, {edges} edges, {took:.0f} s")
    bad = sorted(path.relative_to(ROOT) for path in artifacts.iterdir())
    where = f"`{program.relative_to(ROOT)} {bad[0]}` shows it" if bad else "left no input behind"
    return Outcome(name, f"failed ({result.returncode}); {where}", log[-4000:])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build/clang"))
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*", help="only these targets, e.g. tar_fuzz")
    args = parser.parse_args()
    sources = sorted((ROOT / "cpp" / "headrace").rglob("*_fuzz.cc"))
    if args.names:
        sources = [source for source in sources if source.stem in args.names]
    if not sources:
        print("no fuzz target to run", file=sys.stderr)
        return 1
    build = args.build if args.build.is_absolute() else ROOT / args.build
    failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for outcome in pool.map(lambda source: fuzz(source, build, args.seconds), sources):
            if outcome.problem:
                failed += 1
                print(f"{outcome.text}\nFAILED {outcome.name} {outcome.problem}", flush=True)
            else:
                print(f"{outcome.name}: {outcome.text}", flush=True)
    print(f"{len(sources) - failed} fuzzers without finding, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
