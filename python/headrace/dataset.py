"""Opened data sets: what is in them, single samples, and lazy views of some of the samples."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as data_field
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from headrace import _core
from headrace._sizes import whole_number
from headrace._source import Source, StoreArguments, url_text
from headrace.batch import batch_rows
from headrace.errors import CorruptDataError, InvalidArgumentError
from headrace.order import Order, RunOrder

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Dataset", "Shard", "open"]

# Iterating reads this far ahead; more would only delay the first sample.
_ITERATION_BYTES = 4 << 20
_ITERATION_ROWS = 256
_ITERATION_MEMORY = 256 << 20


@dataclass(frozen=True)
class Shard:
    """One file of a data set.

    Attributes:
        name: relative to the data set's URL.
        bytes: size of the file.
        samples: how many it holds.
        hashes: algorithm to hexadecimal digest of the whole file, as far as the index says.
    """

    name: str
    bytes: int
    samples: int
    hashes: dict[str, str] = data_field(default_factory=dict)


# How a view was made from the one before it: ("select", indices), ("take", n) or
# ("split", fraction, seed, which of the two).
_Operation = tuple[Any, ...]


def _apply(samples: _core.SampleSet, operation: _Operation) -> _core.SampleSet:
    name, *arguments = operation
    if name == "select":
        return samples.select(arguments[0])
    if name == "take":
        return samples.take(arguments[0])
    fraction, seed, which = arguments
    return samples.split(fraction, seed)[which]


class Dataset:
    """Samples of a data set, all or some; made by ``open`` and by the methods that give views.

    Views are lazy and cheap. A data set pickles as its specification: the other process opens it
    again on first use, and so does a process forked off this one.
    """

    def __init__(
        self,
        source: Source,
        operations: tuple[_Operation, ...] = (),
        samples: _core.SampleSet | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self._source = source
        self._operations = operations
        self._known_samples = samples
        self._names = names

    @property
    def _samples(self) -> _core.SampleSet:
        if self._known_samples is None:
            samples = self._source.core().all
            for operation in self._operations:
                samples = _apply(samples, operation)
            self._known_samples = samples
        return self._known_samples

    def _view(self, *operation: Any) -> Dataset:
        samples = _apply(self._samples, operation)
        return Dataset(self._source, (*self._operations, operation), samples, self._names)

    @property
    def url(self) -> str:
        """Where the data set lies."""
        return self._source.core().url

    @property
    def format(self) -> str:
        """How it is stored: "mds" or "wds"."""
        return self._source.core().format

    @property
    def fields(self) -> dict[str, str]:
        """Name to type of every field, such as {"image": "jpeg", "label": "int64"}."""
        types = {field.name: field.type for field in self._source.fields()}
        return types if self._names is None else {name: types[name] for name in self._names}

    @property
    def shards(self) -> list[Shard]:
        """The files of the data set, whichever samples this view holds."""
        return [Shard(*entry) for entry in self._source.core().shards]

    @property
    def stored_bytes(self) -> int:
        """Size of all samples as they are stored, in bytes; of a view, its share by number."""
        total = self._source.core().stored_bytes
        samples = self._samples
        return total if samples.is_all else total * samples.size // max(1, samples.universe)

    @property
    def identity(self) -> str:
        """Digest of format, fields and shards of the data set: equal for every copy of it."""
        return self._source.core().identity

    def __len__(self) -> int:
        return self._samples.size

    @overload
    def __getitem__(self, i: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, i: slice) -> Dataset: ...
    def __getitem__(self, i: SupportsIndex | slice) -> dict[str, Any] | Dataset:
        """Sample ``i`` (negative counts from the end), or a view of a slice.

        Numbers come as int or float, text as str, JSON parsed, arrays as numpy arrays, opaque bytes
        and pictures as bytes; a null value as None.

        Raises:
            IndexError: no such sample.
            CorruptDataError: the sample's bytes are wrong; the message says where.
        """
        if isinstance(i, slice):
            import numpy as np

            return self.select(np.arange(*i.indices(len(self))))
        position = operator.index(i)
        size = len(self)
        if not -size <= position < size:
            raise IndexError(f"sample {position} is outside the data set, which has {size} samples")
        ordinal = self._samples.ordinal(position % size)
        core = self._source.core()
        values = core.read(ordinal)
        out = {}
        wanted = None if self._names is None else set(self._names)
        for field, value in zip(self._source.fields(), values, strict=True):
            if wanted is not None and field.name not in wanted:
                continue
            try:
                out[field.name] = _finish_value(field.kind, value)
            except ValueError as error:
                raise CorruptDataError(
                    f"{core.describe(ordinal)}: field {field.name!r} is no JSON: {error}"
                ) from None
        return out if self._names is None else {name: out[name] for name in self._names}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All samples as indexing gives them, read ahead."""
        size = len(self)
        if size == 0:
            return
        mean = max(1, self.stored_bytes // size)
        rows = max(1, min(size, _ITERATION_ROWS, _ITERATION_BYTES // mean))
        options = _core.LoaderOptions.make(
            global_batch=rows,
            rank=0,
            world=1,
            order=Order(shuffle=False)._request(),
            epoch_end="partial",
            assignment="local",
            skip=[],
            columns=list(self._names or ()),
            decode={},
            bad_samples="raise",
            memory=max(_ITERATION_MEMORY, 8 * rows * mean),
            batches_ahead=2,
            read_timeout=self._source.store.timeout or 60.0,
            batch_timeout=600.0,
        )
        core = self._source.core()
        loader = _core.Loader.make(core, self._samples, options, 1)
        try:
            while True:
                batch = loader.next()
                # Copies, so that keeping samples does not keep the reader's memory.
                yield from batch_rows(batch, copy=True)
                if batch.ends_epoch:
                    return
        finally:
            loader.close()

    def select(self, indices: ArrayLike) -> Dataset:
        """The samples at ``indices``, in that order; repetition is allowed.

        Args:
            indices: integers, [n]; negative ones count from the end.

        Raises:
            InvalidArgumentError: not integers, or past the end.
        """
        import numpy as np

        array = np.asarray(indices)
        if array.size == 0:
            array = array.astype(np.int64).reshape(-1)
        if array.dtype == np.bool_:
            raise InvalidArgumentError("select() takes numbers of samples; use filter() for a mask")
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"select() takes a list of integers, not {array.dtype} {list(array.shape)}"
            )
        size = len(self)
        wrong = (array >= size) | (array < -size)
        if wrong.any():
            raise InvalidArgumentError(f"sample {array[wrong][0]} is not in a view of {size}")
        chosen = array.astype(np.int64)
        return self._view(
            "select", np.ascontiguousarray(np.where(chosen < 0, chosen + size, chosen))
        )

    def filter(self, mask: ArrayLike) -> Dataset:
        """The samples where ``mask``, bool [len(self)], is true.

        Raises:
            InvalidArgumentError: another length or type.
        """
        import numpy as np

        if callable(mask):
            raise InvalidArgumentError(
                "filter() takes one bool for each sample; compute them first, for instance "
                "np.array([keep(s) for s in ds])"
            )
        array = np.asarray(mask)
        if array.dtype != np.bool_ or array.shape != (len(self),):
            raise InvalidArgumentError(
                f"filter() takes bool [{len(self)}], not {array.dtype} {list(array.shape)}"
            )
        return self.select(np.flatnonzero(array))

    def take(self, n: int) -> Dataset:
        """The first ``n`` samples, or all when there are fewer."""
        count = operator.index(n)
        if count < 0:
            raise InvalidArgumentError(f"take({n}): how many samples cannot be below 0")
        return self._view("take", min(count, len(self)))

    def split(self, fraction: float, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Two views that share no sample: about ``fraction`` of the samples, and the others.

        Where a sample goes follows from its number in the data set and ``seed`` alone, so data that
        is appended later moves nothing.
        """
        if not 0 <= fraction <= 1:
            raise InvalidArgumentError(f"fraction={fraction} is not in 0 .. 1")
        key = whole_number(seed, "seed", 0, (1 << 64) - 1)
        first, second = self._samples.split(float(fraction), key)
        return tuple(  # type: ignore[return-value]
            Dataset(
                self._source,
                (*self._operations, ("split", float(fraction), key, which)),
                samples,
                self._names,
            )
            for which, samples in enumerate((first, second))
        )

    def columns(self, *names: str) -> Dataset:
        """The same samples with these fields only, in this order.

        Raises:
            InvalidArgumentError: no name, or a field that is not there.
        """
        known = self.fields
        for name in names:
            if name not in known:
                raise InvalidArgumentError(f"no field {name!r}; there are: {', '.join(known)}")
        if not names or len(set(names)) != len(names):
            raise InvalidArgumentError("columns() takes at least one name, each once")
        return Dataset(self._source, self._operations, self._known_samples, names)

    def run_order(self, order: Order | None = None) -> RunOrder:
        """The order a loader would use for this view."""
        wanted = order if order is not None else Order()
        core = _core.RunOrder.make(wanted._request(), self._samples.run_sizes, self.stored_bytes)
        return RunOrder(core)

    def deff(self, batch_size: int, order: Order | None = None) -> float:
        """How good the shuffle is for batches of ``batch_size`` samples over all ranks.

        The variance of what a batch draws, relative to an ideal shuffle of all samples: 1.0 is
        ideal, 2.0 doubles it; below 1.0 a batch draws more evenly than chance would. See
        ``Order.window`` and ``Order.chunk`` for what moves it.
        """
        return self.run_order(order).deff(operator.index(batch_size))

    def close(self) -> None:
        """Ends requests under way, for all views; later reads raise CancelledError."""
        self._source.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self._source, self._operations, None, self._names)

    def __repr__(self) -> str:
        if self._source._is_closed:
            return f"<Dataset {self._source.url} (closed)>"
        types = ", ".join(f"{name}: {text}" for name, text in self.fields.items())
        return f"<Dataset {self.url} ({self.format}), {len(self):,} samples, {{{types}}}>"


def _finish_value(kind: str, value: Any) -> Any:
    """The last step of reading a value, which Python does best."""
    if value is None:
        return None
    if kind == "json":
        return json.loads(value)
    if kind == "array":
        import numpy as np

        raw, dtype, shape = value
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    return value


def open(
    url: str | os.PathLike[str],
    *,
    split: str | None = None,
    index: str | os.PathLike[str] | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    anonymous: bool = False,
    addressing: str | None = None,
    ca_bundle: str | os.PathLike[str] | None = None,
    connections: int | None = None,
    attempts: int | None = None,
    timeout: float | None = None,
    threads: int | None = None,
) -> Dataset:
    """Opens a data set where it lies: one round of requests, and nothing is listed.

    Args:
        url: the folder of the shards: a path, ``s3://bucket/prefix``, ``http(s)://host/path``.
        split: a folder below it, such as "train".
        index: where ``headrace.index`` lies when it is not beside the data.
        endpoint: an S3-compatible server, such as "http://127.0.0.1:8333".
        region: of the bucket; default: from the environment and the shared config files.
        profile: of the shared config and credentials files.
        anonymous: send no signature.
        addressing: "path" or "virtual"; default: "path" where an endpoint is given.
        ca_bundle: PEM file with the certificates to trust instead of the system's.
        connections: requests in flight at once, at most (1 .. 1024; default 16).
        attempts: of one request, the first included (1 .. 20; default 6).
        timeout: seconds for one request with its retries (default 60).
        threads: that finish single reads; loaders have their own.

    Raises:
        NotFoundError: no index there; the message says what was looked for and how to make one.
        DeniedError: the store refuses these credentials.
        CorruptDataError: an index that contradicts itself.
    """
    if threads is not None and operator.index(threads) < 1:
        raise InvalidArgumentError(f"threads={threads} must be at least 1")
    if connections is not None:
        whole_number(connections, "connections", 1, 1024)
    if attempts is not None:
        whole_number(attempts, "attempts", 1, 20)
    store = StoreArguments(
        endpoint=endpoint,
        region=region,
        profile=profile,
        anonymous=anonymous,
        addressing=addressing,
        ca_bundle=None if ca_bundle is None else url_text(ca_bundle, "ca_bundle"),
        connections=connections,
        attempts=attempts,
        timeout=timeout,
    )
    place = None if index is None else url_text(index, "index")
    source = Source(url_text(url, "url"), split, place, store, threads)
    source.core()
    return Dataset(source)
