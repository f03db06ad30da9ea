"""The report as one HTML page that needs nothing else: style, plots and pictures are inside."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import figures
from summary import life_rows, seconds

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf8; --card: #ffffff; --ink: #1d2329;
  --soft: #5d6872; --line: #e2e0da; --good: #1a7f4b; --bad: #c2291f; --lost: #c2291f18;
  --wait: #5d687218; --c0: #2563c9; --c1: #d9660f; --c2: #13876a; --c3: #9a3fb0; --c4: #a67c00; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --card: #1c2228; --ink: #e8eaec;
  --soft: #9aa6b1; --line: #313a43; --good: #52c98b; --bad: #ff7b6e; --lost: #ff7b6e24;
  --wait: #9aa6b124; --c0: #6ea8ff; --c1: #ff9d52; --c2: #4dcaa5; --c3: #d58be8; --c4: #e0ba45; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 48px 0 4px; }
p { margin: 4px 0 12px; max-width: 74ch; }
.soft { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 24px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 16px; }
.card b { display: block; font-size: 23px; line-height: 1.3; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: 13px; line-height: 1.35; display: block; }
.verdict { border-left: 5px solid var(--good); background: var(--card); padding: 12px 18px;
  border-radius: 0 10px 10px 0; margin: 20px 0; }
.verdict.failed { border-color: var(--bad); }
.verdict ul { margin: 4px 0; padding-left: 20px; }
.verdict li:last-child { font-weight: 650; color: var(--good); }
.verdict.failed li:last-child { color: var(--bad); }
.panel { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 16px; margin: 12px 0; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px;
  font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 500; text-align: right; padding: 4px 10px;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
td { text-align: right; padding: 5px 10px; white-space: nowrap; }
tr + tr td { border-top: 1px solid var(--line); }
th.left, td.left { text-align: left; }
code { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; }
svg { display: block; width: 100%; min-width: 620px; height: auto; }
svg text { fill: var(--ink); font-size: 12.5px; paint-order: stroke; stroke: var(--card);
  stroke-width: 3px; }
svg .axis { fill: var(--soft); } svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .grid { stroke: var(--line); } svg .base { stroke: var(--soft); }
svg polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg line.kill { stroke: var(--bad); stroke-width: 1.5; } svg text.kill { fill: var(--bad); }
svg line.resume { stroke: var(--good); stroke-width: 1.5; } svg text.resume { fill: var(--good); }
svg line.epoch { stroke: var(--soft); stroke-dasharray: 3 4; } svg text.epoch { fill: var(--soft); }
svg .lost { fill: var(--lost); } svg .starting { fill: var(--wait); }
svg polyline.c0 { stroke: var(--c0); } svg polyline.c1 { stroke: var(--c1); }
svg polyline.c2 { stroke: var(--c2); } svg circle.c0 { fill: var(--c0); }
svg circle.c1 { fill: var(--c1); } svg circle.c2 { fill: var(--c2); }
svg polyline.pale { stroke: var(--bad); stroke-dasharray: 4 4; }
svg circle.pale { fill: var(--bad); }
svg .f0 { fill: var(--c0); } svg .f1 { fill: var(--c1); } svg .f2 { fill: var(--c2); }
svg .f3 { fill: var(--c3); } svg .f4 { fill: var(--c4); } svg .gone { opacity: 0.28; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--soft); }
.legend i { display: inline-block; width: 18px; height: 4px; border-radius: 2px;
  vertical-align: middle; margin-right: 6px; }
.sheet { display: grid; grid-template-columns: repeat(auto-fill, minmax(112px, 1fr)); gap: 10px; }
.sheet figure { margin: 0; } .sheet img { width: 100%; border-radius: 6px; display: block; }
.sheet figcaption { font-size: 11px; line-height: 1.35; color: var(--soft); overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
"""


