#!/usr/bin/env python3
"""One rank of the training: streams its share of every step, learns, and writes down what it did.

    demo/train.py RUN.json --life N --rank R --world W --socket PATH

demo/launch.py starts the ranks. A rank writes the samples of a step into its log before it brings
its gradient to the sum; so whatever entered a step that was completed is in the logs, wherever the
process is killed. Rank 0 writes a checkpoint every few steps: the weights, then the state of the
loader in a JSON file that names them, each put in place by a rename.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import headrace as hr
import numpy as np
from allreduce import Star
from common import write_json
from model import Softmax
from settings import Settings

# Longer than this no step takes, on a very busy machine either.
_STEP_SECONDS = 120.0


class Log:
    """JSON lines, each handed to the kernel at once: SIGKILL takes back none of them."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", buffering=1)

    def write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")


class Rank:
    """The state of one rank in one life."""

    def __init__(self, settings: Settings, args: argparse.Namespace) -> None:
        self.settings = settings
        self.folder: Path = args.run.parent
        self.rank: int = args.rank
        life = self.folder / f"life-{args.life}"
        self.log = Log(life / f"rank-{args.rank}.jsonl")
        self.progress = Log(life / "progress.jsonl") if args.rank == 0 else None
        opening = time.time()
        self.dataset = hr.open(settings.url)
        self.loader = hr.Loader(
            self.dataset,
            global_batch_size=settings.global_batch,
            order=settings.order(),
            rank=args.rank,
            world_size=args.world,
            decode={settings.image: hr.image(settings.side)},
            epoch_end="partial",
            memory=settings.memory,
            threads=settings.threads,
            output="numpy",
        )
        self.model = Softmax(settings.classes, settings.rate)
        self.step = 0
        self.resume()
        self.opened = time.time()
        self.first = {"opening": opening, "opened": self.opened}

    def resume(self) -> None:
        """Goes on from the last checkpoint, if there is one."""
        path = self.folder / "checkpoint.json"
        if not path.exists():
            return
        checkpoint = json.loads(path.read_text())
        self.step = checkpoint["step"]
        self.model.load(self.folder / checkpoint["weights"])
        self.loader.load_state_dict(checkpoint["loader"])

    def checkpoint(self) -> None:
        weights = f"weights-{self.step}.npz"
        self.model.save(self.folder / weights)
        state = {"step": self.step, "weights": weights, "loader": self.loader.state_dict()}
        write_json(self.folder / "checkpoint.json", state)

    def train(self, star: Star) -> None:
        """To the end of the last epoch."""
        while self.loader.epoch < self.settings.epochs:
            batches = iter(self.loader)
            while True:
                # state() counts what was handed out, so this is where the next batch begins.
                epoch, asked = self.loader.epoch, time.perf_counter()
                batch = next(batches, None)
                wait = time.perf_counter() - asked
                if batch is None:
                    break
                self.one_step(star, batch, epoch, wait)
        if self.rank == 0:
            self.checkpoint()

    def one_step(self, star: Star, batch: dict[str, Any], epoch: int, wait: float) -> None:
        began = time.perf_counter()
        self.first.setdefault("batch", time.time())
        indices = batch["__index__"].tolist()
        self.log.write(
            {
                "step": self.step,
                "epoch": epoch,
                "index": indices,
                "wait": wait,
                "stats": brief(self.loader.stats()),
                "first": self.first,
            }
        )
        gradient, loss, right = self.model.gradient(
            batch[self.settings.image], batch[self.settings.label]
        )
        total = star.sum(np.concatenate([gradient, [loss, right, len(indices)]]))
        samples = total[-1]
        self.model.update(total[: self.model.size] / samples)
        self.step += 1
        if self.progress is None:
            return
        if self.step % self.settings.checkpoint_every == 0:
            self.checkpoint()
        self.progress.write(
            {
                "step": self.step - 1,
                "epoch": epoch,
                "loss": total[-3] / samples,
                "right": total[-2] / samples,
                "samples": int(samples),
                "time": time.time(),
                "compute": time.perf_counter() - began,
            }
        )


def brief(stats: dict[str, Any]) -> dict[str, Any]:
    """What the report needs of Loader.stats()."""
    names = ("samples", "batch_bytes", "fetched_bytes", "bad_samples", "retries")
    return {**{name: stats[name] for name in names}, "waits": stats["wait_seconds"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="the settings that demo/launch.py wrote")
    parser.add_argument("--life", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--socket", type=Path, required=True, help="where the ranks meet")
    args = parser.parse_args()
    settings = Settings.read(args.run)
    rank = Rank(settings, args)
    with (
        rank.dataset,
        rank.loader,
        Star(args.socket, args.rank, args.world, _STEP_SECONDS) as star,
    ):
        rank.train(star)
    return 0


if __name__ == "__main__":
    sys.exit(main())
