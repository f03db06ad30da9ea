"""What the command line says and leaves behind when data, disks, processes and stores fail."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import headrace as hr
import pytest


@pytest.fixture
def packed(cli, tmp_path, pictures):
    """Several MDS shards of photos, with digests."""
    photos = pictures.folders(tmp_path / "photos", {"a": 20, "b": 10})
    out = tmp_path / "packed"
    assert cli("pack", photos, out, "--size-limit", "4kB").code == 0
    shutil.rmtree(photos)
    return out


def shard(folder, number=1):
    return sorted(folder.glob("shard.*"))[number]


def edit_index(folder, change):
    """Rewrites index.json after `change` has had its way with the second shard's entry."""
    path = folder / "index.json"
    index = json.loads(path.read_text())
    change(index["shards"][1])
    path.write_text(json.dumps(index))


def shards_with_problems(result):
    return {Path(p["shard"]).name for p in result.document["problems"]}


def one_line(result, code=1):
    """The error of a failed command: one line, no traceback, nothing on standard output."""
    assert result.code == code, (result.out, result.err)
    lines = [line for line in result.err.splitlines() if not line.startswith("headrace: note:")]
    assert len(lines) == 1 and lines[0].startswith("headrace: error: "), result.err
    return lines[0]


# --- damaged data --------------------------------------------------------------------------------


def test_a_missing_shard_is_named(cli, packed):
    name = shard(packed).name
    first = json.loads((packed / "index.json").read_text())["shards"][0]["samples"]
    shard(packed).unlink()
    assert name in one_line(cli("cat", packed, str(first)))
    result = cli("verify", packed, "--json")
    assert result.code == 1
    assert shards_with_problems(result) == {name}


def test_a_truncated_shard_is_named(cli, packed):
    path = shard(packed)
    size = path.stat().st_size
    os.truncate(path, size - 100)
    result = cli("verify", packed)
    assert result.code == 1 and path.name in result.out
    first = json.loads((packed / "index.json").read_text())["shards"][0]["samples"]
    second = json.loads((packed / "index.json").read_text())["shards"][1]["samples"]
    assert path.name in one_line(cli("cat", packed, str(first + second - 1)))


def test_a_wrong_hash_is_named(cli, packed):
    path = shard(packed)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    result = cli("verify", packed, "--json")
    assert result.code == 1
    assert any(
        Path(p["shard"]) == path and "sha256" in p["what"] for p in result.document["problems"]
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["raw_data"].update(basename="../packed/shard.00001.mds"),
        lambda s: s["raw_data"].update(basename="/etc/passwd"),
        lambda s: s["raw_data"].update(bytes=-1),
        lambda s: s["raw_data"].update(bytes=10**30),
        lambda s: s["raw_data"].update(bytes=1 << 40),
        lambda s: s.update(samples=2**70),
        lambda s: s.update(samples="7"),
        lambda s: s.update(column_sizes=[]),
        lambda s: s.update(column_encodings=["pkl", "int", "str"]),
        lambda s: s.pop("raw_data"),
    ],
    ids=[
        "dots",
        "absolute",
        "negative",
        "absurd",
        "huge",
        "count",
        "text",
        "columns",
        "pkl",
        "gone",
    ],
)
def test_an_index_that_cannot_be_true_is_refused(cli, packed, change):
    edit_index(packed, change)
    for command in ("info", "cat", "verify"):
        assert "index.json" in one_line(cli(command, packed))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["raw_data"].update(bytes=s["raw_data"]["bytes"] + 1),
        lambda s: s.update(samples=s["samples"] + 1),
        lambda s: s.update(samples=s["samples"] - 1),
    ],
    ids=["longer", "more", "fewer"],
)
def test_an_index_that_lies_about_a_shard_is_found_out(cli, packed, change):
    edit_index(packed, change)
    result = cli("verify", packed, "--json")
    assert result.code == 1
    assert shards_with_problems(result) == {shard(packed).name}


def test_an_index_that_is_no_json_is_refused(cli, packed):
    (packed / "index.json").write_text('{"shards": [')
    assert "index.json" in one_line(cli("info", packed))


def test_pickles_are_refused_by_name(cli, packed, tmp_path):
    index = json.loads((packed / "index.json").read_text())
    for entry in index["shards"]:
        entry["column_encodings"] = ["pkl", "int", "str"]
    (packed / "index.json").write_text(json.dumps(index))
    assert "pkl" in one_line(cli("info", packed))
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    result = cli("pack", tmp_path / "t.jsonl", tmp_path / "out", "--columns", "a=pkl")
    assert "pkl" in one_line(result, code=2)
    assert not (tmp_path / "out").exists()


