"""Closes what is open when the interpreter ends, while threads can still take the GIL."""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol

from headrace import _core


class _Closable(Protocol):
    def close(self) -> None: ...


_loaders: weakref.WeakSet[_Closable] = weakref.WeakSet()
_sources: weakref.WeakSet[_Closable] = weakref.WeakSet()


def add_loader(loader: _Closable) -> None:
    """Loaders are closed first: they read from sources."""
    _loaders.add(loader)


def add_source(source: _Closable) -> None:
    """Everything a loader may depend on."""
    _sources.add(source)


@atexit.register
def _close_all() -> None:
    for group in (_loaders, _sources):
        for one in list(group):
            one.close()
    _core.set_ending()
