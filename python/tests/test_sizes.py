"""Sizes, errors and what the machine says."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from headrace import _host, errors
from headrace._sizes import bytes_of, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512B", 512),
        ("1KiB", 1024),
        ("1kb", 1024),
        ("64mb", 64 << 20),
        ("64 MiB", 64 << 20),
        ("1.5GB", 3 << 29),
        (".5 TiB", 1 << 39),
    ],
)
def test_units_are_powers_of_1024_however_they_are_written(text: str, size: int) -> None:
    assert parse_bytes(text, "memory") == size


@pytest.mark.parametrize("text", ["", "64", "MiB", "-1MiB", "1 iB", "1e3MB", "9999999PB", "1MiBs"])
def test_other_texts_are_no_sizes(text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="memory="):
        parse_bytes(text, "memory")


def test_a_plain_number_counts_bytes_and_must_be_positive() -> None:
    assert bytes_of(4096, "memory") == 4096
    with pytest.raises(ValueError, match="more than 0 bytes"):
        bytes_of(0, "memory")


@pytest.mark.parametrize(
    ("code", "builtin"),
    [
        ("invalid_argument", ValueError),
        ("not_found", FileNotFoundError),
        ("denied", PermissionError),
        ("corrupt", ValueError),
        ("unavailable", ConnectionError),
        ("throttled", ConnectionError),
        ("deadline", TimeoutError),
        ("cancelled", Exception),
        ("exhausted", RuntimeError),
        ("unimplemented", NotImplementedError),
        ("internal", RuntimeError),
    ],
)
def test_every_code_has_an_error_that_is_also_the_builtin_one(
    code: str, builtin: type[Exception]
) -> None:
    error = errors._from_code(code, "shard 3: gone")
    assert isinstance(error, errors.HeadraceError)
    assert isinstance(error, builtin)
    assert error.code == code
    assert error.retryable == (code in ("unavailable", "throttled"))
    assert str(error) == "shard 3: gone"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_the_machine_gives_at_least_one_thread_and_some_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _host.default_threads() >= 1
    whole = _host.default_memory()
    assert 0 < whole <= 8 << 30
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert _host.default_threads() == 1
    assert _host.default_memory() < whole


def test_ranks_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert _host.default_rank_and_world() == (0, 1)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert _host.default_rank_and_world() == (3, 8)
    monkeypatch.setenv("RANK", "three")
    with pytest.raises(ValueError, match="RANK='three'"):
        _host.default_rank_and_world()


def test_importing_the_package_imports_neither_torch_nor_pillow_nor_numpy() -> None:
    program = (
        "import sys, headrace; print([m for m in ('torch', 'PIL', 'numpy', 'rich') "
        "if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert out.stdout.strip() == "[]"
