"""The command line itself: help, versions, mistakes, exit codes, output conventions."""

import json
import os
import signal
import subprocess
import sys

import headrace as hr
import pytest
from headrace.cli import app, build_parser, main
from headrace.cli.bench import parse_decode, percentile
from headrace.cli.failures import Failure, UsageError
from headrace.cli.options import size
from headrace.cli.output import write_json
from headrace.cli.pack import in_order, parse_columns
from headrace.cli.sources import Row

COMMANDS = [module.NAME for module in app.COMMANDS]


def test_version_and_help_go_to_standard_output(cli):
    assert cli("--version").out == f"headrace {hr.__version__}\n"
    result = cli("--help")
    assert (result.code, result.err) == (0, "")
    for name in COMMANDS:
        assert name in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(cli, name):
    result = cli(name, "--help")
    assert (result.code, result.err) == (0, "")
    assert "examples:" in result.out
    assert f"headrace {name}" in result.out.split("examples:")[1]


def test_no_command_shows_the_help_and_is_wrong_usage(cli):
    result = cli()
    assert (result.code, result.out) == (2, "")
    assert "commands:" in result.err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["pakc"], "there is no command 'pakc'; did you mean pack? (there are: pack, index,"),
        (
            ["pack", "a", "b", "--fromat", "wds"],
            "pack: there is no option --fromat; did you mean --fo",
        ),
        (
            ["pack", "a", "b", "--format", "mdz"],
            "pack: there is no --format 'mdz'; did you mean mds?",
        ),
        (["info"], "info: the following arguments are required: URL"),
        (["info", "a", "--batch-size", "0"], "'0' is not a number of at least 1"),
        (["info", "a", "--batch-size", "x"], "'x' is not a number of at least 1"),
        (["info", "a", "b"], "info: there is no place for the argument 'b'"),
        (["pack", "a", "b", "--size-limit", "-1"], "--size-limit"),
        (["pack", "a", "b", "--size-limit", "64XB"], "'64XB' is not a size such as 64MB"),
        (
            ["pack", "a", "b", "--threads", "0"],
            "'0' is not a number of at least 1 and at most 1024",
        ),
        (["cat", "a", "--raw"], "--raw needs exactly one --field"),
        (["cat", "a", "--raw", "--out", "x", "--field", "x"], "excludes --out and --json"),
        (["bench", "a", "--rank", "2", "--world", "2"], "--rank 2 is not below --world 2"),
        (["bench", "a", "--decode", "x"], "--decode 'x' is not FIELD=CROP:SIZE"),
        (["pack", "a", "b", "--columns", "x"], "--columns 'x' is not NAME=ENCODING"),
    ],
)
def test_mistakes_end_with_2_and_one_line(cli, tmp_path, monkeypatch, words, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    result = cli(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("headrace: error: ") and result.err.count("\n") == 1
    assert what in result.err


def test_options_are_not_abbreviated(cli):
    assert cli("info", "a", "--batch", "3").code == 2


def test_errors_under_json_are_a_document_too(cli):
    result = cli("info", "/nonexistent/place", "--json")
    assert result.code == 1
    assert result.document["error"]["code"] == "not_found"
    assert "/nonexistent/place" in result.document["error"]["message"]
    assert result.err.count("\n") == 1


def test_tracebacks_show_only_when_asked_for(cli, monkeypatch):
    assert "Traceback" not in cli("info", "/nonexistent/place").err
    assert "Traceback" in cli("info", "/nonexistent/place", "--debug").err
    monkeypatch.setenv("HEADRACE_DEBUG", "1")
    assert "Traceback" in cli("info", "/nonexistent/place").err


def test_names_from_the_command_line_cannot_steer_the_terminal(cli):
    result = cli("info", "/nonexistent/\x1b[31m\n")
    assert "\x1b" not in result.err and result.err.count("\n") == 1


def test_a_bug_of_ours_is_called_one(cli, monkeypatch):
    def boom(args, out):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(app.info, "run", boom)
    result = cli("info", "x")
    assert result.code == 1
    assert "ZeroDivisionError: oops (this is a bug; HEADRACE_DEBUG=1 shows where)" in result.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (app.Terminated(signal.SIGTERM), 143),
        (Failure("x"), 1),
        (UsageError("x"), 2),
        (OSError(28, "No space left on device", "/x"), 1),
        (MemoryError(), 1),
    ],
)
def test_every_way_of_ending_has_its_exit_code(monkeypatch, error, code):
    def stop(args, out):
        raise error

    monkeypatch.setattr(app, "_silence_stdout", lambda: None)
    monkeypatch.setattr(app.info, "run", stop)
    assert main(["info", "x"]) == code


def test_a_closed_pipe_is_quiet():
    program = [sys.executable, "-m", "headrace", "completion", "bash"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(program, stdout=write_end, stderr=subprocess.PIPE, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


def test_json_has_no_nan_and_knows_numpy(capsys):
    import numpy as np

    write_json(
        {"a": float("nan"), "b": np.float32(0.5), "c": np.arange(2), "d": "\udc80\x9b\u202e"}
    )
    line = capsys.readouterr().out
    document = {"a": None, "b": 0.5, "c": [0, 1], "d": "\udc80\x9b\u202e"}
    assert json.loads(line) == document
    assert line[:-1].isprintable()


def test_sizes_are_powers_of_1024():
    assert [size(t) for t in ("1", "64MB", "1.5 GiB", "2k", "10b")] == [
        1,
        64 << 20,
        3 << 29,
        2048,
        10,
    ]


def test_columns_may_hold_commas_in_shapes():
    words = ["a=int,b=ndarray:float32:2,3,c=str", "d=json"]
    assert parse_columns(words) == {
        "a": "int",
        "b": "ndarray:float32:2,3",
        "c": "str",
        "d": "json",
    }
    with pytest.raises(UsageError, match="twice"):
        parse_columns(["a=int", "a=str"])


def test_decode_names_crop_and_size():
    assert parse_decode(["x=random-resized:224", "y=center:320x240", "z=none"]) == {
        "x": {"crop": "random-resized", "size": 224},
        "y": {"crop": "center", "size": (240, 320)},
        "z": {"crop": None},
    }


def test_percentiles_are_values_that_occurred():
    values = [float(v) for v in range(1, 101)]
    assert [percentile(values, s) for s in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([], 0.5) == 0


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_rows_come_in_their_own_order_for_any_thread_count(threads):
    import random
    import time

    def maker(i):
        def make():
            time.sleep(random.random() / 1000)
            return Row(str(i), {"i": i})

        return make

    got = [row.values["i"] for row in in_order(iter([maker(i) for i in range(100)]), threads)]
    assert got == list(range(100))


def test_the_parser_can_be_built_twice():
    assert build_parser().format_help() == build_parser().format_help()
