#!/usr/bin/env python3
"""Reads the logs of a run and holds what was learned from against what should have been.

    demo/audit.py demo-out/run

A step is committed when it lies before the checkpoint that the next life went on from, or in the
last life. What came after that checkpoint was rolled back, and is listed apart. Demanded of the
committed steps: every sample of every epoch exactly once; every step the set of samples that the
order says, computed anew from the sizes of the shards; no step missing on any rank; steps that were
done again with the same samples and, since crops and flips are the same too, the same loss; a loss
that went down. Ends with 1 when anything deviates.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from settings import Settings

_LOSS_TOLERANCE = 1e-9


@dataclass
class Step:
    """What the ranks of one life logged of one step."""

    life: int
    step: int
    epoch: int
    ranks: dict[int, list[int]] = field(default_factory=dict)

    def samples(self) -> list[int]:
        return sorted(index for indices in self.ranks.values() for index in indices)


@dataclass
class Audit:
    """The result; it is good when there are no deviations."""

    epochs: int = 0
    samples: int = 0
    committed: list[Step] = field(default_factory=list)
    rolled_back: list[Step] = field(default_factory=list)
    loss_first: float = math.nan
    loss_last: float = math.nan
    deviations: list[str] = field(default_factory=list)

    def require(self, condition: bool, text: str) -> None:
        if not condition:
            self.deviations.append(text)


def read_lines(path: Path, torn: bool) -> list[dict[str, Any]]:
    """The records of a log; a kill may tear its last line, which was then not acted upon."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    if not torn and lines[-1]:
        raise ValueError(f"{path}: the last line does not end")
    return [json.loads(line) for line in lines[:-1]]


def read_life(folder: Path, life: dict[str, Any], audit: Audit) -> dict[int, Step]:
    """Every step that any rank of the life logged."""
    steps: dict[int, Step] = {}
    for rank in range(life["world"]):
        expected = life["first_step"]
        for record in read_lines(folder / f"rank-{rank}.jsonl", life["killed"]):
            number = record["step"]
            where = f"life {life['life']} rank {rank} step {number}"
            audit.require(number == expected, f"{where}: step {expected} was due")
            expected = number + 1
            step = steps.setdefault(number, Step(life["life"], number, record["epoch"]))
            audit.require(step.epoch == record["epoch"], f"{where}: ranks are in different epochs")
            step.ranks[rank] = record["index"]
    return steps


def check_steps(settings: Settings, lives: list[dict[str, Any]], audit: Audit) -> None:
    """Each committed step is complete and holds the samples that the order gives it."""
    worlds = {life["life"]: life["world"] for life in lives}
    order, steps = settings.run_order(), settings.steps
    for place, step in enumerate(audit.committed):
        where = f"step {step.step} (life {step.life})"
        audit.require(step.step == place, f"{where}: step {place} is missing or repeated")
        audit.require(len(step.ranks) == worlds[step.life], f"{where}: a rank did not log it")
        epoch, number = divmod(step.step, steps)
        audit.require(step.epoch == epoch, f"{where}: in epoch {step.epoch}, not {epoch}")
        first = number * settings.global_batch
        count = min(settings.global_batch, settings.samples - first)
        due = sorted(order.fill(epoch * settings.samples + first, count)[:, 2].tolist())
        audit.require(step.samples() == due, f"{where}: other samples than the order's")
    want = settings.epochs * steps
    audit.require(len(audit.committed) == want, f"{len(audit.committed)} steps, not {want}")


def check_epochs(settings: Settings, audit: Audit) -> None:
    """Every sample exactly once in every epoch."""
    for epoch in range(settings.epochs):
        seen: Counter[int] = Counter()
        for step in audit.committed:
            if step.epoch == epoch:
                seen.update(step.samples())
        lost = [i for i in range(settings.samples) if seen[i] == 0]
        more = [i for i, times in seen.items() if times > 1]
        other = [i for i in seen if not 0 <= i < settings.samples]
        for what, samples in (("lost", lost), ("repeated", more), ("unknown", other)):
            audit.require(
                not samples, f"epoch {epoch}: {len(samples)} samples {what}: {sorted(samples)[:10]}"
            )
        audit.samples += sum(seen.values())
    audit.epochs = settings.epochs


