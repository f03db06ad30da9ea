"""Where a command speaks: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from headrace.cli.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar(Protocol):
    """A progress bar, or nothing at all when nobody watches."""

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """`done` of `total` units; `note` is a short text at the end of the line."""


class _NoBar:
    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        pass


class _RichBar:
    # A terminal shows at most this many states a second; more only costs time.
    _UPDATES_PER_SECOND = 10

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task
        self._next = 0.0

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        now = time.monotonic()
        if now < self._next and done != total:
            return
        self._next = now + 1 / self._UPDATES_PER_SECOND
        self._progress.update(self._task, completed=done, total=total, note=printable(note))


class Output:
    """The two streams of one run of a command."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet

    def say(self, text: str = "") -> None:
        """A part of the result for people; silent under --json."""
        if not self.as_json:
            sys.stdout.write(text + "\n")

    def note(self, text: str) -> None:
        """Something worth knowing that is not the result."""
        if not self.quiet:
            sys.stderr.write(f"headrace: note: {printable(text)}\n")

    def result(self, schema: str, document: dict[str, Any]) -> None:
        """The one JSON document of a command; silent without --json."""
        if self.as_json:
            write_json({"schema": f"headrace-{schema}-1", **document})

    @contextmanager
    def progress(self, title: str) -> Iterator[Bar]:
        """A bar on standard error when that is a terminal, else nothing."""
        if self.quiet or not sys.stderr.isatty():
            yield _NoBar()
            return
        # rich takes a tenth of a second to import, so only a terminal pays for it.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = [
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
        ]
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            yield _RichBar(progress, progress.add_task(title, total=None, note=""))


def write_json(document: dict[str, Any]) -> None:
    """One JSON document and a newline. NaN, which JSON lacks, becomes null."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    try:
        text = json.dumps(document, ensure_ascii=ascii_only, allow_nan=False, default=_plain)
    except ValueError:
        text = json.dumps(_without_nan(document), ensure_ascii=ascii_only, default=_plain)
    sys.stdout.write(_escaped(text) + "\n")


def _escaped(text: str) -> str:
    """JSON text with characters that could steer a terminal, or that are not UTF-8, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _plain(value: Any) -> Any:
    """numpy scalars and arrays, and whatever else is no JSON, as something that is."""
    for convert in ("item", "tolist"):
        method = getattr(value, convert, None)
        if callable(method):
            try:
                return method()
            except ValueError:
                continue
    return str(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value
