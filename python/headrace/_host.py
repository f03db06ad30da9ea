"""What this process may use (processors, memory) and which rank it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.errors import InvalidArgumentError

_CGROUP_ROOT = Path("/sys/fs/cgroup")
# A quarter of the memory is for data, and not more than this unless it is asked for.
_MEMORY_SHARE = 4
_MEMORY_MAX = 8 << 30


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _cgroup_folders(controller: str) -> Iterator[Path]:
    """Folders that limit this process, innermost first, in either version of cgroups."""
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names == "":
            root = _CGROUP_ROOT
        elif controller in names.split(","):
            root = _CGROUP_ROOT / names
        else:
            continue
        folder = root / path.lstrip("/")
        while folder != root and root in folder.parents:
            yield folder
            folder = folder.parent
        yield root


def _cpu_quota() -> float:
    """Processors that the cgroups allow; infinite without a limit."""
    least = float("inf")
    for folder in _cgroup_folders("cpu"):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if not quota:
            quota = _read(folder / "cpu.cfs_quota_us")
            period = _read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            least = min(least, int(quota) / int(period))
    return least


def _memory_limit() -> int:
    """Bytes that the machine has and the cgroups allow."""
    least = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for folder in _cgroup_folders("memory"):
        text = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")
        if text.isdigit():
            least = min(least, int(text))
    return least


def _local_world_size() -> int:
    """Ranks on this machine, as torchrun says; they share its processors and memory."""
    text = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return max(1, int(text)) if text.isascii() and text.isdigit() else 1


def default_threads() -> int:
    """Threads for this rank: its share of the processors it may run on, at least one."""
    allowed = min(float(len(os.sched_getaffinity(0))), _cpu_quota())
    return max(1, int(allowed / _local_world_size()))


def default_memory() -> int:
    """Bytes for this rank: its share of a quarter of the memory, at most 8 GiB."""
    return min(_memory_limit() // _MEMORY_SHARE // _local_world_size(), _MEMORY_MAX)


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgumentError(f"the environment variable {name}={text!r} is not a number")
    return int(text)


def imported_torch() -> Any:
    """The module torch where the program has imported it already, else None."""
    torch = sys.modules.get("torch")
    # While torch is still being imported its attributes are not there yet.
    return torch if torch is not None and hasattr(torch, "from_dlpack") else None


def default_rank_and_world() -> tuple[int, int]:
    """(rank, world size): from torch.distributed, then RANK and WORLD_SIZE, then (0, 1)."""
    torch = imported_torch()
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    return _from_environment("RANK", 0), _from_environment("WORLD_SIZE", 1)
