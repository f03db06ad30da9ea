"""`headrace verify`: reads a whole data set and reports everything that is wrong with it."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import Any

import headrace as hr
from headrace.cli import options
from headrace.cli.failures import EXIT_FAILED, EXIT_OK
from headrace.cli.output import Output
from headrace.cli.text import bytes_text, count_text, counted, printable, seconds_text

NAME = "verify"
SUMMARY = "check every byte of a data set"
DESCRIPTION = """\
Reads every shard: sizes, recorded digests, offset tables, and that each sample can be taken apart
as its fields say. Ends with 1 when something is wrong, and says where.
"""
EXAMPLES = """\
examples:
  headrace verify out/train
  headrace verify s3://bucket/train --json | jq .problems
"""

# Problems printed for people; a data set with more is beyond reading one by one.
_SHOWN = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of this command."""
    options.add_dataset(parser)
    options.add_general(parser)
    options.add_store(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the command and returns its exit code."""
    started = time.monotonic()
    arguments = options.open_arguments(args)
    with hr.open(args.url, **arguments) as dataset:
        shards = list(dataset.shards)
        samples, stored, url = len(dataset), dataset.stored_bytes, str(dataset.url)
    hashed = sum(1 for shard in shards if shard.hashes)
    with out.progress("verifying") as bar:

        def advance(done: int, total: int) -> None:
            bar.update(done, total, bytes_text(done))

        problems = [asdict(p) for p in hr.verify(args.url, progress=advance, **arguments)]
    seconds = time.monotonic() - started
    for problem in problems[:_SHOWN]:
        out.say(_line(problem))
    if len(problems) > _SHOWN:
        out.say(f"and {counted(len(problems) - _SHOWN, 'problem')} more (--json lists all)")
    read = f"{counted(samples, 'sample')} in {counted(len(shards), 'shard')}, {bytes_text(stored)}"
    if problems:
        out.say(f"{printable(url)}: {counted(len(problems), 'problem')} ({read})")
    else:
        against = _checked_against(hashed, len(shards))
        out.say(f"{printable(url)}: ok, {read}, {against}, {seconds_text(seconds)}")
    out.result(
        "verify",
        {
            "url": url,
            "ok": not problems,
            "problems": problems,
            "samples": samples,
            "shards": len(shards),
            "shards_with_hashes": hashed,
            "stored_bytes": stored,
            "seconds": seconds,
        },
    )
    return EXIT_FAILED if problems else EXIT_OK


def _checked_against(hashed: int, shards: int) -> str:
    if hashed == shards:
        return "digests match"
    if not hashed:
        return "no digests to compare with"
    return f"digests match where recorded ({count_text(hashed)} of {counted(shards, 'shard')})"


def _line(problem: dict[str, Any]) -> str:
    place = printable(str(problem["shard"]))
    if problem["sample"] is not None:
        place += f" sample {count_text(problem['sample'])}"
    if problem["offset"] is not None:
        place += f" at byte {count_text(problem['offset'])}"
    return f"{place}: {printable(str(problem['what']))}"
