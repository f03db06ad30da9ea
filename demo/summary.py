"""The report on the terminal."""

from __future__ import annotations

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


def lives_table(facts: dict[str, Any]) -> Table:
    table = Table(title="one run in three lives", title_justify="left")
    names = ("life", "ranks", "steps", "ended by", "samples/s", "MB/s", "first batch", "resume")
    for name in (*names, "wait p50", "p99", "max"):
        table.add_column(name, justify="right")
    for life in facts["lives"]:
        waits = life["waits"]
        table.add_row(
            str(life["life"]),
            str(life["world"]),
            f"{life['first_step']}-{life['last_step']}",
            "SIGKILL" if life["killed"] else "itself",
            f"{life['samples_per_second']:,.0f}",
            f"{life['bytes_per_second'] / 1e6:,.1f}",
            seconds(life["first_batch"]),
            seconds(life["first_step_from_start"]) if life["life"] else "-",
            *(seconds(waits[name]) for name in ("p50", "p99", "max")),
        )
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
        "first batch: from opening the data set, slowest rank; resume: from starting the\n"
        "processes to the first completed step; waits: for a batch, first ones left out, all ranks"
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
