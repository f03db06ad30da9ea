"""WebDataset: reads tar shards through its shuffle buffer in one process.

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

BUFFER = 1000


def open_dataset(args: Namespace) -> Any:
    import webdataset as wds

    urls = [str(path) for path in sorted(args.data.glob("*.tar"))]
    dataset = wds.WebDataset(urls, shardshuffle=len(urls), seed=args.seed, empty_check=False)
    return dataset.shuffle(BUFFER, initial=BUFFER)


def check_jpeg(args: Namespace) -> dict[str, Any]:
    seen = measure.Multiset()
    for sample in open_dataset(args):
        seen.add(sample["jpg"], measure.label_bytes(int(sample["cls"])))
    return seen.identity()


def time_jpeg(args: Namespace) -> dict[str, Any]:
    dataset = open_dataset(args)

    def epoch(_: int) -> Iterator[tuple[int, int]]:
        for sample in dataset:
            yield 1, len(sample["jpg"])

    return measure.timed_epochs(epoch, args.seconds)


def make_jpeg(args: Namespace) -> dict[str, Any]:
    """The photographs as tar shards of 64 MB, with their class numbers."""
    import webdataset as wds

    photos = Path(args.options["photos"])
    args.data.mkdir(parents=True, exist_ok=True)
    classes = sorted(p.name for p in photos.iterdir() if p.is_dir())
    count = 0
    pattern = str(args.data / "shard-%05d.tar")
    with wds.ShardWriter(pattern, maxsize=1 << 26, maxcount=10**9, verbose=0) as out:
        for number, name in enumerate(classes):
            for path in sorted((photos / name).glob("*.jpg")):
                out.write({"__key__": f"{count:08d}", "jpg": path.read_bytes(), "cls": number})
                count += 1
    return {"samples": count}


if __name__ == "__main__":
    measure.dispatch({"check-jpeg": check_jpeg, "time-jpeg": time_jpeg, "make-jpeg": make_jpeg})
