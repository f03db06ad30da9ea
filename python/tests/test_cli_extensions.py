"""How columns are named and encoded as files of tar samples."""

import pytest
from headrace.cli.failures import UsageError
from headrace.cli.sources.dataset import encoding_of
from headrace.cli.sources.extensions import holds_numbers, tar_columns

NONE: frozenset[str] = frozenset()


def test_names_that_say_nothing_get_an_extension_that_does():
    columns = {"image": "jpeg", "label": "uint8", "Caption": "str", "meta": "json", "x": "float32"}
    assert tar_columns(columns, NONE) == {
        "image": ("image.jpg", "jpeg"),
        "label": ("label.cls", "int"),
        "Caption": ("caption.txt", "str"),
        "meta": ("meta.json", "json"),
        "x": ("x.json", "json"),
    }


def test_names_that_tell_their_type_stay():
    columns = {"jpg": "jpeg", "cls": "int", "seg.png": "png", "bin": "bytes", "id": "str"}
    assert tar_columns(columns, NONE) == {name: (name, kind) for name, kind in columns.items()}


def test_the_name_of_a_sample_is_no_file():
    assert tar_columns({"__key__": "str", "jpg": "jpeg"}, NONE) == {"jpg": ("jpg", "jpeg")}


def test_what_tar_cannot_hold_is_explained():
    with pytest.raises(UsageError, match=r"tar shards cannot hold: --columns v=json"):
        tar_columns({"v": "ndarray:float32"}, NONE)
    with pytest.raises(UsageError, match=r"two columns would be \.a\.txt files"):
        tar_columns({"a": "str", "A": "str"}, NONE)


def test_chosen_encodings_are_kept_for_the_writer_to_judge():
    assert tar_columns({"x": "float64"}, frozenset({"x"})) == {"x": ("x", "float64")}


def test_class_numbers_are_known_by_their_extension():
    assert holds_numbers("cls") and holds_numbers("label.cls")
    assert not holds_numbers("txt") and not holds_numbers("class.txt")


@pytest.mark.parametrize(
    ("field", "encoding"),
    [
        ("int64", "int64"),
        ("str?", "str"),
        ("uint16[2048]", "ndarray:uint16:2048"),
        ("float32[2,3]", "ndarray:float32:2,3"),
        ("float32[?]", "ndarray:float32"),
        ("any[?]", "ndarray"),
        ("float32[?]?", "ndarray:float32"),
        ("jpeg", "jpeg"),
    ],
)
def test_types_of_fields_become_encodings(field, encoding):
    assert encoding_of("x", field) == encoding


def test_lists_cannot_be_packed_yet():
    with pytest.raises(UsageError, match="--drop x leaves it out"):
        encoding_of("x", "list[jpeg]")
