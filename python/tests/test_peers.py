"""Mosaic Streaming and WebDataset read what we write, and we read what they write."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import headrace as hr
import numpy as np
import pytest

PROGRAM = Path(__file__).with_name("peer_program.py")
PYTHON = Path(os.environ.get("HEADRACE_PEERS", PROGRAM.parents[2] / ".venv-mosaic"))


def load_program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("peer_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


peer = load_program()


def run_peer(*words: str | Path) -> None:
    python = PYTHON / "bin" / "python"
    assert python.is_file(), f"no {python}; try `tools/peer_envs.py mosaic`"
    done = subprocess.run(
        [python, PROGRAM, *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("peers") / "pictures"
    run_peer("pictures", folder)
    return folder


def assert_same(got: Any, want: Any, where: str) -> None:
    if isinstance(want, np.ndarray):
        assert got.dtype == want.dtype, where
        assert np.array_equal(got, want), where
    else:
        assert got == want, where


def test_mosaic_reads_what_we_pack(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "ours"
    with hr.Writer(out, peer.MDS_COLUMNS, size_limit=200_000, hashes=["sha256"]) as writer:
        for i in range(peer.COUNT):
            writer.write(peer.mds_sample(i, pictures))
    assert len(hr.open(out).shards) > 5
    run_peer("read-mds", out, pictures)


def test_we_read_what_mosaic_packs(pictures: Path, tmp_path: Path) -> None:
    run_peer("write-mds", tmp_path / "theirs", pictures)
    ds = hr.open(tmp_path / "theirs")
    assert len(ds) == peer.COUNT
    whole = hr.image(crop=None)
    for i in range(peer.COUNT):
        got, want = ds[i], peer.mds_sample(i, pictures)
        # Mosaic encodes a PNG again, so its pixels are compared and not its bytes.
        png, original = got.pop("grey"), want.pop("grey")
        assert np.array_equal(whole(png), whole(original)), i
        assert got.keys() == want.keys()
        for name, value in want.items():
            assert_same(got[name], value, f"sample {i}, field {name}")


def test_webdataset_reads_what_we_pack(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "ours"
    columns = {"cls": "int", "jpg": "jpeg", "json": "json", "txt": "str"}
    with hr.Writer(out, columns, format="wds", size_limit=300_000) as writer:
        for i in range(peer.COUNT):
            writer.write({"__key__": peer.wds_key(i), **peer.wds_sample(i, pictures)})
    assert len(hr.open(out).shards) > 1
    run_peer("read-wds", out, pictures)


def test_we_read_what_webdataset_packs(pictures: Path, tmp_path: Path) -> None:
    run_peer("write-wds", tmp_path / "theirs", pictures)
    hr.build_index(tmp_path / "theirs")
    ds = hr.open(tmp_path / "theirs")
    assert len(ds) == peer.COUNT
    for i in range(peer.COUNT):
        got, want = ds[i], peer.wds_sample(i, pictures)
        # A class number is a text file in the archive, and is delivered as stored.
        got["cls"] = int(got["cls"])
        for name, value in want.items():
            assert_same(got[name], value, f"sample {i}, field {name}")


@pytest.mark.parametrize("kind", ["mds", "wds"])
def test_an_epoch_over_peer_data_holds_every_sample_once(
    kind: str, pictures: Path, tmp_path: Path
) -> None:
    folder = tmp_path / kind
    run_peer(f"write-{kind}", folder, pictures)
    if kind == "wds":
        hr.build_index(folder)
    loader = hr.Loader(hr.open(folder), 32, order=hr.Order(seed=3), epoch_end="partial")
    seen: list[int] = []
    for batch in loader:
        seen += batch["__index__"].tolist()
    assert sorted(seen) == list(range(peer.COUNT))
    assert seen != sorted(seen)
