"""The same data set over S3 as from local files, through a real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import headrace as hr
import pytest
from headrace.testing.servers import S3Server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server


def batches(ds: hr.Dataset) -> list[tuple[list[int], list[Any]]]:
    order = hr.Order(seed=17, lanes=2, chunk=4, window=64)
    with hr.Loader(ds, 10, order=order, output="numpy", memory="64MiB", threads=2) as loader:
        return [(batch["id"].tolist(), batch["text"].to_list()) for batch in loader]


def test_s3_gives_the_same_samples_and_batches(
    s3: S3Server, mixed: Path, equal: Callable[[Any, Any], bool]
) -> None:
    s3.upload(mixed, "python/mixed")
    local = hr.open(mixed)
    remote = hr.open(s3.url("python/mixed"), endpoint=s3.endpoint)
    assert remote.identity == local.identity
    assert equal(remote[45], local[45])
    assert all(equal(a, b) for a, b in zip(remote, local, strict=True))
    assert batches(remote) == batches(local)


def test_packing_to_s3_publishes_whole_data_sets_only(s3: S3Server) -> None:
    url = s3.url("python/packed")
    with pytest.raises(RuntimeError), hr.Writer(url, {"id": "int"}, endpoint=s3.endpoint) as w:
        w.write({"id": 1})
        raise RuntimeError("stop here")
    with pytest.raises(FileNotFoundError):
        hr.open(url, endpoint=s3.endpoint)
    with hr.Writer(url, {"id": "int"}, size_limit="4KiB", endpoint=s3.endpoint) as writer:
        for i in range(1000):
            writer.write({"id": i})
    ds = hr.open(url, endpoint=s3.endpoint)
    assert len(ds.shards) > 1
    assert [sample["id"] for sample in ds] == list(range(1000))
    assert hr.verify(url, endpoint=s3.endpoint) == []


def test_wrong_credentials_and_missing_buckets_are_told_apart(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-bucket"):
        hr.open("s3://no-such-bucket/ds", endpoint=s3.endpoint)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "this-is-not-the-secret")
    with pytest.raises(PermissionError) as caught:
        hr.open(s3.url("python/mixed"), endpoint=s3.endpoint)
    assert "this-is-not-the-secret" not in str(caught.value)
