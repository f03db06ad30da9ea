"""The run order as Python gives it, against the slow reference."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def load_reference() -> Any:
    path = Path(__file__).with_name("order_reference.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


ref = load_reference()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=12).filter(any),
    seed=st.integers(0, 2**64 - 1),
    lanes=st.sampled_from([1, 2, 8]),
    chunk=st.integers(1, 40),
    factor=st.integers(1, 60),
    shuffle=st.booleans(),
    epoch=st.integers(0, 3),
)
def test_an_epoch_is_what_the_reference_says(
    sizes: list[int],
    seed: int,
    lanes: int,
    chunk: int,
    factor: int,
    shuffle: bool,
    epoch: int,
) -> None:
    window = lanes * chunk * factor
    order = hr.Order(seed=seed, shuffle=shuffle, lanes=lanes, chunk=chunk, window=window)
    run = hr.order.headrace(sizes, order)
    slow = ref.Run(seed, sizes, lanes, run.chunk_samples, run.window_samples, shuffle=shuffle)
    rows = run.fill(epoch * run.samples, run.samples)
    assert [tuple(row) for row in rows[:, :2].tolist()] == slow.epoch(epoch)
    assert sorted(rows[:, 2].tolist()) == list(range(sum(sizes)))
    t = epoch * run.samples + run.samples // 2
    assert run.position_of(run.sample_at(t)[2], epoch) == t


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(40, 400),
    batch=st.integers(1, 40),
    world=st.integers(1, 64),
    epoch_end=st.sampled_from(["carry", "drop", "pad", "partial"]),
    assignment=st.sampled_from(["local", "strict"]),
    data=st.data(),
)
def test_steps_and_shares_are_what_the_reference_says(
    size: int, batch: int, world: int, epoch_end: str, assignment: str, data: Any
) -> None:
    batch = max(batch, min(world, 40))
    world = min(world, batch)
    t = data.draw(st.integers(0, 3 * size))
    skip = data.draw(
        st.lists(st.tuples(st.integers(0, 3 * size), st.integers(0, 20)), max_size=3).map(
            lambda pairs: [(a, a + n) for a, n in pairs]
        )
    )
    run = hr.order.headrace([size], hr.Order(seed=1, lanes=1, chunk=4, window=64))
    slow = ref.Run(1, [size], 1, 4, 64)
    begin, after, epoch, ends, shares = run.plan(
        t, world, batch, epoch_end=epoch_end, assignment=assignment, skip=skip
    )
    positions, next_t = ref.plan(t, size, batch, epoch_end, skip)
    assert begin == positions[0]
    # With nothing left to skip or drop both name the same place; ours may name it before that.
    assert ref.settle(after, size, batch, epoch_end, skip) == next_t
    assert epoch == begin // size
    assert ends == (after // size > epoch)
    for rank, (mine, real) in enumerate(shares):
        assert (mine, real) == ref.assign(
            slow, positions, batch, epoch_end, assignment, rank, world
        )


@pytest.mark.parametrize("epoch_end", ["carry", "drop", "pad", "partial"])
def test_every_sample_is_taken_once_whatever_the_world_and_the_stops(epoch_end: str) -> None:
    dice = random.Random(17)
    run = hr.order.headrace([97, 0, 203], hr.Order(seed=5, lanes=1, chunk=3, window=50))
    for _ in range(20):
        batch = dice.randrange(1, 65)
        t, taken = 0, []
        while t < 3 * run.samples:
            world = dice.randrange(1, batch + 1)  # another number of ranks after each stop
            for _ in range(dice.randrange(1, 4)):
                _, t, _, _, shares = run.plan(t, world, batch, epoch_end=epoch_end)
                taken += sorted(p for mine, real in shares for p in mine[:real])
                if t >= 3 * run.samples:
                    break
        assert len(taken) == len(set(taken))
        expected = set(range(max(taken) + 1))
        if epoch_end == "drop":
            rest = run.samples % batch
            expected = {p for p in expected if p % run.samples < run.samples - rest}
        assert set(taken) == expected


def test_orders_in_bytes_become_samples() -> None:
    run = hr.order.headrace(
        [1000] * 100, hr.Order(chunk="64KiB", window="100 mb"), stored_bytes=100_000 * 1024
    )
    assert (run.chunk_samples, run.window_samples) == (64, 102_400)
    assert run.fill(0, 3).dtype == np.int64


def test_a_larger_window_predicts_a_better_shuffle() -> None:
    sizes = [1000] * 100
    small = hr.order.headrace(sizes, hr.Order(chunk=16, window=2048)).deff(256)
    large = hr.order.headrace(sizes, hr.Order(chunk=16, window=16384)).deff(256)
    assert 0.0 < large < small


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seed": -1}, "seed=-1"),
        ({"lanes": 3}, "power of two"),
        ({"chunk": 0}, "at least one sample"),
        ({"window": "12 parsecs"}, 'window="12 parsecs" is not a size'),
        ({"chunk": "0MiB"}, "more than 0"),
    ],
)
def test_orders_that_cannot_be_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hr.Order(**wrong)


def test_positions_outside_are_refused() -> None:
    run = hr.order.headrace([10], hr.Order(lanes=1))
    with pytest.raises(hr.HeadraceError, match="is not in an order over 10 samples"):
        run.position_of(10)
    with pytest.raises(hr.HeadraceError, match="epoch_end"):
        run.plan(0, 1, 2, epoch_end="loop")
    with pytest.raises(ValueError, match=r"(?i)sample"):
        hr.order.headrace([])
