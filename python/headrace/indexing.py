"""Work on whole data sets: making the index that tar shards lack, and checking every byte."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace import _core, _host, _log
from headrace._patterns import common_root, find_shards
from headrace._source import Source, StoreKeywords, store_arguments, url_text
from headrace.errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["IndexSummary", "Problem", "build_index", "verify"]

_INDEX_NAME = "headrace.index"
_TIMEOUT = 60.0

# Called with (bytes done, bytes in all).
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class IndexSummary:
    """What ``build_index`` made.

    Attributes:
        path: where the index lies; ``str()`` of the summary gives it too.
        root: the folder of the shards, to be opened with ``index=path``.
        shards: how many were read.
        samples: in all shards.
        stored_bytes: of all shards.
    """

    path: str
    root: str
    shards: int
    samples: int
    stored_bytes: int

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a data set.

    Attributes:
        shard: path or URL of the file.
        sample: number within the shard, where the problem is in one.
        offset: byte of the file at which that sample begins.
        what: what is wrong.
    """

    shard: str
    sample: int | None
    offset: int | None
    what: str


def _threads(threads: int | None) -> int:
    if threads is not None and threads < 1:
        raise InvalidArgumentError(f"threads={threads} must be at least 1")
    return threads or _host.default_threads()


def build_index(
    shards: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    **store: Unpack[StoreKeywords],
) -> IndexSummary:
    """Reads WebDataset tar shards once and writes ``headrace.index``, which opens them.

    Args:
        shards: URLs or paths; each may be a brace pattern such as
            "s3://bucket/train-{000000..000999}.tar", a local folder or a local glob. All lie below
            one folder, which is what ``headrace.open`` takes afterwards.
        out: path or URL of the index; default: ``headrace.index`` in the folder of the shards. Give
            it to ``headrace.open(index=...)`` when it lies elsewhere.
        progress: called with (bytes read, bytes in all) from time to time; the total is an estimate
            until every shard was begun.
        overwrite: replace an index that is there.
        threads: default: the processors this process may use.
        store: endpoint, region, profile and so on, as ``headrace.open``.

    Raises:
        NotFoundError: a shard that is not there.
        CorruptDataError: a shard that is no tar file; the message says where.
        InvalidArgumentError: an index is there already.
    """
    arguments = store_arguments("build_index", store)
    root, names = common_root(find_shards(shards))
    if out is None:
        place_root, place_name = root, _INDEX_NAME
    else:
        head, slash, place_name = url_text(out, "out").rpartition("/")
        place_root = head or (slash or ".")
    try:
        made = _core.index_shards(
            root,
            names,
            place_root,
            place_name,
            overwrite,
            arguments.core(),
            _threads(threads),
            progress,
        )
    finally:
        _log.drain()
    path = place_name if place_root == "." else f"{place_root.rstrip('/')}/{place_name}"
    return IndexSummary(path, root, *made)


def verify(
    url: str | os.PathLike[str],
    *,
    split: str | None = None,
    index: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    problems_max: int = 100,
    threads: int | None = None,
    **store: Unpack[StoreKeywords],
) -> list[Problem]:
    """Reads a whole data set and holds it against its index; an empty list means all is well.

    Checked are sizes, every digest the index brings along, and that every sample can be found and
    holds its fields; pictures are not decoded.

    Args:
        url, split, index: as ``headrace.open``.
        progress: called with (bytes read, bytes in all) from time to time.
        problems_max: kept for each shard; the last entry says how many more there are.
        threads: default: the processors this process may use.
        store: endpoint, region, profile and so on, as ``headrace.open``.

    Raises:
        NotFoundError: no data set there.
    """
    if problems_max < 1:
        raise InvalidArgumentError(f"problems_max={problems_max} must be at least 1")
    arguments = store_arguments("verify", store)
    place = None if index is None else url_text(index, "index")
    source = Source(url_text(url, "url"), split, place, arguments, threads)
    try:
        found, left_out = _core.verify(
            source.core(), _threads(threads), arguments.timeout or _TIMEOUT, problems_max, progress
        )
    finally:
        source.close()
        _log.drain()
    problems = [Problem(*entry) for entry in found]
    if left_out:
        what = f"{left_out} more problems; problems_max={problems_max} are listed for each shard"
        problems.append(Problem(problems[-1].shard, None, None, what))
    return problems
