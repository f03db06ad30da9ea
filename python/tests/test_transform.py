"""transform= and collate= on the engine's threads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest

ORDER = hr.Order(seed=17, lanes=2, chunk=4, window=64)


def loader_of(folder: Path, **options: Any) -> hr.Loader:
    settings: dict[str, Any] = {"order": ORDER, "output": "numpy", "threads": 2, "memory": "64MiB"}
    return hr.Loader(hr.open(folder), 10, **(settings | options))


def test_a_transform_sees_samples_and_its_results_are_stacked(mixed: Path) -> None:
    def transform(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        assert sample["id"] == sample["__index__"]
        return {
            "double": sample["tokens"].astype(np.int64) * 2,
            "half": sample["id"] / 2,
            "text": sample["text"],
            "odd": sample["id"] % 2 == 1,
            "tags": sample["meta"]["tags"],
        }

    with loader_of(mixed, transform=transform) as loader:
        batches = list(loader)
    assert len(batches) == 10
    batch = batches[0]
    index = batch["__index__"]
    assert batch["double"].tolist() == [[2 * (i + k) for k in range(4)] for i in index.tolist()]
    assert batch["half"].dtype == np.float64
    assert batch["odd"].dtype == np.bool_
    assert batch["text"] == [f"sample {i} \u00e4" for i in index.tolist()]
    assert batch["tags"] == [["a"] * (i % 3) for i in index.tolist()]
    assert sorted(int(i) for b in batches for i in b["__index__"]) == list(range(100))


def test_random_choices_belong_to_the_sample_and_the_epoch(mixed: Path) -> None:
    def transform(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {"id": sample["id"], "x": rng.random()}

    def draw(**options: Any) -> list[dict[int, float]]:
        with loader_of(mixed, transform=transform, **options) as loader:
            return [
                {int(i): float(x) for b in loader for i, x in zip(b["id"], b["x"], strict=True)}
                for _ in range(2)
            ]

    one, two = draw(threads=1), draw(threads=3)
    assert one == two
    assert one[0].keys() == one[1].keys()
    assert one[0] != one[1]
    assert len(set(one[0].values())) == 100
    other = draw(order=hr.Order(seed=18, lanes=2, chunk=4, window=64))
    assert other[0] != one[0]


def test_collate_makes_anything_of_a_list_of_samples(mixed: Path) -> None:
    with loader_of(mixed, collate=lambda samples: sum(s["id"] for s in samples)) as loader:
        assert sum(loader) == sum(range(100))
    with loader_of(
        mixed,
        transform=lambda sample, rng: sample["id"],
        collate=lambda values: tuple(sorted(values)),
    ) as loader:
        assert sorted(i for batch in loader for i in batch) == list(range(100))


def fail_at(*bad: int) -> Any:
    def transform(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        if sample["id"] in bad:
            raise KeyError(f"no luck with {sample['id']}")
        return {"id": sample["id"]}

    return transform


def test_an_exception_names_the_sample_and_is_the_cause(mixed: Path) -> None:
    with loader_of(mixed, transform=fail_at(45)) as loader:
        with pytest.raises(hr.HeadraceError, match=r"shard\.00001\.mds.*no luck with 45") as caught:
            for _ in loader:
                pass
        assert isinstance(caught.value.__cause__, KeyError)
        # The loader can go on elsewhere.
        loader.set_epoch(loader.epoch + 1)
        with pytest.raises(hr.HeadraceError, match="no luck"):
            list(loader)


def test_failing_samples_are_skipped_or_replaced(mixed: Path) -> None:
    with loader_of(mixed, transform=fail_at(45, 46, 7), bad_samples="skip") as loader:
        got = [int(i) for batch in loader for i in batch["id"]]
        assert sorted(got) == [i for i in range(100) if i not in (45, 46, 7)]
        assert loader.stats()["bad_samples"] == 3
    with loader_of(mixed, transform=fail_at(45, 46, 7), bad_samples="substitute") as loader:
        batches = list(loader)
        assert all(len(batch["id"]) == 10 for batch in batches)
        assert all(np.array_equal(b["id"], b["__index__"]) for b in batches)
        assert {int(i) for b in batches for i in b["id"]} == set(range(100)) - {45, 46, 7}


def test_all_samples_of_a_batch_may_be_skipped(mixed: Path) -> None:
    with loader_of(mixed, transform=fail_at(*range(100)), bad_samples="skip") as loader:
        assert [len(batch["__index__"]) for batch in loader] == [0] * 10


@pytest.mark.parametrize(
    ("transform", "collate", "message"),
    [
        (lambda s, rng: 3, None, "only dicts are collated"),
        (lambda s, rng: {str(s["id"] % 2): 1}, None, "samples of one batch differ"),
        (None, lambda samples: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_collated_is_an_error_under_any_policy(
    mixed: Path, transform: Any, collate: Any, message: str
) -> None:
    for policy in ("raise", "skip", "substitute"):
        with (
            loader_of(mixed, transform=transform, collate=collate, bad_samples=policy) as loader,
            pytest.raises(hr.HeadraceError, match=message) as caught,
        ):
            list(loader)
        assert caught.value.__cause__ is not None


def test_padding_is_marked_after_a_transform_too(mixed: Path) -> None:
    with loader_of(
        mixed, transform=lambda s, rng: {"id": s["id"]}, epoch_end="pad", order=ORDER
    ) as loader:
        assert all("__mask__" in batch for batch in loader)


def test_results_that_view_the_batch_do_not_leak_when_dropped(mixed: Path) -> None:
    loader = loader_of(mixed, transform=lambda s, rng: {"tokens": s["tokens"]}, collate=list)
    kept = next(iter(loader))
    for epoch in range(1, 6):
        loader.set_epoch(epoch)
        next(iter(loader))
    leases = []
    for _ in range(100):
        leases.append(loader.stats()["memory"]["leases"])
        if leases[-1] <= 40:
            break
        time.sleep(0.05)
    assert leases[-1] <= 40
    loader.close()
    assert [s["tokens"].shape for s in kept] == [(4,)] * 10


@pytest.mark.torch
def test_torch_output_converts_arrays(mixed: Path) -> None:
    import torch

    def transform(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {"t": torch.tensor([sample["id"]]), "n": np.float32(sample["id"]), "s": "x"}

    with loader_of(mixed, transform=transform, output="torch") as loader:
        batch = next(iter(loader))
    assert batch["t"].shape == (10, 1)
    assert isinstance(batch["n"], torch.Tensor)
    assert isinstance(batch["__index__"], torch.Tensor)
    assert batch["s"] == ["x"] * 10
