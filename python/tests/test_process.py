"""Ends of loaders and processes: none may hang. Each runs in a process with a time limit."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SECONDS = 60

HEAD = """
import gc, os, signal, sys, threading, time
import headrace as hr
import numpy as np
folder = sys.argv[1]
def make(**options):
    return hr.Loader(hr.open(folder), 10, order=hr.Order(lanes=2, chunk=4, window=64),
                     output="numpy", threads=2, memory="64MiB", **options)
def slow(sample, rng):
    time.sleep(0.02)
    return {"id": sample["id"]}
"""


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", HEAD + program, str(folder)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def ended_well(result: subprocess.CompletedProcess[str], out: str = "done") -> None:
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, out, "")


@pytest.mark.parametrize("options", ["", "transform=slow"])
def test_the_interpreter_ends_while_a_loader_reads(mixed: Path, options: str) -> None:
    ended_well(
        run(
            mixed,
            f"""
loader = make({options})
batch = next(iter(loader))
print("done")
""",
        )
    )


def test_the_interpreter_ends_with_a_loader_in_a_cycle_and_batches_kept(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
class Owner: pass
owner = Owner(); owner.self = owner; owner.loader = make(); owner.pass_ = iter(owner.loader)
sys.modules["kept"] = [next(owner.pass_), owner]
print("done")
""",
        )
    )


@pytest.mark.torch
def test_torch_tensors_may_outlive_the_interpreter(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
import torch
loader = hr.Loader(hr.open(folder), 10, output="torch", memory="64MiB")
torch.kept_by_a_module = next(iter(loader))
print("done")
""",
        )
    )


def test_a_running_loader_is_collected(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
for options in ({}, {"transform": slow}):
    for _ in range(5):
        loader = make(**options); loader.myself = loader
        next(iter(loader)); del loader; gc.collect()
print("done")
""",
        )
    )


def test_an_exception_in_the_loop_body_ends_the_program(mixed: Path) -> None:
    result = run(
        mixed,
        """
for batch in make(transform=slow):
    raise RuntimeError("in the loop body")
""",
    )
    assert result.returncode == 1
    assert "in the loop body" in result.stderr


def test_a_loader_is_closed_from_another_thread_while_one_waits(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
def stuck(sample, rng):
    time.sleep(0.5)
    return {"id": 0}
loader = make(transform=stuck)
threading.Timer(0.3, loader.close).start()
try:
    for _ in loader: pass
except hr.errors.CancelledError:
    print("done")
""",
        )
    )


def test_ctrl_c_ends_a_wait(mixed: Path) -> None:
    program = """
def stuck(sample, rng):
    time.sleep(1)
    return {"id": 0}
signal.signal(signal.SIGINT, signal.default_int_handler)
loader = make(transform=stuck)
print("ready", flush=True)
try:
    next(iter(loader))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + program, str(mixed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "interrupted\n", "")


def test_a_forked_child_is_told_and_may_make_its_own_loader(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
loader = make()
passing = iter(loader)
kept = next(passing)
child = os.fork()
if child == 0:
    try:
        next(passing)
        os._exit(3)
    except ValueError as error:
        if "forked" not in str(error): os._exit(4)
    del kept, passing, loader  # memory of the parent's loader: left alone
    gc.collect()
    mine = make()
    os._exit(0 if sum(len(b["id"]) for b in mine) == 100 else 5)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert sum(len(b["id"]) for b in passing) == 90
print("done")
""",
        )
    )


def test_a_loader_not_yet_used_works_in_a_forked_child(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
loader = make()
child = os.fork()
if child == 0:
    sys.exit(0 if sum(len(b["id"]) for b in loader) == 100 else 5)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
print("done")
""",
        )
    )


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_loader_travels_to_another_process(mixed: Path, method: str, tmp_path: Path) -> None:
    script = tmp_path / "travel.py"
    script.write_text(
        f"""
import sys, multiprocessing
import headrace as hr
def count(loader):
    return sum(len(b["id"]) for b in loader)
if __name__ == "__main__":
    loader = hr.Loader(hr.open(sys.argv[1]), 10, output="numpy", memory="64MiB", threads=1)
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        print(pool.apply(count, (loader,)), count(loader))
"""
    )
    result = subprocess.run(
        [sys.executable, str(script), str(mixed)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (result.returncode, result.stdout.strip()) == (0, "100 100"), result.stderr


@pytest.mark.torch
def test_a_worker_of_a_torch_loader_is_refused(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
import torch
class Wrapped(torch.utils.data.IterableDataset):
    def __iter__(self): return iter(loader)
loader = make()
try:
    list(torch.utils.data.DataLoader(Wrapped(), batch_size=None, num_workers=1))
except NotImplementedError as error:
    print("done" if "num_workers=0" in str(error) else error)
""",
        )
    )


def test_events_reach_python_logging(mixed: Path, tmp_path: Path) -> None:
    ended_well(
        run(
            mixed,
            """
import logging
seen = []
class Keep(logging.Handler):
    def emit(self, record): seen.append((record.levelno, record.event))
logging.getLogger("headrace").addHandler(Keep())
logging.getLogger("headrace").setLevel(logging.DEBUG)
def fail(sample, rng):
    if sample["id"] == 45: raise KeyError("x")
    return {"id": 0}
with make(transform=fail, bad_samples="skip") as loader:
    for _ in loader: pass
assert (logging.WARNING, "loader.bad_sample") in seen, seen
print("done")
""",
        )
    )


def test_many_loaders_leave_no_threads_behind(mixed: Path) -> None:
    ended_well(
        run(
            mixed,
            """
def threads(): return len(os.listdir("/proc/self/task"))
with make() as loader: next(iter(loader))
del loader
gc.collect()
before = threads()
for _ in range(10):
    with make() as loader: next(iter(loader))
    del loader
gc.collect()
assert threads() <= before, (before, threads())
print("done")
""",
        )
    )
