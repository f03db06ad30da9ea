"""What a loader hands over: dense fields as arrays, ragged ones as ``Ragged``."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

from headrace import _core
from headrace._host import imported_torch
from headrace.errors import CorruptDataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Ragged"]

# The first numpy whose from_dlpack() gives writable arrays.
_NUMPY_DLPACK = (2, 1)
_numpy_takes_dlpack: bool | None = None


def to_numpy(array: _core.Array) -> NDArray[Any]:
    """A writable view; the memory stays with the core."""
    import numpy as np

    global _numpy_takes_dlpack
    if _numpy_takes_dlpack is None:
        major, minor = np.__version__.split(".")[:2]
        _numpy_takes_dlpack = (int(major), int(minor)) >= _NUMPY_DLPACK
    memory: Any = array
    return np.from_dlpack(memory) if _numpy_takes_dlpack else np.asarray(memoryview(memory))


def to_torch(array: _core.Array) -> Any:
    """The same as a tensor on the CPU."""
    return imported_torch().from_dlpack(array)


class Ragged:
    """One field of a batch whose values have different lengths.

    Attributes:
        values: all values end to end, one array: uint8 for bytes, text, JSON and pictures, else of
            the field's dtype.
        offsets: int64 [rows + 1]; row i is ``values[offsets[i]:offsets[i + 1]]``.
        shapes: int64 [rows, dimensions] where rows are arrays of several dimensions, else None.
        valid: bool [rows], False where a value is null; None where the field cannot be null.
        kind: "bytes", "str", "json", "media", "array" or "scalar": what ``ragged[i]`` gives.
    """

    __slots__ = ("kind", "offsets", "shapes", "valid", "values")

    def __init__(
        self, kind: str, values: Any, offsets: Any, shapes: Any = None, valid: Any = None
    ) -> None:
        self.kind = kind
        self.values = values
        self.offsets = offsets
        self.shapes = shapes
        self.valid = valid

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: SupportsIndex) -> Any:
        """Row ``i``: bytes, str, a parsed JSON value, a number, or a view of an array's row.

        Raises:
            IndexError: no such row.
            CorruptDataError: text that is not UTF-8, JSON that is none.
        """
        row = operator.index(i)
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of a batch of {len(self)} rows")
        row %= len(self)
        if self.valid is not None and not bool(self.valid[row]):
            return None
        part = self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]
        if self.kind == "array":
            return part if self.shapes is None else part.reshape(tuple(self.shapes[row].tolist()))
        if self.kind == "scalar":
            return part[0].item()
        return decode_value(self.kind, memoryview(part.numpy() if is_tensor(part) else part))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to_list(self) -> list[Any]:
        """All rows, as indexing gives them."""
        return list(self)

    def __repr__(self) -> str:
        return f"Ragged(kind={self.kind!r}, rows={len(self)}, values={len(self.values)})"


def is_tensor(value: Any) -> bool:
    """Whether it is a torch tensor; torch is not imported to find out."""
    torch = imported_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def decode_value(kind: str, raw: memoryview) -> Any:
    """One value of a byte-like kind."""
    if kind in ("bytes", "media"):
        return bytes(raw)
    try:
        text = str(raw, "utf-8")
        return json.loads(text) if kind == "json" else text
    except ValueError as error:
        raise CorruptDataError(f"a {kind} value cannot be read: {error}") from None


def batch_dict(batch: _core.Batch, output: str) -> dict[str, Any]:
    """The columns of a batch by name, with "__index__" and, where there is one, "__mask__"."""
    convert: Callable[[Any], Any] = to_torch if output == "torch" else to_numpy
    out: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for name, kind, is_ragged, values, offsets, shapes, valid in batch.columns:
        flags = None if valid is None else convert(valid)
        if is_ragged:
            extents = None if shapes is None else convert(shapes)
            out[name] = Ragged(kind, convert(values), convert(offsets), extents, flags)
        else:
            out[name] = convert(values)
            if flags is not None:
                nulls[name] = flags
    out["__index__"] = convert(batch.index)
    if batch.mask is not None:
        out["__mask__"] = convert(batch.mask)
    if nulls:
        out["__valid__"] = nulls
    return out


def _column_values(column: tuple[Any, ...], copy: bool) -> list[Any]:
    """The values of one column as Python objects, one a row."""
    _, kind, is_ragged, values, offsets, shapes, valid = column
    flat = to_numpy(values)
    if not is_ragged:
        rows = flat.tolist() if kind == "scalar" else list(flat.copy() if copy else flat)
    else:
        ragged = Ragged(kind, flat, to_numpy(offsets))
        if shapes is not None:
            ragged.shapes = to_numpy(shapes)
        rows = ragged.to_list()
        if copy and kind == "array":
            rows = [row.copy() for row in rows]
    if valid is not None:
        keep = to_numpy(valid).tolist()
        rows = [row if there else None for row, there in zip(rows, keep, strict=True)]
    return rows


def batch_rows(batch: _core.Batch, *, copy: bool) -> list[dict[str, Any]]:
    """The rows of a batch as ``Dataset`` gives samples; arrays are views unless ``copy``."""
    columns = batch.columns
    names = [column[0] for column in columns]
    if not columns:
        return [{} for _ in range(batch.rows)]
    values = [_column_values(column, copy) for column in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
