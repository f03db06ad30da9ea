"""What the README shows runs as it stands there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from headrace.testing.servers import S3Server

README = Path(__file__).parents[2] / "README.md"


def block(language: str, containing: str) -> str:
    """The one fenced block of that language which contains the text."""
    found = [
        text
        for text in re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)
        if containing in text
    ]
    assert len(found) == 1, f"{len(found)} blocks of {language} contain {containing!r}"
    return str(found[0])


def test_the_training_loop_runs_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: Any, cli: Callable[..., Any]
) -> None:
    pictures.folders(tmp_path / "photos", {"cat": 100, "dog": 60})
    assert cli("pack", tmp_path / "photos", tmp_path / "photos-mds").code == 0
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(block("python", "hr.Loader("), str(README), "exec"), names)
    assert names["x"].shape == (64, 224, 224, 3)
    assert names["y"].shape == (64,)
    # Two epochs of two whole batches each; the state is the one after the last.
    assert names["loader"].stats()["batches"] == 4
    assert names["state"]["next"] == 320
    names["loader"].close()


def test_the_commands_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pictures: Any,
    cli: Callable[..., Any],
    s3_server: S3Server,
) -> None:
    pictures.folders(tmp_path / "photos", {"cat": 200, "dog": 100})
    monkeypatch.chdir(tmp_path)
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    url = s3_server.url("readme/photos")
    commands = [line[2:] for line in block("console", "headrace pack").splitlines()]
    assert [shlex.split(command)[1] for command in commands] == ["pack", "info", "bench"]
    for command in commands:
        words = shlex.split(command.replace("s3://bucket/photos", url))[1:]
        words += ["--seconds", "1"] if words[0] == "bench" else []
        result = cli(*words)
        assert result.code == 0, f"{command}: {result.err}"
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]
