"""What all ranks and lives of one run have in common, as one JSON file."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import headrace as hr
from common import write_json


@dataclass(frozen=True)
class Settings:
    """The data, its order, and the training."""

    url: str
    image: str  # the field with the picture
    label: str
    classes: int
    samples: int
    stored_bytes: int
    shard_samples: list[int]  # for the audit, which computes the order without the data
    seed: int
    lanes: int
    chunk: str
    window: str
    side: int
    global_batch: int
    epochs: int
    rate: float
    checkpoint_every: int
    memory: str
    threads: int

    def order(self) -> hr.Order:
        return hr.Order(seed=self.seed, lanes=self.lanes, chunk=self.chunk, window=self.window)

    def run_order(self) -> hr.order.RunOrder:
        """The order of the run, from the sizes of the shards alone."""
        return hr.order.headrace(self.shard_samples, self.order(), stored_bytes=self.stored_bytes)

    @property
    def steps(self) -> int:
        """Steps of an epoch; the last one may be smaller."""
        return -(-self.samples // self.global_batch)

    def write(self, path: Path) -> None:
        write_json(path, dataclasses.asdict(self))

    @staticmethod
    def read(path: Path) -> Settings:
        return Settings(**json.loads(path.read_text()))
