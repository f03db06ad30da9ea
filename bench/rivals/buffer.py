"""A shuffle buffer over whole shards, as many loaders have it: only its order, for comparison.

Shards are read one after another in random order; each new sample takes the place of a random one
of the buffer, which is handed out.
"""

from __future__ import annotations

import random
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parent.parent)

import measure  # noqa: E402


def deff(args: Namespace) -> dict[str, Any]:
    import numpy as np

    shards, shard, width = int(args.options["shards"]), int(args.options["shard"]), 1024
    size = int(args.options["buffer"])
    rng = random.Random(args.seed)
    order = list(range(shards))
    rng.shuffle(order)
    held: list[int] = []
    out: list[int] = []
    for number in order:
        for sample in range(number * shard, (number + 1) * shard):
            if len(held) < size:
                held.append(sample)
                continue
            place = rng.randrange(size)
            out.append(held[place])
            held[place] = sample
    rng.shuffle(held)
    out += held
    steps = len(out) // width
    rows = np.array(out[: steps * width], np.int64).reshape(steps, width)
    shard_of = np.arange(shards * shard) // shard
    return {"deff": measure.deff(rows, shard_of, shards), "batches": steps}


if __name__ == "__main__":
    measure.dispatch({"deff": deff})
