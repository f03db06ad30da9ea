"""Class folders of pictures as a source of `headrace pack`, and what picture headers say."""

import json

import pytest
from headrace.cli.failures import BadRow, Failure, UsageError
from headrace.cli.sources.base import Settings
from headrace.cli.sources.detect import detect_kind, open_source
from headrace.cli.sources.pictures import Picture, inspect_picture, picture_kind


def opened(path, **settings):
    assert detect_kind(str(path)) == "folders"
    return open_source(str(path), "folders", Settings(**settings))


def test_labels_count_the_sorted_class_folders(tmp_path, pictures):
    pictures.folders(tmp_path, {"dog": 1, "cat": 2, "Ape": 1})
    source = opened(tmp_path)
    assert source.columns == {"image": "jpeg", "label": "int", "name": "str"}
    rows = [make() for make in source.rows()]
    assert [(r.values["label"], r.values["name"]) for r in rows] == [
        (0, "Ape/0000.jpg"),
        (1, "cat/0000.jpg"),
        (1, "cat/0001.jpg"),
        (2, "dog/0000.jpg"),
    ]
    assert json.loads(source.side_files()["classes.json"])["classes"] == ["Ape", "cat", "dog"]
    assert source.total == source.position() == 4


def test_pictures_are_found_below_class_folders_whatever_their_case(tmp_path, pictures):
    pictures.folders(tmp_path, {"a": 1})
    (tmp_path / "a" / "deep").mkdir()
    (tmp_path / "a" / "deep" / "X.JPEG").write_bytes(pictures.jpeg())
    assert [m().values["name"] for m in opened(tmp_path).rows()] == ["a/0000.jpg", "a/deep/X.JPEG"]


def test_hidden_and_other_files_are_left_out_and_told(tmp_path, pictures):
    pictures.folders(tmp_path, {"a": 1, ".cache": 1, "empty": 0})
    (tmp_path / "a" / "notes.txt").write_text("x")
    (tmp_path / "a" / ".hidden.jpg").write_bytes(b"x")
    (tmp_path / "README").write_text("x")
    source = opened(tmp_path)
    assert len(list(source.rows())) == 1
    assert source.classes == ["a", "empty"]
    assert any("1 class without pictures" in note and "empty" in note for note in source.notes)
    assert any("3 files left out" in note for note in source.notes)


def test_pictures_without_class_folders_have_no_label(tmp_path, pictures):
    (tmp_path / "b.png").write_bytes(pictures.png())
    (tmp_path / "a.png").write_bytes(pictures.png())
    source = opened(tmp_path)
    assert source.columns == {"image": "png", "name": "str"}
    assert [m().values["name"] for m in source.rows()] == ["a.png", "b.png"]
    assert source.side_files() == {}


def test_mixed_kinds_of_pictures_become_bytes(tmp_path, pictures):
    pictures.folders(tmp_path, {"a": 1})
    (tmp_path / "a" / "x.png").write_bytes(pictures.png())
    source = opened(tmp_path)
    assert source.columns["image"] == "bytes"
    assert any("mixed" in note for note in source.notes)
    assert len([make() for make in source.rows()]) == 2


def test_tar_samples_are_named_so_that_webdataset_keeps_them_apart(tmp_path, pictures):
    pictures.folders(tmp_path, {"a": 1})
    for name in ("0000.JPEG", "v1.2.jpg", "v1_2.jpg"):
        (tmp_path / "a" / name).write_bytes(pictures.jpeg())
    source = opened(tmp_path, target="wds")
    assert source.columns == {"jpg": "jpeg", "cls": "int"}
    keys = [make().key for make in source.rows()]
    assert keys == ["a/0000", "a/0000-2", "a/v1_2", "a/v1_2-2"]


def test_content_decides_and_the_file_is_named(tmp_path, pictures):
    pictures.folders(tmp_path, {"a": 0})
    (tmp_path / "a" / "x.jpg").write_bytes(pictures.png())
    with pytest.raises(BadRow, match=r"a/x\.jpg: holds PNG data; --columns image=bytes"):
        [make() for make in opened(tmp_path).rows()]
    assert len([m() for m in opened(tmp_path, overrides={"image": "bytes"}).rows()]) == 1


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xd8\xff", b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"\0" * 20]
)
def test_damaged_pictures_are_named(tmp_path, data):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_bytes(data)
    with pytest.raises(BadRow, match=r"a/x\.jpg: \d+ bytes that do not start like"):
        [make() for make in opened(tmp_path).rows()]


def test_a_folder_without_pictures_says_what_was_looked_for(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(Failure, match=r"holds no \.jpg, \.jpeg or \.png file"):
        opened(tmp_path)


def test_columns_can_be_dropped_and_unknown_ones_are_refused(tmp_path, pictures):
    pictures.folders(tmp_path, {"a": 1})
    assert opened(tmp_path, names=False).columns == {"image": "jpeg", "label": "int"}
    assert list(opened(tmp_path, drop=frozenset({"label"})).columns) == ["image", "name"]
    with pytest.raises(UsageError, match=r"no column 'lable'; did you mean label\?"):
        opened(tmp_path, overrides={"lable": "uint8"})


def test_shuffling_pictures_keeps_all_of_them(tmp_path, pictures):
    pictures.folders(tmp_path, {"a": 20, "b": 20})
    names = [
        [m().values["name"] for m in opened(tmp_path, shuffle_seed=s).rows()] for s in (1, 1, 2)
    ]
    assert names[0] == names[1] != names[2]
    assert sorted(names[0]) == sorted(names[2])


def test_headers_tell_kind_and_size(pictures):
    assert inspect_picture(pictures.jpeg()) == Picture("jpeg", 16, 8, 3)
    assert inspect_picture(pictures.png(300, 2)) == Picture("png", 300, 2, 3)
    assert picture_kind(b"\xff\xd8\xff\xe0") == "jpeg"
    assert picture_kind(b"RIFF") is None


def test_every_cut_of_a_picture_is_answered(pictures):
    for data in (pictures.jpeg(), pictures.png()):
        whole = inspect_picture(data)
        for end in range(len(data)):
            assert inspect_picture(data[:end]) in (None, whole)
