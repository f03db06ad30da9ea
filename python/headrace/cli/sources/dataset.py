"""Data that Headrace reads already: tar shards, or a whole data set to be packed anew."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.cli.failures import BadRow, UsageError
from headrace.cli.sources.base import (
    CLASSES_FILE,
    Row,
    RowMaker,
    Settings,
    apply_overrides,
    encode_value,
    shuffled,
)
from headrace.cli.sources.extensions import KEY_FIELD, holds_numbers

# Samples that show whether a text field holds numbers.
_HEAD_SAMPLES = 100


class OpenedDataset:
    """Every sample of a data set, in stored or shuffled order."""

    kind = "dataset"
    threaded = False

    def __init__(self, url: str, settings: Settings, **open_arguments: Any) -> None:
        self.dataset = hr.open(url, **open_arguments, **settings.store)
        self._shuffle_seed = settings.shuffle_seed
        self.total: int | None = len(self.dataset)
        self.notes: list[str] = []
        self._url = url
        self._position = 0
        inferred = {
            # What is dropped may be of any type.
            n: "bytes" if n in settings.drop else encoding_of(n, t)
            for n, t in self.dataset.fields.items()
        }
        if self.dataset.format == "wds":
            self._find_numbers(inferred)
        self.columns = apply_overrides(inferred, settings)

    def rows(self) -> Iterator[RowMaker]:
        numbers: Sequence[int] = range(len(self.dataset))
        view = self.dataset
        if self._shuffle_seed is not None:
            numbers = list(shuffled(len(numbers), self._shuffle_seed))
            view = view.select(numbers)
        # Iterating reads ahead, which threads of ours could not do better.
        for number, sample in zip(numbers, view, strict=True):
            self._position += 1
            yield partial(self._make, number, sample)

    def position(self) -> int:
        return self._position

    def side_files(self) -> dict[str, bytes]:
        path = Path(self._url) / CLASSES_FILE
        return {CLASSES_FILE: path.read_bytes()} if path.is_file() else {}

    def close(self) -> None:
        self.dataset.close()

    def _make(self, number: int, sample: dict[str, Any]) -> Row:
        where = f"{self._url} sample {number}"
        values = {}
        for name, encoding in self.columns.items():
            value = sample[name]
            if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
                try:
                    value = encode_value(value, encoding, from_text=False)
                except (ValueError, OverflowError) as error:
                    raise BadRow(where, f"field '{name}' {error}") from error
            values[name] = value
        return Row(where, values, key=sample.get(KEY_FIELD))

    def _find_numbers(self, columns: dict[str, str]) -> None:
        """Class numbers are text in tar files: where the first samples agree, they become int."""
        names = [n for n, e in columns.items() if e == "str" and holds_numbers(n)]
        if not names:
            return
        head = [self.dataset[i] for i in range(min(_HEAD_SAMPLES, len(self.dataset)))]
        for name in names:
            if all(_is_number(sample[name]) for sample in head):
                columns[name] = "int"


class TarShards(OpenedDataset):
    """WebDataset tar files, indexed on the way into a temporary file."""

    kind = "tar"

    def __init__(self, shards: str, settings: Settings) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-pack-")
        try:
            index = str(Path(self._folder.name) / "headrace.index")
            made = hr.build_index(shards, out=index, **settings.store)
            super().__init__(made.root, settings, index=index)
        except BaseException:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        super().close()
        self._folder.cleanup()


def _is_number(text: Any) -> bool:
    try:
        int(text)
    except (TypeError, ValueError):
        return False
    return True


def encoding_of(name: str, field_type: str) -> str:
    """The encoding that stores a field of this type again."""
    base = field_type.rstrip("?") if not field_type.endswith("[?]") else field_type
    if base.startswith("list["):
        raise UsageError(
            f"field '{name}' is {field_type}, which is not written yet; --drop {name} leaves it out"
        )
    if base.endswith("]"):
        dtype, _, shape = base[:-1].partition("[")
        parts = ["ndarray"]
        if dtype != "any":
            parts.append(dtype)
            if shape != "?":
                parts.append(shape.replace(" ", ""))
        return ":".join(parts)
    return base
