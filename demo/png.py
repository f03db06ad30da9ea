"""Writes PNG: enough for pictures of 8-bit RGB on the page."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def encode(picture: NDArray[Any]) -> bytes:
    """A PNG file of uint8 [height, width, 3]."""
    height, width, _ = picture.shape
    # Each row is stored as its difference to the row above it, filter 2, which packs better.
    rows = np.ascontiguousarray(picture, dtype=np.uint8).reshape(height, width * 3)
    up = rows.copy()
    up[1:] -= rows[:-1]
    filtered = np.concatenate([np.full((height, 1), 2, np.uint8), up], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(filtered.tobytes(), 9))
        + _chunk(b"IEND", b"")
    )


def data_url(picture: NDArray[Any]) -> str:
    return "data:image/png;base64," + base64.b64encode(encode(picture)).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
