"""Shared by JSONL and CSV: counted lines, inference over the first rows, rows of columns."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from array import array
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from headrace.cli.failures import BadRow, Failure, UsageError
from headrace.cli.sources.base import (
    FILE_ENCODINGS,
    Row,
    RowMaker,
    Settings,
    apply_overrides,
    confined,
    encode_value,
    read_file,
    shuffled,
)

# Rows looked at before the encodings of the columns are settled.
SAMPLE_ROWS = 1000
# A longer line is not a row of a table but a mistake, and must not fill the memory.
LINE_BYTES_MAX = 256 << 20


@dataclass(frozen=True)
class Record:
    """One row of a table as read: its columns, and where it stands."""

    where: str
    values: dict[str, Any]


# Parses one record; raises BadRow when it cannot be used. Cutting a file into records goes on after
# a bad one, for the sake of --skip-bad.
Parse = Callable[[], Record]


def bad(row: BadRow) -> Parse:
    """A parse that fails with `row`."""

    def fail() -> Record:
        raise row

    return fail


class TableFile:
    """One file, plain or gzip-compressed, or standard input."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.name = "<stdin>" if path is None else str(path)

    @property
    def is_seekable(self) -> bool:
        return self.path is not None and self.path.suffix != ".gz" and self.path.is_file()

    def stored_bytes(self) -> int | None:
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else None

    def open(self) -> IO[bytes]:
        if self.path is None:
            return sys.stdin.buffer
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise Failure(f"cannot read {self.path}: {error.strerror}", "not_found") from error


class Table:
    """Base of the table sources. A subclass says how records are cut out of a file and parsed."""

    kind = "table"
    from_text = False

    def __init__(self, paths: list[Path | None], settings: Settings) -> None:
        self.settings = settings
        self.files = [TableFile(path) for path in paths]
        sizes = [file.stored_bytes() for file in self.files]
        self.total = (
            sum(s for s in sizes if s is not None) if all(s is not None for s in sizes) else None
        )
        self.notes: list[str] = []
        self._position = 0
        self._stream = self._records()
        self._head = list(islice(self._stream, SAMPLE_ROWS))
        self.columns = apply_overrides(self.infer(self._head_values()), settings)
        self.threaded = any(e in FILE_ENCODINGS for e in self.columns.values())
        self._root = self._find_root() if self.threaded else None

    # --- for subclasses -----------------------------------------------------------------------

    def infer(self, rows: list[dict[str, Any]]) -> dict[str, str]:
        """Column name -> encoding, from the first rows."""
        raise NotImplementedError

    def records_of(self, file: TableFile, lines: Lines) -> Iterator[Parse]:
        """The records of one file, cut out of its lines."""
        raise NotImplementedError

    def record_at(self, file: TableFile, line: int, text: bytes) -> Record:
        """The record that starts in line `line` and is written as `text`; raises BadRow."""
        raise NotImplementedError

    # --- the source ---------------------------------------------------------------------------

    def rows(self) -> Iterator[RowMaker]:
        if self.settings.shuffle_seed is not None:
            yield from self._shuffled_rows(self.settings.shuffle_seed)
            return
        head, self._head = self._head, []
        for parse in head:
            yield partial(self._make, parse)
        for parse in self._stream:
            yield partial(self._make, parse)

    def position(self) -> int:
        return self._position

    def side_files(self) -> dict[str, bytes]:
        return {}

    def close(self) -> None:
        self._stream.close()

    # --- inside -------------------------------------------------------------------------------

    def _find_root(self) -> Path:
        if self.settings.root is not None:
            return self.settings.root.resolve()
        path = self.files[0].path
        if path is None:
            raise UsageError("rows from standard input that name files need --root DIR")
        return path.resolve().parent

    def _head_values(self) -> list[dict[str, Any]]:
        values, first_bad = [], None
        for parse in self._head:
            try:
                values.append(parse().values)
            except BadRow as error:
                first_bad = first_bad or error
        if not values:
            raise first_bad or Failure(f"{self.files[0].name} holds no rows", "invalid_argument")
        return values

    def _records(self) -> Generator[Parse, None, None]:
        done = 0
        for file in self.files:
            with file.open() as raw:
                lines = Lines(file, raw)
                for parse in self.records_of(file, lines):
                    self._position = done + lines.raw_position()
                    yield parse
            done += file.stored_bytes() or 0
            self._position = done

    def _make(self, parse: Parse) -> Row:
        record, values = parse(), {}
        for name, encoding in self.columns.items():
            if name not in record.values:
                raise BadRow(record.where, f"column '{name}' is missing")
            value = record.values[name]
            if encoding in FILE_ENCODINGS:
                values[name] = self._file_bytes(record.where, name, value)
                continue
            try:
                values[name] = encode_value(value, encoding, from_text=self.from_text)
            except (ValueError, OverflowError) as error:
                raise BadRow(record.where, self._misfit(name, encoding, value, error)) from error
        if len(record.values) > len(self.columns):
            unknown = record.values.keys() - self.columns.keys() - self.settings.drop
            if unknown:
                name = min(unknown)
                raise BadRow(
                    record.where,
                    f"column '{name}' is not in the first {SAMPLE_ROWS} rows; --columns "
                    f"{name}=json keeps it, --drop {name} leaves it out",
                )
        return Row(record.where, values)

    def _file_bytes(self, where: str, name: str, value: Any) -> bytes:
        if not isinstance(value, str) or not value:
            raise BadRow(where, f"column '{name}' must name a file")
        assert self._root is not None
        return read_file(confined(self._root, value, where), where)

    def _misfit(self, name: str, encoding: str, value: Any, error: Exception) -> str:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        reason = str(error) if str(error).startswith(("is ", "holds ")) else f"is {shown}"
        safe = "str" if self.from_text else "json"
        return (
            f"column '{name}' {reason}, but the column is packed as {encoding} "
            f"(--columns {name}={safe} takes anything)"
        )

    def _shuffled_rows(self, seed: int) -> Iterator[RowMaker]:
        """One pass notes where each record starts, then records are read in shuffled order."""
        for file in self.files:
            if not file.is_seekable:
                raise UsageError(
                    f"--shuffle-seed needs plain files; {file.name} can be read only once"
                )
        # (file, offset, bytes, line) of every record: 28 bytes each, whatever the records hold.
        files, lines_at = array("L"), array("L")
        offsets, lengths = array("Q"), array("L")
        for number, file in enumerate(self.files):
            with file.open() as raw:
                lines = Lines(file, raw)
                for _ in self.records_of(file, lines):
                    files.append(number)
                    lines_at.append(lines.record_line)
                    offsets.append(lines.record_offset)
                    lengths.append(lines.offset - lines.record_offset)
        self._position = 0
        opened = [file.open() for file in self.files]
        try:
            for i in shuffled(len(files), seed):
                raw = opened[files[i]]
                raw.seek(offsets[i])
                text = raw.read(lengths[i])
                self._position += lengths[i]
                parse = partial(self.record_at, self.files[files[i]], lines_at[i], text)
                yield partial(self._make, parse)
        finally:
            for raw in opened:
                raw.close()