def test_a_corrupt_jpeg_is_named_while_packing(cli, tmp_path, pictures):
    photos = pictures.folders(tmp_path / "photos", {"a": 5})
    (photos / "a" / "0003.jpg").write_bytes(b"not a picture")
    assert "a/0003.jpg: 13 bytes" in one_line(cli("pack", photos, tmp_path / "out"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["photos"]


def test_a_corrupt_jpeg_is_named_while_loading(cli, tmp_path, pictures):
    broken = bytearray(pictures.jpeg(3))
    start = broken.index(b"\xff\xda") + 14
    del broken[start:]
    with hr.Writer(tmp_path / "out", columns={"image": "jpeg"}) as writer:
        for i in range(16):
            writer.write({"image": bytes(broken) if i == 9 else pictures.jpeg(i)})
    words = ["--batch-size", "4", "--seconds", "0.2", "--decode", "image=center:8"]
    line = one_line(cli("bench", tmp_path / "out", *words))
    assert "sample 9" in line and "shard.00000.mds" in line


# --- killed and interrupted ----------------------------------------------------------------------


def hear_interrupts():
    """Whoever runs the tests in the background has SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def endless_pack(tmp_path):
    """A pack that has read some rows from standard input and waits for more."""
    started = []

    def start(*words):
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "pack", "-", "out", "--size-limit", "4kB", *words],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )
        started.append(process)
        process.stdin.write("".join(f'{{"a": {i}, "t": "{"x" * 500}"}}\n' for i in range(2000)))
        process.stdin.flush()
        until = time.monotonic() + 60
        while not list(tmp_path.glob("out*/shard.00003.mds")) and time.monotonic() < until:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("signum", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_an_interrupted_pack_leaves_nothing(endless_pack, tmp_path, signum, code, word):
    process = endless_pack()
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, "", f"headrace: {word}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_pack_leaves_a_folder_that_the_next_run_removes(endless_pack, cli, tmp_path):
    process = endless_pack()
    process.kill()
    process.communicate(timeout=60)
    assert [p.name for p in tmp_path.iterdir()] == ["out.partial"]
    one_line(cli("info", tmp_path / "out"))
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    assert cli("pack", tmp_path / "t.jsonl", tmp_path / "out").code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "t.jsonl"]
    assert cli("verify", tmp_path / "out").code == 0


def test_a_failed_overwrite_keeps_the_old_data(cli, packed, tmp_path):
    before = sorted((p.name, p.read_bytes()) for p in packed.iterdir())
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n' * 1000 + "oops\n")
    one_line(cli("pack", tmp_path / "t.jsonl", packed, "--overwrite"))
    assert sorted((p.name, p.read_bytes()) for p in packed.iterdir()) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["packed", "t.jsonl"]


# --- full disks ----------------------------------------------------------------------------------


def big_table(path):
    path.write_text("".join(f'{{"a": {i}, "t": "{"x" * 1000}"}}\n' for i in range(3000)))
    return path


def test_a_file_size_limit_ends_the_pack_and_leaves_nothing(tmp_path):
    source = big_table(tmp_path / "t.jsonl")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "pack", source, "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("headrace: error: ") and done.stderr.count("\n") == 1
    assert "out" in done.stderr and "too large" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.jsonl"]


def test_a_full_disk_ends_the_pack_and_leaves_nothing(tmp_path):
    source = big_table(tmp_path / "t.jsonl")
    small = tmp_path / "small"
    small.mkdir()
    inside = (
        'mount -t tmpfs -o size=1m none "$1" && shift && "$@"; code=$?; ls -A small; exit $code'
    )
    program = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    probe = subprocess.run([*program, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {probe.stderr.strip()}")
    pack = [sys.executable, "-m", "headrace", "pack", source, "small/out"]
    done = subprocess.run(
        [*program, "sh", "-c", inside, "sh", small, *pack],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("headrace: error: ") and done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr and "small/out" in done.stderr


# --- stores --------------------------------------------------------------------------------------


def test_an_unreachable_host_is_named_within_its_time(cli):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    begun = time.monotonic()
    for url, extra in (
        (f"http://127.0.0.1:{port}/ds", []),
        ("s3://bucket/ds", ["--endpoint", f"http://127.0.0.1:{port}", "--anonymous"]),
    ):
        line = one_line(cli("info", url, "--timeout", "3", *extra))
        assert f"127.0.0.1:{port}" in line
    assert time.monotonic() - begun < 20


def test_a_missing_bucket_and_wrong_keys_are_told_apart(cli, s3_server, monkeypatch):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    assert "no-such-bucket" in one_line(cli("info", "s3://no-such-bucket/ds"))
    missing = one_line(cli("info", s3_server.url("nothing-here")))
    assert "nothing-here" in missing and "headrace index" in missing
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    denied = cli("info", s3_server.url("nothing-here"), "--json")
    assert denied.document["error"]["code"] == "denied"
    assert "wrong" not in denied.err


def test_data_in_s3_is_read_as_on_disk(cli, packed, s3_server, monkeypatch):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    s3_server.upload(packed, "cli/packed")
    url = s3_server.url("cli/packed")
    assert cli("verify", url).code == 0
    local = cli("cat", packed, "0:5", "--json").document["samples"]
    assert cli("cat", url, "0:5", "--json").document["samples"] == local
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    assert cli("info", url, "--endpoint", s3_server.endpoint).code == 0


def test_a_place_that_is_not_there_is_named(cli, tmp_path):
    line = one_line(cli("info", tmp_path / "nothing"))
    assert str(tmp_path / "nothing") in line
    assert str(tmp_path / "x.jsonl") in one_line(cli("pack", tmp_path / "x.jsonl", tmp_path / "o"))
    assert "xyz://" in cli("info", "xyz://a/b").err


def test_an_interrupted_bench_ends_at_once(packed):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "headrace",
            "bench",
            packed,
            "--batch-size",
            "4",
            "--seconds",
            "600",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )
    until = time.monotonic() + 60
    # The command is past its imports once it reads shards, which it maps.
    maps = Path(f"/proc/{process.pid}/maps")
    while "shard.00000.mds" not in maps.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "headrace: interrupted\n")
