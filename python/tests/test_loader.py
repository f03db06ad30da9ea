"""The loader: batches, epochs, ranks, resumption, memory, arguments."""

from __future__ import annotations

import gc
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest

ORDER = hr.Order(seed=17, lanes=2, chunk=4, window=64)


def loader_of(data: Path | hr.Dataset, batch_size: int = 8, **options: Any) -> hr.Loader:
    ds = data if isinstance(data, hr.Dataset) else hr.open(data)
    settings: dict[str, Any] = {"order": ORDER, "output": "numpy", "threads": 2, "memory": "64MiB"}
    return hr.Loader(ds, batch_size, **(settings | options))


def ids(loader: hr.Loader) -> list[int]:
    return [int(i) for batch in loader for i in batch["id"]]


def test_a_batch_holds_arrays_and_ragged_fields(
    mixed: Path, expected: Callable[[int], dict[str, Any]], equal: Callable[[Any, Any], bool]
) -> None:
    with loader_of(mixed) as loader:
        batch = next(iter(loader))
    assert sorted(batch) == ["__index__", "blob", "id", "meta", "text", "tokens"]
    assert batch["id"].dtype == np.int64
    assert batch["tokens"].dtype == np.uint16
    assert batch["tokens"].shape == (8, 4)
    assert batch["__index__"].tolist() == batch["id"].tolist()
    assert isinstance(batch["text"], hr.Ragged)
    assert batch["text"].values.dtype == np.uint8
    assert batch["text"].offsets.shape == (9,)
    for row, i in enumerate(batch["id"].tolist()):
        want = expected(i)
        assert batch["text"][row] == want["text"]
        assert batch["blob"][row] == want["blob"]
        assert batch["meta"][row - 8] == want["meta"]
        assert equal(batch["tokens"][row], want["tokens"])
    assert batch["text"].to_list() == [expected(int(i))["text"] for i in batch["id"]]
    with pytest.raises(IndexError, match="row 8"):
        batch["text"][8]


