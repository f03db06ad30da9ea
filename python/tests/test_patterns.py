"""Brace patterns, folders and globs."""

from __future__ import annotations

from pathlib import Path

import pytest
from headrace import errors
from headrace._patterns import common_root, expand_braces, find_shards


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.tar", ["a.tar"]),
        ("a-{08..11}.tar", ["a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"]),
        ("a-{9..10}", ["a-9", "a-10"]),
        ("{x,y}/{0..1}", ["x/0", "x/1", "y/0", "y/1"]),
        ("{0..1}{0..1}", ["00", "01", "10", "11"]),
        ("p{,q}", ["p", "pq"]),
    ],
)
def test_braces_count_and_list(pattern: str, names: list[str]) -> None:
    assert expand_braces(pattern) == names


@pytest.mark.parametrize(
    "pattern", ["a{", "x{y{0..1}", "a}", "{3..1}", "{0..99999999}", "{0..9999}{0..9999}"]
)
def test_braces_that_cannot_be_meant_are_refused(pattern: str) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        expand_braces(pattern)


def test_folders_and_globs_are_looked_up_when_local(tmp_path: Path) -> None:
    for name in ("b.tar", "a.tar", "c.txt"):
        (tmp_path / name).touch()
    both = [str(tmp_path / "a.tar"), str(tmp_path / "b.tar")]
    assert find_shards(tmp_path) == both
    assert find_shards(f"{tmp_path}/*.tar") == both
    assert find_shards([f"{tmp_path}/{{b,a}}.tar"]) == both[::-1]
    assert find_shards("s3://b/x-{0..1}.tar") == ["s3://b/x-0.tar", "s3://b/x-1.tar"]
    with pytest.raises(FileNotFoundError):
        find_shards(f"{tmp_path}/*.zip")
    with pytest.raises(ValueError, match="twice"):
        find_shards([tmp_path, f"{tmp_path}/a.tar"])


@pytest.mark.parametrize(
    ("urls", "root", "names"),
    [
        (["/d/a.tar", "/d/b.tar"], "/d", ["a.tar", "b.tar"]),
        (["/d/x/a.tar", "/d/y/a.tar"], "/d", ["x/a.tar", "y/a.tar"]),
        (["/a.tar"], "/", ["a.tar"]),
        (["a.tar", "b.tar"], ".", ["a.tar", "b.tar"]),
        (["d/a.tar"], "d", ["a.tar"]),
        (["s3://b/p/a.tar", "s3://b/a.tar"], "s3://b", ["p/a.tar", "a.tar"]),
    ],
)
def test_shards_have_one_root(urls: list[str], root: str, names: list[str]) -> None:
    assert common_root(urls) == (root, names)


def test_shards_of_two_buckets_are_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="one folder"):
        common_root(["s3://a/x.tar", "s3://b/x.tar"])
