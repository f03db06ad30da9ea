"""Which samples are meant: words such as "3", "-1" and "10:20"."""

from __future__ import annotations

import re

from headrace.cli.failures import UsageError

_INTEGER = r"[+-]?\d+"
_SLICE = re.compile(rf"({_INTEGER})?:({_INTEGER})?")


def sample_numbers(words: list[str], count: int) -> list[int] | range:
    """Numbers of samples from words such as "3", "-1", "10:20", ":5", as Python means them."""
    chosen: list[int] = []
    for word in words:
        match = _SLICE.fullmatch(word)
        if match is not None:
            first = int(match[1]) if match[1] else None
            last = int(match[2]) if match[2] else None
            span = range(*slice(first, last).indices(count))
            if len(words) == 1:
                return span
            chosen.extend(span)
            continue
        if not re.fullmatch(_INTEGER, word):
            raise UsageError(f"'{word}' is neither a sample number nor a range such as 10:20")
        number = int(word)
        if not -count <= number < count:
            raise UsageError(f"sample {number} is outside the data set, which has {count} samples")
        chosen.append(number % count)
    return chosen
