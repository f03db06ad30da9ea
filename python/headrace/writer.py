"""Writing data sets: samples in, shards and their index out, whole or not at all."""

from __future__ import annotations

import difflib
import os
import struct
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from headrace import _core, _host, _live, _log
from headrace._encode import encoder
from headrace._sizes import bytes_of
from headrace._source import StoreKeywords, store_arguments, url_text
from headrace.errors import CancelledError, InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Writer"]

_THREADS_MAX = 4


class Writer:
    """Packs samples into shards; use it in a ``with`` block.

    The index is written last, when the block ends well. When it ends by an exception nothing is
    published: no index appears, and shards written so far are removed. Equal samples and options
    give equal bytes.

    Args:
        out: the folder to write: a path, or a URL of a store that can be written.
        columns: name to encoding. For "mds" Mosaic's names: "bytes", "str", "int", "json",
            "uint8" .. "float64", "ndarray", "ndarray:uint16", "ndarray:uint16:2048", "jpeg", "png".
            For "wds" the names are file extensions, such as {"jpg": "jpeg", "cls": "int"}.
        format: "mds" (Mosaic MDS) or "wds" (WebDataset tar).
        size_limit: bytes of a shard, such as "64MB"; a single larger sample gets its own.
        hashes: digests to record for each shard, such as ["sha256"].
        overwrite: replace a data set that is there already.
        store: endpoint, region, profile and so on, as ``headrace.open``.

    Raises:
        InvalidArgumentError: unknown columns, encodings or formats, or a data set is there already.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        columns: Mapping[str, str],
        *,
        format: Literal["mds", "wds"] = "mds",
        size_limit: str | int = "64MB",
        hashes: Sequence[str] = (),
        overwrite: bool = False,
        **store: Unpack[StoreKeywords],
    ) -> None:
        if isinstance(hashes, str):
            hashes = (hashes,)
        self.url = url_text(out, "out")
        self.format = format
        self.samples = 0
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._core: _core.Writer | None = _core.Writer.make(
            self.url,
            store_arguments("Writer", store).core(),
            format,
            [(str(name), str(encoding)) for name, encoding in columns.items()],
            bytes_of(size_limit, "size_limit"),
            list(hashes),
            overwrite,
            min(_THREADS_MAX, _host.default_threads()),
        )
        self._fields = [(field.name, field.nullable, encoder(field)) for field in self._core.fields]
        self._names = {name for name, _, _ in self._fields}
        self._json_names = {
            field.name for field in self._core.fields if field.kind == "json" and not field.nullable
        }
        self._allowed = self._names | ({"__key__"} if format == "wds" else set())
        _live.add_source(self)

    def write(self, sample: Mapping[str, Any]) -> None:
        """Adds one sample: a value for every column.

        Values are what reading gives back: int, float, str, bytes-like, numpy arrays, anything JSON
        can hold; for "jpeg" and "png" the bytes of a file, or a Pillow image (JPEG at quality 95).
        With "wds" a sample may name itself by "__key__"; otherwise it gets a running number.

        Raises:
            InvalidArgumentError: a missing or unknown column, or a value of another type.
            ExhaustedError: the disk is full.
        """
        if not sample.keys() <= self._allowed:
            self._refuse(next(name for name in sample if name not in self._allowed))
        values: list[Any] = []
        for name, nullable, encode in self._fields:
            value = sample.get(name)
            # A JSON column that is never left out stores None as the JSON value null.
            is_json_null = value is None and name in sample and name in self._json_names
            if value is None and not is_json_null:
                if not nullable or (name not in sample and self.format != "wds"):
                    raise InvalidArgumentError(f"sample {self.samples}: no value for {name!r}")
                values.append(None)
                continue
            try:
                values.append(encode(value))
            except (TypeError, ValueError, struct.error, OverflowError) as error:
                raise InvalidArgumentError(
                    f"sample {self.samples}: column {name!r}: {error}"
                ) from error
        with self._exclusive():
            self._open().add(str(sample.get("__key__", "")), values)
            self.samples += 1

    def _refuse(self, name: str) -> None:
        close = difflib.get_close_matches(name, self._allowed, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {sorted(self._names)}"
        raise InvalidArgumentError(f"sample {self.samples}: no column {name!r}; {hint}")

    def _exclusive(self) -> threading.Lock:
        """The lock around the core, which takes one sample after the other."""
        # In a forked child the lock may be held by a thread that is not there.
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = threading.Lock()
        return self._lock

    def _open(self) -> _core.Writer:
        if self._core is None:
            raise CancelledError(f"the writer of {self.url} is closed")
        return self._core

    def finish(self) -> None:
        """Writes what is left and the index; the ``with`` block does it."""
        with self._exclusive():
            core = self._open()
            try:
                core.finish()
            finally:
                self._core = None
                _log.drain()

    def close(self) -> None:
        """Gives up, unless ``finish`` was called: nothing is published."""
        with self._exclusive():
            core, self._core = self._core, None
            if core is not None:
                core.abort()
                _log.drain()

    def __enter__(self) -> Writer:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._core is not None:
            self.finish()
        else:
            self.close()
