"""Packing, indexing, verifying."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest

COLUMNS = {
    "id": "int",
    "text": "str",
    "blob": "bytes",
    "meta": "json",
    "tokens": "ndarray:uint16:4",
    "curve": "ndarray",
    "small": "uint8",
    "x": "float32",
}


def sample(i: int) -> dict[str, Any]:
    return {
        "id": i - 5,
        "text": f"\u00e4 {i}",
        "blob": bytes(range(i)),
        "meta": {"i": i, "list": [None, 1.5]},
        "tokens": np.arange(4, dtype=np.uint16) * i,
        "curve": np.arange(2 * (i + 1), dtype=np.float64).reshape(2, -1),
        "small": np.uint8(i),
        "x": i / 2,
    }


def write(folder: Path, n: int = 40, **options: Any) -> Path:
    with hr.Writer(folder, COLUMNS, size_limit="2KiB", **options) as writer:
        for i in range(n):
            writer.write(sample(i))
        assert writer.samples == n
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_what_is_written_reads_back(tmp_path: Path, equal: Callable[[Any, Any], bool]) -> None:
    ds = hr.open(write(tmp_path / "ds", hashes=["sha256"]))
    assert len(ds) == 40
    assert len(ds.shards) > 2
    first = ds.shards[0]
    body = (tmp_path / "ds" / first.name).read_bytes()
    assert first.hashes == {"sha256": hashlib.sha256(body).hexdigest()}
    for i in range(40):
        want = sample(i)
        want["small"] = i
        assert equal(ds[i], dict(sorted(want.items())))
    assert hr.verify(tmp_path / "ds") == []


def test_null_is_a_json_value_like_any_other(tmp_path: Path) -> None:
    with hr.Writer(tmp_path / "ds", columns={"meta": "json"}) as writer:
        writer.write({"meta": None})
        with pytest.raises(hr.errors.InvalidArgumentError, match="no value for 'meta'"):
            writer.write({})
        writer.write({"meta": [None]})
    with hr.open(tmp_path / "ds") as dataset:
        assert [sample["meta"] for sample in dataset] == [None, [None]]


def test_equal_samples_give_equal_bytes(tmp_path: Path) -> None:
    assert digests(write(tmp_path / "a")) == digests(write(tmp_path / "b"))


def test_nothing_appears_when_the_block_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop here"), hr.Writer(tmp_path / "ds", COLUMNS) as w:
        w.write(sample(1))
        raise RuntimeError("stop here")
    assert list(tmp_path.iterdir()) == []
    writer = hr.Writer(tmp_path / "ds", COLUMNS)
    writer.write(sample(1))
    writer.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(hr.errors.CancelledError, match="closed"):
        writer.write(sample(2))


def test_a_data_set_is_replaced_only_when_asked(tmp_path: Path) -> None:
    write(tmp_path / "ds")
    with pytest.raises(ValueError, match="overwrite"):
        write(tmp_path / "ds")
    write(tmp_path / "ds", 3, overwrite=True)
    assert len(hr.open(tmp_path / "ds")) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "three"}, r"sample 0: column 'id'"),
        ({"id": 1.5}, "column 'id'"),
        ({"id": 1 << 63}, "column 'id'"),
        ({"small": 256}, "column 'small'"),
        ({"text": b"bytes"}, "wants str, not bytes"),
        ({"text": "\ud800"}, "column 'text'"),
        ({"blob": "text"}, "wants bytes, not str"),
        ({"meta": object()}, "column 'meta'"),
        ({"tokens": np.arange(4)}, "wants an array of uint16, not of int64"),
        ({"tokens": np.arange(5, dtype=np.uint16)}, r"wants shape \[4\]"),
        ({"tokens": [1, 2, 3, 70000]}, "column 'tokens'"),
        ({"curve": np.array(["a"])}, "wants an array"),
        ({"x": "1.0.0"}, "column 'x'"),
        ({"id": None}, "no value for 'id'"),
        ({"identity": 3}, "no column 'identity'"),
        ({"txt": 3}, "did you mean 'text'"),
        ({"__key__": "a"}, "no column '__key__'"),
    ],
)
def test_values_that_do_not_fit_are_named_and_going_on_is_fine(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with hr.Writer(tmp_path / "ds", COLUMNS) as writer:
        with pytest.raises(hr.errors.InvalidArgumentError, match=message):
            writer.write(sample(1) | change)
        with pytest.raises(hr.errors.InvalidArgumentError, match="no value for"):
            writer.write({"id": 1})
        writer.write(sample(7))
    ds = hr.open(tmp_path / "ds")
    assert len(ds) == 1
    assert ds[0]["id"] == 2


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"a": "complex"}, {}, "complex"),
        ({"a": "pkl"}, {}, "pkl"),
        ({}, {}, "column"),
        ({"a": "int"}, {"format": "zip"}, "zip"),
        ({"a": "int"}, {"hashes": ["md17"]}, "md17"),
        ({"a": "int"}, {"size_limit": "small"}, "size_limit"),
        ({"a": "int"}, {"endpont": "x"}, "did you mean endpoint="),
    ],
)
def test_writers_that_cannot_be_are_refused(
    tmp_path: Path, columns: dict[str, str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(hr.HeadraceError, match=message):
        hr.Writer(tmp_path / "ds", columns, **options)
    assert list(tmp_path.iterdir()) == []


def picture(kind: str, i: int = 0) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    pixels = np.random.default_rng(i).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def test_pictures_are_files_or_pillow_images_and_decode(tmp_path: Path) -> None:
    from PIL import Image

    with hr.Writer(tmp_path / "ds", {"jpg": "jpeg", "png": "png"}) as writer:
        for i in range(8):
            raw = picture("PNG", i)
            opened = Image.open(io.BytesIO(raw))
            writer.write({"jpg": picture("JPEG", i) if i % 2 else opened, "png": raw})
        with pytest.raises(ValueError, match="is no JPEG file"):
            writer.write({"jpg": picture("PNG"), "png": picture("PNG")})
    ds = hr.open(tmp_path / "ds")
    assert ds.fields == {"jpg": "jpeg", "png": "png"}
    assert ds[1]["jpg"] == picture("JPEG", 1)
    spec = hr.image(32)
    whole = hr.image(crop=None)
    with hr.Loader(
        ds, 4, decode={"jpg": spec, "png": whole}, output="numpy", order=hr.Order(seed=3)
    ) as loader:
        batch = next(iter(loader))
    assert batch["jpg"].shape == (4, 32, 32, 3)
    assert batch["jpg"].dtype == np.uint8
    for row, i in enumerate(batch["__index__"].tolist()):
        assert np.array_equal(batch["png"][row], np.asarray(Image.open(io.BytesIO(ds[i]["png"]))))
        one = spec(ds[i]["jpg"], seed=3, epoch=0, sample=i)
        assert np.array_equal(batch["jpg"][row], one)
    with pytest.raises(hr.errors.CorruptDataError):
        spec(ds[1]["jpg"][:200])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size=0"),
        ({"crop": "left"}, "crop="),
        ({"scale": (0.5, 0.1)}, "scale"),
        ({"flip": 2.0}, "flip"),
    ],
)
def test_pictures_that_cannot_be_made_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.errors.InvalidArgumentError, match=message):
        hr.image(**options)


def make_tar(path: Path, n: int, start: int = 0) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(start, start + n):
            members = {"cls": str(i).encode(), "txt": f"text {i}".encode()}
            members["json"] = json.dumps({"i": i}).encode()
            for ext, body in members.items():
                info = tarfile.TarInfo(f"{i:06}.{ext}")
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))


def test_tar_shards_open_once_they_have_an_index(tmp_path: Path) -> None:
    for k in range(3):
        make_tar(tmp_path / f"s-{k:02}.tar", 10, 10 * k)
    with pytest.raises(FileNotFoundError, match="headrace index"):
        hr.open(tmp_path)
    calls: list[tuple[int, int]] = []
    summary = hr.build_index(
        f"{tmp_path}/s-{{00..02}}.tar", progress=lambda done, total: calls.append((done, total))
    )
    assert (summary.shards, summary.samples) == (3, 30)
    assert str(summary) == str(tmp_path / "headrace.index")
    assert calls
    ds = hr.open(tmp_path)
    assert ds.format == "wds"
    assert len(ds) == 30
    assert ds[17]["txt"] in ("text 17", b"text 17")
    assert ds[17]["json"] == {"i": 17}
    assert hr.verify(tmp_path) == []
    with pytest.raises(ValueError, match=r"overwrite|there"):
        hr.build_index(tmp_path)
    elsewhere = tmp_path / "other.index"
    hr.build_index(tmp_path, elsewhere)
    assert elsewhere.read_bytes() == (tmp_path / "headrace.index").read_bytes()
    (tmp_path / "headrace.index").unlink()
    assert len(hr.open(tmp_path, index=elsewhere)) == 30


def test_tar_data_sets_are_written_and_keys_kept(tmp_path: Path) -> None:
    with hr.Writer(tmp_path / "ds", {"txt": "str", "cls": "int"}, format="wds") as writer:
        for i in range(5):
            writer.write({"__key__": f"a/b{i}", "txt": f"t{i}", "cls": i})
    ds = hr.open(tmp_path / "ds")
    assert [(s["txt"], s["cls"]) for s in ds] == [(f"t{i}", str(i)) for i in range(5)]
    with tarfile.open(tmp_path / "ds" / ds.shards[0].name) as tar:
        assert sorted(tar.getnames())[:2] == ["a/b0.cls", "a/b0.txt"]


def test_indexing_is_stopped_by_the_callback(tmp_path: Path) -> None:
    make_tar(tmp_path / "a.tar", 100)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hr.build_index(tmp_path, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_what_is_no_tar_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no tar at all" * 100)
    with pytest.raises(hr.errors.CorruptDataError, match=r"a\.tar"):
        hr.build_index(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"b\.tar"):
        hr.build_index(tmp_path / "b.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_verify_finds_changed_bytes(tmp_path: Path) -> None:
    folder = write(tmp_path / "ds", hashes=["sha256"])
    shard = folder / hr.open(folder).shards[1].name
    raw = bytearray(shard.read_bytes())
    raw[-1] ^= 1
    shard.write_bytes(bytes(raw))
    problems = hr.verify(folder)
    assert problems
    assert all(shard.name in problem.shard for problem in problems)
    assert any("sha256" in problem.what for problem in problems)
