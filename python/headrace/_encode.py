"""Python values to what a data set stores, checked against the column's type."""

from __future__ import annotations

import io
import json
import operator
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidArgumentError, UnimplementedError

if TYPE_CHECKING:
    from headrace import _core

# The payload, and for arrays and numbers the dtype's name and the shape.
Encoded = tuple[Any, str, tuple[int, ...]]
Encoder = Callable[[Any], Encoded]

_LETTERS = {
    "uint8": "B",
    "int8": "b",
    "uint16": "H",
    "int16": "h",
    "float16": "e",
    "uint32": "I",
    "int32": "i",
    "float32": "f",
    "uint64": "Q",
    "int64": "q",
    "float64": "d",
}
_MAGIC = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}
# Of pictures given as Pillow images; files are stored as they are.
_JPEG_QUALITY = 95


def encoder(field: _core.Field) -> Encoder:
    """The function that encodes values of one column.

    It raises InvalidArgumentError, ValueError, TypeError or struct.error for values that do not
    fit; the caller names the column.
    """
    kind, dtype = field.kind, field.dtype
    if kind == "scalar" and dtype is not None:
        return _number(dtype)
    if kind == "str":
        return _text
    if kind == "json":
        return _json
    if kind == "bytes":
        return lambda value: (_raw(value), "", ())
    if kind == "media":
        return _picture(field.type)
    if kind == "array":
        return _array(dtype, field.shape)
    raise UnimplementedError(f"values of type {field.type} cannot be written in this release")


def _number(dtype: str) -> Encoder:
    pack = struct.Struct("<" + _LETTERS[dtype]).pack
    convert: Callable[[Any], Any] = float if dtype.startswith("float") else operator.index

    def encode(value: Any) -> Encoded:
        return pack(convert(value)), dtype, ()

    return encode


def _text(value: Any) -> Encoded:
    if not isinstance(value, str):
        raise InvalidArgumentError(f"wants str, not {type(value).__name__}")
    return value.encode(), "", ()


def _json(value: Any) -> Encoded:
    return json.dumps(value, sort_keys=True).encode(), "", ()


def _raw(value: Any) -> Any:
    if isinstance(value, (str, int)):
        raise InvalidArgumentError(f"wants bytes, not {type(value).__name__}")
    view = memoryview(value)
    return view if view.c_contiguous else view.tobytes()


def _picture(media: str) -> Encoder:
    def encode(value: Any) -> Encoded:
        pillow = sys.modules.get("PIL.Image")
        if pillow is not None and isinstance(value, pillow.Image):
            value = _compress(value, media)
        view = memoryview(_raw(value)).cast("B")
        magic = _MAGIC.get(media, b"")
        if bytes(view[: len(magic)]) != magic:
            raise InvalidArgumentError(f"is no {media.upper()} file: it begins with other bytes")
        return view, "", ()

    return encode


def _compress(picture: Any, media: str) -> bytes:
    out = io.BytesIO()
    if media == "jpeg":
        if picture.mode not in ("L", "RGB", "CMYK"):
            picture = picture.convert("RGB")
        picture.save(out, "JPEG", quality=_JPEG_QUALITY)
    else:
        picture.save(out, "PNG")
    return out.getvalue()


def _array(dtype: str | None, shape: tuple[int, ...] | None) -> Encoder:
    import numpy as np

    def encode(value: Any) -> Encoded:
        if isinstance(value, (np.ndarray, np.generic)) or dtype is None:
            array = np.asarray(value)
        else:
            array = np.asarray(value, dtype=dtype)
        if array.dtype.name not in _LETTERS or (dtype is not None and array.dtype.name != dtype):
            raise InvalidArgumentError(
                f"wants an array of {dtype or 'numbers'}, not of {array.dtype}; convert it with "
                ".astype()"
            )
        if shape is not None and array.shape != shape:
            raise InvalidArgumentError(f"wants shape {list(shape)}, not {list(array.shape)}")
        little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        return (
            np.ascontiguousarray(little).reshape(-1).view(np.uint8),
            array.dtype.name,
            array.shape,
        )

    return encode
