"""JSONL and CSV as sources of `headrace pack`: inference, places in errors, shuffling."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from headrace.cli.failures import BadRow, Failure, UsageError
from headrace.cli.sources import base
from headrace.cli.sources.base import Settings, encode_value
from headrace.cli.sources.detect import detect_kind, open_source


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def opened(path, **settings):
    kind = detect_kind(str(path))
    return open_source(str(path), kind, Settings(**settings))


def rows(source):
    return [make() for make in source.rows()]


def values(path, **settings):
    return [row.values for row in rows(opened(path, **settings))]


# --- JSONL ---------------------------------------------------------------------------------------


def test_jsonl_columns_are_inferred_from_all_first_rows(tmp_path):
    path = write(
        tmp_path / "a.jsonl",
        '{"i": 1, "f": 1, "s": "x", "j": [1], "b": true, "big": 9223372036854775808}\n'
        '{"i": -2, "f": 0.5, "s": "", "j": "t", "b": false, "big": 1}\n',
    )
    source = opened(path)
    assert source.columns == {
        "i": "int",
        "f": "float64",
        "s": "str",
        "j": "json",
        "b": "json",
        "big": "json",
    }
    first = rows(source)[0].values
    assert first == {"i": 1, "f": 1.0, "s": "x", "j": [1], "b": True, "big": 2**63}
    assert isinstance(first["f"], float)


def test_jsonl_missing_keys_become_null_and_are_told(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"a": 1}\n{"a": 2, "b": 3}\n')
    source = opened(path)
    assert source.columns == {"a": "int", "b": "json"}
    assert "column 'b' is missing in some rows" in source.notes[0]
    assert [row.values["b"] for row in rows(source)] == [None, 3]


def test_jsonl_overrides_convert_without_losing_anything(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"id": 7, "v": [1, 2], "n": "12"}\n')
    overrides = {"id": "str", "v": "ndarray:float32", "n": "uint8"}
    row = values(path, overrides=overrides)[0]
    assert row["id"] == "7" and row["n"] == 12
    np.testing.assert_array_equal(row["v"], np.array([1, 2], np.float32))
    assert row["v"].dtype == np.float32


def test_jsonl_errors_name_file_and_line(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"a": 1}\n\n{"a": 2\n')
    with pytest.raises(BadRow, match=r"a\.jsonl:3: not JSON: .* at column"):
        values(path)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"[1]", "a JSON object is expected, this is list"),
        (b'{"a": "\xff"}', "byte 8 of the line is not UTF-8"),
        (b'{"a": "x"}', "column 'a' is 'x', but the column is packed as int"),
        (b'{"a": null}', "column 'a' is null and not a whole number"),
        (b'{"a": 1.5}', "column 'a' is a number and not a whole number"),
        (b'{"b": 1, "a": 1}', "column 'b' is not in the first 1000 rows"),
        (b"{}", "column 'a' is missing"),
        (b'{"a": ' + b"[" * 200000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not usable"),
        (b'{"a": 9223372036854775808}', "outside -9223372036854775808 .. 9223372036854775807"),
    ],
)
def test_jsonl_rows_below_the_first_thousand_are_held_to_the_columns(tmp_path, line, what):
    path = write(tmp_path / "a.jsonl", b'{"a": 1}\n' * 1000 + line + b"\n" + b'{"a": 3}\n')
    with pytest.raises(BadRow, match=r"a\.jsonl:1001: ") as error:
        values(path)
    assert what in str(error.value)


def test_jsonl_goes_on_after_a_bad_row(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"a": 1}\nnot json\n{"a": "\xff"}\n{"a": 3}\n')
    got = []
    for make in opened(path).rows():
        try:
            got.append(make().values["a"])
        except BadRow as bad:
            got.append(str(bad).rsplit("/", 1)[1].split(": ")[0])
    assert got == [1, "a.jsonl:2", "a.jsonl:3", 3]


def test_jsonl_of_bad_rows_alone_reports_the_first(tmp_path):
    with pytest.raises(BadRow, match=r"a\.jsonl:1: not JSON"):
        opened(write(tmp_path / "a.jsonl", "x\ny\n"))


def test_jsonl_without_rows_is_an_error(tmp_path):
    with pytest.raises(Failure, match="holds no rows"):
        opened(write(tmp_path / "a.jsonl", "\n\n"))


def test_jsonl_reads_gzip_and_names_damage(tmp_path):
    packed = gzip.compress(b'{"a": 1}\n{"a": 2}\n')
    assert values(write(tmp_path / "a.jsonl.gz", packed)) == [{"a": 1}, {"a": 2}]
    with pytest.raises(Failure, match=r"b\.jsonl\.gz:\d: cannot be read"):
        opened(write(tmp_path / "b.jsonl.gz", packed[:-12]))


def test_jsonl_reads_a_folder_in_name_order(tmp_path):
    write(tmp_path / "b.jsonl", '{"a": 2}\n')
    write(tmp_path / "a.jsonl", '\ufeff{"a": 1}')
    source = opened(tmp_path)
    assert source.kind == "jsonl"
    assert [row.values["a"] for row in rows(source)] == [1, 2]
    assert source.position() == source.total


def test_jsonl_columns_can_be_left_out_and_declared(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"a": 1, "b": 2}\n')
    assert values(path, drop=frozenset({"b"})) == [{"a": 1}]
    assert values(path, overrides={"c": "json"}) == [{"a": 1, "b": 2, "c": None}]
    with pytest.raises(BadRow, match="column 'c' is null and not text"):
        values(path, overrides={"c": "str"})
    with pytest.raises(UsageError, match="leaves no column"):
        opened(path, drop=frozenset({"a", "b"}))


# --- files named in tables -----------------------------------------------------------------------


def test_tables_name_files_below_their_folder(tmp_path):
    write(tmp_path / "x.bin", b"\0\1")
    path = write(tmp_path / "a.jsonl", '{"f": "x.bin"}\n')
    assert values(path, overrides={"f": "bytes"}) == [{"f": b"\0\1"}]


@pytest.mark.parametrize("name", ["../x.bin", "/etc/passwd", "link", "missing", ""])
def test_tables_cannot_name_other_files(tmp_path, name):
    folder = tmp_path / "table"
    folder.mkdir()
    write(tmp_path / "x.bin", b"secret")
    (folder / "link").symlink_to(tmp_path / "x.bin")
    path = write(folder / "a.csv", f'f,g\n"{name}",1\n')
    with pytest.raises(BadRow, match=r"a\.csv:2: (file name|cannot read|column 'f' must name)"):
        values(path, overrides={"f": "bytes"})


# --- CSV -----------------------------------------------------------------------------------------


def test_csv_types_are_inferred_without_losing_zeros(tmp_path):
    path = write(
        tmp_path / "a.csv",
        "zip,n,x,t,e,d\r\n02134,1,1.5,yes,,.\r\n10001,-20,-1e-3,no,5,1\r\n",
    )
    source = opened(path)
    assert source.columns == {
        "zip": "str",
        "n": "int",
        "x": "float64",
        "t": "str",
        "e": "str",
        "d": "str",
    }
    assert rows(source)[1].values["x"] == -0.001


def test_csv_understands_quotes_over_lines_and_counts_on(tmp_path):
    path = write(tmp_path / "a.csv", 'a,b\n"x\ny, ""z""",1\nw,oops\n')
    got = rows(opened(path))
    assert got[0].values["a"] == 'x\ny, "z"'
    assert got[1].where.endswith("a.csv:4")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a,b\n1\n", r"a\.csv:2: 1 cells, but the header names 2"),
        ("a,b\n1,2,3\n", r"a\.csv:2: 3 cells"),
        ("a,a\n1,2\n", r"a\.csv:1: the header names 'a' twice"),
        ("a,\n1,2\n", r"a\.csv:1: the header has a column without a name"),
        ('a,b\n"1,2\n', r"a\.csv:2: not CSV"),
        ('a,b\n"1"x,2\n', r"a\.csv:2: not CSV"),
        ("a,b\n", "holds no rows"),
        ("", "is empty"),
    ],
)
def test_csv_errors_name_file_and_line(tmp_path, text, what):
    with pytest.raises(Failure, match=what):
        values(write(tmp_path / "a.csv", text))


