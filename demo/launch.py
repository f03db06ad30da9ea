"""Starts the ranks of a run, kills them as a power cut would, and starts it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import DEMO, DemoError, say, start_process
from settings import Settings

# A step takes milliseconds; this is for a machine that does a hundred other things.
_QUIET_SECONDS = 180.0
_LIFE_SECONDS = 900.0
_POLL_SECONDS = 0.002


@dataclass(frozen=True)
class Plan:
    """One life of the run: how many ranks, and at which step they are killed, if at all."""

    world: int
    kill_at: int | None


def plan_lives(settings: Settings) -> list[Plan]:
    """3 ranks to the middle of the first epoch, 5 into the second one, 2 to its end.

    Kills come half way between two checkpoints, so that there is work to lose.
    """
    every, steps = settings.checkpoint_every, settings.steps

    def between_checkpoints(place: float) -> int:
        return max(1, int(place / every)) * every + every // 2

    return [
        Plan(3, between_checkpoints(0.5 * steps)),
        Plan(5, between_checkpoints(1.4 * steps)),
        Plan(2, None),
    ]


class Tail:
    """The records that a JSON lines file has gained."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def read(self) -> list[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


class Life:
    """The processes of one life."""

    def __init__(self, number: int, plan: Plan, run: Path, environment: Mapping[str, str]) -> None:
        self.number, self.plan, self.run = number, plan, run
        self.folder = run.parent / f"life-{number}"
        self.environment = environment
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, sockets: Path) -> None:
        self.folder.mkdir()
        for rank in range(self.plan.world):
            words = [sys.executable, str(DEMO / "train.py"), str(self.run)]
            words += ["--life", str(self.number), "--rank", str(rank)]
            words += ["--world", str(self.plan.world), "--socket", str(sockets / "ranks")]
            with (self.folder / f"rank-{rank}.txt").open("wb") as output:
                environment = {**self.environment, "OPENBLAS_NUM_THREADS": "1"}
                self.processes.append(start_process(words, environment, output, output))

    def kill(self) -> None:
        """SIGKILL to every rank that still runs, by its process id."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()

    def watch(self, settings: Settings) -> bool:
        """Follows the steps until the kill (gives True) or the end of the run."""
        tail = Tail(self.folder / "progress.jsonl")
        until, heard, told = time.monotonic() + _LIFE_SECONDS, time.monotonic(), -1
        while True:
            codes = [process.poll() for process in self.processes]
            records = tail.read()
            if any(code not in (None, 0) for code in codes):
                raise DemoError(f"a rank of life {self.number} failed:\n{self.complaints()}")
            if records:
                heard, last = time.monotonic(), records[-1]
                if last["step"] // max(1, settings.steps // 4) != told:
                    told = last["step"] // max(1, settings.steps // 4)
                    say(f"  step {last['step']}, epoch {last['epoch']}, loss {last['loss']:.3f}")
                if self.plan.kill_at is not None and last["step"] >= self.plan.kill_at:
                    return True
            if all(code == 0 for code in codes):
                return False
            now = time.monotonic()
            if now > until or now - heard > _QUIET_SECONDS:
                raise DemoError(f"life {self.number} stands still:\n{self.complaints()}")
            time.sleep(_POLL_SECONDS)

    def complaints(self) -> str:
        """The ends of what the ranks have written."""
        texts = []
        for rank in range(self.plan.world):
            text = (self.folder / f"rank-{rank}.txt").read_text(errors="replace").strip()
            texts.append(f"rank {rank}: " + "\n  ".join(text.splitlines()[-8:]))
        return "\n".join(texts)


def checkpoint_step(folder: Path) -> int:
    """The step that the next life goes on with."""
    path = folder / "checkpoint.json"
    return int(json.loads(path.read_text())["step"]) if path.exists() else 0


def run_lives(
    settings: Settings, run: Path, environment: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The whole run; gives what is known about each life, which is also in lives.json."""
    lives: list[dict[str, Any]] = []
    for number, plan in enumerate(plan_lives(settings)):
        first = checkpoint_step(run.parent)
        how = f"from the checkpoint at step {first}" if number else "from the start"
        say(f"life {number}: {plan.world} ranks, {how}")
        life = Life(number, plan, run, environment)
        started = time.time()
        try:
            with tempfile.TemporaryDirectory(prefix="headrace-demo-") as sockets:
                life.start(Path(sockets))
                killed = life.watch(settings)
        finally:
            life.kill()
        ended = time.time()
        if plan.kill_at is not None and not killed:
            raise DemoError(f"life {number} ended before it could be killed")
        pids = " ".join(str(process.pid) for process in life.processes)
        say(f"  SIGKILL to {pids}" if killed else "  reached the end")
        lives.append(
            {
                "life": number,
                "world": plan.world,
                "first_step": first,
                "killed": killed,
                "started": started,
                "ended": ended,
                "cpus": len(os.sched_getaffinity(0)),
            }
        )
        (run.parent / "lives.json").write_text(json.dumps(lives, indent=1) + "\n")
    return lives