def test_one_iteration_is_one_epoch_and_the_next_one_differs(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        assert (len(loader), loader.epoch) == (10, 0)
        first = ids(loader)
        assert (len(loader), loader.epoch) == (10, 1)
        second = ids(loader)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    with loader_of(mixed, 10) as again:
        assert ids(again) == first


def test_the_order_is_the_one_that_can_be_computed(mixed: Path) -> None:
    ds = hr.open(mixed)
    with loader_of(ds, 7, epoch_end="partial", assignment="strict") as loader:
        got = ids(loader)
    assert got == ds.run_order(ORDER).fill(0, 100)[:, 2].tolist()
    with loader_of(ds, 7, epoch_end="partial", order=hr.Order(shuffle=False)) as loader:
        assert ids(loader) == list(range(100))


@pytest.mark.parametrize(
    ("epoch_end", "steps", "samples"),
    [("drop", 14, 98), ("pad", 15, 105), ("partial", 15, 100), ("carry", 15, 105)],
)
def test_epochs_end_as_asked(mixed: Path, epoch_end: str, steps: int, samples: int) -> None:
    with loader_of(mixed, 7, epoch_end=epoch_end) as loader:
        assert len(loader) == steps
        batches = list(loader)
        assert loader.epoch == 1
    assert len(batches) == steps
    assert sum(len(batch["id"]) for batch in batches) == samples
    if epoch_end == "pad":
        masks = np.concatenate([batch["__mask__"] for batch in batches])
        assert masks.dtype == np.bool_
        real = np.concatenate([batch["id"] for batch in batches])[masks]
        assert sorted(real.tolist()) == list(range(100))
    else:
        assert "__mask__" not in batches[0]
    assert ("__weight__" in batches[0]) == (epoch_end == "partial")


@pytest.mark.parametrize("assignment", ["local", "strict"])
@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_steps_are_the_same_on_any_number_of_ranks(
    mixed: Path, world: int, assignment: str
) -> None:
    ds = hr.open(mixed)
    with loader_of(ds, None, global_batch_size=10, rank=0, world_size=1) as one:
        steps = [sorted(batch["id"].tolist()) for batch in one]
    shares = []
    for rank in range(world):
        with loader_of(
            ds, None, global_batch_size=10, rank=rank, world_size=world, assignment=assignment
        ) as loader:
            assert loader.batch_size == -(-10 // world)
            shares.append([batch["id"].tolist() for batch in loader])
    for step, whole in enumerate(steps):
        assert sorted(i for share in shares for i in share[step]) == whole


def test_state_resumes_on_other_ranks_exactly_once(mixed: Path) -> None:
    ds = hr.open(mixed)
    seen: list[int] = []
    state: dict[str, Any] | None = None
    for world, steps in ((3, 2), (5, 3), (2, 5)):
        states = []
        for rank in range(world):
            with loader_of(ds, None, global_batch_size=10, rank=rank, world_size=world) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                for _, batch in zip(range(steps), loader):  # noqa: B905
                    seen += batch["id"].tolist()
                states.append(loader.state_dict())
        assert all(s == states[0] for s in states)
        state = json.loads(json.dumps(states[0]))
        assert len(json.dumps(state)) < 1024
    assert sorted(seen) == list(range(100))


def test_state_counts_what_was_handed_out_not_what_was_read_ahead(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        iterator = iter(loader)
        next(iterator)
        assert loader.state_dict()["next"] == 10
        next(iterator)
        state = loader.state_dict()
        rest = [int(i) for batch in iterator for i in batch["id"]]
        loader.load_state_dict(state)
        assert len(loader) == 8
        assert ids(loader) == rest
    assert loader.state_dict()["next"] == 100  # also after close()


def test_a_state_of_other_data_or_order_is_refused_with_what_differs(mixed: Path) -> None:
    ds = hr.open(mixed)
    with loader_of(ds) as loader:
        state = loader.state_dict()
    with (
        loader_of(ds, order=hr.Order(seed=18, lanes=2, chunk=4, window=64)) as other,
        pytest.raises(ValueError, match="seed"),
    ):
        other.load_state_dict(state)
    with (
        loader_of(ds.take(50)) as fewer,
        pytest.raises(hr.errors.InvalidArgumentError, match=r"(?i)samples|identity"),
    ):
        fewer.load_state_dict(state)
    with loader_of(ds) as loader:
        for wrong in ({}, {"a": 1}, state | {"surplus": 1}, state | {"next": -1}, {"a": object()}):
            with pytest.raises(hr.HeadraceError):
                loader.load_state_dict(wrong)
        assert ids(loader)


def test_set_epoch_moves_only_to_another_epoch(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        iterator = iter(loader)
        next(iterator)
        loader.set_epoch(0)
        assert len(ids(loader)) == 90
        loader.set_epoch(1)
        whole = ids(loader)
        loader.sampler.set_epoch(1)
        assert ids(loader) == whole
        loader.set_epoch(0)
        assert loader.epoch == 0
        with pytest.raises(ValueError, match="below 0"):
            loader.set_epoch(-1)


def test_len_does_not_shrink_while_an_epoch_runs(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        lengths = [len(loader) for _ in loader]
    assert lengths[:-1] == [10] * 9


def test_leaving_a_loop_and_starting_another_goes_on(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        seen: list[int] = []
        for batch in loader:
            seen += batch["id"].tolist()
            if len(seen) == 30:
                break
        old = iter(loader)
        assert sorted(seen + ids(loader)) == list(range(100))
        with pytest.raises(ValueError, match="iterate over one at a time"):
            next(old)


def test_skipped_positions_are_never_delivered(mixed: Path) -> None:
    ds = hr.open(mixed)
    left_out = ds.run_order(ORDER).fill(20, 20)[:, 2].tolist()
    with loader_of(ds, 10, skip=[(20, 40)]) as loader:
        assert sorted([*ids(loader), *left_out]) == list(range(100))


def test_views_load_their_samples_only(mixed: Path) -> None:
    ds = hr.open(mixed)
    view = ds.filter(np.arange(100) % 3 == 0).columns("id")
    with loader_of(view, 5, epoch_end="partial") as loader:
        batches = list(loader)
    assert sorted(int(i) for b in batches for i in b["id"]) == list(range(0, 100, 3))
    assert sorted(batches[0]) == ["__index__", "__weight__", "id"]
    with pytest.raises(hr.HeadraceError, match="no samples"):
        loader_of(ds.take(0))


def test_arrays_are_the_memory_of_the_core_and_outlive_the_loader(mixed: Path) -> None:
    loader = loader_of(mixed, 10)
    core_batch = loader._engine().next()
    column = core_batch.columns[0]
    first, second = np.from_dlpack(column[3]), np.asarray(memoryview(column[3]))
    assert first.ctypes.data == second.ctypes.data
    assert first.flags.writeable
    assert second.flags.writeable
    batch = next(iter(loader))
    copies = {name: batch[name].copy() for name in ("id", "tokens")}
    texts = batch["text"].to_list()
    loader.close()
    del loader, core_batch, column
    gc.collect()
    assert np.array_equal(batch["id"], copies["id"])
    assert np.array_equal(batch["tokens"], copies["tokens"])
    assert batch["text"].to_list() == texts
    batch["id"][:] = 0
    assert not batch["id"].any()


def test_dlpack_speaks_both_versions_and_refuses_what_it_cannot(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        column = loader._engine().next().columns[1][3]
    assert "dltensor_versioned" in repr(column.__dlpack__(max_version=(1, 1)))
    assert '"dltensor"' in repr(column.__dlpack__())
    assert column.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        column.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        column.__dlpack__(copy=True)


@pytest.mark.torch
def test_torch_gets_tensors_without_a_copy(mixed: Path) -> None:
    import torch

    with loader_of(mixed, 10, output="torch") as loader:
        batch = next(iter(loader))
    assert isinstance(batch["id"], torch.Tensor)
    assert batch["id"].dtype == torch.int64
    assert batch["tokens"].dtype == torch.uint16
    assert batch["text"].offsets.dtype == torch.int64
    assert batch["text"][0].startswith("sample ")
    with hr.Loader(hr.open(mixed), 10, order=ORDER, memory="64MiB") as loader:
        column = loader._engine().next().columns[1][3]
    assert torch.from_dlpack(column).data_ptr() == np.asarray(memoryview(column)).ctypes.data


def test_keeping_too_many_batches_says_what_to_do(
    mixed: Path, write_mds: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "large"
    samples = [{"x": np.zeros(1 << 18, np.uint8)} for _ in range(24)]
    write_mds(folder, {"x": "ndarray:uint8:262144"}, samples, 8)
    with loader_of(folder, 4, memory="4MiB", order=hr.Order(shuffle=False)) as loader:
        assert sum(1 for _ in loader) == 6  # one at a time is fine
    with loader_of(folder, 4, memory="4MiB") as loader:
        kept = []
        with pytest.raises(hr.errors.ExhaustedError, match="copy"):
            kept += list(loader)


def test_a_broken_sample_is_raised_skipped_or_replaced(mixed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(mixed, folder)
    shard = folder / "shard.00001.mds"
    raw = bytearray(shard.read_bytes())
    text = "sample 45 \u00e4".encode()
    at = raw.index(text)
    raw[at : at + len(text)] = b"\xff" * len(text)  # not UTF-8
    shard.write_bytes(bytes(raw))
    with (
        loader_of(folder, 10) as loader,
        pytest.raises(hr.errors.CorruptDataError, match=r"shard\.00001\.mds.*15"),
    ):
        for _ in loader:
            pass
    with loader_of(folder, 10, bad_samples="skip") as loader:
        assert sorted(ids(loader)) == [i for i in range(100) if i != 45]
        assert loader.stats()["bad_samples"] == 1
    with loader_of(folder, 10, bad_samples="substitute") as loader:
        got = ids(loader)
        assert len(got) == 100
        assert set(got) == set(range(100)) - {45}


def test_stats_tell_what_happened(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        for _ in loader:
            pass
        stats = loader.stats()
        plan = loader.plan
    assert (stats["batches"], stats["samples"], stats["epoch"], stats["position"]) == (
        10,
        100,
        1,
        100,
    )
    assert stats["wait_seconds"]["count"] == 10
    assert stats["wait_seconds"]["max"] >= 0
    assert stats["memory"]["budget"] == 64 << 20
    assert stats["deff"] == plan["deff"] > 0
    assert plan["is_local"]
    json.dumps(stats)


def test_a_loader_pickles_with_its_place(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader:
        for _, _ in zip(range(3), loader):  # noqa: B905
            pass
        again = pickle.loads(pickle.dumps(loader))
        rest = ids(loader)
    with again:
        assert ids(again) == rest


def test_a_closed_loader_says_so(mixed: Path) -> None:
    loader = loader_of(mixed)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    loader.close()
    with pytest.raises(hr.errors.CancelledError):
        next(iterator)
    with pytest.raises(hr.errors.CancelledError):
        len(loader)
    assert "closed" in repr(loader)
    assert pickle.loads(pickle.dumps(loader)).state_dict()["next"] == 8


def test_names_of_other_loaders_mean_the_same(mixed: Path) -> None:
    ds = hr.open(mixed)
    options: dict[str, Any] = {"memory": "64MiB", "output": "numpy"}
    with hr.Loader(
        ds,
        batch_size=8,
        shuffle=False,
        drop_last=False,
        num_workers=2,
        pin_memory=False,
        persistent_workers=True,
        collate_fn=lambda samples: [s["id"] for s in samples],
        **options,
    ) as loader:
        assert [i for batch in loader for i in batch] == list(range(100))
    with hr.Loader(ds, batch_size=8, seed=5, **options) as loader:
        assert loader.state_dict()["order"]["seed"] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batchsize": 3}, "did you mean batch_size="),
        ({"sampler": [1]}, r"ds\.select"),
        ({"prefetch_factor": 2}, "memory="),
        ({"pin_memory": True}, "pin_memory"),
        ({"cache": "x"}, "later release"),
        ({"shuffle": True, "order": ORDER}, "say the same"),
        ({"drop_last": True, "epoch_end": "pad"}, "say the same"),
        ({"xyzzy": 1}, "no argument 'xyzzy'"),
        ({"batch_size": None}, "global_batch_size="),
        ({"batch_size": 0}, "at least 1"),
        ({"global_batch_size": 9}, "give one of them"),
        ({"global_batch_size": 1, "batch_size": None, "world_size": 2, "rank": 0}, "each of 2"),
        ({"rank": 2, "world_size": 2}, "world of 2"),
        ({"epoch_end": "loop"}, "epoch_end"),
        ({"assignment": "any"}, "assignment"),
        ({"bad_samples": "ignore"}, "bad_samples"),
        ({"output": "jax"}, "output"),
        ({"memory": "1KiB"}, "memory"),
        ({"memory": "lots"}, "not a size"),
        ({"threads": 0}, "threads"),
        ({"decode": {"jpg": True}}, r"headrace\.image"),
        ({"decode": {"jpg": hr.image()}}, "jpg"),
        ({"decode": {"id": hr.image()}}, "not a picture"),
        ({"transform": 3}, "must be a function"),
        ({"transform": lambda s: s}, "lambda sample, rng"),
        ({"transform_in": "process"}, "not in this release"),
        ({"order": "random"}, r"headrace\.Order"),
        ({"batch_timeout": -1}, "batch_timeout"),
        ({"skip": [(5, 3)]}, r"(?i)skip|interval"),
    ],
)
def test_arguments_that_cannot_be_are_explained(
    mixed: Path, options: dict[str, Any], message: str
) -> None:
    defaults = {"batch_size": 8, "output": "numpy", "memory": "64MiB"}
    with pytest.raises(hr.HeadraceError, match=message):
        hr.Loader(hr.open(mixed), **(defaults | options))


def test_anything_but_a_data_set_is_refused() -> None:
    with pytest.raises(TypeError, match=r"headrace\.open"):
        hr.Loader("s3://bucket/ds", 8)  # type: ignore[arg-type]


def test_habits_from_other_loaders_are_answered(mixed: Path) -> None:
    with loader_of(mixed, 10) as loader, pytest.raises(hr.errors.UsageError, match="DataLoader"):
        loader[0]
    with pytest.raises(hr.errors.UsageError, match="decode must be a dict"):
        loader_of(mixed, decode=["image"])
    with pytest.raises(IndexError, match="outside the data set, which has 100 samples"):
        hr.open(mixed)[100]


def test_paths_that_are_nearly_right_are_answered(mixed: Path) -> None:
    with pytest.raises(FileNotFoundError, match="open the folder it lies in"):
        hr.open(mixed / "index.json")
    with pytest.raises(FileNotFoundError, match="through their folder"):
        hr.open(str(mixed / "shard-{000..009}.tar"))
