"""What the parts of the demo share: progress lines, commands with a time limit, whole files."""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

DEMO = Path(__file__).resolve().parent
ROOT = DEMO.parent

# One command takes a minute at most on an idle machine; this is for a very busy one.
COMMAND_SECONDS = 600.0

_PR_SET_PDEATHSIG = 1
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_STARTED = time.monotonic()


class DemoError(Exception):
    """The demo cannot go on; the text says why and what to do."""


def say(text: str) -> None:
    """One line of progress, with the seconds since the start."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", flush=True)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Names a part of the work when it begins, and how long it took when it ends well."""
    say(title)
    start = time.monotonic()
    yield
    say(f"  done in {time.monotonic() - start:.1f} s")


def _in_child() -> None:
    """A child ends when this process does, however that ends, and hears signals as usual."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)


def start_process(
    words: list[str], environment: Mapping[str, str], output: IO[Any] | int, problems: IO[Any] | int
) -> subprocess.Popen[str]:
    """Starts a program that does not outlive this process."""
    # While a process forks, Python runs hooks that would swallow the exception of a signal handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        return subprocess.Popen(
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=problems,
            text=True,
            preexec_fn=_in_child,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)


def run_command(
    words: list[str], environment: Mapping[str, str], *, seconds: float = COMMAND_SECONDS
) -> str:
    """Runs a program to its end and gives what it wrote to standard output."""
    shown = " ".join(Path(words[0]).name if i == 0 else word for i, word in enumerate(words))
    process = start_process(words, environment, subprocess.PIPE, subprocess.PIPE)
    try:
        out, problems = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise DemoError(f"`{shown}` did not end within {seconds:.0f} s") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        tail = "\n".join((out + problems).strip().splitlines()[-15:])
        raise DemoError(f"`{shown}` ended with {process.returncode}:\n{tail}")
    return out


def headrace(environment: Mapping[str, str], *words: str) -> Any:
    """Runs the command line tool of this interpreter; gives the JSON document it prints."""
    say("  $ headrace " + " ".join(words))
    command = [sys.executable, "-m", "headrace", *words, "--json", "--quiet"]
    return json.loads(run_command(command, environment))


def write_whole(path: Path, data: bytes) -> None:
    """Puts a finished file in place in one step, so that a kill leaves the old one or the new."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode())


def quantile(values: list[float], q: float) -> float:
    """The smallest value that at least the share `q` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]
