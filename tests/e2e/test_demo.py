"""The demo: its audit finds what is wrong, and the whole of it runs on a small data set."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import headrace as hr
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

BATCH, SAMPLES, EVERY = 16, 100, 3
SHARDS = [40, 35, 25]
STEPS = -(-SAMPLES // BATCH)
WORLDS = [3, 5, 2]
# Lives begin at the checkpoints; each but the last one runs past the next one's beginning.
FIRST = [0, 3, 9]
LAST = [4, 10, 2 * STEPS - 1]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module of the demo by name; the modules are forgotten after the test."""
    monkeypatch.syspath_prepend(str(ROOT / "demo"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).parent == ROOT / "demo":
            del sys.modules[name]


@pytest.fixture
def audit(load: Callable[[str], ModuleType]) -> ModuleType:
    """The module demo/audit.py."""
    return load("audit")


def settings() -> dict[str, Any]:
    return {
        "url": "nowhere",
        "image": "image",
        "label": "label",
        "classes": 4,
        "samples": SAMPLES,
        "stored_bytes": SAMPLES * 1000,
        "shard_samples": SHARDS,
        "seed": 5,
        "lanes": 8,
        "chunk": "4KB",
        "window": "80KB",
        "side": 64,
        "global_batch": BATCH,
        "epochs": 2,
        "rate": 0.01,
        "checkpoint_every": EVERY,
        "memory": "1MiB",
        "threads": 1,
    }


class Run:
    """Logs of a good run, as lists of records that a test may spoil before they are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tails: dict[str, str] = {}
        order = hr.order.headrace(
            SHARDS,
            hr.Order(seed=5, lanes=8, chunk="4KB", window="80KB"),
            stored_bytes=SAMPLES * 1000,
        )
        self.logs: dict[str, list[dict[str, Any]]] = {}
        for life, world in enumerate(WORLDS):
            for step in range(FIRST[life], LAST[life] + 1):
                epoch, number = divmod(step, STEPS)
                first = number * BATCH
                count = min(BATCH, SAMPLES - first)
                taken = order.fill(epoch * SAMPLES + first, count)[:, 2].tolist()
                for rank in range(world):
                    record = {"step": step, "epoch": epoch, "index": taken[rank::world]}
                    self.log(life, f"rank-{rank}").append(record)
                self.log(life, "progress").append({"step": step, "loss": 3.0 - 0.1 * step})

    def log(self, life: int, name: str) -> list[dict[str, Any]]:
        return self.logs.setdefault(f"life-{life}/{name}.jsonl", [])

    def write(self) -> Path:
        (self.folder / "run.json").write_text(json.dumps(settings()))
        lives = [
            {"life": life, "world": world, "first_step": FIRST[life], "killed": life < 2}
            for life, world in enumerate(WORLDS)
        ]
        (self.folder / "lives.json").write_text(json.dumps(lives))
        for name, records in self.logs.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            text = "".join(json.dumps(record) + "\n" for record in records)
            path.write_text(text + self.tails.get(name, ""))
        return self.folder


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_audit_passes_a_good_run_and_lists_what_was_rolled_back(
    audit: ModuleType, run: Run
) -> None:
    result = audit.audit_run(run.write())
    assert result.deviations == []
    assert len(result.committed) == 2 * STEPS
    assert result.samples == 2 * SAMPLES
    assert [(step.life, step.step) for step in result.rolled_back] == [
        (0, 3),
        (0, 4),
        (1, 9),
        (1, 10),
    ]
    assert audit.lines_of(result)[-1].startswith("audit passed")


def test_audit_allows_a_line_that_a_kill_has_torn(audit: ModuleType, run: Run) -> None:
    run.tails["life-0/rank-1.jsonl"] = '{"step":5,"epo'
    assert audit.audit_run(run.write()).deviations == []


def test_audit_allows_a_step_that_only_some_ranks_began(audit: ModuleType, run: Run) -> None:
    run.log(1, "rank-4").pop()
    assert audit.audit_run(run.write()).deviations == []


def lose_a_sample(run: Run) -> None:
    run.log(0, "rank-0")[1]["index"].pop()


def repeat_a_sample(run: Run) -> None:
    records = run.log(2, "rank-1")
    records[2]["index"].append(records[1]["index"][0])


def swap_samples_of_two_steps(run: Run) -> None:
    a, b = run.log(1, "rank-0")[0]["index"], run.log(1, "rank-0")[1]["index"]
    a[0], b[0] = b[0], a[0]


def lose_a_rank(run: Run) -> None:
    del run.logs["life-1/rank-3.jsonl"]


def lose_a_step(run: Run) -> None:
    for rank in range(WORLDS[2]):
        del run.log(2, f"rank-{rank}")[1]


def end_early(run: Run) -> None:
    for rank in range(WORLDS[2]):
        run.log(2, f"rank-{rank}").pop()


def take_other_samples_again(run: Run) -> None:
    run.log(0, "rank-2")[-1]["index"][0] = 99


def reach_another_loss_again(run: Run) -> None:
    run.log(2, "progress")[0]["loss"] += 1e-6


def learn_nothing(run: Run) -> None:
    for life in range(3):
        for record in run.log(life, "progress"):
            record["loss"] = 3.0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lose_a_sample, "1 samples lost"),
        (repeat_a_sample, "1 samples repeated"),
        (swap_samples_of_two_steps, "other samples than the order's"),
        (lose_a_rank, "a rank did not log it"),
        (lose_a_step, "was due"),
        (end_early, "steps, not"),
        (take_other_samples_again, "not the same samples when it was done again"),
        (reach_another_loss_again, "another loss when it was done again"),
        (learn_nothing, "did not go down"),
    ],
)
def test_audit_fails_when_a_run_deviates(
    audit: ModuleType, run: Run, spoil: Any, words: str
) -> None:
    spoil(run)
    result = audit.audit_run(run.write())
    assert any(words in text for text in result.deviations), result.deviations
    command = [sys.executable, str(ROOT / "demo" / "audit.py"), str(run.folder)]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 1


def test_sum_over_ranks_reaches_every_rank(load: Callable[[str], ModuleType]) -> None:
    star = load("allreduce").Star
    world, size = 4, 100_000

    def rank(number: int, path: Path) -> Any:
        with star(path, number, world, 30.0) as ranks:
            first = ranks.sum(np.full(size, 10.0**number))
            return first, ranks.sum(first)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(world) as pool:
        path = Path(folder) / "ranks"
        for first, second in pool.map(rank, range(world), [path] * world):
            assert (first == 1111.0).all()
            assert (second == 4444.0).all()


def test_sum_fails_when_a_rank_is_gone(load: Callable[[str], ModuleType]) -> None:
    star = load("allreduce").Star
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        path = Path(folder) / "ranks"
        gone = pool.submit(lambda: star(path, 1, 2, 30.0).__exit__(None, None, None))
        with star(path, 0, 2, 30.0) as ranks:
            gone.result(30)
            with pytest.raises(ConnectionError):
                ranks.sum(np.zeros(8))


def test_png_reads_back_as_it_was(load: Callable[[str], ModuleType]) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert (hr.image(crop=None)(load("png").encode(picture)) == picture).all()


def small_data(folder: Path, encode: Callable[[Any], bytes]) -> tuple[Path, Path]:
    """Class folders of noisy pictures, 50 in a colour each, and 200 documents."""
    photos, rng = folder / "photos", np.random.default_rng(1)
    for label in range(6):
        (photos / f"colour-{label}").mkdir(parents=True)
        colour = rng.integers(0, 190, 3)
        for number in range(50):
            picture = (colour + rng.integers(0, 64, (72, 96, 3))).astype(np.uint8)
            (photos / f"colour-{label}" / f"{number:03}.png").write_bytes(encode(picture))
    text = folder / "text.jsonl"
    lines = [
        json.dumps({"id": i, "text": f"document {i}: " + "w\u00f6rter " * i}) for i in range(200)
    ]
    text.write_text("\n".join(lines) + "\n")
    return photos, text


def test_demo_runs_to_its_audit(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    photos, text = small_data(tmp_path, load("png").encode)
    command = [
        sys.executable,
        str(ROOT / "demo" / "run"),
        "--quick",
        "--out",
        str(tmp_path / "out"),
    ]
    command += ["--photos", str(photos), "--text", str(text)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, cwd=ROOT, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "audit passed" in done.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["audit"]["ok"]
    assert [life["world"] for life in report["lives"]] == [3, 5, 2]
    assert [life["killed"] for life in report["lives"]] == [True, True, False]
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<svg") == 4
    # Nothing on the page is fetched from elsewhere.
    assert "http" not in page.replace("http://www.w3.org", "")
