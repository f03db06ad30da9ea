"""`headrace info`: what is in a data set, and how well it can be shuffled."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import headrace as hr
from headrace.cli import options
from headrace.cli.failures import EXIT_OK
from headrace.cli.output import Output
from headrace.cli.text import bytes_text, count_text, counted, histogram, printable, table

NAME = "info"
SUMMARY = "show what a data set holds"
DESCRIPTION = """\
Opens a data set by its index, without reading samples, and shows format, fields, sizes, digests
and the shuffle quality that the default order reaches.

DEFF is the variance of what a shuffled batch draws, relative to drawing it from the whole data set
at random: 1 is ideal, and 2 means that a batch tells as much as an ideal one of half its size.
"""
EXAMPLES = """\
examples:
  headrace info out/train
  headrace info s3://bucket/train --batch-size 1024
  headrace info http://127.0.0.1:8000/train --json | jq .samples
"""

# Below this, what a shard costs to open (a request of some 30 ms, against 100 MB/s of one stream)
# outweighs reading it.
SMALL_SHARD_BYTES = 4 << 20
# With fewer shards for each reader, readers that take whole shards get visibly unequal shares.
SHARDS_PER_READER = 10
# Rows of fields shown; a set with more is shown in full by --json.
_FIELDS_SHOWN = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of this command."""
    options.add_dataset(parser)
    parser.add_argument(
        "--batch-size",
        metavar="N",
        type=options.number(int, 1),
        default=256,
        help="samples of a global batch, for DEFF (default: 256)",
    )
    parser.add_argument(
        "--readers",
        metavar="N",
        type=options.number(int, 1),
        default=1,
        help="ranks or workers that will read, for advice on shard counts (default: 1)",
    )
    options.add_general(parser)
    options.add_store(parser)


@dataclass(frozen=True)
class Facts:
    """What advice is given on."""

    samples: int
    shard_bytes: list[int]
    hashed_shards: int
    deff: float
    batch_size: int
    readers: int


def advice(facts: Facts) -> list[str]:
    """What to do better, each with the number it rests on. Empty when all is well."""
    lines = []
    count, total = len(facts.shard_bytes), sum(facts.shard_bytes)
    if facts.samples == 0:
        return ["the data set holds no sample"]
    if count > 1 and total / count < SMALL_SHARD_BYTES:
        lines.append(
            f"shards are small ({bytes_text(total / count)} on average): pack with a larger "
            "--size-limit, 64MB or more, to need fewer requests"
        )
    if count < SHARDS_PER_READER * facts.readers and total >= SMALL_SHARD_BYTES * SHARDS_PER_READER:
        lines.append(
            f"{counted(count, 'shard')} for {counted(facts.readers, 'reader')}: loaders that deal "
            f"out whole shards want {SHARDS_PER_READER} for each reader (Headrace does not mind)"
        )
    if facts.hashed_shards < count:
        lines.append(
            f"{count_text(count - facts.hashed_shards)} of {counted(count, 'shard')} without "
            "digest: changed bytes can pass unseen; pack with --hashes sha256"
        )
    if facts.deff > 2:
        lines.append(
            f"DEFF {facts.deff:.1f} for batches of {count_text(facts.batch_size)}: a larger window "
            "or smaller chunks (headrace.Order) shuffle better"
        )
    return lines


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the command and returns its exit code."""
    with hr.open(args.url, **options.open_arguments(args)) as dataset:
        document = describe(dataset, args.batch_size, args.readers)
        shards = list(dataset.shards)
    _show(document, [shard.bytes for shard in shards], out)
    out.result("info", document)
    return EXIT_OK


def describe(dataset: hr.Dataset, batch_size: int, readers: int) -> dict[str, Any]:
    """Everything `info` prints, as one JSON-able dict."""
    shards, samples, stored = dataset.shards, len(dataset), dataset.stored_bytes
    sizes = [shard.bytes for shard in shards]
    deff = float(dataset.deff(batch_size)) if samples > 1 else 1.0
    hashed = [shard for shard in shards if shard.hashes]
    facts = Facts(samples, sizes, len(hashed), deff, batch_size, readers)
    return {
        "url": str(dataset.url),
        "format": dataset.format,
        "samples": samples,
        "stored_bytes": stored,
        "mean_sample_bytes": stored / samples if samples else None,
        "fields": {name: str(kind) for name, kind in dataset.fields.items()},
        "shards": {
            "count": len(shards),
            "bytes_min": min(sizes, default=0),
            "bytes_max": max(sizes, default=0),
            "samples_min": min((s.samples for s in shards), default=0),
            "samples_max": max((s.samples for s in shards), default=0),
            "with_hashes": len(hashed),
            "hashes": sorted({algorithm for shard in hashed for algorithm in shard.hashes}),
        },
        "batch_size": batch_size,
        "deff": deff,
        "advice": advice(facts),
    }


def _show(document: dict[str, Any], sizes: list[int], out: Output) -> None:
    shards = document["shards"]
    mean = document["mean_sample_bytes"]
    out.say(printable(document["url"]))
    rows = [
        ("format", document["format"]),
        ("samples", count_text(document["samples"])),
        ("stored", bytes_text(document["stored_bytes"])),
        ("mean sample", "-" if mean is None else bytes_text(mean)),
        ("shards", _shards_text(shards)),
        ("digests", _digests_text(shards)),
        ("DEFF", f"{document['deff']:.2f} for batches of {count_text(document['batch_size'])}"),
    ]
    out.say(table(rows))
    out.say("fields")
    fields = list(document["fields"].items())
    out.say(table((printable(name), kind) for name, kind in fields[:_FIELDS_SHOWN]))
    if len(fields) > _FIELDS_SHOWN:
        out.say(f"  and {count_text(len(fields) - _FIELDS_SHOWN)} more (--json shows all)")
    if len(sizes) > 1:
        out.say("shard sizes")
        out.say(histogram(sizes))
    if document["advice"]:
        out.say("advice")
        for line in document["advice"]:
            out.say(f"  - {line}")


def _shards_text(shards: dict[str, Any]) -> str:
    count = count_text(shards["count"])
    if shards["count"] < 2:
        return count
    low, high = count_text(shards["samples_min"]), count_text(shards["samples_max"])
    return f"{count} of {low} to {high} samples" if low != high else f"{count} of {low} samples"


def _digests_text(shards: dict[str, Any]) -> str:
    if not shards["with_hashes"]:
        return "none"
    every = (
        "every shard"
        if shards["with_hashes"] == shards["count"]
        else f"{shards['with_hashes']} shards"
    )
    return f"{', '.join(shards['hashes'])} of {every}"
