"""Runs adapters one process at a time, interleaved, and turns their results into statistics."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent

# A run that takes longer is broken; the slowest sound one takes about a minute.
RUN_TIMEOUT = 900.0


class BenchError(Exception):
    """The benchmark cannot go on; the text says why and what to do."""


class Environments:
    """The interpreters in which Headrace and its rivals are installed."""

    def __init__(self, ours: Path | None, folder: Path) -> None:
        self._known: dict[str, Path] = {}
        self._ours, self._folder = ours, folder

    def python(self, name: str) -> Path:
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Path:
        if name == "ours":
            python = self._ours or ROOT / ".venv" / "bin" / "python"
            probe = "import headrace, numpy"
            hint = "try `make package`, or name an interpreter with --python"
        else:
            python = self._folder / f".venv-{name}" / "bin" / "python"
            tool = str(ROOT / "tools" / "peer_envs.py")
            run_command([sys.executable, tool, name, "--dir", str(self._folder)])
            probe, hint = "import numpy", f"try `tools/peer_envs.py {name} --force`"
        if not python.is_file():
            raise BenchError(f"no {python}; {hint}")
        done = subprocess.run([str(python), "-c", probe], capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"{python} cannot `{probe}`; {hint}\n{done.stderr.strip()[-500:]}")
        return python


def run_command(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        tail = (done.stdout + done.stderr).strip()[-1500:]
        raise BenchError(f"`{' '.join(words)}` ended with {done.returncode}:\n{tail}")


def run_adapter(
    python: Path,
    adapter: str,
    mode: str,
    data: Path,
    seed: int = 1,
    options: Sequence[str] = (),
    env: dict[str, str] | None = None,
    seconds: float = 2.0,
) -> dict[str, Any]:
    """One run in a process of its own; adds `started`, on the clock of time.monotonic()."""
    words = [str(python), str(BENCH / adapter), mode, "--data", str(data), "--seed", str(seed)]
    words += ["--seconds", str(seconds)]
    for option in options:
        words += ["--option", option]
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **(env or {})}
    started = time.monotonic()
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT,
            env={**os.environ, **quiet},
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"`{' '.join(words)}` took longer than {RUN_TIMEOUT:.0f} s") from None
    if done.returncode != 0:
        tail = done.stderr.strip()[-1500:]
        raise BenchError(f"`{' '.join(words)}` ended with {done.returncode}:\n{tail}")
    try:
        result = dict(json.loads(done.stdout.strip().splitlines()[-1]))
    except (IndexError, ValueError):
        raise BenchError(f"`{' '.join(words)}` printed no result: {done.stdout[-300:]!r}") from None
    result["started"] = started
    return result


@dataclass
class Entry:
    """One competitor of a scenario."""

    name: str
    environment: str
    adapter: str
    check: str
    timed: str
    data: Path
    env: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)


@dataclass
class Target:
    """What is expected of the ratio of medians of a measure of two entries."""

    ours: str
    rival: str
    ratio: float
    measure: str = "rate"


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def check_identity(entries: list[Entry], python: Environments, seed: int) -> dict[str, Any]:
    """Runs every entry once over one epoch; all must deliver the same multiset of samples."""
    seen = {}
    for entry in entries:
        print(f"  checking {entry.name} ...", flush=True)
        result = run_adapter(
            python.python(entry.environment),
            entry.adapter,
            entry.check,
            entry.data,
            seed,
            entry.options,
            entry.env,
        )
        seen[entry.name] = {key: result[key] for key in ("samples", "distinct", "sha256")}
    if len({(s["samples"], s["sha256"]) for s in seen.values()}) != 1:
        lines = "\n".join(f"  {n}: {s['samples']} samples {s['sha256']}" for n, s in seen.items())
        raise BenchError(
            f"the entries did not deliver the same samples, nothing was timed:\n{lines}"
        )
    return next(iter(seen.values()))


def run_rounds(
    entries: list[Entry], python: Environments, seed: int, rounds: int, seconds: float
) -> dict[str, list[dict[str, Any]]]:
    """Interleaved rounds; every second one in reverse order, so that drift cancels."""
    runs: dict[str, list[dict[str, Any]]] = {entry.name: [] for entry in entries}
    for number in range(rounds):
        for entry in entries if number % 2 == 0 else entries[::-1]:
            result = run_adapter(
                python.python(entry.environment),
                entry.adapter,
                entry.timed,
                entry.data,
                seed + number,
                entry.options,
                entry.env,
                seconds,
            )
            runs[entry.name].append(result)
            print(f"  round {number + 1}: {entry.name} {result['rate']:,.0f} samples/s", flush=True)
    return runs


def compare(runs: dict[str, list[dict[str, Any]]], target: Target) -> dict[str, Any] | None:
    """The ratio of medians and the range of the ratios of the single rounds."""
    if target.ours not in runs or target.rival not in runs:
        return None
    ours = [run[target.measure] for run in runs[target.ours]]
    rival = [run[target.measure] for run in runs[target.rival]]
    ratios = [a / b for a, b in zip(ours, rival, strict=True)]
    ratio = statistics.median(ours) / statistics.median(rival)
    return {
        "ours": target.ours,
        "rival": target.rival,
        "measure": target.measure,
        "ratio": ratio,
        "rounds": spread(ratios),
        "target": target.ratio,
        "met": ratio >= target.ratio,
    }


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip() or None,
        "load_before": os.getloadavg()[0],
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