def test_csv_values_are_held_to_the_columns(tmp_path):
    path = write(tmp_path / "a.csv", "a\n" + "1\n" * 1000 + "x\n")
    with pytest.raises(
        BadRow, match=r"a\.csv:1002: column 'a' is 'x', but the column is packed as"
    ):
        values(path)


def test_tsv_is_split_at_tabs_and_files_must_agree(tmp_path):
    write(tmp_path / "1.tsv", "a\tb\n1,5\t2\n")
    assert values(tmp_path / "1.tsv") == [{"a": "1,5", "b": 2}]
    write(tmp_path / "2.tsv", "b\ta\n1\t2\n")
    with pytest.raises(BadRow, match=r"2\.tsv:1: header .* differs"):
        values(tmp_path)


# --- order ---------------------------------------------------------------------------------------


def test_shuffling_keeps_every_row_and_depends_on_the_seed_alone(tmp_path):
    lines = "".join(f'{{"a": {i}}}\n' for i in range(500))
    path = write(tmp_path / "a.jsonl", lines)
    one, again, two = ([v["a"] for v in values(path, shuffle_seed=s)] for s in (1, 1, 2))
    assert one == again != two
    assert sorted(one) == sorted(two) == list(range(500))


def test_shuffled_csv_records_are_the_same_records(tmp_path):
    path = write(
        tmp_path / "a.csv",
        "n,t\n" + "".join(f'{i},"a\n{i} \u00e9"\n\n' for i in range(100)),
    )
    in_order = {row.where: row.values for row in rows(opened(path))}
    mixed = {row.where: row.values for row in rows(opened(path, shuffle_seed=3))}
    assert mixed == in_order
    assert list(mixed) != list(in_order)


