"""LitData: reads its own chunks, shuffled, in one process.

Runs in .venv-rivals.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# This file has the name of the library: the folder of this script must not be searched.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

import measure  # noqa: E402


def open_dataset(args: Namespace) -> Any:
    import litdata

    return litdata.StreamingDataset(str(args.data), shuffle=True, seed=args.seed, drop_last=False)


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


def read_sample(item: tuple[str, int]) -> dict[str, Any]:
    path, number = item
    return {"jpg": Path(path).read_bytes(), "cls": number}


def make_jpeg(args: Namespace) -> dict[str, Any]:
    """The photographs as chunks of 64 MB, with their class numbers."""
    import litdata

    photos = Path(args.options["photos"])
    classes = sorted(p.name for p in photos.iterdir() if p.is_dir())
    items = [
        (str(path), number)
        for number, name in enumerate(classes)
        for path in sorted((photos / name).glob("*.jpg"))
    ]
    litdata.optimize(
        read_sample,
        items,
        str(args.data),
        chunk_bytes="64MB",
        num_workers=1,
        start_method="fork",
        reorder_files=False,
        verbose=False,
    )
    return {"samples": len(items)}


if __name__ == "__main__":
    measure.dispatch({"check-jpeg": check_jpeg, "time-jpeg": time_jpeg, "make-jpeg": make_jpeg})
