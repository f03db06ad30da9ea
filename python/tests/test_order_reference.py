"""The golden vectors of the run order against the slow reference; no compiled module is needed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


ref = load(ROOT / "python" / "tests" / "order_reference.py")
golden = load(ROOT / "tools" / "golden_order.py")


@pytest.mark.parametrize("name", sorted(golden.FILES))
def test_golden_file_is_what_the_reference_says(name: str) -> None:
    assert (golden.GOLDEN / name).read_text(encoding="utf-8") == golden.FILES[name]()


@pytest.mark.parametrize("title", sorted(golden.SMALL))
def test_epoch_delivers_every_sample_once(title: str) -> None:
    run = golden.SMALL[title]
    everything = [(s, i) for s, size in enumerate(run.shards) for i in range(size)]
    for epoch in (0, 3):
        assert sorted(run.epoch(epoch)) == everything


@pytest.mark.parametrize("title", sorted(t for t, r in golden.SMALL.items() if r.layout == "chunk"))
def test_walking_one_position_agrees_with_laying_out_the_epoch(title: str) -> None:
    run = golden.SMALL[title]
    for epoch in (0, 2):
        order = run.epoch(epoch)
        step = max(1, run.n // 97)
        for g in range(0, run.n, step):
            assert run.at(epoch * run.n + g) == order[g]


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 100, 257])
def test_permutation_is_a_bijection(n: int) -> None:
    key = ref.make_key(n, "", "permutation", 0)
    assert sorted(ref.permutation(key, n)) == list(range(n))


@pytest.mark.parametrize("epoch_end", ["carry", "drop", "pad", "partial"])
@pytest.mark.parametrize("how", ["local", "strict"])
def test_ranks_divide_every_step_without_overlap(epoch_end: str, how: str) -> None:
    run = golden.SMALL["named"]
    skip = [(10, 33), (run.n - 3, run.n + 4)]
    t = 0
    for _ in range(20):
        positions, after = ref.plan(t, run.n, 100, epoch_end, skip)
        for world in (1, 7, 100):
            taken: list[int] = []
            sizes = set()
            for rank in range(world):
                mine, real = ref.assign(run, positions, 100, epoch_end, how, rank, world)
                taken += mine[:real]
                sizes.add(len(mine))
            assert sorted(taken) == positions
            assert max(sizes) - min(sizes) <= 1
        t = after
