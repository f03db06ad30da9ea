#!/usr/bin/env python3
"""Shows that a data set is the same data whatever its format and wherever it lies.

    demo/same.py photos.json text.json

Each argument is a JSON file with the places of one data set. For photographs the first batches,
decoded and randomly cropped, are hashed. For text a whole shuffled epoch is streamed: every
document must come where the order says and be the same everywhere. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
from packing import find_field

_BATCH = 32
_BATCHES = 5
_SEED = 20
_MEMORY = "512MiB"


def photo_hashes(place: str, shuffle: bool) -> list[str]:
    """Digests of the first batches: numbers of the samples, labels and pixels."""
    with hr.open(place) as dataset:
        image = find_field(dataset.fields, "jpeg", "png")
        label = next(name for name in ("label", "cls") if name in dataset.fields)
        loader = hr.Loader(
            dataset.columns(image, label),
            _BATCH,
            rank=0,
            world_size=1,
            order=hr.Order(seed=_SEED, shuffle=shuffle),
            decode={image: hr.image(64)},
            memory=_MEMORY,
            output="numpy",
        )
        hashes = []
        with loader:
            for batch, _ in zip(loader, range(_BATCHES), strict=False):
                digest = hashlib.sha256()
                # A tar file holds numbers as text.
                labels = [int(value) for value in batch[label]]
                digest.update(json.dumps([batch["__index__"].tolist(), labels]).encode())
                digest.update(np.ascontiguousarray(batch[image]).tobytes())
                hashes.append(digest.hexdigest())
        return hashes


def stream_text(place: str) -> dict[str, Any]:
    """One epoch of text: whether it came in order, and one digest of all documents by number."""
    with hr.open(place) as dataset:
        text = next(name for name in dataset.fields if name.partition(".")[0] == "text")
        order = hr.Order(seed=_SEED)
        due = dataset.run_order(order).fill(0, len(dataset))[:, 2].tolist()
        started, length = time.monotonic(), 0
        came: list[int] = []
        digests: dict[int, bytes] = {}
        with hr.Loader(
            dataset.columns(text),
            _BATCH,
            rank=0,
            world_size=1,
            order=order,
            epoch_end="partial",
            memory=_MEMORY,
            output="numpy",
        ) as loader:
            for batch in loader:
                numbers = batch["__index__"].tolist()
                came += numbers
                for number, document in zip(numbers, batch[text], strict=True):
                    raw = document if isinstance(document, bytes) else document.encode()
                    length += len(raw)
                    digests[number] = hashlib.sha256(raw).digest()
        whole = hashlib.sha256(b"".join(digests[number] for number in sorted(digests)))
        return {
            "documents": len(came),
            "bytes": length,
            "seconds": time.monotonic() - started,
            "in_order": came == due,
            "all": sorted(came) == list(range(len(dataset))),
            "sha256": whole.hexdigest(),
        }


def compare(photos: list[dict[str, str]], text: list[dict[str, str]]) -> dict[str, Any]:
    """Everything, with a list of what is not as it should be."""
    problems = []
    stored = {p["place"]: photo_hashes(p["place"], shuffle=False) for p in photos}
    if len({tuple(hashes) for hashes in stored.values()}) != 1:
        problems.append(f"stored order: batches differ: {stored}")
    for layout in sorted({p["format"] for p in photos}):
        # The order of a shuffled run follows from the shards, and those differ between formats.
        places = [p["place"] for p in photos if p["format"] == layout]
        shuffled = {place: photo_hashes(place, shuffle=True) for place in places}
        if len({tuple(hashes) for hashes in shuffled.values()}) != 1:
            problems.append(f"{layout}, shuffled: batches differ: {shuffled}")
    streams = {t["place"]: stream_text(t["place"]) for t in text}
    for place, stream in streams.items():
        if not (stream["in_order"] and stream["all"]):
            problems.append(f"{place}: documents out of order, lost or repeated")
    if len({stream["sha256"] for stream in streams.values()}) != 1:
        problems.append("documents differ between places")
    return {
        "ok": not problems,
        "problems": problems,
        "photos": {place: hashes[0] for place, hashes in stored.items()},
        "batches": _BATCHES,
        "batch": _BATCH,
        "text": streams,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=Path)
    parser.add_argument("text", type=Path)
    args = parser.parse_args()
    result = compare(json.loads(args.photos.read_text()), json.loads(args.text.read_text()))
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
