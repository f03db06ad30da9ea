"""Headrace's random-resized-crop boxes, computed again from the rule in its documentation.

Written from the rule and not from the code: when the pixels that Headrace delivers equal those
that Pillow makes from these boxes, the rule, the decoder and the resize are all confirmed.
"""

from __future__ import annotations

import math

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
SCALE = (0.08, 1.0)
RATIO = (3.0 / 4.0, 4.0 / 3.0)


def mix64(z: int) -> int:
    """The finaliser of SplitMix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Draws:
    """Uniform numbers in [0, 1) keyed by (seed, epoch, sample)."""

    def __init__(self, seed: int, epoch: int, sample: int) -> None:
        state = mix64((seed + GAMMA) & MASK)
        state = mix64(((state ^ epoch) + GAMMA) & MASK)
        self.state = mix64(((state ^ sample) + GAMMA) & MASK)

    def uniform(self) -> float:
        self.state = (self.state + GAMMA) & MASK
        return (mix64(self.state) >> 11) * 2.0**-53


def random_resized_crop(
    seed: int, epoch: int, sample: int, width: int, height: int
) -> tuple[int, int, int, int]:
    """The box (x, y, width, height) of one sample in an image of that size."""
    draws = Draws(seed, epoch, sample)
    draws.uniform()  # the flip, drawn under every crop
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    for _ in range(10):
        area = width * height * (SCALE[0] + draws.uniform() * (SCALE[1] - SCALE[0]))
        ratio = math.exp(low + draws.uniform() * (high - low))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            y = math.floor(draws.uniform() * (height - h + 1))
            x = math.floor(draws.uniform() * (width - w + 1))
            return x, y, w, h
    shape = width / height
    w, h = width, height
    if shape < RATIO[0]:
        h = min(height, round(width / RATIO[0]))
    elif shape > RATIO[1]:
        w = min(width, round(height * RATIO[1]))
    return (width - w) // 2, (height - h) // 2, w, h
