"""The four plots of the report, drawn from its facts."""

from __future__ import annotations

import itertools
from typing import Any

from plots import Plot, Point

# A rate is averaged over this time, so that it can be read.
_RATE_SECONDS = 1.0


def _steps(facts: dict[str, Any], life: int) -> list[dict[str, Any]]:
    return [step for step in facts["steps"] if step["life"] == life]


def _last_step(facts: dict[str, Any]) -> int:
    return max(step["step"] for step in facts["steps"])


def _mark_lives(plot: Plot, facts: dict[str, Any]) -> None:
    """Kills, resumes and the ends of epochs along an axis of steps."""
    per_epoch = facts["order"]["steps_per_epoch"]
    for epoch in range(1, facts["settings"]["epochs"]):
        plot.mark(epoch * per_epoch - 0.5, "epoch", f"epoch {epoch}", row=2)
    lives = facts["lives"]
    for life, following in itertools.pairwise(lives):
        plot.band(following["first_step"] - 0.5, life["last_step"] + 0.5, "lost")
        plot.mark(life["last_step"] + 0.5, "kill", "SIGKILL")
        ranks = following["world"]
        plot.mark(
            following["first_step"] - 0.5, "resume", f"resume, {ranks} ranks", row=1, end=True
        )


def loss(facts: dict[str, Any]) -> str:
    """The loss of every step; what was rolled back is drawn pale."""
    values = [step["loss"] for step in facts["steps"] if step["loss"] is not None]
    plot = Plot((-1, _last_step(facts) + 1), (0, max(values) * 1.15), name="loss over steps")
    plot.axes("step", "loss of a step, mean over its samples")
    _mark_lives(plot, facts)
    committed: list[Point] = []
    for life in facts["lives"]:
        known = [step for step in _steps(facts, life["life"]) if step["loss"] is not None]
        kept = [(step["step"], step["loss"]) for step in known if step["committed"]]
        gone = [(step["step"], step["loss"]) for step in known if not step["committed"]]
        plot.line(kept[-1:] + gone if gone else [], "series pale")
        committed += kept
    plot.line(committed, "series c0")
    return plot.svg()


def waits(facts: dict[str, Any]) -> str:
    """How long the ranks waited for each batch, in milliseconds."""
    steps = facts["steps"]
    low = max(1e-3, min(step["wait_median"] for step in steps) * 1e3)
    high = max(step["wait_max"] for step in steps) * 1e3
    span = (10.0 ** _floor(low), 10.0 ** (_floor(high) + 1))
    plot = Plot((-1, _last_step(facts) + 1), span, log=True, name="waits over steps")
    plot.axes("step", "wait for a batch, ms: slowest rank and median rank")
    _mark_lives(plot, facts)
    for life in facts["lives"]:
        own = _steps(facts, life["life"])
        for name, style in (("wait_median", "series c2"), ("wait_max", "series c1")):
            plot.line([(step["step"], max(step[name] * 1e3, span[0])) for step in own], style)
    return plot.svg()


def _floor(value: float) -> int:
    power = 0
    while 10.0**power > value:
        power -= 1
    while 10.0 ** (power + 1) <= value:
        power += 1
    return power


def _moving_rate(steps: list[dict[str, Any]], span: float) -> list[Point]:
    """Samples per second at each step, over the `span` seconds before it or a little more."""
    curve: list[Point] = []
    first, samples = 0, 0
    for step in steps[1:]:
        samples += sum(step["shares"].values())
        while step["time"] - steps[first + 1]["time"] >= span:
            first += 1
            samples -= sum(steps[first]["shares"].values())
        elapsed = step["time"] - steps[first]["time"]
        if elapsed >= span:
            curve.append((step["time"], samples / max(1e-9, elapsed)))
    return curve


def rates(facts: dict[str, Any]) -> str:
    """Samples per second over the wall clock, with the gaps that kills leave."""
    lives = facts["lives"]
    zero = lives[0]["started"]
    curves: list[list[Point]] = []
    for life in lives:
        done = [step for step in _steps(facts, life["life"]) if step["time"] is not None]
        span = min(_RATE_SECONDS, (done[-1]["time"] - done[0]["time"]) / 4)
        curves.append([(t - zero, rate) for t, rate in _moving_rate(done, span)])
    top = max((y for curve in curves for _, y in curve), default=1.0) * 1.25
    plot = Plot((0, lives[-1]["ended"] - zero), (0, top), name="samples per second over time")
    plot.axes("seconds since the first rank was started", "samples/s, all ranks together")
    for life, curve in zip(lives, curves, strict=True):
        begin = life["started"] - zero
        plot.band(begin, begin + life["first_step_from_start"], "starting")
        name = f"{life['world']} ranks"
        plot.mark(begin, "resume", f"resume, {name}" if life["life"] else f"start, {name}")
        if life["killed"]:
            plot.mark(life["ended"] - zero, "kill", "SIGKILL", row=1, end=True)
        plot.line(curve, "series c0")
    return plot.svg()


def shares(facts: dict[str, Any]) -> str:
    """Which rank took part in which step: a row for each rank of each life."""
    lives = facts["lives"]
    rows = sum(life["world"] for life in lives) + len(lives) - 1
    plot = Plot(
        (-1, _last_step(facts) + 1), (0, rows), height=90 + 20 * rows, name="ranks over steps"
    )
    bottom = rows
    for life in lives:
        for step in _steps(facts, life["life"]):
            for rank, count in step["shares"].items():
                top = bottom - int(rank)
                x = step["step"]
                style = f"cell f{int(rank)}" + ("" if step["committed"] else " gone")
                state = "" if step["committed"] else ", rolled back"
                title = f"step {x}, life {life['life']}, rank {rank}: {count} samples{state}"
                plot.cell(x - 0.42, top - 0.9, x + 0.42, top - 0.1, style, title)
        for rank in range(life["world"]):
            plot.text(4, plot.py(bottom - rank - 0.5) + 4, f"{life['life']} / {rank}", "axis")
        bottom -= life["world"] + 1
    plot.text(4, 14, "life / rank", "axis")
    plot.x_axis("step")
    return plot.svg()
