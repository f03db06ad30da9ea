"""The run order: which sample comes at which position of a run, for ever and on any machine.

``Order`` says what is wanted. ``headrace`` builds the order over given shard sizes, to look at it,
test it or explain it; loaders build their own and need nothing from here.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from headrace import _core
from headrace._sizes import parse_bytes, whole_number
from headrace.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Order", "RunOrder", "headrace"]

_SEED_MAX = (1 << 64) - 1
_LANES_MAX = 1 << 14
# Samples of one data set, positions of one run and samples of one batch (docs/order.md).
_SAMPLES_MAX = 1 << 48
_POSITION_MAX = 1 << 62
_BATCH_MAX = 1 << 32


@dataclass(frozen=True)
class Order:
    """How samples are ordered. Equal orders over equal data give the same run everywhere.

    Attributes:
        seed: 0 .. 2**64 - 1. Every random choice of a run follows from it.
        shuffle: False reads samples as they are stored.
        lanes: parts of the data that are read side by side, a power of two; at least 8 times the
            number of nodes lets every node keep to its own lanes.
        chunk: neighbouring samples that are read together: a size such as "1MiB", or a number of
            samples. Default: 1 MiB.
        window: over how much data samples are shuffled completely: a size or a number of samples.
            Default: 2 GiB. Larger is a better shuffle and needs more memory; see ``Dataset.deff``.
    """

    seed: int = 0
    shuffle: bool = True
    lanes: int = 64
    chunk: str | int | None = None
    window: str | int | None = None

    def __post_init__(self) -> None:
        if not 0 <= operator.index(self.seed) <= _SEED_MAX:
            raise InvalidArgumentError(f"seed={self.seed} is not in 0 .. 2**64 - 1")
        lanes = operator.index(self.lanes)
        if not 1 <= lanes <= _LANES_MAX or lanes & (lanes - 1):
            raise InvalidArgumentError(
                f"lanes={self.lanes} is not a power of two from 1 to {_LANES_MAX}"
            )
        _amount(self.chunk, "chunk")
        _amount(self.window, "window")

    def _request(self) -> _core.OrderRequest:
        return _core.OrderRequest.make(
            self.seed,
            bool(self.shuffle),
            self.lanes,
            _amount(self.chunk, "chunk"),
            _amount(self.window, "window"),
        )


def _amount(value: str | SupportsIndex | None, name: str) -> _core.Amount | None:
    """A size text counts bytes, an integer counts samples."""
    if value is None:
        return None
    if isinstance(value, str):
        size = parse_bytes(value, name)
        if size == 0:
            raise InvalidArgumentError(f'{name}="{value}" must be more than 0 bytes')
        return _core.Amount.bytes(size)
    samples = operator.index(value)
    if samples < 1:
        raise InvalidArgumentError(f"{name}={samples} must be at least one sample")
    return _core.Amount.samples(whole_number(samples, name, 1, _SAMPLES_MAX))


class RunOrder:
    """The order ``headrace-1`` over one data set; made by ``headrace``."""

    def __init__(self, core: _core.RunOrder) -> None:
        self._core = core

    @property
    def samples(self) -> int:
        """Samples of one epoch; position t belongs to epoch t // samples."""
        return self._core.samples

    @property
    def lanes(self) -> int:
        """Lanes in use: fewer than asked for where the data set is small."""
        return self._core.lanes

    @property
    def chunk_samples(self) -> int:
        """The chunk, in samples."""
        return self._core.chunk_samples

    @property
    def window_samples(self) -> int:
        """The window, in samples."""
        return self._core.window_samples

    def sample_at(self, t: int) -> tuple[int, int, int]:
        """(shard, sample within the shard, number in the data set) at run position ``t``."""
        shard, sample, ordinal = self.fill(t, 1)[0].tolist()
        return shard, sample, ordinal

    def fill(self, t: int, n: int) -> NDArray[Any]:
        """Positions t .. t + n - 1 as int64 [n, 3]; columns as ``sample_at`` gives them."""
        import numpy as np

        begin = whole_number(t, "t", 0, _POSITION_MAX)
        return np.asarray(self._core.fill(begin, whole_number(n, "n", 0, _POSITION_MAX)))

    def position_of(self, ordinal: int, epoch: int = 0) -> int:
        """The run position at which ``epoch`` delivers sample number ``ordinal``."""
        return self._core.position_of(
            whole_number(ordinal, "ordinal", 0, _SAMPLES_MAX),
            whole_number(epoch, "epoch", 0, _POSITION_MAX),
        )

    def deff(self, batch: int) -> float:
        """Predicted variance of what a batch draws; that of an ideal shuffle is 1."""
        return self._core.deff(whole_number(batch, "batch", 1, _BATCH_MAX))

    def measure_deff(self, batch: int, epochs: int = 1) -> float:
        """The same figure, measured over whole epochs with each sample labelled by its shard."""
        return self._core.measure_deff(batch, epochs)

    def plan(
        self,
        t: int,
        world_size: int,
        global_batch_size: int,
        *,
        epoch_end: str = "drop",
        assignment: str = "local",
        skip: Sequence[tuple[int, int]] = (),
    ) -> tuple[int, int, int, bool, list[tuple[list[int], int]]]:
        """The step at position ``t``: (begin, next, epoch, ends epoch, shares).

        A share is what one rank takes: its positions, of which the first ``real`` ones are samples
        and the others padding, and that number.
        """
        planner = _core.StepPlanner.make(
            self._core, global_batch_size, epoch_end, assignment, list(skip)
        )
        return planner.plan(t, world_size)


def headrace(
    shard_sizes: Sequence[int],
    order: Order | None = None,
    *,
    stored_bytes: int | None = None,
) -> RunOrder:
    """The order over shards of ``shard_sizes`` samples each.

    ``stored_bytes`` (of all samples together) turns a chunk or window given in bytes into samples;
    without it one sample counts as one byte.

    Raises:
        InvalidArgumentError: no samples, or an order that cannot be.
    """
    sizes = [operator.index(n) for n in shard_sizes]
    if any(n < 0 for n in sizes):
        raise InvalidArgumentError("a shard cannot have fewer than 0 samples")
    wanted = order if order is not None else Order()
    total = sum(sizes) if stored_bytes is None else stored_bytes
    return RunOrder(_core.RunOrder.make(wanted._request(), sizes, total))
