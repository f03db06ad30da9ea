"""Tells what kind of source a name is, and opens it."""

from __future__ import annotations

from pathlib import Path

from headrace.cli.failures import Failure, UsageError
from headrace.cli.sources.base import Settings, Source
from headrace.cli.sources.csv_table import CsvTable
from headrace.cli.sources.dataset import OpenedDataset, TarShards
from headrace.cli.sources.folders import ClassFolders
from headrace.cli.sources.jsonl import JsonLines

# Files that mark a folder as a data set.
INDEX_NAMES = ("index.json", "headrace.index")

KINDS = ("folders", "jsonl", "csv", "tar", "dataset")

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".tar": "tar",
}


def detect_kind(source: str) -> str:
    """One of KINDS for a source named on the command line; Failure tells what was looked at."""
    if source == "-":
        return "jsonl"
    by_name = _kind_of_name(source)
    if "://" in source:
        return by_name or "dataset"
    if by_name and not Path(source).is_dir():
        return by_name
    path = Path(source)
    if path.is_dir():
        return _kind_of_folder(path)
    if path.exists():
        raise UsageError(
            f"cannot tell what {source} is by its name; --from {'|'.join(KINDS)} says it"
        )
    raise Failure(f"{source} does not exist", "not_found")


def open_source(source: str, kind: str, settings: Settings) -> Source:
    """The source of that kind. Reading far ahead starts with rows(), not here."""
    if kind == "folders":
        return ClassFolders(_folder(source), settings)
    if kind == "dataset":
        return OpenedDataset(source, settings)
    if kind == "tar":
        return TarShards(source, settings)
    paths: list[Path | None]
    if source == "-":
        paths = [None]
    elif kind == "jsonl":
        paths = _table_paths(source, (".jsonl", ".ndjson", ".json"))
    else:
        paths = _table_paths(source, (".csv", ".tsv"))
    return JsonLines(paths, settings) if kind == "jsonl" else CsvTable(paths, settings)


def _kind_of_name(name: str) -> str | None:
    stem = name.split("?", 1)[0] if "://" in name else name
    suffixes = [s.lower() for s in Path(stem).suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _kind_of_folder(path: Path) -> str:
    if any((path / name).is_file() for name in INDEX_NAMES):
        return "dataset"
    splits = sorted(
        entry.name for entry in path.iterdir() if any((entry / n).is_file() for n in INDEX_NAMES)
    )
    if splits:
        raise UsageError(f"{path} holds data sets ({', '.join(splits)}); name one of them")
    files = sorted(entry.name for entry in path.iterdir() if entry.is_file())
    kinds = {kind for kind in map(_kind_of_name, files) if kind}
    has_folders = any(entry.is_dir() and not entry.name.startswith(".") for entry in path.iterdir())
    if not has_folders and len(kinds) == 1:
        return kinds.pop()
    if not has_folders and len(kinds) > 1:
        raise UsageError(
            f"{path} holds several kinds of files ({', '.join(sorted(kinds))}); --from names one"
        )
    return "folders"


def _folder(source: str) -> Path:
    path = Path(source)
    if not path.is_dir():
        raise Failure(f"{source} is not a folder of class folders", "not_found")
    return path


def _table_paths(source: str, suffixes: tuple[str, ...]) -> list[Path | None]:
    if "://" in source:
        raise UsageError(
            f"tables are read from local files or standard input (-), not from {source}"
        )
    path = Path(source)
    wanted = suffixes + tuple(s + ".gz" for s in suffixes)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.name.lower().endswith(wanted) and p.is_file())
        if not found:
            raise Failure(f"{source} holds no {', '.join(suffixes)} file", "not_found")
        return list(found)
    if not path.exists():
        raise Failure(f"{source} does not exist", "not_found")
    return [path]
