"""Mosaic Streaming: reads MDS shuffled in one process, and gives its own sample order.

Runs in .venv-mosaic.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parent.parent)

import measure  # noqa: E402

# What a job that cares about shuffling would write; the block is the library's default.
SHUFFLE = {"shuffle": True, "shuffle_algo": "py1e", "num_canonical_nodes": 1, "batch_size": 64}


def open_dataset(args: Namespace) -> Any:
    from streaming import StreamingDataset

    # A cache folder left by an earlier run makes it wait for a process that is gone.
    os.environ["TMPDIR"] = args.scratch
    tempfile.tempdir = args.scratch
    return StreamingDataset(local=str(args.data), shuffle_seed=args.seed, **SHUFFLE)


def check_tokens(args: Namespace) -> dict[str, Any]:
    seen = measure.Multiset()
    for sample in open_dataset(args):
        seen.add(sample["tokens"].tobytes())
    return seen.identity()


def time_tokens(args: Namespace) -> dict[str, Any]:
    dataset = open_dataset(args)

    def epoch(_: int) -> Iterator[tuple[int, int]]:
        for sample in dataset:
            yield 1, sample["tokens"].nbytes

    return measure.timed_epochs(epoch, args.seconds)


def check_jpeg(args: Namespace) -> dict[str, Any]:
    seen = measure.Multiset()
    for sample in open_dataset(args):
        seen.add(sample["jpg"], measure.label_bytes(sample["cls"]))
    return seen.identity()


def time_jpeg(args: Namespace) -> dict[str, Any]:
    dataset = open_dataset(args)

    def epoch(_: int) -> Iterator[tuple[int, int]]:
        for sample in dataset:
            yield 1, len(sample["jpg"])

    return measure.timed_epochs(epoch, args.seconds)


def first(args: Namespace) -> dict[str, Any]:
    """From the start of the process to 64 samples."""
    iterator = iter(open_dataset(args))
    batch = [next(iterator) for _ in range(64)]
    return {"ready": time.monotonic(), "samples": len(batch)}


def deff(args: Namespace) -> dict[str, Any]:
    """py1e as a job of 8 nodes with 8 ranks would see it: one row is one global batch."""
    import numpy as np
    from streaming.base.partition import get_partitions
    from streaming.base.shuffle import get_shuffle

    shards, shard, nodes, ranks = int(args.options["shards"]), int(args.options["shard"]), 8, 8
    batch = 1024 // (nodes * ranks)
    block = int(args.options["block"])
    sizes = np.full(shards, shard, dtype=np.int64)
    total = shards * shard
    order = get_shuffle("py1e", sizes, nodes, args.seed, 0, block)
    places = get_partitions("relaxed", total, nodes, nodes, ranks, 1, batch, 0)
    # (nodes, ranks, workers, batches, samples) -> (batches, all samples of a global batch)
    steps = places.transpose(3, 0, 1, 2, 4).reshape(places.shape[3], -1)
    steps = steps[(steps >= 0).all(axis=1)]
    shard_of = np.arange(total) // shard
    return {"deff": measure.deff(order[steps], shard_of, shards), "batches": len(steps)}


def make_tokens(args: Namespace) -> dict[str, Any]:
    """4 KB samples: 2,048 uint16 tokens of a vocabulary of 50,257."""
    import numpy as np
    from streaming import MDSWriter

    rng = np.random.Generator(np.random.PCG64(args.seed))
    count = int(args.options["count"])
    columns = {"tokens": "ndarray:uint16:2048"}
    with MDSWriter(out=str(args.data), columns=columns, size_limit=1 << 26) as out:
        for _ in range(count):
            out.write({"tokens": rng.integers(0, 50257, 2048, dtype=np.uint16)})
    return {"samples": count}


def make_jpeg(args: Namespace) -> dict[str, Any]:
    """The photographs as stored bytes, with their class numbers."""
    from streaming import MDSWriter

    photos = Path(args.options["photos"])
    classes = sorted(p.name for p in photos.iterdir() if p.is_dir())
    count = 0
    columns = {"jpg": "bytes", "cls": "int"}
    with MDSWriter(out=str(args.data), columns=columns, size_limit=1 << 26) as out:
        for number, name in enumerate(classes):
            for path in sorted((photos / name).glob("*.jpg")):
                out.write({"jpg": path.read_bytes(), "cls": number})
                count += 1
    return {"samples": count}


def make_numbers(args: Namespace) -> dict[str, Any]:
    """Shards of equal length with tiny samples, to see an order and little else."""
    from streaming import MDSWriter

    shards, shard = int(args.options["shards"]), int(args.options["shard"])
    with MDSWriter(out=str(args.data), columns={"x": "int"}) as out:
        out.size_limit = out.extra_bytes_per_shard + shard * (8 + out.extra_bytes_per_sample)
        for i in range(shards * shard):
            out.write({"x": i})
    return {"samples": shards * shard}


if __name__ == "__main__":
    MODES = {
        "check-tokens": check_tokens,
        "time-tokens": time_tokens,
        "check-jpeg": check_jpeg,
        "time-jpeg": time_jpeg,
        "first": first,
        "deff": deff,
        "make-tokens": make_tokens,
        "make-jpeg": make_jpeg,
        "make-numbers": make_numbers,
    }
    parsed = measure.arguments(MODES)
    parsed.scratch = tempfile.mkdtemp(prefix="headrace-bench-")
    try:
        measure.tell(MODES[parsed.mode](parsed))
    finally:
        shutil.rmtree(parsed.scratch, ignore_errors=True)
