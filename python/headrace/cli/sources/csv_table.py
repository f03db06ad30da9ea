"""CSV and TSV: a header line, then rows; quotes as in RFC 4180."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from headrace.cli.failures import BadRow, Failure
from headrace.cli.sources.base import Settings
from headrace.cli.sources.tables import (
    LINE_BYTES_MAX,
    Lines,
    Parse,
    Record,
    Table,
    TableFile,
    bad,
    decode_line,
)

# "007" is a name, not a number: reading it as 7 would lose something.
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[+-]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?|nan|NaN")


class CsvTable(Table):
    """One sample a row, columns named by the header."""

    kind = "csv"
    from_text = True

    def __init__(self, paths: list[Path | None], settings: Settings) -> None:
        tsv = paths[0] is not None and ".tsv" in paths[0].suffixes
        self._delimiter = settings.delimiter or ("\t" if tsv else ",")
        self._header: list[str] = []
        # The module's limit is one for the process; rows are bounded by LINE_BYTES_MAX instead.
        csv.field_size_limit(LINE_BYTES_MAX)
        super().__init__(paths, settings)

    def infer(self, rows: list[dict[str, Any]]) -> dict[str, str]:
        return {name: _encoding_of([row[name] for row in rows]) for name in self._header}

    def records_of(self, file: TableFile, lines: Lines) -> Iterator[Parse]:
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        lines.begin_record()
        header = self._read(reader, lines)
        if header is None:
            raise Failure(
                f"{file.name} is empty: its first line must name the columns", "invalid_argument"
            )
        self._check_header(header, lines.where(1))
        while True:
            lines.begin_record()
            try:
                cells = self._read(reader, lines)
            except BadRow as error:
                yield bad(error)
                continue
            if cells is None:
                return
            if cells:  # an empty line has no cells
                yield partial(self._record, cells, lines.where(lines.record_line))

    def record_at(self, file: TableFile, line: int, text: bytes) -> Record:
        where = f"{file.name}:{line}"
        stream = io.StringIO(decode_line(text, where), newline="")
        return self._record(next(csv.reader(stream, delimiter=self._delimiter, strict=True)), where)

    def _read(self, reader: Iterator[list[str]], lines: Lines) -> list[str] | None:
        try:
            return next(reader, None)
        except csv.Error as error:
            raise BadRow(lines.where(lines.record_line), f"not CSV: {error}") from error

    def _check_header(self, header: list[str], where: str) -> None:
        if self._header and header != self._header:
            raise BadRow(where, f"header {header} differs from the first file's {self._header}")
        for name in header:
            if not name:
                raise BadRow(where, "the header has a column without a name")
            if header.count(name) > 1:
                raise BadRow(where, f"the header names '{name}' twice")
        self._header = header

    def _record(self, cells: list[str], where: str) -> Record:
        if len(cells) != len(self._header):
            raise BadRow(
                where, f"{len(cells)} cells, but the header names {len(self._header)} columns"
            )
        return Record(where, dict(zip(self._header, cells, strict=True)))


def _encoding_of(cells: list[str]) -> str:
    if all(_INTEGER.fullmatch(cell) for cell in cells):
        return "int"
    if all(
        _FLOAT.fullmatch(cell) and any(c.isdigit() or c == "n" or c == "N" for c in cell)
        for cell in cells
    ):
        return "float64"
    return "str"
