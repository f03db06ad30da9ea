"""`headrace pack`: turns pictures, tables and tar files into shards."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.cli import options
from headrace.cli.failures import EXIT_OK, BadRow, Failure, UsageError, out_is_there
from headrace.cli.output import Bar, Output
from headrace.cli.sources import KINDS, Row, RowMaker, Source, detect_kind, open_source
from headrace.cli.sources.base import Settings
from headrace.cli.sources.extensions import KEY_FIELD, tar_columns
from headrace.cli.text import bytes_text, count_text, counted, printable, rate_text, seconds_text
from headrace.errors import InvalidArgumentError

NAME = "pack"
SUMMARY = "pack pictures, tables or tar files into shards"
DESCRIPTION = """\
Packs a source into a folder of shards with an index. The same source and options give the same
bytes, whatever the number of threads. The folder appears when it is complete: a run that fails or
is killed leaves none behind that could be mistaken for a good one.

sources (told apart by name; --from says it outright):
  folders   SOURCE/<class>/*.jpg: labels count the sorted class folders, as ImageFolder does
  jsonl     one JSON object a line; also .gz, a folder of them, or - for stdin
  csv       a header line and rows; .tsv too
  tar       WebDataset shards: a file, a folder, a brace pattern or URLs
  dataset   whatever `headrace info` can open, to be packed anew

In a table, columns given as jpeg, png or bytes hold the names of files below --root. In tar shards
(--format wds) a column is a file whose extension tells its type: image becomes image.jpg, label
label.cls, caption caption.txt.
"""
EXAMPLES = """\
examples:
  headrace pack photos/train out/train
  headrace pack photos/train out/train --format wds --size-limit 256MB
  headrace pack captions.jsonl out/captions --columns id=str,image=jpeg --root pictures
  headrace pack table.csv out/table --columns label=uint8 --shuffle-seed 1
  headrace pack 's3://bucket/train-{000000..000127}.tar' out/train
  zcat big.jsonl.gz | headrace pack - out/big
"""

# Rows made ahead of the writer for each thread: they hide a slow file and bound the memory.
_AHEAD_PER_THREAD = 4
# Bad rows that --skip-bad names one by one; the rest is counted.
_SKIPPED_SHOWN = 5
_DEFAULT_HASH = "sha256"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of this command."""
    parser.add_argument(
        "source", metavar="SOURCE", help="folder, file, brace pattern, URL, or - for stdin"
    )
    parser.add_argument("out", metavar="OUT", help="folder to make, or s3:// URL to write to")
    parser.add_argument(
        "--from", dest="kind", choices=KINDS, help="kind of source (default: by name)"
    )
    parser.add_argument(
        "--format", choices=("mds", "wds"), default="mds", help="format of the shards"
    )
    parser.add_argument(
        "--columns",
        metavar="NAME=ENCODING",
        action="append",
        default=[],
        help="encoding of columns, in place of the inferred one: bytes, str, int, uint8 .. "
        "float64, ndarray:DTYPE[:SHAPE], json, jpeg, png; several with commas or by repeating",
    )
    parser.add_argument(
        "--drop", metavar="NAME", action="append", default=[], help="leave a column out"
    )
    parser.add_argument(
        "--root", metavar="DIR", help="folder of files named in a table (default: the table's)"
    )
    parser.add_argument(
        "--delimiter", metavar="CHAR", help="between the cells of a CSV (default: comma)"
    )
    parser.add_argument("--no-names", action="store_true", help="folders: do not record file names")
    parser.add_argument(
        "--size-limit",
        metavar="SIZE",
        type=options.size,
        default="64MB",
        help="bytes of a shard at most, unless one sample is larger (default: 64MB)",
    )
    parser.add_argument(
        "--hashes",
        metavar="NAME",
        help="digest to record for each MDS shard, or none (default: sha256); the index of tar "
        "shards always has SHA-256",
    )
    parser.add_argument(
        "--shuffle-seed",
        metavar="N",
        type=options.number(int, 0, 2**64 - 1),
        help="pack in an order shuffled by this number (default: the source's order)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace OUT once the new one is complete"
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave bad rows out and count them")
    parser.add_argument(
        "--threads",
        metavar="N",
        type=options.number(int, 1, 1024),
        help="threads that read files (default: one for each CPU)",
    )
    options.add_general(parser)
    options.add_store(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the command and returns its exit code."""
    started = time.monotonic()
    kind = args.kind or detect_kind(args.source)
    check_places(args.source, args.out)
    source = open_source(args.source, kind, _settings(args))
    try:
        for note in source.notes:
            out.note(note)
        packed = _pack(args, source, out)
    finally:
        source.close()
    _report(args, source, packed, time.monotonic() - started, out)
    return EXIT_OK


def parse_columns(words: list[str]) -> dict[str, str]:
    """{"a": "int", "b": "ndarray:float32:2,3"} from ["a=int,b=ndarray:float32:2,3"]."""
    columns: dict[str, str] = {}
    for word in words:
        # A comma separates columns only where NAME= follows: shapes hold commas too.
        for part in re.split(r",(?=[^,=]+=)", word):
            name, equals, encoding = part.partition("=")
            if not (name and equals and encoding):
                raise UsageError(f"--columns '{part}' is not NAME=ENCODING")
            if name in columns:
                raise UsageError(f"--columns names '{name}' twice")
            columns[name] = encoding
    return columns


def check_places(source: str, out: str) -> None:
    """Refuses an OUT that would swallow the source, or that the source would read again."""
    if source == "-" or "://" in source or "://" in out:
        return
    real_out, real_source = Path(os.path.realpath(out)), Path(os.path.realpath(source))
    if real_source.is_relative_to(real_out):
        raise UsageError(f"OUT {out} holds the source {source}; choose another folder")
    if real_source.is_dir() and real_out.is_relative_to(real_source):
        raise UsageError(f"OUT {out} lies inside the source {source}; choose a folder beside it")


def in_order(makers: Iterator[RowMaker], threads: int) -> Generator[Row | BadRow, None, None]:
    """Makes rows in `threads` threads and gives them out in their own order; bad rows as values."""
    if threads == 1:
        for maker in makers:
            yield _made(maker)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="headrace-pack")
    ahead: deque[Future[Row | BadRow]] = deque()
    try:
        for maker in makers:
            ahead.append(pool.submit(_made, maker))
            if len(ahead) >= threads * _AHEAD_PER_THREAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _made(maker: RowMaker) -> Row | BadRow:
    try:
        return maker()
    except BadRow as error:
        return error


def _settings(args: argparse.Namespace) -> Settings:
    if args.delimiter is not None and len(args.delimiter) != 1:
        raise UsageError("--delimiter must be one character")
    return Settings(
        overrides=parse_columns(args.columns),
        drop=frozenset(args.drop),
        root=Path(args.root) if args.root is not None else None,
        delimiter=args.delimiter,
        names=not args.no_names,
        target=args.format,
        shuffle_seed=args.shuffle_seed,
        store=options.store_arguments(args),
    )


class _Packed:
    """What a run counted."""

    def __init__(self) -> None:
        self.samples = 0
        self.skipped: list[str] = []
        self.skipped_count = 0


def _pack(args: argparse.Namespace, source: Source, out: Output) -> _Packed:
    packed = _Packed()
    columns = source.columns
    renamed = None
    if args.format == "wds":
        renamed = tar_columns(columns, frozenset(parse_columns(args.columns)))
        columns = dict(renamed.values())
    threads = (args.threads or len(os.sched_getaffinity(0))) if source.threaded else 1
    with (
        _open_writer(args, columns) as writer,
        out.progress(f"packing {Path(args.out).name}") as bar,
        contextlib.closing(in_order(source.rows(), threads)) as rows,
    ):
        for row in rows:
            bad = row if isinstance(row, BadRow) else _write(writer, row, renamed)
            if bad is None:
                packed.samples += 1
            elif args.skip_bad:
                _skip(packed, bad, out)
            else:
                raise bad
            _advance(bar, source, packed)
        if not packed.samples:
            raise Failure(f"nothing to pack: all {packed.skipped_count} rows were bad", "empty")
        _write_side_files(args.out, source.side_files(), out)
    return packed


def _write_side_files(out_name: str, files: dict[str, bytes], out: Output) -> None:
    """Puts small files beside the shards, before all of them appear together."""
    if "://" in out_name:
        for name in files:
            out.note(f"{name} is written into folders only")
        return
    # Where headrace.Writer keeps a local data set until it is complete.
    partial = Path(os.path.realpath(out_name) + ".partial")
    for name, data in files.items():
        (partial / name).write_bytes(data)


def _open_writer(args: argparse.Namespace, columns: dict[str, str]) -> hr.Writer:
    try:
        return hr.Writer(
            args.out,
            columns=columns,
            format=args.format,
            size_limit=args.size_limit,
            hashes=_hashes(args),
            overwrite=args.overwrite,
            **options.store_arguments(args),
        )
    except InvalidArgumentError as error:
        raise out_is_there(error) or UsageError(str(error)) from error


def _hashes(args: argparse.Namespace) -> list[str]:
    if args.hashes is None:
        return [_DEFAULT_HASH] if args.format == "mds" else []
    return [] if args.hashes == "none" else [args.hashes]


def _write(
    writer: hr.Writer, row: Row, renamed: dict[str, tuple[str, str]] | None
) -> BadRow | None:
    values = row.values
    if renamed is not None:
        values = {extension: values[name] for name, (extension, _) in renamed.items()}
        if row.key is not None:
            values[KEY_FIELD] = row.key
    try:
        writer.write(values)
    except InvalidArgumentError as error:
        return BadRow(row.where, str(error))
    return None


def _skip(packed: _Packed, bad: BadRow, out: Output) -> None:
    packed.skipped_count += 1
    if len(packed.skipped) < _SKIPPED_SHOWN:
        packed.skipped.append(str(bad))
        out.note(f"left out: {bad}")


def _advance(bar: Bar, source: Source, packed: _Packed) -> None:
    bar.update(source.position(), source.total, f"{count_text(packed.samples)} samples")


def _report(
    args: argparse.Namespace, source: Source, packed: _Packed, seconds: float, out: Output
) -> None:
    with hr.open(args.out, **options.store_arguments(args)) as dataset:
        shards = dataset.shards
        stored = dataset.stored_bytes
        fields = {name: str(kind) for name, kind in dataset.fields.items()}
    if packed.skipped_count > len(packed.skipped):
        out.note(f"{count_text(packed.skipped_count)} bad rows were left out in all")
    out.say(
        f"packed {counted(packed.samples, 'sample')} ({bytes_text(stored)}) into "
        f"{counted(len(shards), 'shard')} in {seconds_text(seconds)}, "
        f"{rate_text(packed.samples / seconds)} samples/s"
    )
    out.say("fields: " + ", ".join(f"{printable(n)} ({t})" for n, t in fields.items()))
    if packed.skipped_count:
        out.say(f"left out: {counted(packed.skipped_count, 'bad row')}")
    out.say(f"look at it: headrace info {args.out}")
    document: dict[str, Any] = {
        "source": args.source,
        "kind": source.kind,
        "out": args.out,
        "format": args.format,
        "samples": packed.samples,
        "skipped": packed.skipped_count,
        "skipped_rows": packed.skipped,
        "stored_bytes": stored,
        "shards": len(shards),
        "fields": fields,
        "seconds": seconds,
    }
    out.result("pack", document)