def table(heads: list[str], rows: Iterable[list[str]], left: int = 1) -> str:
    """A table whose first `left` columns are words and the others figures."""

    def cells(kind: str, row: list[str]) -> str:
        return "".join(
            f"<{kind}{' class=left' if i < left else ''}>{escape(text)}</{kind}>"
            for i, text in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=panel><table><tr>{cells('th', heads)}</tr>{body}</table></div>"


def legend(*entries: tuple[str, str]) -> str:
    return (
        "<div class=legend>"
        + "".join(
            f'<span><i style="background:var(--{color})"></i>{escape(text)}</span>'
            for color, text in entries
        )
        + "</div>"
    )


def cards(facts: dict[str, Any]) -> str:
    lives, order = facts["lives"], facts["order"]
    photos = next(data for data in facts["data"] if data["name"] == "photos")
    best = max(life["samples_per_second"] for life in lives)
    figures_ = [
        (f"{photos['info']['samples']:,}", "photographs, streamed from S3"),
        (f"{best:,.0f}/s", "decoded and learned from, fastest life"),
        (seconds(lives[0]["first_batch"]), "from opening to the first batch, slowest rank"),
        (seconds(max(life["first_step_from_start"] for life in lives[1:])), "to resume, at most"),
        (f"{order['deff']:.2f}", "DEFF of the shuffle (1 is ideal)"),
        ("0 / 0", "samples lost / repeated")
        if facts["audit"]["ok"]
        else ("failed", "audit, see below"),
    ]
    inner = "".join(
        f"<div class=card><b>{escape(big)}</b><span>{escape(small)}</span></div>"
        for big, small in figures_
    )
    return f"<div class=cards>{inner}</div>"


def lives_table(facts: dict[str, Any]) -> str:
    heads, *rows = life_rows(facts)
    return table(heads, rows)


def data_table(facts: dict[str, Any]) -> str:
    heads = ["data", "format", "samples", "stored MB", "shards", "packed to S3 in", "verified in"]
    rows = []
    for data in facts["data"]:
        info = data["info"]
        rows.append(
            [
                data["name"],
                data["format"],
                f"{info['samples']:,}",
                f"{info['stored_bytes'] / 1e6:,.1f}",
                str(info["shards"]["count"]),
                seconds(data["pack"]["seconds"]),
                seconds(data["verify"]["seconds"]),
            ]
        )
    return table(heads, rows, left=2)


def sheet(pictures: list[dict[str, Any]]) -> str:
    inner = "".join(
        f'<figure><img alt="{escape(p["name"])}" src="{p["url"]}">'
        f"<figcaption>{escape(p['name'])}<br>sample {p['index']:,}</figcaption></figure>"
        for p in pictures
    )
    return f"<div class=sheet>{inner}</div>"


def plots(facts: dict[str, Any]) -> str:
    ranks = max(life["world"] for life in facts["lives"])
    panel = "<div class=panel>{}{}</div>".format
    return "".join(
        [
            "<h2>Loss</h2><p class=soft>Softmax regression on 16 by 16 pixels, in numpy: which "
            "photograph is a crop from? Red spans were done, lost with the kill, and done again "
            "with the same samples.</p>",
            panel(legend(("c0", "committed"), ("bad", "rolled back")), figures.loss(facts)),
            "<h2>Who took what</h2><p class=soft>A row for each rank of each life, a cell for each "
            "step it took part in. Pale cells were rolled back.</p>",
            panel(
                legend(*((f"c{rank}", f"rank {rank}") for rank in range(ranks))),
                figures.shares(facts),
            ),
            "<h2>Waits</h2><p class=soft>The model is so small that ranks mostly wait for pictures "
            "being decoded; all ranks share the processors of this machine.</p>",
            panel(legend(("c1", "slowest rank"), ("c2", "median rank")), figures.waits(facts)),
            "<h2>Rate</h2><p class=soft>Samples per second over the last second. Grey spans: from "
            "starting the processes to the first completed step, Python's own start "
            "included.</p>",
            panel(legend(("c0", "all ranks together")), figures.rates(facts)),
        ]
    )


def render(facts: dict[str, Any], pictures: list[dict[str, Any]]) -> str:
    """The whole page."""
    audit, order, machine = facts["audit"], facts["order"], facts["machine"]
    verdict = "".join(f"<li>{escape(line)}</li>" for line in audit["lines"])
    used = ", ".join(f"{name} {text}" for name, text in facts["versions"].items())
    worlds = ", then ".join(str(life["world"]) for life in facts["lives"])
    return "".join(
        [
            "<!doctype html><html lang=en><meta charset=utf-8>"
            '<meta name=viewport content="width=device-width, initial-scale=1">'
            f"<title>Headrace demo</title><style>{STYLE}</style><main>",
            "<h1>One run, killed twice, nothing lost</h1>",
            f"<p class=soft>Photographs streamed from an S3 server, on {worlds} ranks with the "
            f"same global batch of {facts['settings']['global_batch']}; every kill is a SIGKILL "
            "between two checkpoints.</p>",
            cards(facts),
            f'<div class="verdict{"" if audit["ok"] else " failed"}"><ul>{verdict}</ul></div>',
            "<h2>Lives</h2>",
            lives_table(facts),
            "<p class=soft>The slowest rank counts for first batches and steps. Waits are those of "
            "all ranks, the first one of each left out; <code>loader.stats()</code> counts that "
            "one too, is shown for the slowest rank, and is right to a factor of two.</p>",
            plots(facts),
            "<h2>Order</h2>",
            f"<p>{order['lanes']} lanes, chunks of {order['chunk_samples']} samples, a window of "
            f"{order['window_samples']:,} samples. The pictures lie sorted by class. DEFF, the "
            "variance of what a batch draws relative to an ideal shuffle: "
            f"{order['deff_text']}. It can be below 1, as lanes mix the shards more evenly than "
            "chance would.</p>",
            "<h2>Data</h2>",
            data_table(facts),
            f"<p>{escape(facts['same_text'])}</p>",
            "<h2>One batch</h2><p class=soft>As rank 0 of one gets it: random-resized crops and "
            "flips, decoded by the loader.</p>",
            sheet(pictures),
            f"<h2>Made with</h2><p class=soft>{escape(used)}. {machine['cpus']} CPUs "
            f"({escape(machine['cpu'])}), {machine['memory_bytes'] / 2**30:.0f} GiB, load "
            f"{machine['load']:.1f}, Linux {escape(machine['kernel'])}.</p>",
            "</main></html>\n",
        ]
    )
