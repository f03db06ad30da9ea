"""Where data lies and how to reach it: URLs, store arguments, and data sets that stay open."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from headrace import _core, _host, _live, _log
from headrace.errors import CancelledError, InvalidArgumentError, UsageError

# Threads that finish requests of single reads; loaders bring their own.
_THREADS_MAX = 4


def url_text(url: str | os.PathLike[str], name: str) -> str:
    """A URL or path argument as text."""
    text = os.fspath(url)
    if not isinstance(text, str):
        raise UsageError(f"{name} must be a URL or a path as text, not {type(url).__name__}")
    if not text:
        raise InvalidArgumentError(f"{name} is empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{name}={text!r} is not UTF-8; such names are not read"
        ) from None
    return text


@dataclass(frozen=True)
class StoreArguments:
    """How to reach a store; the keyword arguments that everything with a URL takes."""

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    anonymous: bool = False
    addressing: str | None = None
    ca_bundle: str | None = None
    connections: int | None = None
    attempts: int | None = None
    timeout: float | None = None

    def core(self) -> _core.StoreOptions:
        """The same for the core."""
        return _core.StoreOptions.make(
            endpoint=self.endpoint,
            region=self.region,
            profile=self.profile,
            anonymous=self.anonymous,
            addressing=self.addressing,
            ca_bundle=self.ca_bundle,
            connections=self.connections,
            attempts=self.attempts,
            timeout=self.timeout,
        )


class StoreKeywords(TypedDict, total=False):
    """The same as keyword arguments."""

    endpoint: str | None
    region: str | None
    profile: str | None
    anonymous: bool
    addressing: str | None
    ca_bundle: str | os.PathLike[str] | None
    connections: int | None
    attempts: int | None
    timeout: float | None


def store_arguments(function: str, given: Mapping[str, Any]) -> StoreArguments:
    """Store arguments of ``function``.

    Raises:
        UsageError: one that does not exist.
    """
    for name in given:
        if name not in StoreKeywords.__annotations__:
            close = difflib.get_close_matches(name, StoreKeywords.__annotations__, n=1)
            hint = f"; did you mean {close[0]}=?" if close else ""
            raise UsageError(f"{function} has no argument {name!r}{hint}")
    values = dict(given)
    if values.get("ca_bundle") is not None:
        values["ca_bundle"] = url_text(values["ca_bundle"], "ca_bundle")
    return StoreArguments(**values)


class Source:
    """One opened data set, shared by its views; opens again in a process forked off since."""

    def __init__(
        self,
        url: str,
        split: str | None,
        index: str | None,
        store: StoreArguments,
        threads: int | None,
        identity: str | None = None,
    ) -> None:
        self.url = url
        self.split = split
        self.index = index
        self.store = store
        self.threads = threads
        self.identity = identity
        self._core: _core.Dataset | None = None
        self._fields: list[_core.Field] | None = None
        self._is_closed = False
        _live.add_source(self)

    def core(self) -> _core.Dataset:
        if self._is_closed:
            raise CancelledError(f"the data set {self.url} is closed")
        if self._core is None or self._core.is_foreign:
            self._core = self._open()
        return self._core

    def fields(self) -> list[_core.Field]:
        if self._fields is None:
            self._fields = self.core().fields
        return self._fields

    def _open(self) -> _core.Dataset:
        threads = self.threads or min(_THREADS_MAX, _host.default_threads())
        try:
            opened = _core.Dataset.open(
                self.url, self.split, self.index, self.store.core(), threads
            )
        finally:
            _log.drain()
        if self.identity is not None and opened.identity != self.identity:
            raise InvalidArgumentError(
                f"{self.url} is not the data set that was opened before: its shards, sizes or "
                "fields have changed since"
            )
        self.identity = opened.identity
        return opened

    def close(self) -> None:
        self._is_closed = True
        if self._core is not None:
            self._core.close()
            _log.drain()

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (
            self.url,
            self.split,
            self.index,
            self.store,
            self.threads,
            self.identity,
        )
