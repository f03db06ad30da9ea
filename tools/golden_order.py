#!/usr/bin/env python3
"""Writes the golden vectors of the run order from the slow reference: tests/golden/order/*.txt.

    tools/golden_order.py            rewrite the files
    tools/golden_order.py --check    exit 1 when a file differs

An order is frozen once released: a changed vector means a new order name.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "tests"))

import order_reference as ref  # type: ignore[import-not-found]  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "order"
HEAD = "# Golden vectors of the run order headrace-1, written by tools/golden_order.py.\n"


def runs(sizes: list[int]) -> str:
    """Sizes with repeats as COUNTxSIZE."""
    out: list[list[int]] = []
    for size in sizes:
        if out and out[-1][1] == size:
            out[-1][0] += 1
        else:
            out.append([1, size])
    return " ".join(str(size) if count == 1 else f"{count}x{size}" for count, size in out)


def key_lines() -> str:
    lines = [HEAD + "# key SEED NAME PURPOSE EPOCH A B WORD0 WORD1 BELOW(2,1000) SUB3.A SUB3.B"]
    for seed in (0, 17, ref.M64):
        for name in ("", "web", "na\u00efve"):
            for purpose, epoch in (("run", 0), ("rotate", 1), ("chunks", 1 << 40)):
                k = ref.make_key(seed, name, purpose, epoch)
                s = ref.sub(k, 3)
                values = (*k, ref.word(k, 0), ref.word(k, 1), ref.below(k, 2, 1000), *s)
                lines.append(
                    f"key {seed} {name or '-'} {purpose} {epoch} " + " ".join(map(str, values))
                )
    return "\n".join(lines) + "\n"


def permutation_lines() -> str:
    lines = [HEAD + "# permutation KEY.A KEY.B N, then lines: at INDEX VALUE"]
    sizes = [1, 2, 3, 63, 64, 65, 66, 100, 127, 128, 129, 1000, 4097]
    sizes += [(1 << 32) - 1, (1 << 32) + 1, 10**12, 1 << 48]
    for i, n in enumerate(sizes):
        k = ref.make_key(i, "", "permutation", n)
        lines.append(f"permutation {k.a} {k.b} {n}")
        places = sorted({0, 1, 2, 3, 5, 8, 13, n // 3, n // 2, n - 2, n - 1})
        lines += [f"at {x} {ref.permute(k, n, x)}" for x in places if 0 <= x < n]
    return "\n".join(lines) + "\n"


SMALL: dict[str, ref.Run] = {
    "one-sample": ref.Run(1, [1]),
    "one-shard": ref.Run(2, [700], chunk=7, window=100),
    "empty-shards": ref.Run(3, [0, 5, 0, 0, 9, 1, 0], chunk=2, window=64),
    "two-lanes": ref.Run(4, [100] * 9, lanes=2, chunk=13, window=64),
    "prime-chunk": ref.Run(5, [97, 211, 1, 0, 300, 64, 650, 89], lanes=4, chunk=17, window=129),
    "chunk-above-lane": ref.Run(6, [40] * 30, lanes=4, chunk=5000, window=90),
    "window-above-all": ref.Run(7, [40] * 30, lanes=4, chunk=8, window=10**9),
    "block-of-one": ref.Run(8, [300, 301], lanes=2, chunk=3, window=3),
    "lanes-64": ref.Run(9, [1000] * 17 + [3], lanes=64, chunk=16, window=4096),
    "lanes-1024-halved": ref.Run(10, [123] * 60, lanes=1024, chunk=5, window=2048),
    "named": ref.Run(11, [70] * 20, lanes=4, chunk=9, window=256, name="web"),
    "largest-seed": ref.Run(ref.M64, [70] * 20, lanes=4, chunk=9, window=256),
    "one-lane": ref.Run(12, [33] * 40, lanes=1, chunk=4, window=77),
    "sequential": ref.Run(13, [3, 0, 4, 9], shuffle=False),
    "unit-shards": ref.Run(
        14, [50, 0, 170, 33, 400, 1, 90, 500], lanes=4, window=200, layout="unit"
    ),
    "unit-groups": ref.Run(
        15,
        [30, 0, 100, 257, 600],
        lanes=2,
        window=64,
        layout="unit",
        units=[[10, 20], [], [0, 100], [1] * 257, [64] * 9 + [24]],
    ),
}
LARGE: dict[str, ref.Run] = {
    "million": ref.Run(20, [1000] * 1000, lanes=64, chunk=64, window=32768),
    "uneven": ref.Run(21, [10**6, 1, 0, 999983, 5 * 10**6] * 7, lanes=256, chunk=21, window=10**5),
    "trillion": ref.Run(22, [10**9 + 7] * 1000, lanes=64, chunk=262144, window=1 << 29),
    "trillion-ones": ref.Run(23, [10**12], lanes=16384, chunk=1, window=1 << 20),
}


def spec_lines(title: str, run: ref.Run) -> list[str]:
    lines = [
        f"case {title}",
        f"seed {run.seed}",
        f"name {run.name or '-'}",
        f"shuffle {int(run.shuffle)}",
        f"lanes {run.lanes}",
        f"chunk {run.chunk}",
        f"window {run.window}",
        f"layout {run.layout}",
        f"shards {runs(run.shards)}",
    ]
    if run.units:
        lines += [f"units {s} {runs(u)}".rstrip() for s, u in enumerate(run.units)]
    return [*lines, f"lanes-in-use {run.c}"]


def order_lines() -> str:
    lines = [
        HEAD + "# A case is a spec and then facts about it:",
        "#   at T SHARD SAMPLE LANE     lane as in use, before scaling to the configured lanes",
        "#   epoch E SHA256             of the text 'SHARD SAMPLE\\n' for every position in order",
    ]
    for title, run in SMALL.items():
        lines += spec_lines(title, run)
        for e in (0, 1, 5):
            order = run.epoch(e)
            text = "".join(f"{s} {i}\n" for s, i in order)
            for g in sorted({0, 1, 2, run.n // 2, run.n - 1}):
                if 0 <= g < run.n:
                    s, i = order[g]
                    lines.append(f"at {e * run.n + g} {s} {i} {run.lane(g, e)}")
            lines.append(f"epoch {e} {hashlib.sha256(text.encode()).hexdigest()}")
        lines.append("end")
    for title, run in LARGE.items():
        lines += spec_lines(title, run)
        for e in (0, 1, 1000):
            places = {0, 1, 2, 3, run.c, run.n - 1, run.n - run.c}
            places |= {ref.mix(i + e) % run.n for i in range(25)}
            for g in sorted(places):
                s, i = run.at(e * run.n + g)
                lines.append(f"at {e * run.n + g} {s} {i} {run.lane(g, e)}")
        lines.append("end")
    return "\n".join(lines) + "\n"


STEPS = [
    ("small", 20, [(3, 5), (4, 9), (55, 62), (70, 130)]),
    ("exact", 24, []),
    ("one", 1, [(0, 7)]),
    ("whole-epochs", 50, [(100, 420)]),
]


def step_lines() -> str:
    lines = [
        HEAD + "# plan N G EPOCH_END SKIP (begin:end, comma-separated, - for none), then",
        "#   step BEGIN COUNT LAST NEXT   the steps from position 0 on",
        "# assign SPEC-CASE G EPOCH_END ASSIGNMENT T WORLD (a case of order.txt), then",
        "#   rank REAL POSITION ...       one line a rank",
    ]
    for _, n, skip in STEPS:
        for batch in (1, 7, 24, 64):
            for end in ("carry", "drop", "pad", "partial"):
                if end == "drop" and n < batch:
                    continue
                text = ",".join(f"{b}:{e}" for b, e in skip) or "-"
                lines.append(f"plan {n} {batch} {end} {text}")
                t = 0
                for _ in range(12):
                    positions, after = ref.plan(t, n, batch, end, skip)
                    lines.append(f"step {positions[0]} {len(positions)} {positions[-1]} {after}")
                    t = after
    for title in ("prime-chunk", "named", "unit-shards", "sequential"):
        run = SMALL[title]
        for end in ("carry", "pad", "partial"):
            for how in ("local", "strict"):
                for t in (0, run.n - 5):
                    batch = 12
                    positions, _ = ref.plan(t, run.n, batch, end, [])
                    for world in (1, 3, 8):
                        lines.append(f"assign {title} {batch} {end} {how} {t} {world}")
                        for rank in range(world):
                            mine, real = ref.assign(run, positions, batch, end, how, rank, world)
                            lines.append(" ".join(map(str, ["rank", real, *mine])))
    return "\n".join(lines) + "\n"


FILES = {
    "keys.txt": key_lines,
    "permutation.txt": permutation_lines,
    "order.txt": order_lines,
    "steps.txt": step_lines,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    check = parser.parse_args().check
    stale = 0
    for name, make in FILES.items():
        path = GOLDEN / name
        text = make()
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path.relative_to(ROOT)} differs from the reference")
                stale = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: {len(text)} bytes")
    return stale


if __name__ == "__main__":
    sys.exit(main())
