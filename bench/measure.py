"""What every adapter shares: how samples are identified, how a run is timed, how results are told.

An adapter is a script that the runner starts once per run, in the interpreter that has the library
it measures. It prints one JSON object as its last line. Only the standard library and NumPy are
used here, in whatever version that environment has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


class Multiset:
    """The identity of a multiset of samples, whatever their order.

    A sample is one digest over the bytes of its fields, each preceded by its length. The identity
    is the digest of all these digests in sorted order, so one sample lost, repeated or changed by
    a bit changes it.
    """

    def __init__(self) -> None:
        self.digests: list[bytes] = []

    def add(self, *fields: bytes | memoryview) -> None:
        digest = hashlib.sha256()
        for field in fields:
            digest.update(len(field).to_bytes(8, "little"))
            digest.update(field)
        self.digests.append(digest.digest())

    def identity(self) -> dict[str, Any]:
        whole = hashlib.sha256()
        for digest in sorted(self.digests):
            whole.update(digest)
        return {
            "samples": len(self.digests),
            "distinct": len(set(self.digests)),
            "sha256": whole.hexdigest(),
        }


def label_bytes(label: int) -> bytes:
    """A class label as a field: 8 bytes, little-endian."""
    return int(label).to_bytes(8, "little", signed=True)


def cpu_seconds() -> float:
    """User and system time of this process and of children that have ended."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def timed_epochs(
    epoch: Callable[[int], Iterable[tuple[int, int]]], seconds: float
) -> dict[str, Any]:
    """Runs whole epochs until `seconds` have passed, at least one.

    `epoch(e)` yields (samples, bytes) for each thing handed over. The clock runs from the call of
    iter() to the end of the iteration; opening the data set came before and is not counted.
    """
    samples = size = epochs = 0
    first: float | None = None
    cpu = cpu_seconds()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    start = time.perf_counter()
    while epochs == 0 or time.perf_counter() - start < seconds:
        for count, nbytes in epoch(epochs):
            if first is None:
                first = time.perf_counter() - start
            samples += count
            size += nbytes
        epochs += 1
    wall = time.perf_counter() - start
    cpu = cpu_seconds() - cpu
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "samples": samples,
        "bytes": size,
        "epochs": epochs,
        "seconds": wall,
        "cpu_seconds": cpu,
        "rate": samples / wall,
        "rate_per_core": samples / cpu if cpu > 0 else None,
        "bytes_per_second": size / wall,
        "first_after_iter": first,
        "minor_faults": usage.ru_minflt - faults,
        "peak_rss": usage.ru_maxrss * 1024,
    }


def memory() -> dict[str, int]:
    """Resident memory of this process now, in bytes: in all, anonymous, of files, shared."""
    names = {"VmRSS": "rss", "RssAnon": "anon", "RssFile": "file", "RssShmem": "shmem"}
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in names:
            found[names[name]] = int(rest.split()[0]) * 1024
    return found


def named_shared_memory() -> list[str]:
    """Mappings of this process that have a name in /dev/shm, and System V segments."""
    found = set()
    for line in Path("/proc/self/maps").read_text().splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and parts[5].startswith(("/dev/shm/", "/SYSV")):
            found.add(parts[5])
    return sorted(found)


def deff(batches: Any, shard_of: Any, shards: int) -> float:
    """The design effect of a sequence of batches against an ideal global shuffle.

    `batches` is an array of sample numbers, one row a batch of G. With n_s samples of shard s in a
    batch, the variance of the batch mean of anything that depends on the shard alone is
    proportional to E[sum_s (n_s - G/S)^2]. The ideal draws G of N without replacement, for which
    that sum is G (1 - 1/S) (N - G)/(N - 1) when all S shards are equally long. The ratio is 1 for
    a perfect shuffle and G for batches of one shard each.
    """
    import numpy as np

    rows, width = batches.shape
    total = len(shard_of)
    measured = 0.0
    for row in batches:
        counts = np.bincount(shard_of[row], minlength=shards)
        measured += float(((counts - width / shards) ** 2).sum())
    ideal = width * (1 - 1 / shards) * (total - width) / (total - 1)
    return measured / rows / ideal


def arguments(modes: Iterable[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=sorted(modes))
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    args = parser.parse_args()
    args.options = dict(option.split("=", 1) for option in args.option)
    return args


def tell(result: dict[str, Any]) -> None:
    """Prints the result as the last line and flushes it."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


def dispatch(modes: dict[str, Callable[[argparse.Namespace], dict[str, Any]]]) -> None:
    """The main program of an adapter."""
    args = arguments(modes)
    tell(modes[args.mode](args))
