"""One data set, three ways to it: local files, HTTPS (nginx) and S3 (SeaweedFS), same batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace.testing.servers import HttpsServer, S3Server

SAMPLES = 700


def write(folder: Path, kind: str) -> None:
    rng = np.random.default_rng(3)
    columns = {"body": "bytes", "label": "int"} if kind == "mds" else {"bin": "bytes", "txt": "str"}
    with hr.Writer(folder, columns, format=kind, size_limit="64KB") as writer:
        for i in range(SAMPLES):
            body = rng.bytes(int(rng.integers(0, 2000)))
            writer.write(
                {"body": body, "label": i} if kind == "mds" else {"bin": body, "txt": str(i)}
            )


def digests(dataset: hr.Dataset) -> list[str]:
    """A digest of every batch of two epochs and of how it is divided among two ranks."""
    out = []
    for rank in range(2):
        with hr.Loader(
            dataset,
            global_batch_size=64,
            rank=rank,
            world_size=2,
            epoch_end="partial",
            order=hr.Order(seed=5, lanes=4, chunk=16, window=256),
            output="numpy",
            memory="64MB",
        ) as loader:
            for _ in range(2):
                for batch in loader:
                    digest = hashlib.sha256(batch["__index__"].tobytes())
                    for name in sorted(dataset.fields):
                        column: Any = batch[name]
                        if isinstance(column, hr.Ragged):
                            digest.update(column.offsets.tobytes())
                            column = column.values
                        digest.update(np.ascontiguousarray(column).tobytes())
                    out.append(digest.hexdigest())
    return out


@pytest.fixture(scope="module", params=["mds", "wds"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("same") / str(request.param)
    write(path, request.param)
    return path


@pytest.fixture(scope="module")
def local(folder: Path) -> list[str]:
    with hr.open(folder) as dataset:
        got = digests(dataset)
    assert len(got) == len(set(got)) == 2 * 2 * 11
    return got


@pytest.fixture(scope="module")
def https(folder: Path) -> Iterator[HttpsServer]:
    with HttpsServer(folder) as server:
        yield server


def test_https_gives_the_batches_of_local_files(local: list[str], https: HttpsServer) -> None:
    with hr.open(https.url(), ca_bundle=str(https.ca_file)) as dataset:
        assert digests(dataset) == local


def test_s3_gives_the_batches_of_local_files(
    folder: Path, local: list[str], s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    prefix = f"same/{folder.name}"
    s3_server.upload(folder, prefix)
    with hr.open(s3_server.url(prefix)) as dataset:
        assert digests(dataset) == local
