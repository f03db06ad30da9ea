"""Fixtures shared by the Python tests."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


# A photograph of 16 x 8 pixels, in 306 bytes.
_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhb"
    "WGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk"
    "pKSkpKSkpKSkpKSkpKSkpKT/wAARCAAIABADASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAXEAEAAwAAAA"
    "AAAAAAAAAAAAAAAwVi/8QAFQEBAQAAAAAAAAAAAAAAAAAAAgT/xAAaEQACAgMAAAAAAAAAAAAAAAAAAQIDBBJR/9oADAMB"
    "AAIRAxEAPwCCKvysirsgh3bBjXT6f//Z"
)


@dataclass(frozen=True)
class Pictures:
    """Small valid picture files, all different."""

    def jpeg(self, number: int = 0) -> bytes:
        """16 x 8 pixels; the number stands in a comment segment."""
        comment = b"picture %d" % number
        return _JPEG[:2] + b"\xff\xfe" + struct.pack(">H", 2 + len(comment)) + comment + _JPEG[2:]

    def png(self, width: int = 3, height: int = 2) -> bytes:
        """RGB, black."""
        rows = b"".join(b"\0" * (1 + 3 * width) for _ in range(height))
        chunks = [
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(rows)),
            (b"IEND", b""),
        ]
        out = b"\x89PNG\r\n\x1a\n"
        for name, body in chunks:
            out += struct.pack(">I", len(body)) + name + body
            out += struct.pack(">I", zlib.crc32(name + body))
        return out

    def folders(self, top: Path, classes: dict[str, int]) -> Path:
        """Class folders with that many JPEGs each."""
        number = 0
        for name, count in classes.items():
            (top / name).mkdir(parents=True)
            for i in range(count):
                (top / name / f"{i:04d}.jpg").write_bytes(self.jpeg(number))
                number += 1
        return top


@pytest.fixture
def pictures() -> Pictures:
    return Pictures()


@dataclass(frozen=True)
class CommandResult:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as the one JSON document it must be under --json."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., CommandResult]:
    """Runs a command line in this process."""
    from headrace.cli import main

    def run(*words: str | os.PathLike[str]) -> CommandResult:
        capsys.readouterr()
        code = main([os.fspath(word) for word in words])
        got = capsys.readouterr()
        return CommandResult(code, got.out, got.err)

    return run


@pytest.fixture
def headrace(tmp_path: Path) -> Callable[..., CommandResult]:
    """Runs `python -m headrace` in a process of its own, in the test's folder."""

    def run(
        *words: str | os.PathLike[str], input: str | None = None, **environment: str
    ) -> CommandResult:
        done = subprocess.run(
            [sys.executable, "-m", "headrace", *map(os.fspath, words)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            input="" if input is None else input,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    return run
