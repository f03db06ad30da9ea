"""JSON Lines: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from headrace.cli.failures import BadRow
from headrace.cli.sources.tables import Lines, Parse, Record, Table, TableFile, bad, decode_line

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class JsonLines(Table):
    """One sample a line; nested values become JSON columns."""

    kind = "jsonl"

    def infer(self, rows: list[dict[str, Any]]) -> dict[str, str]:
        names = dict.fromkeys(name for row in rows for name in row)
        # A column may turn up only later: naming it on the command line declares it.
        names.update(dict.fromkeys([*self.settings.overrides, *sorted(self.settings.drop)]))
        columns = {}
        for name in names:
            kinds = {_kind_of(row[name]) if name in row else "missing" for row in rows}
            columns[name] = _encoding_of(kinds)
            if "missing" in kinds and name not in self.settings.drop:
                self.notes.append(
                    f"column '{name}' is missing in some rows: null there, and JSON unless "
                    "--columns says otherwise"
                )
        self._optional = {n for n in names if any(n not in row for row in rows)}
        return columns

    def records_of(self, file: TableFile, lines: Lines) -> Iterator[Parse]:
        while True:
            lines.begin_record()
            try:
                text = next(lines, None)
            except BadRow as error:
                yield bad(error)
                continue
            if text is None:
                return
            if text.strip():
                yield partial(self._parse, text, lines.where())

    def record_at(self, file: TableFile, line: int, text: bytes) -> Record:
        where = f"{file.name}:{line}"
        return self._parse(decode_line(text, where, first=line == 1), where)

    def _parse(self, text: str, where: str) -> Record:
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise BadRow(where, f"not JSON: {error.msg} at column {error.colno}") from error
        except RecursionError as error:
            raise BadRow(where, "not usable: JSON nested too deeply") from error
        except ValueError as error:  # an integer of thousands of digits
            raise BadRow(where, f"not usable: {error}") from error
        if not isinstance(value, dict):
            raise BadRow(where, f"a JSON object is expected, this is {type(value).__name__}")
        for name in getattr(self, "_optional", ()):
            value.setdefault(name, None)
        return Record(where, value)


def _kind_of(value: Any) -> str:
    if isinstance(value, str):
        return "str"
    if isinstance(value, bool) or value is None:
        return "json"
    if isinstance(value, int):
        return "int" if _INT64_MIN <= value <= _INT64_MAX else "json"
    return "float" if isinstance(value, float) else "json"


def _encoding_of(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return {"str": "str", "int": "int", "float": "float64"}.get(next(iter(kinds)), "json")
    return "float64" if kinds == {"int", "float"} else "json"
