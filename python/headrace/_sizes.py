"""Sizes as people write them. Every size in Headrace's Python interface is read here."""

from __future__ import annotations

import operator
import re
from typing import SupportsIndex

from headrace.errors import InvalidArgumentError

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kmgtp]?)(i?b)\s*", re.IGNORECASE)
_BYTES_MAX = 1 << 62


def parse_bytes(text: str, name: str) -> int:
    """Bytes in ``text``: "1MiB", "64mb", "1.5 GB", "512B".

    KB and KiB, MB and MiB and so on are the same here: powers of 1024, which is also what
    ``size_limit="64mb"`` means to Mosaic Streaming. ``name`` is the argument, for the error.
    """
    match = _PATTERN.fullmatch(text)
    if not match or (not match[2] and match[3].lower() != "b"):
        raise InvalidArgumentError(
            f'{name}="{text}" is not a size; write a number and a unit, such as "64MiB" or "1.5GB"'
        )
    size = int(float(match[1]) * 1024 ** _POWERS[match[2].lower()])
    if size > _BYTES_MAX:
        raise InvalidArgumentError(f'{name}="{text}" is more than any machine has')
    return size


def whole_number(value: SupportsIndex, name: str, least: int, most: int) -> int:
    """An integer argument within ``least`` .. ``most``."""
    number = operator.index(value)
    if not least <= number <= most:
        raise InvalidArgumentError(f"{name}={number} is not in {least} .. {most}")
    return number


def bytes_of(value: str | SupportsIndex, name: str) -> int:
    """Bytes of an argument that is a size in any case: an integer counts bytes."""
    size = parse_bytes(value, name) if isinstance(value, str) else operator.index(value)
    if size <= 0:
        raise InvalidArgumentError(f"{name}={value!r} must be more than 0 bytes")
    if size > _BYTES_MAX:
        raise InvalidArgumentError(f"{name}={value!r} is more than any machine has")
    return size
