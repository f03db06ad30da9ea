"""Pillow: JPEG bytes to a random-resized crop of 224 x 224, one thread.

The JPEGs lie in memory before the clock starts, so this is decoding alone. Runs in .venv-rivals.
"""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parent.parent)

import boxes  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

SIDE = 224
BATCH = 64


def photographs(args: Namespace) -> list[bytes]:
    """The samples in the order in which every format stores them."""
    found = []
    for folder in sorted(p for p in args.data.iterdir() if p.is_dir()):
        found += [path.read_bytes() for path in sorted(folder.glob("*.jpg"))]
    return found[: int(args.options.get("limit", len(found)))]


def crop(data: bytes, seed: int, epoch: int, sample: int) -> Image.Image:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    x, y, w, h = boxes.random_resized_crop(seed, epoch, sample, image.width, image.height)
    box = (x, y, x + w, y + h)
    return image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box)


def check_crop(args: Namespace) -> dict[str, Any]:
    seen = measure.Multiset()
    for sample, data in enumerate(photographs(args)):
        seen.add(crop(data, args.seed, 0, sample).tobytes())
    return seen.identity()


def time_crop(args: Namespace) -> dict[str, Any]:
    stored = photographs(args)
    batch = np.empty((BATCH, SIDE, SIDE, 3), np.uint8)

    def epoch(number: int) -> Iterator[tuple[int, int]]:
        for start in range(0, len(stored), BATCH):
            part = stored[start : start + BATCH]
            for i, data in enumerate(part):
                batch[i] = np.asarray(crop(data, args.seed, number, start + i))
            yield len(part), len(part) * SIDE * SIDE * 3

    return measure.timed_epochs(epoch, args.seconds)


if __name__ == "__main__":
    measure.dispatch({"check-crop": check_crop, "time-crop": time_crop})
