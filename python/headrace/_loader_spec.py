"""What a loader is made from: arguments checked, defaults found out, and nothing running yet."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace import _core, _host
from headrace._arguments import Familiar
from headrace._sizes import bytes_of, whole_number
from headrace._stage import Collate, Transform
from headrace.dataset import Dataset
from headrace.decode import ImageDecode
from headrace.errors import InvalidArgumentError, UnimplementedError, UsageError
from headrace.order import Order

# The limits of the run order (docs/order.md).
_WORLD_MAX = 1 << 14
_BATCH_MAX = 1 << 32
_POSITION_MAX = 1 << 62
# More threads than any machine uses well; it keeps a slip of the keyboard from starting them.
_THREADS_MAX = 1 << 12


@dataclass(frozen=True)
class LoaderSpec:
    """Everything a loader is made from; what it pickles as."""

    dataset: Dataset
    global_batch: int
    rank: int
    world: int
    order: Order
    epoch_end: str
    decode: dict[str, ImageDecode]
    transform: Transform | None
    collate: Collate | None
    bad_samples: str
    threads: int
    memory: int
    output: str
    assignment: str
    skip: tuple[tuple[int, int], ...]
    read_timeout: float
    batch_timeout: float

    def options(self) -> _core.LoaderOptions:
        return _core.LoaderOptions.make(
            global_batch=self.global_batch,
            rank=self.rank,
            world=self.world,
            order=self.order._request(),
            epoch_end=self.epoch_end,
            assignment=self.assignment,
            skip=list(self.skip),
            columns=list(self.dataset._names or ()),
            decode={name: spec._spec() for name, spec in self.decode.items()},
            bad_samples=self.bad_samples,
            memory=self.memory,
            batches_ahead=0,
            read_timeout=self.read_timeout,
            batch_timeout=self.batch_timeout,
        )


def make_spec(
    dataset: Any,
    known: Familiar,
    *,
    batch_size: int | None,
    global_batch_size: int | None,
    rank: int | None,
    world_size: int | None,
    decode: Mapping[str, ImageDecode] | None,
    transform: Transform | None,
    transform_in: str,
    bad_samples: str,
    memory: str | int | None,
    output: str | None,
    assignment: str,
    skip: Sequence[tuple[int, int]],
    read_timeout: float,
    batch_timeout: float,
) -> LoaderSpec:
    """Checks the arguments of ``Loader``; see there."""
    if not isinstance(dataset, Dataset):
        raise UsageError(f"Loader takes what headrace.open() gives, not {type(dataset).__name__}")
    if transform_in != "thread":
        raise UnimplementedError(
            f'transform_in="{transform_in}" is not in this release; transforms run in threads'
        )
    if transform is not None:
        _check_transform(transform)
    rank_default, world_default = _host.default_rank_and_world()
    world = world_default if world_size is None else operator.index(world_size)
    if known.collate is not None and not callable(known.collate):
        raise UsageError(f"collate must be a function, not {type(known.collate).__name__}")
    spec = LoaderSpec(
        dataset=dataset,
        global_batch=_global_batch(batch_size, global_batch_size, world),
        rank=rank_default if rank is None else operator.index(rank),
        world=world,
        order=known.order,
        epoch_end=known.epoch_end,
        decode=_check_decode(decode),
        transform=transform,
        collate=known.collate,
        bad_samples=bad_samples,
        threads=_host.default_threads() if known.threads is None else known.threads,
        memory=_host.default_memory() if memory is None else bytes_of(memory, "memory"),
        output=_check_output(output),
        assignment=assignment,
        skip=_check_skip(skip),
        read_timeout=float(read_timeout),
        batch_timeout=float(batch_timeout),
    )
    if not 0 <= spec.rank < spec.world:
        raise InvalidArgumentError(
            f"rank={spec.rank} is not in a world of {spec.world} ranks; RANK needs WORLD_SIZE"
        )
    if spec.threads < 1:
        raise InvalidArgumentError(f"threads={spec.threads} must be at least 1")
    whole_number(spec.threads, "threads", 1, _THREADS_MAX)
    return spec


def _check_skip(skip: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    out = []
    for interval in skip:
        try:
            begin, end = map(operator.index, interval)
        except (TypeError, ValueError):
            raise UsageError(
                f"skip takes pairs of run positions, such as [(1000, 1200)], not {interval!r}"
            ) from None
        out.append(
            (
                whole_number(begin, "skip: begin", 0, _POSITION_MAX),
                whole_number(end, "skip: end", 0, _POSITION_MAX),
            )
        )
    return tuple(out)


def _global_batch(batch_size: int | None, global_batch_size: int | None, world: int) -> int:
    whole_number(world, "world_size", 1, _WORLD_MAX)
    if batch_size is None and global_batch_size is None:
        raise UsageError("batch_size= (for each rank) or global_batch_size= (of all) is needed")
    size = operator.index(batch_size) * world if batch_size is not None else None
    if size is not None and size < 1:
        raise InvalidArgumentError(f"batch_size={batch_size} must be at least 1")
    if size is not None and size > _BATCH_MAX:
        raise InvalidArgumentError(
            f"batch_size={batch_size} on {world} ranks is above {_BATCH_MAX} samples a step"
        )
    if global_batch_size is None:
        assert size is not None
        return size
    total = operator.index(global_batch_size)
    if total < world:
        raise InvalidArgumentError(
            f"global_batch_size={total} must be at least one sample for each of {world} ranks"
        )
    if total > _BATCH_MAX:
        raise InvalidArgumentError(f"global_batch_size={total} is above {_BATCH_MAX} samples")
    if size is not None and size != total:
        raise InvalidArgumentError(
            f"batch_size={batch_size} on {world} ranks is {size}, and global_batch_size={total}; "
            "give one of them"
        )
    return total


def _check_decode(decode: Mapping[str, ImageDecode] | None) -> dict[str, ImageDecode]:
    if decode is not None and not isinstance(decode, Mapping):
        raise UsageError(
            'decode must be a dict such as {"image": headrace.image(224)}, '
            f"not {type(decode).__name__}"
        )
    out = dict(decode or {})
    for name, spec in out.items():
        if not isinstance(spec, ImageDecode):
            raise UsageError(
                f"decode[{name!r}] must be headrace.image(...), not {type(spec).__name__}; other "
                "work on samples goes into transform="
            )
    return out


def _check_output(output: str | None) -> str:
    if output is None:
        return "numpy" if _host.imported_torch() is None else "torch"
    if output not in ("torch", "numpy"):
        raise InvalidArgumentError(f'output="{output}" is neither "torch" nor "numpy"')
    if output == "torch":
        import importlib

        importlib.import_module("torch")
    return output


def _check_transform(transform: Any) -> None:
    if not callable(transform):
        raise UsageError(f"transform must be a function, not {type(transform).__name__}")
    try:
        inspect.signature(transform).bind({}, None)
    except TypeError:
        raise UsageError(
            "transform is called with (sample, rng); for one that takes the sample alone write "
            "transform=lambda sample, rng: f(sample)"
        ) from None
    except ValueError:
        pass  # built-in functions without a signature
