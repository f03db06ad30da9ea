"""Numbers, names and tables as text. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bytes_text(count: float) -> str:
    """1536 -> "1.5 KiB"."""
    value = float(count)
    for unit in _UNITS:
        if abs(value) < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    if unit == "B":
        return f"{value:.0f} B"
    return f"{value:.0f} {unit}" if abs(value) >= 100 else f"{value:.1f} {unit}"


def count_text(count: int) -> str:
    """1281167 -> "1,281,167"."""
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """(1, "shard") -> "1 shard"; (3, "class") -> "3 classes"."""
    plural = noun + ("es" if noun.endswith(("s", "x")) else "s")
    return f"{count_text(count)} {noun if count == 1 else plural}"


def rate_text(per_second: float) -> str:
    """Samples per second with three figures or so: 0.51, 12.3, 1,234."""
    if per_second >= 100:
        return f"{per_second:,.0f}"
    return f"{per_second:.1f}" if per_second >= 10 else f"{per_second:.2f}"


def seconds_text(seconds: float) -> str:
    """0.0123 -> "12.3 ms"; 75 -> "1 min 15 s"."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def printable(text: str) -> str:
    """The text with every character that could steer a terminal written as an escape.

    Names and texts of a data set are foreign: an ESC in one of them must not reach the terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(char: str) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if named is not None:
        return named
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of the text, with what was left out counted."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({count_text(len(text) - limit)} more characters)"


def table(
    rows: Iterable[Sequence[str]], indent: str = "  ", right: frozenset[int] = frozenset()
) -> str:
    """Rows in aligned columns, two spaces apart; columns numbered in `right` stand to the right."""
    kept = [list(row) for row in rows]
    if not kept:
        return ""
    widths = [max(len(row[i]) for row in kept) for i in range(len(kept[0]))]
    lines = []
    for row in kept:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def size_buckets(sizes: Iterable[int]) -> list[tuple[int, int, int]]:
    """(from, to, count) with borders at powers of two, from the smallest size to the largest.

    Empty buckets between filled ones are kept, so that a gap can be seen. Size 0 gets [0, 1).
    """
    counts: dict[int, int] = {}
    for size in sizes:
        bucket = size.bit_length()
        counts[bucket] = counts.get(bucket, 0) + 1
    if not counts:
        return []
    first, last = min(counts), max(counts)
    return [(1 << b >> 1, 1 << b, counts.get(b, 0)) for b in range(first, last + 1)]


def histogram(sizes: Iterable[int], width: int = 40) -> str:
    """The sizes as a bar chart, one line for each bucket between powers of two."""
    buckets = size_buckets(sizes)
    if not buckets:
        return ""
    most = max(count for _, _, count in buckets)
    rows = []
    for low, high, count in buckets:
        bar = "#" * math.ceil(count * width / most)
        rows.append((bytes_text(low), "to", bytes_text(high), count_text(count), bar))
    return table(rows, right=frozenset({0, 2, 3}))