class Lines:
    """The lines of a file as text, counted, with the place where the record under way began."""

    def __init__(self, file: TableFile, raw: IO[bytes]) -> None:
        self._file, self._raw = file, raw
        magic = raw.peek(2)[:2] if isinstance(raw, io.BufferedReader) else b""
        self._stream: IO[bytes] = raw
        if magic == b"\x1f\x8b":
            self._stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        self.line = 0  # of the last line that was given out, from 1
        self.offset = 0  # just behind it, in the uncompressed text
        self.record_line = 0
        self.record_offset = 0

    def raw_position(self) -> int:
        """Bytes of the stored file passed so far; 0 when it cannot tell."""
        if self._stream is self._raw:
            return self.offset
        return self._raw.tell() if self._raw.seekable() else 0

    def begin_record(self) -> None:
        """The next line starts a record."""
        self.record_line, self.record_offset = self.line + 1, self.offset

    def where(self, line: int | None = None) -> str:
        return f"{self._file.name}:{line or self.line}"

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._stream.readline(LINE_BYTES_MAX + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise Failure(
                f"{self.where(self.line + 1)}: cannot be read: {error}", "corrupt"
            ) from error
        if not line:
            raise StopIteration
        self.line += 1
        self.offset += len(line)
        if len(line) > LINE_BYTES_MAX:
            raise Failure(
                f"{self.where()}: the line has more than {LINE_BYTES_MAX} bytes", "corrupt"
            )
        return decode_line(line, self.where(), first=self.line == 1)


def decode_line(line: bytes, where: str, *, first: bool = False) -> str:
    """UTF-8 text of a line. A byte order mark at the very start is dropped."""
    if first and line.startswith(b"\xef\xbb\xbf"):
        line = line[3:]
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRow(where, f"byte {error.start + 1} of the line is not UTF-8") from error
