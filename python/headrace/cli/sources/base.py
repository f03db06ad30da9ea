"""The contract between `headrace pack` and its sources, and what sources share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headrace.cli.failures import BadRow, UsageError
from headrace.cli.options import did_you_mean

if TYPE_CHECKING:
    import numpy as np

# Encodings whose value in a table is the name of a file that holds the bytes.
FILE_ENCODINGS = frozenset({"bytes", "jpeg", "png"})
# Lies beside a data set of class folders: {"classes": [name of label 0, name of label 1, ...]}.
CLASSES_FILE = "classes.json"
# A field is one value in memory several times over while it is packed; MDS ends at 4 GiB anyway.
FILE_BYTES_MAX = 2**31 - 1


@dataclass
class Row:
    """One sample on its way into a shard."""

    where: str  # its place in the source, for errors: "labels.csv:17"
    values: dict[str, Any]
    key: str | None = None  # its name, where the target format has names


RowMaker = Callable[[], Row]


@dataclass
class Settings:
    """What the command line says about a source."""

    overrides: dict[str, str] = field(default_factory=dict)  # column -> encoding
    drop: frozenset[str] = frozenset()
    root: Path | None = None  # folder of the files that a table names
    delimiter: str | None = None
    names: bool = True  # record file names of pictures
    target: str = "mds"
    shuffle_seed: int | None = None
    store: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Rows in a fixed order, which does not depend on the threads that make them."""

    kind: str
    columns: dict[str, str]  # name -> encoding
    total: int | None  # progress units in all, when known
    notes: list[str]  # what a person should know before packing starts
    # Rows are worth making in several threads, because each opens a file or waits for a store.
    threaded: bool

    def rows(self) -> Iterator[RowMaker]:
        """Makers of all rows, in order; a maker raises BadRow for a row that cannot be used."""

    def position(self) -> int:
        """Progress units that rows() has passed."""

    def side_files(self) -> dict[str, bytes]:
        """Small files to lie beside the data, by name."""

    def close(self) -> None:
        """Lets go of temporary files."""


def apply_overrides(inferred: dict[str, str], settings: Settings) -> dict[str, str]:
    """The columns with --columns and --drop applied; an unknown name is a UsageError."""
    for name in [*settings.overrides, *settings.drop]:
        if name not in inferred:
            known = ", ".join(inferred)
            hint = did_you_mean(name, list(inferred))
            raise UsageError(f"the source has no column '{name}'{hint} (it has: {known})")
    columns = {
        n: settings.overrides.get(n, e) for n, e in inferred.items() if n not in settings.drop
    }
    if not columns:
        raise UsageError("--drop leaves no column to pack")
    return columns


def shuffled(count: int, seed: int | None) -> Iterator[int]:
    """0 .. count-1, in order without a seed, else shuffled alike on every machine, for ever."""
    if seed is None:
        yield from range(count)
        return
    import numpy as np

    with np.errstate(over="ignore"):
        # SplitMix64 of the index gives every index a random key; sorting by it is the shuffle.
        word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        word += np.uint64(seed % 2**64) * np.uint64(0xD1B54A32D192ED03)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    for i in np.argsort(word, kind="stable"):
        yield int(i)


def read_file(path: Path, where: str) -> bytes:
    """All bytes of a file, or BadRow."""
    try:
        with open(path, "rb") as file:
            bytes_on_disk = os.fstat(file.fileno()).st_size
            if bytes_on_disk > FILE_BYTES_MAX:
                raise BadRow(
                    where, f"{path} has {bytes_on_disk} bytes; a field holds at most 2 GiB"
                )
            return file.read()
    except OSError as error:
        raise BadRow(where, f"cannot read {path}: {error.strerror}") from error


def confined(root: Path, name: str, where: str) -> Path:
    """The file `name` below `root`, or BadRow when it would lie outside.

    A table is data, often from elsewhere: it must not be able to pack this machine's other files.
    """
    path = Path(os.path.realpath(root / name))
    if not path.is_relative_to(root):
        raise BadRow(where, f"file name '{name}' leaves {root}; --root DIR names another folder")
    return path


_FLOATS = {"float16", "float32", "float64"}
# Name -> (smallest, largest).
_INTEGERS = {
    "int": (-(2**63), 2**63 - 1),
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}


def encode_value(value: Any, encoding: str, *, from_text: bool) -> Any:
    """A table's value as what the writer takes for `encoding`; ValueError says why it cannot be.

    `from_text` is for tables in which everything is text (CSV): JSON and arrays are parsed.
    """
    if encoding == "str":
        return _text(value)
    if encoding in _INTEGERS:
        return _integer(value, encoding)
    if encoding in _FLOATS:
        return _float(value, encoding)
    if encoding == "json":
        return json.loads(value) if from_text else _plain(value)
    if encoding == "ndarray" or encoding.startswith("ndarray:"):
        return _array(json.loads(value) if from_text else value, encoding)
    return value


def _plain(value: Any) -> Any:
    """Arrays of a data set as lists, everything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return json.dumps(value)
    raise ValueError(f"is {_kind(value)} and not text")


def _integer(value: Any, encoding: str) -> int:
    if isinstance(value, str):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        raise ValueError(f"is {_kind(value)} and not a whole number")
    low, high = _INTEGERS[encoding]
    if not low <= value <= high:
        raise ValueError(f"is {value}, outside {low} .. {high} of {encoding}")
    return int(value)


def _float(value: Any, encoding: str) -> float:
    if isinstance(value, str):
        value = float(value)
    if not isinstance(value, (int, float)):
        raise ValueError(f"is {_kind(value)} and not a number")
    return float(value)


def _array(value: Any, encoding: str) -> np.ndarray[Any, Any]:
    import numpy as np

    try:
        found = np.asarray(value)
    except ValueError as error:
        raise ValueError("is a ragged list, which an ndarray column cannot hold") from error
    if found.dtype.kind not in "iufb":
        raise ValueError(f"is {_kind(value)} and not a list of numbers")
    parts = encoding.split(":")
    if len(parts) == 1 or not parts[1]:
        return found
    want = np.dtype(parts[1])
    if want.kind in "iu" and found.dtype.kind == "f":
        raise ValueError(f"holds fractions, which {encoding} cannot")
    if want.kind in "iu" and found.size:
        limits = np.iinfo(want)
        low, high = int(found.min()), int(found.max())
        if low < limits.min or high > limits.max:
            raise ValueError(f"holds numbers outside {limits.min} .. {limits.max} of {encoding}")
    return found.astype(want)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    named = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        dict: "an object",
        list: "a list",
    }
    return named.get(type(value), type(value).__name__)
