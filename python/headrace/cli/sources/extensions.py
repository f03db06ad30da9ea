"""Columns as files of a tar sample: WebDataset tells a field's type by its file extension."""

from __future__ import annotations

from headrace.cli.failures import UsageError

# Extension -> encodings that it is read back as; other extensions are opaque bytes.
_READ_AS = {
    **dict.fromkeys(("jpg", "jpeg"), frozenset({"jpeg"})),
    "png": frozenset({"png"}),
    **dict.fromkeys(("json", "jsn"), frozenset({"json"})),
    **dict.fromkeys(("txt", "text", "transcript"), frozenset({"str"})),
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id"), frozenset({"str", "int"})),
}
_SUFFIX = {"jpeg": "jpg", "png": "png", "json": "json", "str": "txt", "int": "cls"}
# The field of a tar sample that holds its name.
KEY_FIELD = "__key__"


def tar_columns(columns: dict[str, str], chosen: frozenset[str]) -> dict[str, tuple[str, str]]:
    """Column -> (extension, encoding) for tar shards.

    A name that says nothing about its type gets an extension that does: "image" of JPEGs becomes
    "image.jpg", "label" of integers "label.cls". Integers of any size become int, other numbers
    JSON, except in the `chosen` columns, whose encodings the user gave.
    """
    out: dict[str, tuple[str, str]] = {}
    for name, given in columns.items():
        if name == KEY_FIELD:
            continue
        encoding = given if name in chosen else _tar_encoding(name, given)
        extension = name.lower()
        known = _READ_AS.get(extension.rpartition(".")[2])
        if encoding in _SUFFIX and (known is None or encoding not in known):
            extension = f"{extension}.{_SUFFIX[encoding]}"
        if any(extension == other for other, _ in out.values()):
            raise UsageError(
                f"two columns would be .{extension} files; --drop {name} leaves one out"
            )
        out[name] = (extension, encoding)
    return out


def _tar_encoding(name: str, encoding: str) -> str:
    if encoding.startswith(("int", "uint")):
        return "int"
    if encoding.startswith("float"):
        return "json"
    if encoding.startswith("ndarray"):
        raise UsageError(
            f"column '{name}' is {encoding}, which tar shards cannot hold: --columns {name}=json "
            f"writes lists, --drop {name} leaves it out"
        )
    return encoding


def holds_numbers(name: str) -> bool:
    """Whether WebDataset users expect an integer in a file with this extension."""
    return "int" in _READ_AS.get(name.rpartition(".")[2], frozenset())
