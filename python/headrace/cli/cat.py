"""`headrace cat`: shows samples to people, or writes their fields as files."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.cli import options
from headrace.cli.failures import EXIT_OK, Failure, UsageError
from headrace.cli.output import Output
from headrace.cli.samples import sample_numbers
from headrace.cli.sources.pictures import inspect_picture, picture_kind
from headrace.cli.text import bytes_text, count_text, counted, printable, shortened

NAME = "cat"
SUMMARY = "show samples of a data set"
DESCRIPTION = """\
Shows samples: text as text, arrays by type and shape, pictures by size. Samples are numbered from
0; negative numbers count from the end, A:B is a range without B. The default is the first three.
"""
EXAMPLES = """\
examples:
  headrace cat out/train
  headrace cat out/train 0 17 -1
  headrace cat out/train 100:110 --field label
  headrace cat out/train 17 --field image --raw > 17.jpg
  headrace cat s3://bucket/train 0:100 --field image --out pictures
"""

_DEFAULT_RANGE = "0:3"
_TEXT_SHOWN = 400  # characters of a text field
_VALUES_SHOWN = 8  # numbers of an array
_BYTES_SHOWN = 16
# Arrays up to this many numbers are written out in --json.
_JSON_VALUES_MAX = 4096

_SUFFIXES = {"jpeg": ".jpg", "png": ".png", "str": ".txt", "json": ".json"}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of this command."""
    options.add_dataset(parser)
    parser.add_argument(
        "samples",
        metavar="INDEX|A:B",
        nargs="*",
        help="samples to show (default: 0:3); put -- before a range that starts with a minus",
    )
    parser.add_argument(
        "--field",
        metavar="NAME",
        action="append",
        default=[],
        help="only this field; may be repeated",
    )
    parser.add_argument(
        "--raw", action="store_true", help="write the bytes of one --field as they are"
    )
    parser.add_argument("--out", metavar="DIR", help="write each field as a file into this folder")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files that --out finds there"
    )
    options.add_general(parser)
    options.add_store(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the command and returns its exit code."""
    if args.raw and (args.out is not None or args.json):
        raise UsageError("--raw goes to standard output and excludes --out and --json")
    if args.raw and len(args.field) != 1:
        raise UsageError("--raw needs exactly one --field")
    if args.overwrite and args.out is None:
        raise UsageError("--overwrite only means something with --out")
    with hr.open(args.url, **options.open_arguments(args)) as dataset:
        fields = _chosen_fields(dataset, args.field)
        numbers = sample_numbers(args.samples or [_DEFAULT_RANGE], len(dataset))
        if args.raw:
            _write_raw(dataset, numbers, args.field[0])
        elif args.out is not None:
            _write_files(dataset, numbers, fields, Path(args.out), args.overwrite, out)
        else:
            _show(dataset, numbers, fields, out)
    return EXIT_OK


def field_text(value: Any, kind: str) -> str:
    """One value in one line for people."""
    if value is None:
        return "null"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes_text(bytes(value))
    if isinstance(value, str):
        return printable(shortened(value, _TEXT_SHOWN))
    if _is_array(value):
        return _array_text(value)
    if kind.startswith("json") or isinstance(value, (dict, list)):
        return printable(shortened(json.dumps(value, ensure_ascii=False, default=str), _TEXT_SHOWN))
    return printable(str(value))


def field_json(value: Any) -> Any:
    """One value for --json. Bytes are described and not copied; --raw and --out copy them."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        described: dict[str, Any] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        picture = inspect_picture(data)
        if picture is not None:
            described.update(kind=picture.kind, width=picture.width, height=picture.height)
        return described
    if _is_array(value):
        shown: dict[str, Any] = {"dtype": str(value.dtype), "shape": list(value.shape)}
        if value.size <= _JSON_VALUES_MAX:
            shown["values"] = value.tolist()
        return shown
    return value


def safe_names(fields: Iterable[str]) -> dict[str, str]:
    """Field name -> its part of a file name. Foreign names cannot leave the folder or meet."""
    names: dict[str, str] = {}
    for field in fields:
        safe = base = _UNSAFE.sub("_", field)[:100] or "field"
        number = 1
        while safe in names.values():
            number += 1
            safe = f"{base}-{number}"
        names[field] = safe
    return names


def file_bytes(value: Any) -> bytes:
    """What --out and --raw write: stored bytes, UTF-8 text, JSON, or the numbers of an array."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    if _is_array(value):
        return bytes(value.tobytes())
    return json.dumps(value, ensure_ascii=False).encode()


def _is_array(value: Any) -> bool:
    """Whether this is a numpy array, without importing numpy where there is none."""
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _suffix(value: Any, kind: str) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        found = picture_kind(bytes(value[:16]))
        return _SUFFIXES.get(found or kind.rstrip("?"), ".bin")
    if _is_array(value):
        return ".bin"
    return _SUFFIXES["str"] if isinstance(value, (str, int, float)) else _SUFFIXES["json"]


def _chosen_fields(dataset: hr.Dataset, wanted: list[str]) -> dict[str, str]:
    known = {name: str(kind) for name, kind in dataset.fields.items()}
    for name in wanted:
        if name not in known:
            hint = options.did_you_mean(name, list(known))
            shown = printable(", ".join(known))
            raise UsageError(f"the data set has no field '{name}'{hint} (it has: {shown})")
    return {name: known[name] for name in wanted} if wanted else known


def _show(dataset: hr.Dataset, numbers: Iterable[int], fields: dict[str, str], out: Output) -> None:
    documents = []
    for number in numbers:
        sample = dataset[number]
        if out.as_json:
            values = {name: field_json(sample[name]) for name in fields}
            documents.append({"sample": number, "fields": values})
            continue
        out.say(f"sample {count_text(number)}")
        width = max(len(printable(name)) for name in fields)
        for name, kind in fields.items():
            out.say(f"  {printable(name):{width}}  {field_text(sample[name], kind)}")
    out.result("cat", {"url": str(dataset.url), "samples": documents})


def _write_raw(dataset: hr.Dataset, numbers: Iterable[int], field: str) -> None:
    for number in numbers:
        data = file_bytes(dataset[number][field])
        if sys.stdout.isatty() and not _is_text(data):
            raise Failure(
                f"field '{field}' is binary and would upset the terminal; redirect it or use --out"
            )
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _is_text(data: bytes) -> bool:
    try:
        return all(c.isprintable() or c in "\n\t" for c in data.decode())
    except UnicodeDecodeError:
        return False


def _write_files(
    dataset: hr.Dataset,
    numbers: Iterable[int],
    fields: dict[str, str],
    folder: Path,
    overwrite: bool,
    out: Output,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    digits = max(5, len(str(max(len(dataset) - 1, 0))))
    safe = safe_names(fields)
    written: list[str] = []
    total = 0
    for number in numbers:
        sample = dataset[number]
        for name, kind in fields.items():
            value = sample[name]
            if value is None:
                continue
            path = folder / f"{number:0{digits}d}.{safe[name]}{_suffix(value, kind)}"
            data = file_bytes(value)
            _write_file(path, data, overwrite)
            written.append(str(path))
            total += len(data)
    out.say(f"wrote {counted(len(written), 'file')} ({bytes_text(total)}) into {folder}")
    out.result("cat", {"url": str(dataset.url), "files": written, "bytes": total})


def _write_file(path: Path, data: bytes, overwrite: bool) -> None:
    """The whole file or none of it, and never through a link that somebody put there."""
    if not overwrite and os.path.lexists(path):
        raise Failure(f"{path} is there already; --overwrite replaces it", "exists")
    temporary = path.with_name(f".headrace-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise


def _bytes_text(data: bytes) -> str:
    picture = inspect_picture(data)
    if picture is not None:
        return f"{picture.kind} {picture.width} x {picture.height}, {bytes_text(len(data))}"
    if picture_kind(data):
        return f"damaged {picture_kind(data)}, {bytes_text(len(data))}"
    more = "..." if len(data) > _BYTES_SHOWN else ""
    return f"{counted(len(data), 'byte')}: {data[:_BYTES_SHOWN].hex()}{more}"


def _array_text(value: Any) -> str:
    shape = ",".join(map(str, value.shape))
    shown = " ".join(str(v) for v in value.reshape(-1)[:_VALUES_SHOWN].tolist())
    more = " ..." if value.size > _VALUES_SHOWN else ""
    return f"{value.dtype}[{shape}]: {shown}{more}"
