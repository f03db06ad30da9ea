"""Facts a picture file states in its first bytes. Nothing is decoded."""

from __future__ import annotations

import struct
from dataclasses import dataclass

# Start-of-frame markers of JPEG; C4, C8 and CC in that range mean something else.
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
# Markers without a length: TEM, RST0-7, SOI, EOI.
_BARE = frozenset({0x01, *range(0xD0, 0xDA)})


@dataclass(frozen=True)
class Picture:
    kind: str  # "jpeg" or "png"
    width: int
    height: int
    channels: int


def picture_kind(data: bytes) -> str | None:
    """ "jpeg", "png" or None, by signature."""
    if data[:3] == b"\xff\xd8\xff":
        return "jpeg"
    return "png" if data[:8] == b"\x89PNG\r\n\x1a\n" else None


def inspect_picture(data: bytes) -> Picture | None:
    """What the headers say, or None when they are not those of a JPEG or PNG file."""
    kind = picture_kind(data)
    if kind == "jpeg":
        return _inspect_jpeg(data)
    return _inspect_png(data) if kind == "png" else None


def _inspect_png(data: bytes) -> Picture | None:
    if len(data) < 26 or data[12:16] != b"IHDR":
        return None
    width, height, _, color = struct.unpack_from(">IIBB", data, 16)
    channels = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}.get(color)
    return Picture("png", width, height, channels) if channels and width and height else None


def _inspect_jpeg(data: bytes) -> Picture | None:
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
            continue
        if marker in _BARE:
            at += 2
            continue
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if marker in _FRAMES:
            if length < 8 or at + 10 > len(data):
                return None
            height, width, channels = struct.unpack_from(">HHB", data, at + 5)
            return Picture("jpeg", width, height, channels) if width and channels else None
        if length < 2 or marker == 0xDA:  # the scan starts and no frame was seen
            return None
        at += 2 + length
    return None
