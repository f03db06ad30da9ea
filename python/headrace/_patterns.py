"""Which shards are meant: brace patterns, folders and globs, as a root and names below it."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from headrace._source import url_text
from headrace.errors import InvalidArgumentError, NotFoundError

# More names than any data set has shards; a pattern beyond is a slip of the pen.
_NAMES_MAX = 1_000_000
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


def expand_braces(pattern: str) -> list[str]:
    """All names of a pattern: "{000..009}" counts, keeping leading zeros, "{a,b}" lists.

    Raises:
        InvalidArgumentError: braces that are not closed, a range that runs backwards, too many.
    """
    out = [pattern]
    while True:
        match = _BRACES.search(out[0])
        if match is None:
            break
        words = list(_alternatives(match[1], pattern))
        if len(out) * len(words) > _NAMES_MAX:
            raise InvalidArgumentError(f"{pattern}: means more than {_NAMES_MAX:,} names")
        # Every name has the same braces at this place, apart from what was filled in before them.
        out = [_fill(name, word) for name in out for word in words]
    if "{" in out[0] or "}" in out[0]:
        raise InvalidArgumentError(f"{pattern}: braces that do not close")
    return out


def _fill(name: str, word: str) -> str:
    return _BRACES.sub(lambda _: word, name, count=1)


def _alternatives(inside: str, pattern: str) -> Iterator[str]:
    match = _RANGE.fullmatch(inside)
    if match is None:
        yield from inside.split(",")
        return
    first, last = int(match[1]), int(match[2])
    if last < first:
        raise InvalidArgumentError(f"{pattern}: the range {{{inside}}} runs backwards")
    if last - first >= _NAMES_MAX:
        raise InvalidArgumentError(f"{pattern}: means more than {_NAMES_MAX:,} names")
    width = len(match[1]) if match[1].startswith("0") else 0
    for number in range(first, last + 1):
        yield f"{number:0{width}}"


def find_shards(shards: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """URLs or paths of all shards that are meant, in order.

    A local folder means the tar files in it; local patterns may also have "*", "?" and "[...]".

    Raises:
        NotFoundError: a local folder or glob without any.
    """
    if isinstance(shards, (str, os.PathLike)):
        shards = [shards]
    out: list[str] = []
    for shard in shards:
        for name in expand_braces(url_text(shard, "shards")):
            out += _local_names(name) if not _SCHEME.match(name) else [name]
    if not out:
        raise InvalidArgumentError("shards is empty")
    if len(set(out)) != len(out):
        twice = next(name for name in out if out.count(name) > 1)
        raise InvalidArgumentError(f"{twice} is meant twice")
    return out


def _local_names(name: str) -> list[str]:
    if Path(name).is_dir():
        found = sorted(str(path) for path in Path(name).iterdir() if path.suffix == ".tar")
        if not found:
            raise NotFoundError(f"{name}: no .tar files in this folder")
        return found
    if glob.has_magic(name):
        found = sorted(glob.glob(name))  # noqa: PTH207 (may be absolute)
        if not found:
            raise NotFoundError(f"{name}: no file matches")
        return found
    return [name]


def common_root(urls: list[str]) -> tuple[str, list[str]]:
    """The folder that holds all of them, and their names relative to it.

    Raises:
        InvalidArgumentError: shards in different stores or buckets.
    """
    folders = [url.rpartition("/")[0] for url in urls]
    split = [folder.split("/") for folder in folders]
    same = itertools.takewhile(lambda words: len(set(words)) == 1, zip(*split, strict=False))
    shared = [words[0] for words in same]
    root = "/".join(shared)
    scheme = _SCHEME.match(urls[0])
    # At least the bucket or host must be the same: "s3:", "", "bucket".
    if (scheme and len(shared) < 3) or (not root and any(url.startswith("/") for url in urls)):
        if scheme or not all(url.startswith("/") for url in urls):
            raise InvalidArgumentError(f"{urls[0]} and {urls[-1]} do not lie under one folder")
        root = "/"
    names = [url[len(root) :].lstrip("/") if root else url for url in urls]
    return root or ".", names
