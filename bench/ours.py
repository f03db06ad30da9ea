"""Headrace: the same work as the rivals, through its public Python names.

Runs where the package is installed (.venv), with NumPy output unless said otherwise.
"""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure

BATCH = 64
SIDE = 224


def open_loader(args: Namespace, batch_size: int = BATCH, **more: Any) -> Any:
    import headrace as hr

    options = {"epoch_end": "partial", "output": args.options.get("output", "numpy"), **more}
    if "threads" in args.options:
        options["threads"] = int(args.options["threads"])
    if "memory" in args.options:
        options["memory"] = int(args.options["memory"])
    options.setdefault("order", hr.Order(seed=args.seed))
    return hr.Loader(hr.open(str(args.data)), batch_size=batch_size, **options)


def ragged(field: Any) -> Iterator[memoryview]:
    """The samples of a ragged bytes field."""
    values, offsets = memoryview(field.values), field.offsets
    for i in range(len(offsets) - 1):
        yield values[int(offsets[i]) : int(offsets[i + 1])]


def check_tokens(args: Namespace) -> dict[str, Any]:
    seen = measure.Multiset()
    for batch in open_loader(args):
        for row in batch["tokens"]:
            seen.add(row.tobytes())
    return seen.identity()


def time_tokens(args: Namespace) -> dict[str, Any]:
    loader = open_loader(args)

    def epoch(_: int) -> Iterator[tuple[int, int]]:
        for batch in loader:
            yield len(batch["__index__"]), batch["tokens"].nbytes

    return measure.timed_epochs(epoch, args.seconds)


def check_jpeg(args: Namespace) -> dict[str, Any]:
    seen = measure.Multiset()
    for batch in open_loader(args):
        for data, label in zip(ragged(batch["jpg"]), batch["cls"], strict=True):
            seen.add(data, measure.label_bytes(int(label)))
    return seen.identity()


def time_jpeg(args: Namespace) -> dict[str, Any]:
    loader = open_loader(args)

    def epoch(_: int) -> Iterator[tuple[int, int]]:
        for batch in loader:
            yield len(batch["__index__"]), batch["jpg"].values.nbytes

    return measure.timed_epochs(epoch, args.seconds)


def index(args: Namespace) -> dict[str, Any]:
    """Makes the index of tar shards, which a user makes once with `headrace index`."""
    import headrace as hr

    start = time.perf_counter()
    made = hr.build_index(str(args.data), overwrite=True)
    return {"samples": made.samples, "seconds": time.perf_counter() - start}


def open_crops(args: Namespace) -> Any:
    import headrace as hr

    dataset = hr.open(str(args.data)).columns("jpg")
    if "limit" in args.options:
        dataset = dataset.take(int(args.options["limit"]))
    return hr.Loader(
        dataset,
        batch_size=BATCH,
        order=hr.Order(seed=args.seed),
        epoch_end="partial",
        decode={"jpg": hr.image(SIDE, crop="random-resized", flip=0.0)},
        output="numpy",
        threads=int(args.options.get("threads", 1)),
    )


def check_crop(args: Namespace) -> dict[str, Any]:
    seen = measure.Multiset()
    for batch in open_crops(args):
        for picture in batch["jpg"]:
            seen.add(picture.tobytes())
    return seen.identity()


def time_crop(args: Namespace) -> dict[str, Any]:
    loader = open_crops(args)

    def epoch(_: int) -> Iterator[tuple[int, int]]:
        for batch in loader:
            yield len(batch["__index__"]), batch["jpg"].nbytes

    return measure.timed_epochs(epoch, args.seconds)


def first(args: Namespace) -> dict[str, Any]:
    """From the start of the process to the first batch."""
    batch = next(iter(open_loader(args)))
    return {"ready": time.monotonic(), "samples": len(batch["__index__"])}


def save(args: Namespace) -> dict[str, Any]:
    """A state deep in an epoch, as a file."""
    loader = open_loader(args)
    batches = iter(loader)
    for _ in range(int(args.options.get("batches", 100))):
        next(batches)
    state = json.dumps(loader.state_dict())
    Path(args.options["state"]).write_text(state)
    following = next(batches)["__index__"].tolist()
    return {"state_bytes": len(state), "next": following}


def resume(args: Namespace) -> dict[str, Any]:
    """How long a new process takes for load_state_dict, and for the batch after it."""
    loader = open_loader(args)
    state = json.loads(Path(args.options["state"]).read_text())
    start = time.perf_counter()
    loader.load_state_dict(state)
    loaded = time.perf_counter()
    following = next(iter(loader))["__index__"].tolist()
    ready = time.perf_counter()
    return {"load_seconds": loaded - start, "batch_seconds": ready - loaded, "next": following}


def footprint(args: Namespace) -> dict[str, Any]:
    """Memory before the package is imported and after many batches, and names of shared memory."""
    import numpy as np

    np.zeros(1)
    before, entries = measure.memory(), set(Path("/dev/shm").iterdir())
    loader = open_loader(args)
    batches = 0
    for batch in loader:
        assert len(batch["__index__"]) > 0
        batches += 1
        if batches == int(args.options.get("batches", 300)):
            break
    after = measure.memory()
    appeared = sorted(str(path) for path in set(Path("/dev/shm").iterdir()) - entries)
    return {
        "before": before,
        "after": after,
        "batches": batches,
        "shared_memory": measure.named_shared_memory() + appeared,
    }


def deff(args: Namespace) -> dict[str, Any]:
    """The shuffle of batches of 1,024 over equal shards, for a window and a chunk in samples."""
    import headrace as hr
    import numpy as np

    shard = int(args.options["shard"])
    order = hr.Order(
        seed=args.seed,
        lanes=int(args.options["lanes"]),
        chunk=int(args.options["chunk"]),
        window=int(args.options["window"]),
    )
    loader = open_loader(args, batch_size=1024, order=order, epoch_end="drop")
    rows = np.stack([np.array(batch["__index__"]) for batch in loader]).astype(np.int64)
    total = len(hr.open(str(args.data)))
    shard_of = np.arange(total) // shard
    return {
        "deff": measure.deff(rows, shard_of, total // shard),
        "formula": loader.stats()["deff"],
        "batches": len(rows),
    }


if __name__ == "__main__":
    measure.dispatch(
        {
            "check-tokens": check_tokens,
            "time-tokens": time_tokens,
            "check-jpeg": check_jpeg,
            "time-jpeg": time_jpeg,
            "check-crop": check_crop,
            "time-crop": time_crop,
            "index": index,
            "first": first,
            "save": save,
            "resume": resume,
            "footprint": footprint,
            "deff": deff,
        }
    )
