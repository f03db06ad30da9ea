"""Completion scripts: accepted by the shells, and right where a shell can be asked."""

import shutil
import subprocess

import pytest
from headrace.cli import build_parser
from headrace.cli.completion import SHELLS, describe


@pytest.fixture
def script(cli, tmp_path):
    def make(shell):
        result = cli("completion", shell)
        assert (result.code, result.err) == (0, "")
        path = tmp_path / f"headrace.{shell}"
        path.write_text(result.out)
        return path

    return make


def complete(script, *words):
    """What bash offers for the last word."""
    program = """
    source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _headrace
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", script, "headrace", *words],
        cwd=script.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def test_every_command_and_option_stands_in_every_script(cli):
    commands = describe(build_parser())
    assert [c.name for c in commands[1:]] == [
        "pack",
        "index",
        "info",
        "cat",
        "verify",
        "bench",
        "completion",
    ]
    for shell in SHELLS:
        text = cli("completion", shell).out
        for command in commands:
            for option in command.options:
                for name in option.names:
                    assert name.lstrip("-") in text, (shell, command.name, name)


def test_bash_accepts_its_script(script):
    done = subprocess.run(["bash", "-n", script("bash")], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_bash_completes_commands_options_and_choices(script):
    path = script("bash")
    assert complete(path, "") == [c.name for c in describe(build_parser())[1:]]
    assert complete(path, "ve") == ["verify"]
    assert complete(path, "--v") == ["--version"]
    assert complete(path, "pack", "--size") == ["--size-limit"]
    assert complete(path, "pack", "--format", "") == ["mds", "wds"]
    assert complete(path, "info", "--addressing", "p") == ["path"]
    assert complete(path, "completion", "") == list(SHELLS)
    assert complete(path, "info", "--endpoint", "") == []
    # A word that is the value of an option is no command.
    assert "--overwrite" in complete(path, "pack", "a", "b", "--")


def test_bash_completes_file_names_with_spaces(script):
    path = script("bash")
    (path.parent / "my data").mkdir()
    (path.parent / "my file.csv").write_text("")
    assert sorted(complete(path, "info", "my")) == ["my data", "my file.csv"]
    assert complete(path, "cat", "x", "--out", "my") == ["my data"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_accepts_its_script(script):
    done = subprocess.run(["zsh", "-n", script("zsh")], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    program = (
        f"autoload -Uz compinit; compinit -u -D; source {script('zsh')}; print $_comps[headrace]"
    )
    done = subprocess.run(["zsh", "-fc", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("_headrace", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_completes_commands_options_and_choices(script):
    def ask(line):
        program = f"source {script('fish')}; complete -C {line!r}"
        done = subprocess.run(["fish", "-c", program], capture_output=True, text=True, check=True)
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    assert ask("headrace ver") == ["verify"]
    assert ask("headrace pack --form") == ["--format"]
    assert ask("headrace pack --format ") == ["mds", "wds"]
    assert ask("headrace completion ") == sorted(SHELLS)


def test_an_unknown_shell_is_refused(cli):
    result = cli("completion", "tcsh")
    assert result.code == 2
    assert "there is no SHELL 'tcsh' (there are: bash, zsh, fish)" in result.err
