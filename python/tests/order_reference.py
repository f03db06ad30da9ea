"""Slow, plain reference of the run order ``headrace-1``, written from docs/order.md alone.

It uses nothing but hashlib, builds whole epochs as lists, and shares no code with the product, so
that an agreement between the two means something. ``Run.epoch`` lays an epoch out the way the rules
tell it; ``Run.at`` walks the same rules for one position, for data sets too large for lists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

M64 = (1 << 64) - 1


class Key(NamedTuple):
    a: int
    b: int


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


@cache
def make_key(seed: int, name: str, purpose: str, epoch: int) -> Key:
    text = b"headrace-1\0" + purpose.encode().ljust(16, b"\0") + seed.to_bytes(8, "little")
    text += hashlib.sha256(name.encode()).digest() + epoch.to_bytes(8, "little")
    digest = hashlib.sha256(text).digest()
    return Key(int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little"))


def word(key: Key, i: int) -> int:
    return mix(mix((key.a + (i + 1) * 0x9E3779B97F4A7C15) & M64) ^ key.b)


def sub(key: Key, i: int) -> Key:
    return Key(word(key, 2 * i), word(key, 2 * i + 1))


def below(key: Key, i: int, n: int) -> int:
    return word(key, i) * n >> 64


def fisher_yates(key: Key, n: int) -> list[int]:
    v = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(key, i, i + 1)
        v[i], v[j] = v[j], v[i]
    return v


def permute(key: Key, n: int, x: int) -> int:
    """Where the permutation of n items sends x."""
    if n <= 64:
        return fisher_yates(key, n)[x]
    k = (n - 1).bit_length()
    s = (k + 1) // 2
    while True:
        for j in range(8):
            x = (x * (word(key, 2 * j) | 1) + word(key, 2 * j + 1)) % (1 << k)
            x ^= x >> s
        if x < n:
            return x


def permutation(key: Key, n: int) -> list[int]:
    return fisher_yates(key, n) if n <= 64 else [permute(key, n, x) for x in range(n)]


def reversed_bits(x: int, m: int) -> int:
    return int(format(x, f"0{m}b")[::-1], 2) if m else 0


class Piece(NamedTuple):
    """Offsets [first, first + size) in a lane's span."""

    first: int
    size: int


