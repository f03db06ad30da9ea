"""Fixtures shared by the Python tests."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from headrace.testing.servers import S3Server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One real S3 server for the whole session; give each test its own key prefix."""
    with S3Server() as server:
        yield server


def load_helper(name: str) -> ModuleType:
    """A module beside the tests; the folder is not on the import path."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


COLUMNS = {
    "id": "int",
    "text": "str",
    "blob": "bytes",
    "meta": "json",
    "tokens": "ndarray:uint16:4",
}


def make_sample(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "text": f"sample {i} \u00e4",
        "blob": bytes([i % 256]) * (i % 7),
        "meta": {"i": i, "tags": ["a"] * (i % 3)},
        "tokens": np.arange(i, i + 4, dtype=np.uint16),
    }


@pytest.fixture(scope="session")
def write_mds() -> Callable[..., None]:
    """write_mds(folder, columns, samples, per_shard), independent of the product."""
    writer: Callable[..., None] = load_helper("mds_files").write_mds
    return writer


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory, write_mds: Callable[..., None]) -> Path:
    """A data set of 100 samples in 4 shards with a field of every kind but pictures."""
    folder = tmp_path_factory.mktemp("data") / "mixed"
    write_mds(folder, COLUMNS, [make_sample(i) for i in range(100)], 30)
    return folder


@pytest.fixture
def expected() -> Callable[[int], dict[str, Any]]:
    """What sample ``i`` of ``mixed`` holds."""

    return make_sample


def same(a: Any, b: Any) -> bool:
    """Equality of samples that may hold arrays."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b)) and np.asarray(a).dtype == np.asarray(b).dtype
    return type(a) is type(b) and bool(a == b)


@pytest.fixture
def equal() -> Callable[[Any, Any], bool]:
    return same


@pytest.fixture
def damage() -> Callable[[Path, int], None]:
    """damage(folder, shards) makes the index claim one sample more in the first shard."""

    def change(folder: Path, extra: int) -> None:
        index = json.loads((folder / "index.json").read_text())
        index["shards"][0]["samples"] += extra
        (folder / "index.json").write_text(json.dumps(index))

    return change
