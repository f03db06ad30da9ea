"""`headrace index`: makes the index that tar shards lack."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict

import headrace as hr
from headrace.cli import options
from headrace.cli.failures import EXIT_OK, UsageError, out_is_there
from headrace.cli.output import Output
from headrace.cli.text import bytes_text, counted, printable, seconds_text
from headrace.errors import InvalidArgumentError

NAME = "index"
SUMMARY = "make an index of tar shards"
DESCRIPTION = """\
Reads WebDataset tar shards once and writes headrace.index, which tells where every sample lies.
The shards stay as they are. The index goes beside local shards; --out puts it anywhere else, and
`--index FILE` of the other commands reads it from there.
"""
EXAMPLES = """\
examples:
  headrace index out/train
  headrace index 'shards/train-{0000..0127}.tar'
  headrace index 's3://bucket/train-{000000..000999}.tar' --out train.index
  headrace info s3://bucket --index train.index
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of this command."""
    parser.add_argument(
        "shards",
        metavar="SHARDS",
        nargs="+",
        help="tar files, a folder of them, brace patterns, URLs",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="where the index goes (default: beside the shards)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an index that is there")
    options.add_general(parser)
    options.add_store(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the command and returns its exit code."""
    started = time.monotonic()
    try:
        with out.progress("indexing") as bar:
            made = hr.build_index(
                args.shards,
                out=args.out,
                overwrite=args.overwrite,
                progress=lambda done, total: bar.update(done, total, bytes_text(done)),
                **options.store_arguments(args),
            )
    except InvalidArgumentError as error:
        raise out_is_there(error) or UsageError(str(error)) from error
    seconds = time.monotonic() - started
    out.say(
        f"indexed {counted(made.samples, 'sample')} ({bytes_text(made.stored_bytes)}) in "
        f"{counted(made.shards, 'shard')} in {seconds_text(seconds)}: {printable(made.path)}"
    )
    out.result("index", {**asdict(made), "seconds": seconds})
    return EXIT_OK
