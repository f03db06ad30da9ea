"""Figures of a run, gathered from the logs of its ranks, for the page and the terminal."""

from __future__ import annotations

import json
import os
import platform
import statistics
from importlib.metadata import version
from pathlib import Path
from typing import Any

import headrace as hr
from audit import Audit, read_lines
from common import quantile
from settings import Settings

_DEFF_EPOCHS = 20


def life_facts(folder: Path, life: dict[str, Any]) -> dict[str, Any]:
    """What one life did: rates, waits, and how long it took to get going."""
    base = folder / f"life-{life['life']}"
    ranks = [
        read_lines(base / f"rank-{rank}.jsonl", life["killed"]) for rank in range(life["world"])
    ]
    progress = read_lines(base / "progress.jsonl", life["killed"])
    first = [records[0]["first"] for records in ranks]
    last = [records[-1]["stats"] for records in ranks]
    # The first batch is a figure of its own; what a step waits for is what comes after it.
    waits = [record["wait"] for records in ranks for record in records[1:]]
    running = max(1e-9, progress[-1]["time"] - progress[0]["time"])
    reading = max(1e-9, progress[-1]["time"] - min(f["opening"] for f in first))
    samples = sum(record["samples"] for record in progress[1:])
    return {
        **life,
        "last_step": progress[-1]["step"],
        "seconds": life["ended"] - life["started"],
        "samples": sum(record["samples"] for record in progress),
        "samples_per_second": samples / running,
        "fetched_bytes": sum(stats["fetched_bytes"] for stats in last),
        "bytes_per_second": sum(stats["fetched_bytes"] for stats in last) / reading,
        "first_batch": max(f["batch"] - f["opening"] for f in first),
        "first_batch_from_start": max(f["batch"] for f in first) - life["started"],
        "first_step_from_start": progress[0]["time"] - life["started"],
        "waits": {
            "p50": quantile(waits, 0.5),
            "p99": quantile(waits, 0.99),
            "max": max(waits),
        },
        "loader_waits": {
            name: max(stats["waits"][name] for stats in last) for name in ("p50", "p99", "max")
        },
        "retries": sum(stats["retries"] for stats in last),
        "bad_samples": sum(stats["bad_samples"] for stats in last),
    }


def step_facts(folder: Path, lives: list[dict[str, Any]], audit: Audit) -> list[dict[str, Any]]:
    """One record for each step of each life: loss, time, waits, and who took how much."""
    committed = {(step.life, step.step) for step in audit.committed}
    out = []
    for life in lives:
        base = folder / f"life-{life['life']}"
        progress = {
            record["step"]: record for record in read_lines(base / "progress.jsonl", life["killed"])
        }
        steps: dict[int, dict[int, dict[str, Any]]] = {}
        for rank in range(life["world"]):
            for record in read_lines(base / f"rank-{rank}.jsonl", life["killed"]):
                steps.setdefault(record["step"], {})[rank] = record
        for number, ranks in sorted(steps.items()):
            waits = [record["wait"] for record in ranks.values()]
            done = progress.get(number, {})
            out.append(
                {
                    "life": life["life"],
                    "step": number,
                    "committed": (life["life"], number) in committed,
                    "loss": done.get("loss"),
                    "right": done.get("right"),
                    "time": done.get("time"),
                    "wait_max": max(waits),
                    "wait_median": statistics.median(waits),
                    "shares": {rank: len(record["index"]) for rank, record in ranks.items()},
                }
            )
    return out


def deff_text(settings: Settings) -> str:
    """The shuffle quality in words; it can only be measured where there is more than one shard."""
    order = settings.run_order()
    text = f"{order.deff(settings.global_batch):.2f} predicted"
    if sum(1 for samples in settings.shard_samples if samples) > 1:
        measured = order.measure_deff(settings.global_batch, _DEFF_EPOCHS)
        text += f", {measured:.2f} measured over {_DEFF_EPOCHS} epochs"
    return text


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": model,
        "memory_bytes": memory,
        "load": os.getloadavg()[0],
        "kernel": platform.release(),
    }


def versions(weed: str) -> dict[str, str]:
    return {
        "headrace": hr.__version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "SeaweedFS": weed,
    }


def gather(
    folder: Path, settings: Settings, audit: Audit, audit_lines: list[str], weed: str
) -> dict[str, Any]:
    """Everything about the training; the caller adds the data sets and the comparison."""
    lives = json.loads((folder / "lives.json").read_text())
    order = settings.run_order()
    return {
        "machine": machine(),
        "versions": versions(weed),
        "settings": json.loads((folder / "run.json").read_text()),
        "order": {
            "lanes": order.lanes,
            "chunk_samples": order.chunk_samples,
            "window_samples": order.window_samples,
            "deff": order.deff(settings.global_batch),
            "deff_text": deff_text(settings),
            "steps_per_epoch": settings.steps,
        },
        "lives": [life_facts(folder, life) for life in lives],
        "steps": step_facts(folder, lives, audit),
        "audit": {"ok": not audit.deviations, "lines": audit_lines},
    }