def check_rolled_back(lives: list[dict[str, Any]], audit: Audit) -> None:
    """A step that was rolled back and done again had the same samples both times."""
    worlds = {life["life"]: life["world"] for life in lives}
    again = {step.step: step for step in audit.committed}
    for step in audit.rolled_back:
        if len(step.ranks) == worlds[step.life]:
            same = step.step in again and again[step.step].samples() == step.samples()
            audit.require(same, f"step {step.step}: not the same samples when it was done again")


def read_losses(folder: Path, lives: list[dict[str, Any]]) -> dict[int, list[float]]:
    """The loss of every step, once for each time that it was done."""
    losses: dict[int, list[float]] = {}
    for life in lives:
        path = folder / f"life-{life['life']}" / "progress.jsonl"
        for record in read_lines(path, life["killed"]):
            losses.setdefault(record["step"], []).append(record["loss"])
    return losses


def check_loss(folder: Path, lives: list[dict[str, Any]], audit: Audit) -> None:
    """Steps done again came to the same loss; the last tenth of all came to less than the first."""
    losses = read_losses(folder, lives)
    for step, values in losses.items():
        # Another number of ranks adds in another order, so the last digits may differ.
        same = all(math.isclose(value, values[0], rel_tol=_LOSS_TOLERANCE) for value in values)
        audit.require(same, f"step {step}: another loss when it was done again: {values}")
    ordered = [losses[step][-1] for step in sorted(losses)]
    audit.require(all(math.isfinite(loss) for loss in ordered), "a loss is not finite")
    tenth = max(1, len(ordered) // 10)
    if ordered:
        audit.loss_first = statistics.fmean(ordered[:tenth])
        audit.loss_last = statistics.fmean(ordered[-tenth:])
    audit.require(
        audit.loss_last < audit.loss_first,
        f"the loss did not go down: {audit.loss_first:.4f} to {audit.loss_last:.4f}",
    )


def audit_run(folder: Path) -> Audit:
    """The audit of the run whose files lie in `folder`."""
    settings = Settings.read(folder / "run.json")
    lives = json.loads((folder / "lives.json").read_text())
    audit = Audit()
    for number, life in enumerate(lives):
        is_last = number + 1 == len(lives)
        end = math.inf if is_last else lives[number + 1]["first_step"]
        audit.require(life["killed"] != is_last, f"life {number}: killed, or not, out of turn")
        steps = read_life(folder / f"life-{life['life']}", life, audit)
        for _, step in sorted(steps.items()):
            (audit.committed if step.step < end else audit.rolled_back).append(step)
    check_steps(settings, lives, audit)
    check_epochs(settings, audit)
    check_rolled_back(lives, audit)
    check_loss(folder, lives, audit)
    return audit


def lines_of(audit: Audit) -> list[str]:
    """The result in words."""
    lines = [
        f"committed: {len(audit.committed)} steps, {audit.samples:,} samples, {audit.epochs} epochs"
    ]
    for life in sorted({step.life for step in audit.rolled_back}):
        steps = [step for step in audit.rolled_back if step.life == life]
        samples = sum(len(step.samples()) for step in steps)
        lines.append(
            f"rolled back when life {life} was killed: steps {steps[0].step} to "
            f"{steps[-1].step}, {samples:,} samples; all were done again"
        )
    lines.append(f"loss: {audit.loss_first:.3f} in the first steps, {audit.loss_last:.3f} at last")
    if audit.deviations:
        lines += [f"DEVIATION: {text}" for text in audit.deviations[:20]]
        lines.append(f"audit FAILED: {len(audit.deviations)} deviations")
    else:
        lines.append("audit passed: every sample exactly once per epoch, every step as ordered")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the folder with run.json, lives.json and the logs")
    args = parser.parse_args()
    audit = audit_run(args.run)
    print("\n".join(lines_of(audit)))
    return 1 if audit.deviations else 0


if __name__ == "__main__":
    sys.exit(main())
