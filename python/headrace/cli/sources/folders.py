"""Class folders of pictures, numbered as torchvision's ImageFolder numbers them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headrace.cli.failures import BadRow, Failure
from headrace.cli.sources.base import (
    CLASSES_FILE,
    Row,
    RowMaker,
    Settings,
    apply_overrides,
    read_file,
    shuffled,
)
from headrace.cli.sources.pictures import inspect_picture
from headrace.cli.text import count_text, counted

PICTURE_SUFFIXES = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
# File names of skipped files in a note, at most.
_SHOWN = 3


@dataclass(frozen=True)
class _File:
    path: str  # below the source folder, with '/'
    label: int | None
    key: str


class ClassFolders:
    """SOURCE/<class>/**/<picture>: labels are positions in the sorted list of class folders.

    Pictures right in SOURCE, with no class folder beside them, make a data set without labels.
    """

    kind = "folders"
    threaded = True

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self.notes: list[str] = []
        self.classes = _class_names(folder)
        self._skipped: list[str] = []
        self._files = self._scan()
        self._shuffle_seed = settings.shuffle_seed
        self.total: int | None = len(self._files)
        self._position = 0
        wds = settings.target == "wds"
        media = self._media()
        self._image = {"jpeg": "jpg"}.get(media, media) if wds else "image"
        inferred = {self._image: media}
        self._label = "cls" if wds else "label"
        if self.classes:
            inferred[self._label] = "int"
        self._name = "name" if settings.names and not wds else None
        if self._name:
            inferred[self._name] = "str"
        self.columns = apply_overrides(inferred, settings)

    def rows(self) -> Iterator[RowMaker]:
        for i in shuffled(len(self._files), self._shuffle_seed):
            self._position += 1
            yield partial(self._make, self._files[i])

    def position(self) -> int:
        return self._position

    def side_files(self) -> dict[str, bytes]:
        if not self.classes:
            return {}
        return {CLASSES_FILE: json.dumps({"classes": self.classes}, indent=1).encode() + b"\n"}

    def close(self) -> None:
        pass

    def _scan(self) -> list[_File]:
        names = self.classes if self.classes else [""]
        files: list[_File] = []
        keys: set[str] = set()
        empty = []
        for label, name in enumerate(names):
            before = len(files)
            for path in self._pictures_below(name):
                key = _free_key(path, keys)
                keys.add(key)
                files.append(_File(path, label if self.classes else None, key))
            if len(files) == before and name:
                empty.append(name)
        if not files:
            raise Failure(
                f"{self._folder} holds no .jpg, .jpeg or .png file, neither in class folders nor "
                "directly; --from names another kind of source",
                "not_found",
            )
        if empty:
            shown = ", ".join(empty[:_SHOWN]) + (", ..." if len(empty) > _SHOWN else "")
            self.notes.append(
                f"{counted(len(empty), 'class')} without pictures keep their label: {shown}"
            )
        if self.classes:
            self._skipped += [e.name for e in _entries(self._folder) if e.is_file()]
        if self._skipped:
            shown = ", ".join(self._skipped[:_SHOWN]) + (
                ", ..." if len(self._skipped) > _SHOWN else ""
            )
            self.notes.append(
                f"{counted(len(self._skipped), 'file')} left out, not pictures: {shown}"
            )
        return files

    def _pictures_below(self, name: str) -> Iterator[str]:
        """Paths of pictures in the class folder and below, in sorted order."""
        found: list[str] = []
        top = self._folder / name
        for folder, folders, files in os.walk(top, followlinks=bool(name), onerror=_raise):
            if not name:
                folders.clear()
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            below = os.path.relpath(folder, self._folder)
            for file in files:
                path = file if below == "." else f"{below}/{file}"
                if _suffix(file) in PICTURE_SUFFIXES and not file.startswith("."):
                    found.append(path)
                else:
                    self._skipped.append(path)
        return iter(sorted(found))

    def _media(self) -> str:
        """The encoding of the picture column: one kind of picture, or bytes for a mixture."""
        kinds = {PICTURE_SUFFIXES[_suffix(f.path)] for f in self._files}
        if len(kinds) == 1:
            return kinds.pop()
        self.notes.append("JPEG and PNG files are mixed: the picture column is bytes")
        return "bytes"

    def _make(self, file: _File) -> Row:
        path = self._folder / file.path
        where = str(path)
        data = read_file(path, where)
        values: dict[str, object] = {}
        for name, encoding in self.columns.items():
            if name == self._image:
                _check_picture(data, encoding, where, name)
                values[name] = data
            elif name == self._label:
                values[name] = file.label
            else:
                values[name] = _utf8(file.path, where)
        return Row(where, values, key=_utf8(file.key, where))


def _class_names(folder: Path) -> list[str]:
    return sorted(e.name for e in _entries(folder) if e.is_dir() and not e.name.startswith("."))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda e: e.name)
    except OSError as error:
        raise Failure(f"cannot read {folder}: {error.strerror}", "not_found") from error


def _raise(error: OSError) -> None:
    raise Failure(f"cannot read {error.filename}: {error.strerror}", "denied") from error


def _suffix(name: str) -> str:
    return name[name.rfind(".") :].lower()


def _free_key(path: str, taken: set[str]) -> str:
    """The name of a tar sample: the path without its suffix.

    WebDataset ends a key at the first dot of the file name, so other dots become '_'. Files that
    differ in their suffix alone would become one sample, so the later one gets a number.
    """
    folder, _, file = path.rpartition("/")
    stem = file.rpartition(".")[0].replace(".", "_")
    key = f"{folder}/{stem}" if folder else stem
    number, free = 1, key
    while free in taken:
        number += 1
        free = f"{key}-{number}"
    return free


def _check_picture(data: bytes, encoding: str, where: str, column: str) -> None:
    picture = inspect_picture(data)
    if picture is None:
        raise BadRow(
            where, f"{count_text(len(data))} bytes that do not start like a JPEG or PNG file"
        )
    if encoding in ("jpeg", "png") and picture.kind != encoding:
        raise BadRow(
            where,
            f"holds {picture.kind.upper()} data; --columns {column}=bytes takes both kinds, "
            "--skip-bad leaves the file out",
        )


def _utf8(name: str, where: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise BadRow(where, "the file's name is not UTF-8") from error
    return name
