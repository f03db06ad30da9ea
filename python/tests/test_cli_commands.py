"""Every command on real data in both formats."""

import hashlib
import io
import json
import os
import pty
import subprocess
import sys
import tarfile

import headrace as hr
import numpy as np
import pytest


def digests(folder):
    """Name -> SHA-256 of every file below a folder."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


@pytest.fixture
def photos(tmp_path, pictures):
    return pictures.folders(tmp_path / "photos", {"cat": 30, "dog": 20})


@pytest.fixture
def packed(cli, photos, tmp_path):
    """Five or so MDS shards of photos."""
    out = tmp_path / "packed"
    assert cli("pack", photos, out, "--size-limit", "4kB").code == 0
    return out


# --- pack ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["mds", "wds"])
def test_pack_gives_the_same_bytes_for_any_thread_count(cli, photos, tmp_path, format):
    outs = []
    for threads in (1, 2, 7):
        out = tmp_path / f"out{threads}"
        words = ["--format", format, "--size-limit", "8kB", "--threads", str(threads)]
        result = cli("pack", photos, out, *words)
        assert result.code == 0, result.err
        outs.append(digests(out))
    assert outs[0] == outs[1] == outs[2]
    assert len(outs[0]) > 3


def test_packed_photos_are_the_photos(cli, photos, tmp_path):
    out = tmp_path / "out"
    result = cli("pack", photos, out, "--json")
    assert result.code == 0, result.err
    document = result.document
    assert document["samples"] == 50 and document["skipped"] == 0
    assert document["schema"] == "headrace-pack-1"
    with hr.open(out) as dataset:
        assert dataset.fields == {"image": "jpeg", "label": "int64", "name": "str"}
        for sample in dataset:
            assert sample["image"] == (photos / sample["name"]).read_bytes()
            assert sample["label"] == (0 if sample["name"].startswith("cat/") else 1)
    assert json.loads((out / "classes.json").read_text())["classes"] == ["cat", "dog"]


def test_pack_shuffles_by_seed(cli, photos, tmp_path):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert cli("pack", photos, tmp_path / name, "--shuffle-seed", seed).code == 0
    a, b, c = (digests(tmp_path / name) for name in "abc")
    assert a == b != c
    with hr.open(tmp_path / "a") as dataset:
        labels = [sample["label"] for sample in dataset]
    assert sum(labels) == 20 and labels != sorted(labels)


def test_pack_reads_jsonl_and_csv_with_every_kind_of_value(cli, tmp_path, pictures):
    (tmp_path / "p.jpg").write_bytes(pictures.jpeg())
    rows = [
        {"i": 1, "f": 0.5, "s": "x\u00e9", "j": {"a": [1]}, "v": [1, 2], "p": "p.jpg"},
        {"i": 2, "f": 2, "s": "", "j": None, "v": [3, 4], "p": "p.jpg"},
    ]
    source = tmp_path / "t.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = "v=ndarray:float32:2,p=jpeg,i=uint16"
    result = cli("pack", source, tmp_path / "out", "--columns", columns, "--quiet")
    assert (result.code, result.err) == (0, "")
    with hr.open(tmp_path / "out") as dataset:
        assert dataset.fields == {
            "i": "uint16",
            "f": "float64",
            "s": "str",
            "j": "json",
            "v": "float32[2]",
            "p": "jpeg",
        }
        second = dataset[1]
        np.testing.assert_array_equal(second["v"], np.array([3, 4], np.float32))
        assert (second["i"], second["f"], second["j"]) == (2, 2.0, None)
        assert dataset[0]["p"] == pictures.jpeg() and dataset[0]["j"] == {"a": [1]}
    table = tmp_path / "t.csv"
    table.write_text('id,zip,x\n1,02134,1.5\n2,"a\nb",2\n')
    assert cli("pack", table, tmp_path / "csv").code == 0
    with hr.open(tmp_path / "csv") as dataset:
        assert [dict(sample) for sample in dataset] == [
            {"id": 1, "zip": "02134", "x": 1.5},
            {"id": 2, "zip": "a\nb", "x": 2.0},
        ]


def test_pack_reads_standard_input(headrace, tmp_path):
    result = headrace("pack", "-", "out", input='{"a": 1}\n{"a": 2}\n')
    assert result.code == 0, result.err
    assert result.out.startswith("packed 2 samples")
    assert result.err == ""
    with hr.open(tmp_path / "out") as dataset:
        assert [sample["a"] for sample in dataset] == [1, 2]


def test_pack_reads_tar_shards_that_somebody_else_made(cli, tmp_path, pictures):
    folder = tmp_path / "tars"
    folder.mkdir()
    for shard in range(2):
        with tarfile.open(folder / f"train-{shard:03d}.tar", "w") as tar:
            for i in range(3):
                number = shard * 3 + i
                for suffix, data in (("jpg", pictures.jpeg(number)), ("cls", b"%d" % number)):
                    info = tarfile.TarInfo(f"dir/{number:05d}.{suffix}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    before = digests(folder)
    result = cli("pack", folder / "train-{000..001}.tar", tmp_path / "out")
    assert result.code == 0, result.err
    assert digests(folder) == before
    with hr.open(tmp_path / "out") as dataset:
        assert dataset.format == "mds"
        assert [sample["jpg"] for sample in dataset] == [pictures.jpeg(i) for i in range(6)]
        assert [sample["cls"] for sample in dataset] == list(range(6))
        assert [sample["__key__"] for sample in dataset] == [f"dir/{i:05d}" for i in range(6)]


def test_pack_turns_one_format_into_the_other_and_back(cli, photos, packed, tmp_path):
    assert cli("pack", packed, tmp_path / "wds", "--format", "wds").code == 0
    assert cli("pack", tmp_path / "wds", tmp_path / "back").code == 0
    with hr.open(packed) as first, hr.open(tmp_path / "back") as last:
        assert len(first) == len(last) == 50
        for one, two in zip(first, last, strict=True):
            assert one["image"] == two["image.jpg"]
            assert one["label"] == two["label.cls"]
            assert one["name"] == two["name.txt"]


def test_pack_shuffles_what_is_packed_already(cli, packed, tmp_path):
    assert cli("pack", packed, tmp_path / "mixed", "--shuffle-seed", "5").code == 0
    with hr.open(packed) as first, hr.open(tmp_path / "mixed") as last:
        before, after = ([sample["name"] for sample in each] for each in (first, last))
    assert before != after and sorted(before) == sorted(after)
    classes = [(tmp_path / name / "classes.json").read_text() for name in ("packed", "mixed")]
    assert classes[0] == classes[1]


def test_pack_of_a_folder_of_data_sets_asks_for_one(cli, packed, tmp_path):
    result = cli("pack", tmp_path, tmp_path.with_suffix(".out"))
    assert result.code == 2 and "holds data sets (packed); name one of them" in result.err


def test_pack_replaces_only_when_asked_to(cli, photos, tmp_path):
    out = tmp_path / "out"
    assert cli("pack", photos, out).code == 0
    before = digests(out)
    again = cli("pack", photos, out, "--no-names")
    assert again.code == 1 and str(out) in again.err and "overwrite" in again.err
    assert digests(out) == before
    assert cli("pack", photos, out, "--no-names", "--overwrite").code == 0
    assert digests(out) != before


@pytest.mark.parametrize("out", ["photos", ".", "photos/cat/out"])
def test_pack_never_swallows_its_source(cli, photos, tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    before = digests(photos)
    result = cli("pack", "photos", out, "--overwrite")
    assert result.code == 2 and "choose" in result.err
    assert digests(photos) == before


def test_pack_leaves_bad_rows_out_only_when_asked_to(cli, tmp_path):
    source = tmp_path / "t.jsonl"
    source.write_text('{"a": 1}\n' * 1000 + "oops\n" + '{"a": "x"}\n' + '{"a": 2}\n')
    result = cli("pack", source, tmp_path / "out")
    assert result.code == 1 and "t.jsonl:1001: not JSON" in result.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.jsonl"]
    result = cli("pack", source, tmp_path / "out", "--skip-bad", "--json")
    assert result.code == 0 and result.document["skipped"] == 2
    assert result.document["samples"] == 1001
    assert "t.jsonl:1002" in result.err


def test_pack_writes_into_a_bucket(cli, photos, s3_server, monkeypatch):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    url = s3_server.url("cli/written")
    result = cli("pack", photos, url, "--size-limit", "8kB")
    assert result.code == 0, result.err
    assert "classes.json is written into folders only" in result.err
    assert cli("verify", url).code == 0
    assert cli("cat", url, "7", "--field", "name").out.endswith("name  cat/0007.jpg\n")
    again = cli("pack", photos, url)
    assert again.code == 1 and "--overwrite" in again.err


# --- index ---------------------------------------------------------------------------------------


@pytest.fixture
def bare_tars(cli, photos, tmp_path):
    """Tar shards without an index."""
    out = tmp_path / "tars"
    assert cli("pack", photos, out, "--format", "wds", "--size-limit", "30kB").code == 0
    for path in out.iterdir():
        if path.suffix != ".tar":
            path.unlink()
    assert len(list(out.iterdir())) > 1
    return out


def test_index_makes_tar_shards_readable(cli, bare_tars):
    missing = cli("info", bare_tars)
    assert missing.code == 1 and "headrace index" in missing.err
    made = cli("index", bare_tars)
    assert made.code == 0, made.err
    assert "indexed 50 samples" in made.out
    assert cli("info", bare_tars, "--json").document["samples"] == 50
    again = cli("index", bare_tars)
    assert again.code == 1 and "--overwrite replaces it" in again.err
    assert cli("index", bare_tars, "--overwrite").code == 0


def test_index_can_lie_elsewhere(cli, bare_tars, tmp_path):
    before = digests(bare_tars)
    result = cli("index", *sorted(bare_tars.iterdir()), "--out", tmp_path / "my.index", "--json")
    assert result.code == 0, result.err
    assert result.document["samples"] == 50
    assert digests(bare_tars) == before
    info = cli("info", bare_tars, "--index", tmp_path / "my.index", "--json")
    assert info.document["format"] == "wds"


# --- info ----------------------------------------------------------------------------------------


def test_info_tells_what_is_there(cli, packed):
    result = cli("info", packed, "--batch-size", "16", "--json")
    document = result.document
    assert document["samples"] == 50
    assert document["fields"]["image"] == "jpeg"
    assert document["shards"]["count"] > 3
    assert document["shards"]["hashes"] == ["sha256"]
    assert document["deff"] >= 1
    shown = cli("info", packed).out
    for word in ("samples      50", "shard sizes", "#####", "sha256 of every shard", "DEFF"):
        assert word in shown


def test_info_gives_advice(cli, packed, photos, tmp_path):
    assert "shards are small" in cli("info", packed).out
    cli("pack", photos, tmp_path / "plain", "--hashes", "none")
    assert "1 of 1 shard without digest" in cli("info", tmp_path / "plain").out


# --- cat -----------------------------------------------------------------------------------------


def test_cat_shows_samples_to_people(cli, packed, pictures):
    result = cli("cat", packed, "0", "-1")
    assert result.code == 0
    assert "jpeg 16 x 8, " in result.out
    assert "sample 0\n" in result.out and "sample 49\n" in result.out
    assert "name   dog/0019.jpg" in result.out


def test_cat_writes_one_json_document(cli, packed, pictures):
    document = cli("cat", packed, "2:4", "--json").document
    assert [s["sample"] for s in document["samples"]] == [2, 3]
    image = document["samples"][0]["fields"]["image"]
    assert image["sha256"] == hashlib.sha256(pictures.jpeg(2)).hexdigest()
    assert (image["kind"], image["width"], image["height"]) == ("jpeg", 16, 8)


def test_cat_writes_raw_bytes(packed, pictures):
    program = [sys.executable, "-m", "headrace", "cat", packed, "7", "--field", "image", "--raw"]
    done = subprocess.run(program, capture_output=True, check=True)
    assert done.stdout == pictures.jpeg(7)


def test_cat_writes_files_and_none_of_them_over_another(cli, packed, tmp_path, pictures):
    out = tmp_path / "files"
    assert cli("cat", packed, "0:2", "--out", out).code == 0
    assert sorted(p.name for p in out.iterdir()) == [
        f"0000{i}.{name}" for i in range(2) for name in ("image.jpg", "label.txt", "name.txt")
    ]
    assert (out / "00001.image.jpg").read_bytes() == pictures.jpeg(1)
    again = cli("cat", packed, "0", "--out", out)
    assert again.code == 1 and "--overwrite" in again.err
    assert cli("cat", packed, "0", "--out", out, "--overwrite").code == 0


def test_cat_keeps_foreign_names_inside_the_folder(cli, tmp_path):
    source = tmp_path / "t.jsonl"
    source.write_text(json.dumps({"../../x": "a", "/etc/y": "b", "\x1b[31m": "c"}) + "\n")
    assert cli("pack", source, tmp_path / "out").code == 0
    shown = cli("cat", tmp_path / "out").out
    assert "\x1b" not in shown and "\\x1b[31m" in shown
    assert cli("cat", tmp_path / "out", "--out", tmp_path / "a" / "b").code == 0
    assert [p.parent for p in tmp_path.rglob("00000.*")] == [tmp_path / "a" / "b"] * 3


def test_cat_refuses_samples_and_fields_that_are_not_there(cli, packed):
    outside = cli("cat", packed, "50")
    assert outside.code == 2 and "sample 50 is outside the data set, which has 50" in outside.err
    wrong = cli("cat", packed, "--field", "imgae")
    assert wrong.code == 2 and "did you mean image?" in wrong.err


# --- verify, bench -------------------------------------------------------------------------------


def test_verify_says_ok(cli, packed):
    result = cli("verify", packed)
    assert result.code == 0, result.out
    assert "ok, 50 samples in" in result.out and "digests match" in result.out
    assert cli("verify", packed, "--json").document["ok"] is True


@pytest.mark.parametrize("decode", [None, "image=random-resized:32"])
def test_bench_measures(cli, packed, decode):
    words = ["--batch-size", "8", "--seconds", "0.3", "--threads", "2", "--json"]
    words += ["--decode", decode] if decode else []
    result = cli("bench", packed, *words)
    assert result.code == 0, result.err
    document = result.document
    assert document["samples"] >= 6 * (document["batches"] - 1)
    assert document["samples_per_second"] > 0
    assert document["deff"] >= 1
    assert document["wait_seconds"]["p50"] <= document["wait_seconds"]["max"]
    assert document["resident_bytes_max"] > 1 << 20
    shown = cli("bench", packed, "--seconds", "0.1", "--batch-size", "8").out
    assert "samples/s" in shown and "first batch" in shown


def test_bench_plays_one_rank_of_many(cli, packed):
    words = ["--batch-size", "4", "--seconds", "0.1", "--rank", "2", "--world", "3"]
    assert "rank 2 of 3" in cli("bench", packed, *words).out


def test_bench_reads_everything_once_an_epoch(cli, packed):
    words = ["--batch-size", "64", "--seconds", "0.1", "--json"]
    document = cli("bench", packed, *words).document
    assert document["samples"] == 50 * (document["batches"] - 1)


def test_commands_do_not_import_torch_or_pillow(headrace, packed, tmp_path):
    program = "import sys; from headrace.cli import main; code = main(sys.argv[1:]); "
    program += "print([m for m in ('torch', 'PIL', 'rich') if m in sys.modules], file=sys.stderr)"
    for words in (["info", packed], ["cat", packed], ["verify", packed]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
        )
        assert done.stderr.splitlines()[-1] == "[]"


# --- progress ------------------------------------------------------------------------------------


def test_progress_is_drawn_on_a_terminal_and_leaves_standard_output_alone(photos, tmp_path):
    terminal, other_end = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "pack", photos, "out", "--json"],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=other_end,
        check=False,
    )
    os.close(other_end)
    drawn = os.read(terminal, 1 << 20).decode()
    os.close(terminal)
    assert done.returncode == 0, drawn
    assert "packing out" in drawn and "samples" in drawn
    assert json.loads(done.stdout)["samples"] == 50


def test_progress_is_not_drawn_into_files(headrace, photos, tmp_path):
    result = headrace("pack", photos, tmp_path / "out")
    assert (result.code, result.err) == (0, "")
    assert result.out.count("\n") == 3
