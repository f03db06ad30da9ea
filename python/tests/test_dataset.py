"""Opening, single samples, views, pickling, forks."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest

Sample = dict[str, Any]


def test_a_data_set_says_what_is_in_it(mixed: Path) -> None:
    ds = hr.open(mixed)
    assert ds.fields == {
        "blob": "bytes",
        "id": "int64",
        "meta": "json",
        "text": "str",
        "tokens": "uint16[4]",
    }
    assert len(ds) == 100
    assert (ds.format, ds.url) == ("mds", str(mixed))
    assert [shard.samples for shard in ds.shards] == [30, 30, 30, 10]
    assert ds.shards[0].name == "shard.00000.mds"
    assert ds.stored_bytes == sum(shard.bytes for shard in ds.shards)
    assert "100 samples" in repr(ds)
    assert hr.open(str(mixed)).identity == ds.identity


def test_samples_are_python_values(
    mixed: Path, expected: Callable[[int], Sample], equal: Callable[[Any, Any], bool]
) -> None:
    ds = hr.open(mixed)
    for i in (0, 29, 30, 99, -1, -100, np.int64(7)):
        assert equal(ds[i], dict(sorted(expected(int(i) % 100).items())))
    ds[3]["tokens"][0] = 9  # a copy that is the caller's own
    assert ds[3]["tokens"][0] == 3
    for wrong in (100, -101):
        with pytest.raises(IndexError, match=str(wrong)):
            ds[wrong]
    with pytest.raises(TypeError):
        ds["id"]  # type: ignore[index]


def test_iterating_gives_all_samples_in_stored_order(
    mixed: Path, expected: Callable[[int], Sample], equal: Callable[[Any, Any], bool]
) -> None:
    ds = hr.open(mixed)
    got = list(ds)  # keeping all must not exhaust the reader's memory
    assert len(got) == 100
    assert all(equal(sample, dict(sorted(expected(i).items()))) for i, sample in enumerate(got))
    assert [sample["id"] for sample in ds.select([5, 3, 5])] == [5, 3, 5]
    assert list(ds.take(0)) == []
    for sample in ds:
        assert sample["id"] == 0
        break


def test_views_choose_samples(mixed: Path) -> None:
    ds = hr.open(mixed)
    assert [s["id"] for s in ds.select([7, -1, 7])] == [7, 99, 7]
    assert [s["id"] for s in ds[10:14:2]] == [10, 12]
    assert len(ds.take(30)) == 30
    assert len(ds.take(1000)) == 100
    odd = ds.filter(np.arange(100) % 2 == 1)
    assert [s["id"] for s in odd.take(3)] == [1, 3, 5]
    assert odd.select([1]).take(1)[0]["id"] == 3
    first, second = ds.split(0.7, seed=3)
    ids = [s["id"] for s in first] + [s["id"] for s in second]
    assert sorted(ids) == list(range(100))
    assert 50 < len(first) < 90
    assert [s["id"] for s in ds.split(0.7, seed=3)[0]] == [s["id"] for s in first]
    assert odd.stored_bytes == ds.stored_bytes // 2
    assert len(ds.select([])) == 0


def test_columns_choose_fields(mixed: Path) -> None:
    view = hr.open(mixed).columns("text", "id")
    assert list(view.fields) == ["text", "id"]
    assert list(view[2].items()) == [("text", "sample 2 \u00e4"), ("id", 2)]
    assert next(iter(view.take(1))) == {"text": "sample 0 \u00e4", "id": 0}
    with pytest.raises(ValueError, match="no field 'txt'; there are: text, id"):
        view.columns("txt")
    with pytest.raises(ValueError, match="at least one name"):
        view.columns()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ds: ds.select([100]), "sample 100 is not in a view of 100"),
        (lambda ds: ds.select([0.5]), "list of integers"),
        (lambda ds: ds.select([True]), r"filter\(\)"),
        (lambda ds: ds.select([[1]]), "list of integers"),
        (lambda ds: ds.filter([True]), r"bool \[100\]"),
        (lambda ds: ds.filter(lambda s: True), "one bool for each sample"),
        (lambda ds: ds.take(-1), "below 0"),
        (lambda ds: ds.split(1.5), "fraction=1.5"),
    ],
)
def test_views_that_cannot_be_are_refused(
    mixed: Path, call: Callable[[hr.Dataset], object], message: str
) -> None:
    with pytest.raises(hr.HeadraceError, match=message):
        call(hr.open(mixed))


def test_shuffle_quality_is_a_number(mixed: Path) -> None:
    ds = hr.open(mixed)
    assert 0.0 < ds.deff(10) < ds.deff(10, hr.Order(window=4, lanes=1, chunk=4))
    assert ds.run_order().samples == 100


def test_a_missing_data_set_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="index") as caught:
        hr.open(tmp_path / "nothing")
    assert caught.value.code == "not_found"
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(ValueError, match="url is empty"):
        hr.open("")
    with pytest.raises(TypeError):
        hr.open(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads=0"):
        hr.open(tmp_path, threads=0)


def test_a_broken_index_is_corrupt(mixed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(mixed, folder)
    (folder / "index.json").write_text("{")
    with pytest.raises(hr.errors.CorruptDataError, match=r"index\.json"):
        hr.open(folder)
    index = json.loads((mixed / "index.json").read_text())
    index["shards"][0]["raw_data"]["basename"] = "../outside.mds"
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(hr.HeadraceError, match="outside"):
        hr.open(folder)


def test_a_truncated_or_missing_shard_is_an_error_that_names_it(
    mixed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(mixed, folder)
    shard = folder / "shard.00001.mds"
    shard.write_bytes(shard.read_bytes()[:-10])
    (folder / "shard.00002.mds").unlink()
    ds = hr.open(folder)
    with pytest.raises(hr.errors.CorruptDataError, match=r"shard\.00001\.mds"):
        ds[59]
    with pytest.raises(FileNotFoundError, match=r"shard\.00002\.mds"):
        ds[60]
    assert ds[0]["id"] == 0


def test_a_data_set_pickles_as_its_specification(mixed: Path) -> None:
    ds = hr.open(mixed)
    view = ds.select([5, 6, 7, 8]).take(3).columns("id")
    text = pickle.dumps(view)
    assert len(text) < 2000
    again = pickle.loads(text)
    assert [s["id"] for s in again] == [5, 6, 7]
    part = pickle.loads(pickle.dumps(ds.split(0.5, seed=1)[1]))
    assert [s["id"] for s in part] == [s["id"] for s in ds.split(0.5, seed=1)[1]]


def test_unpickling_other_data_is_an_error(mixed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(mixed, folder)
    text = pickle.dumps(hr.open(folder))
    index = json.loads((folder / "index.json").read_text())
    del index["shards"][3]
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="is not the data set that was opened before"):
        len(pickle.loads(text))


def test_a_closed_data_set_says_so(mixed: Path) -> None:
    with hr.open(mixed) as ds:
        assert len(ds) == 100
    with pytest.raises(hr.errors.CancelledError, match="closed"):
        ds[0]
    ds.close()
    assert "closed" in repr(ds)


def test_a_forked_child_opens_again(mixed: Path) -> None:
    program = f"""
import os, headrace as hr
ds = hr.open({str(mixed)!r}).select([4, 2])
assert ds[0]["id"] == 4
child = os.fork()
if child == 0:
    ok = ds[1]["id"] == 2 and [s["id"] for s in ds] == [4, 2]
    os._exit(0 if ok else 9)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert ds[1]["id"] == 2
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_paths_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/d\xffr")
    with pytest.raises(ValueError, match="is not UTF-8"):
        hr.open(odd)
