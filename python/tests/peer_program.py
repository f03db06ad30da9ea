"""Real peers at work: Mosaic Streaming and WebDataset write and read data sets.

    .venv-mosaic/bin/python peer_program.py pictures FOLDER
    .venv-mosaic/bin/python peer_program.py write-mds|read-mds|write-wds|read-wds FOLDER PICTURES

Runs where the peers are installed, without Headrace. Reading compares every sample with what
`mds_sample` or `wds_sample` says and ends with 1 at the first difference. The tests import this
module for those two functions alone.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

COUNT = 300
PICTURES = 7

MDS_COLUMNS = {
    "array": "ndarray",
    "blob": "bytes",
    "grey": "png",
    "meta": "json",
    "number": "int",
    "photo": "jpeg",
    "real": "float64",
    "small": "uint8",
    "text": "str",
    "tokens": "ndarray:uint16:16",
    "vector": "ndarray:float32",
}


def picture(folder: Path, i: int, kind: str) -> bytes:
    return (folder / f"{i % PICTURES}.{kind}").read_bytes()


def mds_sample(i: int, pictures: Path) -> dict[str, Any]:
    """What sample i of an MDS data set holds; pictures as files."""
    return {
        "array": np.arange((1 + i % 5) * 3, dtype=np.int32).reshape(1 + i % 5, 3),
        "blob": bytes((i + k) % 256 for k in range(i % 11)),
        "grey": picture(pictures, i, "png"),
        "meta": {"i": i, "tags": ["a", "\u00e9"][: i % 3], "none": None},
        "number": i * 10**12 - 7,
        "photo": picture(pictures, i, "jpg"),
        "real": i / 7,
        "small": i % 256,
        "text": f"line {i}\n\u4e2d\u6587" * (i % 4),
        "tokens": np.arange(i, i + 16, dtype=np.uint16),
        "vector": np.full((2, 1 + i % 3), i, dtype=np.float32),
    }


def wds_sample(i: int, pictures: Path) -> dict[str, Any]:
    """What sample i of a tar data set holds, by file extension."""
    return {
        "cls": i % 10,
        "jpg": picture(pictures, i, "jpg"),
        "json": {"i": i, "tags": ["a", "\u00e9"][: i % 3]},
        "txt": f"caption {i} \u4e2d\u6587",
    }


def wds_key(i: int) -> str:
    """Keys with folders and dots, and some longer than a plain tar header takes."""
    return f"part{i % 3}/" + "long" * (30 if i % 50 == 0 else 1) + f"/{i:06d}"


def make_pictures(folder: Path) -> None:
    """Small JPEG and PNG files with structure, some grey."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    for i in range(PICTURES):
        pixels = rng.integers(0, 256, (4 + i, 5, 3), dtype=np.uint8)
        image = Image.fromarray(pixels).resize((90 + i, 70), Image.Resampling.BICUBIC)
        image.save(folder / f"{i}.jpg", quality=90)
        (image.convert("L") if i % 2 else image).save(folder / f"{i}.png")


def write_mds(out: Path, pictures: Path) -> None:
    from PIL import Image
    from streaming import MDSWriter

    with MDSWriter(
        out=str(out), columns=MDS_COLUMNS, size_limit=200_000, hashes=["sha256"]
    ) as writer:
        for i in range(COUNT):
            sample = mds_sample(i, pictures)
            # From a file, Mosaic stores a JPEG as it is; a PNG it encodes again.
            sample["photo"] = Image.open(pictures / f"{i % PICTURES}.jpg")
            sample["grey"] = Image.open(io.BytesIO(sample["grey"]))
            writer.write(sample)


def same(got: Any, want: Any) -> bool:
    from PIL import Image

    if isinstance(got, Image.Image):
        original = Image.open(io.BytesIO(want))
        return got.mode == original.mode and got.tobytes() == original.tobytes()
    if isinstance(want, np.ndarray):
        return bool(got.dtype == want.dtype and np.array_equal(got, want))
    return bool(got == want)


def read_mds(folder: Path, pictures: Path) -> None:
    """Every sample by its number, and all of them through a shuffled epoch."""
    from streaming import StreamingDataset

    # Its lock files of another process would make it wait.
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="headrace-peer-")
    dataset = StreamingDataset(
        local=str(folder),
        shuffle=True,
        shuffle_algo="py1e",
        batch_size=1,
        num_canonical_nodes=1,
        validate_hash="sha256",
    )
    if dataset.num_samples != COUNT:
        raise SystemExit(f"Mosaic counts {dataset.num_samples} samples, not {COUNT}")
    for i in range(COUNT):
        compare(dataset[i], mds_sample(i, pictures), i)
    seen = sorted(sample["small"] for sample in dataset)
    if seen != sorted(i % 256 for i in range(COUNT)):
        raise SystemExit("an epoch of Mosaic does not hold every sample once")


def compare(got: dict[str, Any], want: dict[str, Any], i: int) -> None:
    if got.keys() != want.keys():
        raise SystemExit(f"sample {i}: fields {sorted(got)}, not {sorted(want)}")
    for name, value in want.items():
        if not same(got[name], value):
            raise SystemExit(f"sample {i}, field {name}: {got[name]!r} is not {value!r}")


def write_wds(out: Path, pictures: Path) -> None:
    import webdataset as wds

    out.mkdir(parents=True, exist_ok=True)
    pattern = str(out / "shard-%04d.tar")
    with wds.ShardWriter(pattern, maxcount=70, verbose=0) as writer:
        for i in range(COUNT):
            writer.write({"__key__": wds_key(i), **wds_sample(i, pictures)})


def read_wds(folder: Path, pictures: Path) -> None:
    import webdataset as wds

    urls = [str(path) for path in sorted(folder.glob("*.tar"))]
    found = 0
    for i, raw in enumerate(wds.WebDataset(urls, shardshuffle=False)):
        want = wds_sample(i, pictures)
        got = {
            "cls": int(raw["cls"]),
            "jpg": raw["jpg"],
            "json": json.loads(raw["json"]),
            "txt": raw["txt"].decode(),
        }
        compare(got, want, i)
        if raw["__key__"] != wds_key(i):
            raise SystemExit(f"sample {i}: key {raw['__key__']!r}")
        found += 1
    if found != COUNT:
        raise SystemExit(f"WebDataset found {found} samples, not {COUNT}")


def main() -> None:
    mode, folder = sys.argv[1], Path(sys.argv[2])
    if mode == "pictures":
        make_pictures(folder)
        return
    modes = {
        "write-mds": write_mds,
        "read-mds": read_mds,
        "write-wds": write_wds,
        "read-wds": read_wds,
    }
    modes[mode](folder, Path(sys.argv[3]))


if __name__ == "__main__":
    main()
