"""Writes Mosaic MDS data sets for tests, by the layout alone: shares no code with the product."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

_NUMBERS = {
    "int": "<q",
    "int64": "<q",
    "int32": "<i",
    "uint16": "<H",
    "float32": "<f",
    "float64": "<d",
}
_SIZES = {name: struct.calcsize(code) for name, code in _NUMBERS.items()}


def encode(encoding: str, value: Any) -> bytes:
    """One value as MDS stores it."""
    if encoding in _NUMBERS:
        return struct.pack(_NUMBERS[encoding], value)
    if encoding == "str":
        return str(value).encode()
    if encoding == "json":
        return json.dumps(value, sort_keys=True).encode()
    if encoding.startswith("ndarray:"):
        return np.ascontiguousarray(value, dtype=encoding.split(":")[1]).tobytes()
    return bytes(value)


def fixed_size(encoding: str) -> int | None:
    """Bytes of every value, or None where they differ."""
    if encoding in _SIZES:
        return _SIZES[encoding]
    words = encoding.split(":")
    if words[0] == "ndarray" and len(words) == 3:
        shape = [int(n) for n in words[2].split(",")]
        return int(np.prod(shape)) * np.dtype(words[1]).itemsize
    return None


def write_mds(
    folder: Path, columns: dict[str, str], samples: list[dict[str, Any]], per_shard: int
) -> None:
    """Writes ``samples`` to ``folder``, ``per_shard`` in each shard."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(columns)
    encodings = [columns[name] for name in names]
    sizes = [fixed_size(encoding) for encoding in encodings]
    shards = []
    for number, start in enumerate(range(0, len(samples), per_shard)):
        part = samples[start : start + per_shard]
        meta = {
            "column_encodings": encodings,
            "column_names": names,
            "column_sizes": sizes,
            "compression": None,
            "format": "mds",
            "hashes": [],
            "size_limit": 1 << 26,
            "version": 2,
        }
        rows = []
        for sample in part:
            values = [encode(e, sample[n]) for n, e in zip(names, encodings, strict=True)]
            lengths = [len(v) for v, size in zip(values, sizes, strict=True) if size is None]
            rows.append(struct.pack(f"<{len(lengths)}I", *lengths) + b"".join(values))
        head = json.dumps(meta, sort_keys=True).encode()
        first = 4 + 4 * (len(part) + 1) + len(head)
        offsets = np.cumsum([first] + [len(row) for row in rows]).astype("<u4")
        name = f"shard.{number:05}.mds"
        body = struct.pack("<I", len(part)) + offsets.tobytes() + head + b"".join(rows)
        (folder / name).write_bytes(body)
        shards.append(
            meta
            | {
                "raw_data": {"basename": name, "bytes": len(body), "hashes": {}},
                "samples": len(part),
                "zip_data": None,
            }
        )
    (folder / "index.json").write_text(json.dumps({"shards": shards, "version": 2}))
