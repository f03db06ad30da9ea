"""The scenarios: who takes part, what is measured, and what is expected."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import Data
from harness import (
    BenchError,
    Entry,
    Environments,
    Target,
    check_identity,
    compare,
    run_adapter,
    run_rounds,
    spread,
)

# glibc gives every large buffer back and faults it in again; with these it keeps them. Pillow is
# about a fifth to three times as fast with them, so it is measured with them.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(1 << 26),
}


@dataclass
class Settings:
    rounds: int
    seconds: float
    seed: int
    rivals_only: bool
    scratch: Path


class Bench:
    def __init__(self, data: Data, environments: Environments, settings: Settings) -> None:
        self.data, self.environments, self.settings = data, environments, settings

    def _throughput(
        self, title: str, entries: list[Entry], targets: list[Target]
    ) -> dict[str, Any]:
        if self.settings.rivals_only:
            entries = [entry for entry in entries if entry.environment != "ours"]
        identity = check_identity(entries, self.environments, self.settings.seed)
        print(f"  all delivered {identity['samples']:,} samples, {identity['sha256'][:16]}")
        runs = run_rounds(
            entries,
            self.environments,
            self.settings.seed,
            self.settings.rounds,
            self.settings.seconds,
        )
        rows = []
        for entry in entries:
            own = runs[entry.name]
            keys = ("rate", "rate_per_core", "bytes_per_second", "first_after_iter", "peak_rss")
            rows.append(
                {"name": entry.name, **{key: spread([run[key] for run in own]) for key in keys}}
            )
        compared = [result for target in targets if (result := compare(runs, target))]
        return {
            "title": title,
            "kind": "throughput",
            "identity": identity,
            "rows": rows,
            "ratios": compared,
            "runs": runs,
        }

    def tokens(self) -> dict[str, Any]:
        folder = self.data.tokens()
        work = ("check-tokens", "time-tokens")
        entries = [
            Entry("Headrace, MDS", "ours", "ours.py", *work, folder),
            Entry("Mosaic, MDS", "mosaic", "rivals/mosaic.py", *work, folder),
        ]
        targets = [Target("Headrace, MDS", "Mosaic, MDS", 50)]
        return self._throughput(
            "4 KB token samples from MDS, page cache, shuffled, one process", entries, targets
        )

    def jpeg(self) -> dict[str, Any]:
        work = ("check-jpeg", "time-jpeg")
        mds, tar = self.data.jpeg("mds"), self.data.jpeg("tar")
        entries = [
            Entry("Headrace, MDS", "ours", "ours.py", *work, mds),
            Entry("Headrace, tar", "ours", "ours.py", *work, tar),
            Entry("Mosaic, MDS", "mosaic", "rivals/mosaic.py", *work, mds),
            Entry("WebDataset, tar", "rivals", "rivals/webdataset.py", *work, tar),
            Entry(
                "LitData, own chunks",
                "rivals",
                "rivals/litdata.py",
                *work,
                self.data.jpeg("litdata"),
            ),
        ]
        targets = [
            Target(ours, rival, ratio)
            for ours in ("Headrace, MDS", "Headrace, tar")
            for rival, ratio in (("WebDataset, tar", 10), ("LitData, own chunks", 2))
        ]
        self._index_tar(tar)
        return self._throughput(
            "50 KB stored JPEG bytes, page cache, shuffled, one process", entries, targets
        )

    def crop(self) -> dict[str, Any]:
        """Pillow has the JPEGs in memory; Headrace reads them from shards in the page cache."""
        limit = [f"limit={min(4000, self.data.sizes.photos)}"]
        work = ("check-crop", "time-crop")
        entries = [
            Entry(
                "Headrace, MDS, one thread",
                "ours",
                "ours.py",
                *work,
                self.data.jpeg("mds"),
                options=[*limit, "threads=1"],
            ),
            Entry(
                "Pillow, allocator tuned",
                "rivals",
                "rivals/pillow.py",
                *work,
                self.data.photos(),
                env=KEEP_MEMORY,
                options=limit,
            ),
            Entry(
                "Pillow, as shipped",
                "rivals",
                "rivals/pillow.py",
                *work,
                self.data.photos(),
                options=limit,
            ),
        ]
        targets = [
            Target("Headrace, MDS, one thread", "Pillow, allocator tuned", 2.5, "rate_per_core")
        ]
        return self._throughput(
            "JPEG to random-resized crop of 224, per core, equal to Pillow byte for byte",
            entries,
            targets,
        )

    def _index_tar(self, folder: Path) -> dict[str, Any] | None:
        """Makes Headrace's index beside tar shards, unless Headrace is left out."""
        if self.settings.rivals_only:
            return None
        return run_adapter(self.environments.python("ours"), "ours.py", "index", folder)

    def startup(self) -> dict[str, Any]:
        """Process start to first batch, beside the interpreter and the libraries it imports."""
        mds = self.data.large_mds()
        entries: list[tuple[str, str, str, Path, list[str]]] = [
            ("Python alone", "rivals", "-", Path(), ["pass"]),
            ("import numpy", "rivals", "-", Path(), ["import numpy"]),
            ("import torch", "rivals", "-", Path(), ["import torch"]),
            ("Mosaic, MDS, 64 samples", "mosaic", "rivals/mosaic.py", mds, []),
        ]
        results: dict[str, Any] = {"kind": "startup"}
        if not self.settings.rivals_only:
            tar = self.data.large_tar()
            results["index_tar"] = self._index_tar(tar)
            entries[:3] = [
                ("Python alone", "ours", "-", Path(), ["pass"]),
                ("import numpy", "ours", "-", Path(), ["import numpy"]),
                ("import torch", "rivals", "-", Path(), ["import torch"]),
                ("Headrace, MDS, NumPy batch", "ours", "ours.py", mds, []),
                ("Headrace, tar, NumPy batch", "ours", "ours.py", tar, []),
            ]
        times: dict[str, list[float]] = {name: [] for name, *_ in entries}
        for number in range(self.settings.rounds):
            for name, environment, adapter, folder, extra in (
                entries if number % 2 == 0 else entries[::-1]
            ):
                python = self.environments.python(environment)
                seconds = self._start_once(python, adapter, folder, extra)
                times[name].append(seconds)
                print(f"  round {number + 1}: {name} {1000 * seconds:,.0f} ms", flush=True)
        count = self.data.sizes.index
        results["title"] = f"process start to first batch of 64, index of {count:,} samples"
        results["rows"] = [{"name": name, "seconds": spread(t)} for name, t in times.items()]
        results["times"] = times
        if not self.settings.rivals_only:
            base = spread(times["import numpy"])["median"]
            results["ratios"] = [
                _at_most(
                    f"{kind}: beyond Python and NumPy",
                    spread(times[name])["median"] - base,
                    0.3,
                    "s",
                )
                for kind, name in (
                    ("MDS", "Headrace, MDS, NumPy batch"),
                    ("tar", "Headrace, tar, NumPy batch"),
                )
            ]
            results["ratios"] += self._resume(mds, results) + self._footprint(mds, results)
        return results

    @staticmethod
    def _run_plain(python: Path, program: str) -> str:
        done = subprocess.run([str(python), "-c", program], capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"{python} -c {program!r}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def _start_once(self, python: Path, adapter: str, folder: Path, extra: list[str]) -> float:
        if adapter == "-":
            start = time.monotonic()
            program = f"{extra[0]}; import time; print(time.monotonic())"
            return float(self._run_plain(python, program)) - start
        run = run_adapter(python, adapter, "first", folder, self.settings.seed, extra)
        return float(run["ready"]) - float(run["started"])

    def _resume(self, folder: Path, results: dict[str, Any]) -> list[dict[str, Any]]:
        python = self.environments.python("ours")
        self.settings.scratch.mkdir(parents=True, exist_ok=True)
        options = [f"state={self.settings.scratch / 'state.json'}"]
        saved = run_adapter(python, "ours.py", "save", folder, self.settings.seed, options)
        loads = []
        for _ in range(self.settings.rounds):
            run = run_adapter(python, "ours.py", "resume", folder, self.settings.seed, options)
            if run["next"] != saved["next"]:
                raise BenchError("the batch after a resume is not the batch that was due")
            loads.append(run)
        results["resume"] = {
            "state_bytes": saved["state_bytes"],
            "load_seconds": spread([run["load_seconds"] for run in loads]),
            "batch_seconds": spread([run["batch_seconds"] for run in loads]),
        }
        median = results["resume"]["load_seconds"]["median"]
        return [_at_most("load_state_dict", median, 0.1, "s")]

    def _footprint(self, folder: Path, results: dict[str, Any]) -> list[dict[str, Any]]:
        """Beyond: resident memory, less what Python and NumPy had, the budget and the index."""
        budget = 256 << 20
        run = run_adapter(
            self.environments.python("ours"),
            "ours.py",
            "footprint",
            folder,
            self.settings.seed,
            [f"memory={budget}"],
        )
        index = (folder / "index.json").stat().st_size
        private = run["after"]["anon"] + run["after"]["shmem"]
        beyond = private - run["before"]["anon"] - run["before"]["shmem"] - budget - index
        results["footprint"] = {**run, "budget": budget, "index": index, "beyond": beyond}
        grown = (private - run["before"]["anon"] - run["before"]["shmem"]) / 1e6
        name = f"memory beyond budget, index and NumPy (grown by {grown:.0f} MB)"
        return [
            _at_most(name, max(0, beyond) / 1e6, 60, "MB"),
            _at_most("named shared memory", len(run["shared_memory"]), 0, "names"),
        ]

    def deff(self) -> dict[str, Any]:
        """Shuffle quality: measured from delivered indices, beside the formula."""
        sizes = self.data.sizes
        total = sizes.shards * sizes.shard
        rows: list[dict[str, Any]] = []
        checks: list[dict[str, Any]] = []
        if not self.settings.rivals_only:
            numbers = self.data.numbers()
            python = self.environments.python("ours")
            for lanes, window, chunk in itertools.product((1, 64), (8192, 32768, 131072), (64, 16)):
                options = [f"window={window}", f"chunk={chunk}", f"lanes={lanes}"]
                options.append(f"shard={sizes.shard}")
                got = run_adapter(python, "ours.py", "deff", numbers, self.settings.seed, options)
                name = f"Headrace, {lanes} lane(s), window {window:,}, chunk {chunk}"
                rows.append({"name": name, "deff": got["deff"], "formula": got["formula"]})
                print(f"  {name}: {got['deff']:.2f}, formula {got['formula']:.2f}", flush=True)
                error = abs(got["deff"] / got["formula"] - 1)
                checks.append(_at_most(f"{name}: off the formula", error, 0.1, ""))
        rivals = (
            ("Mosaic py1e, 8 nodes, blocks of 16,384", "mosaic", "mosaic.py", "block=16384"),
            ("buffer of 10,000 over whole shards", "rivals", "buffer.py", "buffer=10000"),
        )
        for name, environment, adapter, option in rivals:
            got = run_adapter(
                self.environments.python(environment),
                f"rivals/{adapter}",
                "deff",
                Path(),
                self.settings.seed,
                [option, f"shards={sizes.shards}", f"shard={sizes.shard}"],
            )
            rows.append({"name": name, "deff": got["deff"], "formula": None})
            print(f"  {name}: {got['deff']:.2f}", flush=True)
        return {
            "kind": "deff",
            "title": f"shuffle quality (DEFF, 1 is ideal) of batches of 1,024, {total:,} samples",
            "rows": rows,
            "ratios": checks,
        }


def _at_most(name: str, value: float, limit: float, unit: str) -> dict[str, Any]:
    return {"name": name, "value": value, "limit": limit, "unit": unit, "met": value <= limit}


SCENARIOS = {
    "tokens": Bench.tokens,
    "jpeg": Bench.jpeg,
    "crop": Bench.crop,
    "startup": Bench.startup,
    "deff": Bench.deff,
}


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(value, indent=1) + "\n")
    partial.replace(path)