@dataclass
class Run:
    seed: int
    shards: list[int]
    lanes: int = 64
    chunk: int = 1
    window: int = 64
    layout: str = "chunk"
    name: str = ""
    shuffle: bool = True
    units: list[list[int]] | None = None

    n: int = field(init=False)
    c: int = field(init=False)
    run_shards: list[int] = field(init=False)
    run_starts: list[int] = field(init=False)
    lane_starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.n = sum(self.shards)
        filled = [s for s, size in enumerate(self.shards) if size]
        self.c = self.lanes
        while self.c > 1 and self.n // self.c < 256:
            self.c //= 2
        if self.shuffle:
            order = fisher_yates(self.key("run", 0), len(filled))
        else:
            order = list(range(len(filled)))
            self.c = 1
        self.m = self.c.bit_length() - 1
        self.run_shards = [filled[i] for i in order]
        self.run_starts = [0]
        for s in self.run_shards:
            self.run_starts.append(self.run_starts[-1] + self.shards[s])
        self.q0, self.r0 = divmod(self.n, self.c)
        self.lane_starts = [0]
        for lane in range(self.c):
            size = self.q0 + (1 if reversed_bits(lane, self.m) < self.r0 else 0)
            self.lane_starts.append(self.lane_starts[-1] + size)

    def key(self, purpose: str, epoch: int) -> Key:
        return make_key(self.seed, self.name, purpose, epoch)

    def ordinal(self, shard: int, sample: int) -> int:
        return sum(self.shards[:shard]) + sample

    def stored_at(self, run_position: int) -> tuple[int, int]:
        """(shard, sample) at a position of the shards laid end to end in run order."""
        low, high = 0, len(self.run_shards)
        while high - low > 1:
            middle = (low + high) // 2
            if self.run_starts[middle] <= run_position:
                low = middle
            else:
                high = middle
        return self.run_shards[low], run_position - self.run_starts[low]

    def unit_borders(self) -> list[int]:
        borders = [0]
        for s in self.run_shards:
            for size in self.units[s] if self.units else [self.shards[s]]:
                if size:
                    borders.append(borders[-1] + size)
        return borders

    def lane_pieces(self, lane: int, epoch: int) -> list[Piece]:
        """The lane's span as it is laid out in this epoch: pieces of span offsets, in order.

        A chunk that the rotation cuts in two gives two pieces.
        """
        start, end = self.lane_starts[lane], self.lane_starts[lane + 1]
        length = end - start
        if self.layout == "unit":
            borders = self.unit_borders()
            parts = [
                Piece(max(a, start) - start, min(b, end) - max(a, start))
                for a, b in pairwise(borders)
                if a < end and b > start
            ]
            return [parts[i] for i in fisher_yates(sub(self.key("parts", epoch), lane), len(parts))]
        phi = below(sub(self.key("rotate", epoch), lane), 0, length)
        full, rest = divmod(length, self.chunk)
        order = permutation(sub(self.key("chunks", epoch), lane), full)
        turned = [Piece(j * self.chunk, self.chunk) for j in order]
        if rest:
            at = below(sub(self.key("rest", epoch), lane), 0, full + 1)
            turned.insert(at, Piece(full * self.chunk, rest))
        pieces = []
        for y, count in turned:
            first = (y + phi) % length
            head = min(count, length - first)
            pieces.append(Piece(first, head))
            if head < count:
                pieces.append(Piece(0, count - head))
        return pieces

    def blocks(self, lane: int, epoch: int) -> list[int]:
        """Sizes of the blocks of the lane's layout."""
        length = self.lane_starts[lane + 1] - self.lane_starts[lane]
        b = self.window // self.c
        if length <= b:
            return [length]
        h = max(1, b // 2)
        hi = min(b + h - 1, length - h)
        first = h + below(sub(self.key("cut", epoch), lane), 0, hi - h + 1)
        more = max(1, (length - first + b // 2) // b)
        return [first] + [b] * (more - 1) + [length - first - b * (more - 1)]

    def lane_of_slot(self, slot: int, epoch: int) -> int:
        k = self.key("lanes", epoch)
        v, lane = 1, 0
        for d in range(self.m):
            bit = (slot >> d & 1) ^ (word(k, v // 64) >> (v % 64) & 1)
            lane = 2 * lane + bit
            v = 2 * v + bit
        return lane

    def lane(self, g: int, epoch: int) -> int:
        """The lane of position g of the epoch, among the lanes in use."""
        if not self.shuffle:
            return 0
        rho, slot = divmod(g, self.c)
        return self.lane_of_slot(slot, epoch) if rho < self.q0 else reversed_bits(slot, self.m)

    def epoch(self, epoch: int) -> list[tuple[int, int]]:
        """All (shard, sample) of the epoch in order."""
        stored = [(s, i) for s in self.run_shards for i in range(self.shards[s])]
        if not self.shuffle:
            return stored
        lanes = []
        for lane in range(self.c):
            start = self.lane_starts[lane]
            laid = [
                stored[start + first + i]
                for first, count in self.lane_pieces(lane, epoch)
                for i in range(count)
            ]
            out = []
            at = 0
            for index, size in enumerate(self.blocks(lane, epoch)):
                k = sub(sub(self.key("block", epoch), lane), index)
                out += [laid[at + x] for x in permutation(k, size)]
                at += size
            lanes.append(out)
        return [lanes[self.lane(g, epoch)][g // self.c] for g in range(self.n)]

    def at(self, t: int) -> tuple[int, int]:
        """(shard, sample) at run position t, for any size; chunk layout only."""
        epoch, g = divmod(t, self.n)
        if not self.shuffle:
            return self.stored_at(g)
        assert self.layout == "chunk"
        rho, lane = g // self.c, self.lane(g, epoch)
        start = self.lane_starts[lane]
        length = self.lane_starts[lane + 1] - start
        b = self.window // self.c
        if length <= b:
            index, lo, size = 0, 0, length
        else:
            h = max(1, b // 2)
            hi = min(b + h - 1, length - h)
            first = h + below(sub(self.key("cut", epoch), lane), 0, hi - h + 1)
            more = max(1, (length - first + b // 2) // b)
            if rho < first:
                index, lo, size = 0, 0, first
            else:
                index = 1 + min((rho - first) // b, more - 1)
                lo = first + (index - 1) * b
                size = b if index < more else length - lo
        z = lo + permute(sub(sub(self.key("block", epoch), lane), index), size, rho - lo)
        full, rest = divmod(length, self.chunk)
        rest_at = self.chunk * below(sub(self.key("rest", epoch), lane), 0, full + 1)
        if rest_at <= z < rest_at + rest:
            y = full * self.chunk + z - rest_at
        else:
            slot, offset = divmod(z if z < rest_at else z - rest, self.chunk)
            chunk = permute(sub(self.key("chunks", epoch), lane), full, slot)
            y = chunk * self.chunk + offset
        phi = below(sub(self.key("rotate", epoch), lane), 0, length)
        return self.stored_at(start + (y + phi) % length)


# Steps ------------------------------------------------------------------------------------------


def kept_positions(t: int, skip: list[tuple[int, int]]) -> Iterator[int]:
    while True:
        inside = [end for begin, end in skip if begin <= t < end]
        if inside:
            t = max(inside)
            continue
        yield t
        t += 1


def left_in_epoch(t: int, n: int, skip: list[tuple[int, int]]) -> int:
    end = (t // n + 1) * n
    return sum(1 for p in range(t, end) if not any(b <= p < e for b, e in skip))


def settle(t: int, n: int, batch: int, epoch_end: str, skip: list[tuple[int, int]]) -> int:
    while True:
        t = next(kept_positions(t, skip))
        if epoch_end != "drop" or left_in_epoch(t, n, skip) >= batch:
            return t
        t = (t // n + 1) * n


def plan(
    t: int, n: int, batch: int, epoch_end: str, skip: list[tuple[int, int]]
) -> tuple[list[int], int]:
    """(positions of the step at t, the next t)."""
    t = settle(t, n, batch, epoch_end, skip)
    stop = (t // n + 1) * n
    positions: list[int] = []
    for p in kept_positions(t, skip):
        if len(positions) == batch or (epoch_end != "carry" and p >= stop):
            break
        positions.append(p)
    return positions, settle(positions[-1] + 1, n, batch, epoch_end, skip)


def share(n: int, rank: int, world: int) -> int:
    return n // world + (1 if rank < n % world else 0)


def assign(
    run: Run, positions: list[int], batch: int, epoch_end: str, how: str, rank: int, world: int
) -> tuple[list[int], int]:
    """(the positions of a rank, padding last; how many are real)."""
    order = sorted(positions)
    if how == "local":
        order.sort(key=lambda t: (run.lane(t % run.n, t // run.n), t))
    begin = sum(share(len(positions), j, world) for j in range(rank))
    mine = sorted(order[begin : begin + share(len(positions), rank, world)])
    real = len(mine)
    if epoch_end == "pad":
        mine += [mine[0] if mine else positions[0]] * (share(batch, rank, world) - real)
    return mine, real
