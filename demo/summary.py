"""The report on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.0f} ms" if value >= 0.01 else f"{value * 1e3:.2f} ms"


def data_table(facts: dict[str, Any]) -> Table:
    table = Table(title="packed data, checked here and on S3", title_justify="left")
    for name in ("data", "format", "samples", "MB", "shards", "DEFF of 256"):
        table.add_column(name, justify="left" if name in ("data", "format") else "right")
    for data in facts["data"]:
        info = data["info"]
        table.add_row(
            data["name"],
            data["format"],
            f"{info['samples']:,}",
            f"{info['stored_bytes'] / 1e6:,.1f}",
            str(info["shards"]["count"]),
            f"{info['deff']:.2f}",
        )
    return table


def waits_text(waits: dict[str, float]) -> str:
    return " / ".join(f"{waits[name] * 1e3:,.3g}" for name in ("p50", "p99", "max"))


def life_rows(facts: dict[str, Any]) -> list[list[str]]:
    """Figures of the lives side by side; the first row is the heading."""
    lives = facts["lives"]
    rows: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("", lambda life: f"life {life['life']}: {life['world']} ranks"),
        ("steps completed", lambda life: f"{life['first_step']} to {life['last_step']}"),
        ("ended by", lambda life: "SIGKILL" if life["killed"] else "itself"),
        ("samples/s, all ranks", lambda life: f"{life['samples_per_second']:,.0f}"),
        ("MB/s from S3", lambda life: f"{life['bytes_per_second'] / 1e6:,.1f}"),
        ("opening to first batch", lambda life: seconds(life["first_batch"])),
        ("process start to first step", lambda life: seconds(life["first_step_from_start"])),
        ("wait, ms: p50 / p99 / max", lambda life: waits_text(life["waits"])),
        ("  as loader.stats() has it", lambda life: waits_text(life["loader_waits"])),
        ("requests repeated", lambda life: str(life["retries"])),
        ("bad samples", lambda life: str(life["bad_samples"])),
    ]
    return [[name, *map(text, lives)] for name, text in rows]


def lives_table(facts: dict[str, Any]) -> Table:
    heads, *rows = life_rows(facts)
    table = Table(title="one run in three lives", title_justify="left")
    for place, name in enumerate(heads):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def show(facts: dict[str, Any], page: str) -> None:
    """Prints everything; rich leaves colours out where there is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=120)
    order, machine = facts["order"], facts["machine"]
    console.print()
    console.print(data_table(facts))
    console.print(lives_table(facts))
    console.print(
        "The slowest rank counts for first batches and steps; waits are those of all ranks, the\n"
        "first one of each left out, which loader.stats() counts too."
    )
    console.print(
        f"order: {order['lanes']} lanes, chunks of {order['chunk_samples']}, window of "
        f"{order['window_samples']:,} samples; DEFF {order['deff_text']}, for batches of "
        f"{facts['settings']['global_batch']}"
    )
    console.print(facts["same_text"])
    for line in facts["audit"]["lines"]:
        bad = line.startswith("DEVIATION") or "FAILED" in line
        style = "bold red" if bad else "bold green" if "passed" in line else ""
        console.print(line, style=style, markup=False)
    used = ", ".join(f"{name} {text}" for name, text in facts["versions"].items())
    console.print(f"{machine['cpus']} CPUs ({machine['cpu']}), load {machine['load']:.1f}; {used}")
    console.print(f"report: {page}", markup=False)