def test_shuffling_never_changes():
    assert list(base.shuffled(10, None)) == list(range(10))
    assert list(base.shuffled(10, 0)) == SHUFFLED_0
    assert list(base.shuffled(10, 2**64 - 1)) == SHUFFLED_MAX


# What the shuffle gave when it was written: packs made with a seed must come out the same for ever.
SHUFFLED_0 = [2, 4, 6, 8, 5, 1, 7, 0, 9, 3]
SHUFFLED_MAX = [7, 5, 3, 6, 9, 2, 0, 8, 4, 1]


def test_shuffling_a_compressed_table_is_refused(tmp_path):
    path = write(tmp_path / "a.jsonl.gz", gzip.compress(b'{"a": 1}\n'))
    with pytest.raises(UsageError, match="needs plain files"):
        values(path, shuffle_seed=1)


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        (256, "uint8"),
        (-1, "uint64"),
        (1.5, "int"),
        ("x", "int"),
        ("x", "float32"),
        (None, "float64"),
        ({}, "str"),
        ([[1], [2, 3]], "ndarray:int32"),
        ([1.5], "ndarray:int32"),
        ([300], "ndarray:uint8"),
        (["a"], "ndarray"),
    ],
)
def test_values_that_would_lose_something_are_refused(value, encoding):
    with pytest.raises(ValueError, match=r"."):
        encode_value(value, encoding, from_text=False)


def test_whole_floats_are_whole_numbers():
    assert encode_value(3.0, "int", from_text=False) == 3
    assert encode_value(True, "uint8", from_text=False) == 1
