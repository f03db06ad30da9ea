"""The loader: batches of one rank, in the run order, read ahead within a fixed memory budget."""

from __future__ import annotations

import json
import operator
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NoReturn

from headrace import _core, _host, _live, _log
from headrace._arguments import familiar_arguments
from headrace._loader_spec import LoaderSpec, make_spec
from headrace._stage import Stage, Transform
from headrace.batch import batch_dict
from headrace.dataset import Dataset
from headrace.decode import ImageDecode
from headrace.errors import (
    CancelledError,
    HeadraceError,
    InvalidArgumentError,
    UnimplementedError,
    UsageError,
)
from headrace.order import Order

__all__ = ["Loader"]

_NANOSECONDS = 1e-9
# The last position of a run (docs/order.md).
_POSITION_MAX = 1 << 62


class _Sampler:
    """Where frameworks look for ``set_epoch``."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        """See ``Loader.set_epoch``."""
        self._loader.set_epoch(epoch)


class Loader:
    """Iterates over batches: ``for batch in loader`` is one epoch.

    A batch is a dict. Dense fields (numbers, arrays of one shape, decoded pictures) are arrays with
    rows along the first axis; others are ``Ragged``. Besides the fields there are:

    - "__index__", int64 [rows]: each row's number in the data set.
    - "__mask__", bool [rows], with ``epoch_end="pad"``: False for padding.
    - "__weight__", float, with ``epoch_end="partial"``: what to weight a row's loss with, so that
      the mean over ranks of weighted sums is the mean over the step.
    - "__valid__", a dict of bool [rows] for dense fields that may be null, where there are any.

    Arrays view memory of the loader's budget: they stay valid for as long as they are kept, also
    after ``close``, and may be written to; copy what is kept for long.

    Leaving a loop early and starting another one goes on where the first one stopped; ``set_epoch``
    moves elsewhere. State counts batches that were handed out. Reading ahead starts with the first
    batch asked for.

    Args:
        dataset: from ``headrace.open``, or a view of one.
        batch_size: samples a step takes on each rank; or
        global_batch_size: samples a step takes over all ranks. Keep it when the number of ranks
            changes, and the steps stay the same.
        order: default ``Order()``: shuffled, seed 0.
        rank: this rank; default: torch.distributed, then RANK, then 0.
        world_size: number of ranks; default: torch.distributed, then WORLD_SIZE, then 1.
        epoch_end: what happens to a rest smaller than a step. "drop" (default) leaves it out,
            "carry" goes on with the next epoch, "pad" fills the last batch and marks it,
            "partial" makes it smaller. All ranks always get the same number of batches.
        decode: pictures to decode, by field: ``{"jpg": headrace.image(224)}``. Without it they
            are delivered as stored.
        transform: ``f(sample, rng) -> sample``, on a thread. ``sample`` is a dict as
            ``dataset[i]`` gives it, pictures decoded, with "__index__"; ``rng`` a
            numpy.random.Generator keyed by (seed, epoch, sample). Arrays in it view the batch's
            memory: they may be changed in place. Without ``collate``, results must be dicts.
        transform_in: "thread".
        collate: ``f(list of samples) -> batch``, instead of stacking; the result is handed over
            as it is.
        bad_samples: "raise" names the sample; "skip" makes the batch shorter; "substitute"
            takes another sample of the batch. Both count in ``stats()``.
        threads: default: this rank's share of the processors it may use.
        memory: budget for everything read ahead and held, in bytes or as "4GiB". Default: a
            quarter of the memory, at most 8 GiB, divided among the ranks of the machine.
        output: "torch" or "numpy"; default: torch where the program has imported it.
        assignment: "local" lets each rank keep to its lanes, "strict" deals by position.
        skip: run positions [begin, end) that no step takes.
        read_timeout: seconds for one read, retries included.
        batch_timeout: seconds to wait for one batch.
        familiar: what other loaders call the above; see the documentation.

    Raises:
        InvalidArgumentError: values that do not go together.
        UsageError: an argument that does not exist; the message says what to use.
        ExhaustedError: ``memory`` is too small for this rank's share of the shuffle window.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        order: Order | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        epoch_end: Literal["carry", "drop", "pad", "partial"] | None = None,
        decode: Mapping[str, ImageDecode] | None = None,
        transform: Transform | None = None,
        transform_in: Literal["thread"] = "thread",
        collate: Callable[[list[Any]], Any] | None = None,
        bad_samples: Literal["raise", "skip", "substitute"] = "raise",
        threads: int | None = None,
        memory: str | int | None = None,
        output: Literal["torch", "numpy"] | None = None,
        assignment: Literal["local", "strict"] = "local",
        skip: Sequence[tuple[int, int]] = (),
        read_timeout: float = 60.0,
        batch_timeout: float = 300.0,
        **familiar: Any,
    ) -> None:
        known = familiar_arguments(
            familiar, order=order, epoch_end=epoch_end, collate=collate, threads=threads
        )
        spec = make_spec(
            dataset,
            known,
            batch_size=batch_size,
            global_batch_size=global_batch_size,
            rank=rank,
            world_size=world_size,
            decode=decode,
            transform=transform,
            transform_in=transform_in,
            bad_samples=bad_samples,
            memory=memory,
            output=output,
            assignment=assignment,
            skip=skip,
            read_timeout=read_timeout,
            batch_timeout=batch_timeout,
        )
        self._start(spec, None)
        self._engine()

    def _start(self, spec: LoaderSpec, state: str | None) -> None:
        self._spec = spec
        # The state to begin with, or after close() the last one.
        self._state = state
        self._core: _core.Loader | None = None
        self._stage: Stage | None = None
        self._is_closed = False
        self._has_begun = False
        # Weak, like everything that leads back here: a loader in a cycle would keep its threads and
        # its memory until the garbage collector happens to run.
        self._pass: weakref.ref[_Pass] | None = None
        # Where the present pass over the data began: what len() counts from.
        self._pass_begin: int | None = None
        # Frameworks read these from loaders.
        self.dataset = spec.dataset
        self.batch_size = -(-spec.global_batch // spec.world)

    def _engine(self) -> _core.Loader:
        """The engine of this process; made anew where that cannot repeat samples."""
        if self._is_closed:
            raise CancelledError("the loader is closed")
        if self._core is not None and not self._core.is_foreign:
            return self._core
        _refuse_workers()
        if self._core is not None and self._has_begun:
            raise InvalidArgumentError(
                "this loader was in use when the process forked, and its threads are not here; "
                "make the loader in the child process, or use it in the parent only"
            )
        spec = self._spec
        stage = None
        if spec.transform is not None or spec.collate is not None:
            stage = Stage(spec.transform, spec.collate, spec.output)
        try:
            core = _core.Loader.make(
                spec.dataset._source.core(),
                spec.dataset._samples,
                spec.options(),
                spec.threads,
                None if stage is None else weakref.ref(stage),
            )
            if self._state is not None:
                core.load_state(self._state)
        finally:
            _log.drain()
        self._core = core
        self._stage = stage
        _live.add_loader(self)
        return core

    def __getitem__(self, _: object) -> NoReturn:
        raise UsageError(
            "a headrace.Loader makes batches itself, in order: iterate over it, and leave out "
            "torch.utils.data.DataLoader; a headrace.Dataset has samples by number"
        )

    @property
    def sampler(self) -> _Sampler:
        """Where frameworks look for ``set_epoch``."""
        return _Sampler(self)

    def __iter__(self) -> Iterator[Any]:
        """The rest of the present epoch, which is all of it unless some was consumed before."""
        self._pass_begin = self._engine().position
        made = _Pass(self)
        self._pass = weakref.ref(made)
        return made

    def _next(self) -> tuple[Any, bool]:
        """The next batch, and whether it is the last of its epoch."""
        core = self._engine()
        self._has_begun = True
        try:
            batch = core.next()
        except HeadraceError as error:
            cause = self._failure(core)
            if cause is not None:
                raise error from cause
            raise
        finally:
            _log.drain()
        ends_epoch = batch.ends_epoch
        if ends_epoch:
            self._pass_begin = None
        number = batch.external
        if number is None or self._stage is None:
            made = batch_dict(batch, self._spec.output)
        else:
            made = self._stage.take(number)
        if self._spec.epoch_end == "partial" and self._spec.collate is None:
            made["__weight__"] = batch.weight
        return made, ends_epoch

    def _failure(self, core: _core.Loader) -> BaseException | None:
        """What a transform raised in the batch that cannot be delivered."""
        if self._stage is None or self._is_closed:
            return None
        try:
            return self._stage.failure(core.settle(core.position))
        except HeadraceError:
            return None

    def __len__(self) -> int:
        """Batches of the present pass: of the epoch, or of its rest after a resume."""
        core = self._engine()
        begin = core.position if self._pass_begin is None else self._pass_begin
        return core.steps_left(begin)

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, from 0."""
        core = self._engine()
        return core.settle(core.position) // len(self._spec.dataset)

    @property
    def rank(self) -> int:
        """This loader's rank."""
        return self._spec.rank

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self._spec.world

    @property
    def plan(self) -> dict[str, Any]:
        """What follows from data and options.

        samples, lanes, chunk_samples, window_samples, deff (see ``Dataset.deff``), is_local (read
        in place, no window in memory), window_bytes (this rank's share of the window otherwise).
        """
        return dict(self._engine().plan)

    def state_dict(self) -> dict[str, Any]:
        """Where the run is: a small dict for JSON, the same on every rank.

        It counts the batches handed out, holds for any number of ranks, and works after ``close``.
        """
        if self._is_closed and self._state is not None:
            text = self._state
        else:
            text = self._engine().state()
        state: dict[str, Any] = json.loads(text)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where ``state`` was taken, on any number of ranks.

        Raises:
            InvalidArgumentError: a state of other data or another order; it names what differs.
        """
        core = self._engine()
        try:
            text = json.dumps(dict(state))
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"this is no state of a loader: {error}") from None
        core.load_state(text)
        self._moved()

    def set_epoch(self, epoch: int) -> None:
        """Goes to the start of ``epoch``; does nothing when that is the present epoch.

        So frameworks may call it before every epoch without undoing a resume.
        """
        wanted = operator.index(epoch)
        samples = len(self._spec.dataset)
        if wanted < 0:
            raise InvalidArgumentError(f"epoch={epoch} is below 0")
        if wanted * samples > _POSITION_MAX:
            raise InvalidArgumentError(f"epoch={epoch} is above {_POSITION_MAX // samples}")
        if wanted != self.epoch:
            self._engine().seek(wanted * samples)
            self._moved()

    def _moved(self) -> None:
        # From here on a loader made anew would be at another place.
        self._has_begun = True
        if self._stage is not None:
            self._stage.clear()
        self._pass = None
        self._pass_begin = None

    def stats(self) -> dict[str, Any]:
        """Figures since the loader was made.

        ``epoch`` and ``position`` of the next batch; ``batches``, ``samples`` and ``batch_bytes``
        handed out; ``fetched_bytes``; ``bad_samples`` skipped or replaced; ``retries`` of requests;
        ``wait_seconds`` for batches (count, total, p50, p99, max; quantiles are right to a factor
        of two); ``memory`` (budget, leased, leases, leased_peak, in bytes); ``deff``; ``counters``:
        all counters of the loader and its data set by name.
        """
        core = self._engine()
        counters = {**self._spec.dataset._source.core().counters(), **core.counters()}
        waits = core.histograms().get("headrace_loader_wait_nanoseconds", {})

        def count(name: str) -> int:
            return int(counters.get(name, 0))

        return {
            "epoch": self.epoch,
            "position": core.position,
            "batches": count("headrace_loader_batches_total"),
            "samples": count("headrace_loader_samples_total"),
            "batch_bytes": count("headrace_loader_batch_bytes_total"),
            "fetched_bytes": count("headrace_loader_fetched_bytes_total"),
            "bad_samples": count("headrace_loader_bad_samples_total"),
            "retries": count("headrace_store_retries_total"),
            "wait_seconds": {
                "count": int(waits.get("count", 0)),
                "total": waits.get("sum", 0) * _NANOSECONDS,
                **{key: waits.get(key, 0) * _NANOSECONDS for key in ("p50", "p99", "max")},
            },
            "memory": dict(core.memory()),
            "deff": core.plan["deff"],
            "counters": counters,
        }

    def close(self) -> None:
        """Ends reading and frees what is not handed out; batches that are kept stay valid.

        A ``transform`` that is at work on a sample is waited for.

        Raises:
            InvalidArgumentError: called by the loader's own ``transform`` or ``collate``.
        """
        if self._is_closed:
            return
        if self._stage is not None:
            if self._stage.is_running_here():
                raise InvalidArgumentError(
                    "a transform or collate cannot close its own loader: closing waits for it; "
                    "raise an exception there, and close where the batches arrive"
                )
            self._stage.stop()
        core = self._core
        if core is not None and not core.is_foreign:
            try:
                self._state = core.state()
            except HeadraceError:
                pass  # closing goes on; state_dict() then says that the loader is closed
            core.close()
            if self._stage is not None:
                self._stage.clear()
            _log.drain()
        self._is_closed = True

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._core is None or self._is_closed:
            state = self._state
        else:
            state = self._engine().state()
        return _unpickle, (self._spec, state)

    def __repr__(self) -> str:
        spec = self._spec
        closed = ", closed" if self._is_closed else ""
        return (
            f"<Loader of {spec.dataset._source.url}: {spec.global_batch} samples a step, "
            f"rank {spec.rank} of {spec.world}{closed}>"
        )


class _Pass:
    """One iteration over a loader; threads that share it share its batches."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._is_over = False
        self._lock = threading.Lock()

    def __iter__(self) -> _Pass:
        return self

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        # A forked child is refused here; there the lock may be held for ever.
        self._loader._engine()
        with self._lock:
            # Another thread may have taken the last batch meanwhile.
            if self._is_over:
                raise StopIteration
            current = self._loader._pass
            if current is None or current() is not self:
                raise InvalidArgumentError(
                    "the loader was moved or is iterated over elsewhere since this iteration "
                    "began; it has one place in the run, so iterate over one at a time"
                )
            batch, self._is_over = self._loader._next()
            return batch


def _unpickle(spec: LoaderSpec, state: str | None) -> Loader:
    loader = Loader.__new__(Loader)
    loader._start(spec, state)
    return loader


def _refuse_workers() -> None:
    """Each worker of a DataLoader would deliver every sample again."""
    torch = _host.imported_torch()
    if torch is not None and torch.utils.data.get_worker_info() is not None:
        raise UnimplementedError(
            "a headrace.Loader inside a worker of torch.utils.data.DataLoader is not in this "
            "release; iterate over the Loader itself, which has threads of its own (num_workers=0)"
        )
