"""`headrace bench`: how fast a data set loads, and what the loader waited for."""

from __future__ import annotations

import argparse
import math
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.cli import options
from headrace.cli.failures import EXIT_OK, Failure, UsageError, arguments_of_user
from headrace.cli.output import Output
from headrace.cli.text import bytes_text, count_text, printable, rate_text, seconds_text, table

NAME = "bench"
SUMMARY = "measure how fast a data set loads"
DESCRIPTION = """\
Iterates a loader for some seconds and prints rates, waits, memory and shuffle quality. The program
does nothing with the batches, so `wait` is the time from one batch to the next: what a training
step has to take at least for the loader to keep up.
"""
EXAMPLES = """\
examples:
  headrace bench out/train
  headrace bench out/train --decode image=random-resized:224 --batch-size 128 --threads 8
  headrace bench s3://bucket/train --seconds 60 --rank 3 --world 64 --json
"""

_SIZE = re.compile(r"(\d+)(?:x(\d+))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of this command."""
    options.add_dataset(parser)
    parser.add_argument(
        "--batch-size",
        metavar="N",
        type=options.number(int, 1),
        default=64,
        help="samples of a batch of this rank (default: 64)",
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=options.number(float, 0.1, 86400),
        default=10.0,
        help="how long to measure (default: 10)",
    )
    parser.add_argument(
        "--decode",
        metavar="FIELD=CROP:SIZE",
        action="append",
        default=[],
        help="decode pictures: crop random-resized, center, whole or none, size as 224 or 320x240 "
        "(width x height), e.g. image=random-resized:224; may be repeated",
    )
    parser.add_argument(
        "--field",
        metavar="NAME",
        action="append",
        default=[],
        help="load only this field; may be repeated",
    )
    parser.add_argument("--no-shuffle", action="store_true", help="load in stored order")
    parser.add_argument(
        "--seed",
        metavar="N",
        type=options.number(int, 0, 2**64 - 1),
        default=0,
        help="of the order",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        type=options.number(int, 1, 1024),
        help="threads of the loader (default: from the cgroup)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=options.size,
        help="memory budget (default: from the cgroup)",
    )
    parser.add_argument(
        "--rank",
        metavar="R",
        type=options.number(int, 0),
        default=0,
        help="rank to play (default: 0)",
    )
    parser.add_argument(
        "--world",
        metavar="W",
        type=options.number(int, 1),
        default=1,
        help="ranks in all (default: 1)",
    )
    options.add_general(parser)
    options.add_store(parser)


@dataclass
class Measure:
    """What one run counted. Times are seconds of the steady clock."""

    open_seconds: float = 0.0
    first_batch_seconds: float = 0.0
    seconds: float = 0.0
    batches: int = 0
    samples: int = 0
    epochs: int = 0
    waits: list[float] = field(default_factory=list)

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.seconds if self.seconds > 0 else 0.0


def parse_decode(words: list[str]) -> dict[str, dict[str, Any]]:
    """{"image": {"crop": "random-resized", "size": 224}} from ["image=random-resized:224"]."""
    decode: dict[str, dict[str, Any]] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        crop, colon, size = rest.partition(":")
        match = _SIZE.fullmatch(size)
        if not (name and equals and crop and (match or (crop == "none" and not colon))):
            raise UsageError(
                f"--decode '{word}' is not FIELD=CROP:SIZE, such as image=random-resized:224"
            )
        if name in decode:
            raise UsageError(f"--decode names '{name}' twice")
        decode[name] = {"crop": None if crop == "none" else crop}
        if match:
            width, height = int(match[1]), int(match[2] or match[1])
            decode[name]["size"] = width if width == height else (height, width)
    return decode


def percentile(values: list[float], share: float) -> float:
    """The smallest value that `share` of the values do not exceed; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the command and returns its exit code."""
    if args.rank >= args.world:
        raise UsageError(f"--rank {args.rank} is not below --world {args.world}")
    wanted = parse_decode(args.decode)
    measure = Measure()
    started = time.monotonic()
    with hr.open(args.url, **options.open_arguments(args)) as opened:
        _check_fields(opened, [*args.field, *wanted])
        dataset = opened.columns(*args.field) if args.field else opened
        measure.open_seconds = time.monotonic() - started
        with _loader(args, dataset, wanted) as loader:
            _measure(loader, args, measure, out)
            stats = loader.stats()
        document = _document(args, opened, measure, stats)
    _show(document, out)
    out.result("bench", document)
    return EXIT_OK


def _check_fields(dataset: hr.Dataset, names: list[str]) -> None:
    for name in names:
        if name not in dataset.fields:
            hint = options.did_you_mean(name, list(dataset.fields))
            shown = printable(", ".join(dataset.fields))
            raise UsageError(f"the data set has no field '{name}'{hint} (it has: {shown})")


def _loader(
    args: argparse.Namespace, dataset: hr.Dataset, wanted: dict[str, dict[str, Any]]
) -> hr.Loader:
    with arguments_of_user():
        return hr.Loader(
            dataset,
            batch_size=args.batch_size,
            order=hr.Order(seed=args.seed, shuffle=not args.no_shuffle),
            rank=args.rank,
            world_size=args.world,
            epoch_end="partial",  # every epoch reads everything once, whatever the batch size
            decode={name: hr.image(**spec) for name, spec in wanted.items()} or None,
            threads=args.threads,
            memory=args.memory,
            output="numpy",
        )


def _measure(loader: hr.Loader, args: argparse.Namespace, measure: Measure, out: Output) -> None:
    begun = time.monotonic()
    last = begun
    with out.progress("loading") as bar:
        while True:
            before = measure.batches
            for batch in loader:
                now = time.monotonic()
                if measure.batches == 0:
                    measure.first_batch_seconds = now - begun
                    begun = now  # rates start where the pipeline is filled
                else:
                    measure.waits.append(now - last)
                    measure.samples += len(batch["__index__"])
                measure.batches += 1
                last = now
                measure.seconds = now - begun
                note = f"{rate_text(measure.samples_per_second)} samples/s"
                bar.update(int(measure.seconds * 1000), int(args.seconds * 1000), note)
                if measure.seconds >= args.seconds:
                    return
            measure.epochs += 1
            if measure.batches == before:
                raise Failure(
                    "an epoch gave no batch: the data set holds too few samples", "invalid_argument"
                )


def _document(
    args: argparse.Namespace, dataset: hr.Dataset, measure: Measure, stats: dict[str, Any]
) -> dict[str, Any]:
    mean = dataset.stored_bytes / len(dataset) if len(dataset) else 0.0
    return {
        "url": str(dataset.url),
        "batch_size": args.batch_size,
        "global_batch": args.batch_size * args.world,
        "rank": args.rank,
        "world": args.world,
        "open_seconds": measure.open_seconds,
        "first_batch_seconds": measure.first_batch_seconds,
        "seconds": measure.seconds,
        "batches": measure.batches,
        "samples": measure.samples,
        "epochs": measure.epochs,
        "samples_per_second": measure.samples_per_second,
        "stored_bytes_per_second": measure.samples_per_second * mean,
        "wait_seconds": {
            "p50": percentile(measure.waits, 0.5),
            "p99": percentile(measure.waits, 0.99),
            "max": max(measure.waits, default=0.0),
        },
        "resident_bytes_max": resident_bytes_max(),
        "deff": float(stats["deff"]),
        "stats": stats,
    }


def resident_bytes_max() -> int:
    """The most memory this process has held at once, as the kernel counts it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Failure("/proc/self/status does not tell VmHWM", "internal")


def _show(document: dict[str, Any], out: Output) -> None:
    wait = document["wait_seconds"]
    rank = f", rank {document['rank']} of {document['world']}" if document["world"] > 1 else ""
    out.say(f"{printable(document['url'])}: batches of {count_text(document['batch_size'])}{rank}")
    rows = [
        ("rate", f"{rate_text(document['samples_per_second'])} samples/s"),
        ("stored data", f"{bytes_text(document['stored_bytes_per_second'])}/s"),
        ("first batch", f"{seconds_text(document['first_batch_seconds'])}"),
        ("open", f"{seconds_text(document['open_seconds'])}"),
        ("wait", " ".join(f"{name} {seconds_text(value)}" for name, value in wait.items())),
        ("memory", f"{bytes_text(document['resident_bytes_max'])} at most, libraries included"),
        ("DEFF", f"{document['deff']:.2f} for batches of {count_text(document['global_batch'])}"),
        (
            "measured",
            f"{count_text(document['samples'])} samples, {count_text(document['batches'])} "
            f"batches, {count_text(document['epochs'])} whole epochs in "
            f"{seconds_text(document['seconds'])}",
        ),
    ]
    out.say(table(rows))
