"""Careless programs: shared objects, exits and signals at bad moments, absurd numbers."""

from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import headrace as hr
import pytest

_SAMPLES = 600
# Nothing here takes seconds; only a hang lasts this long.
_PATIENCE = 120


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 numbers in shards of a few KiB."""
    out = tmp_path_factory.mktemp("hostile") / "numbers"
    with hr.Writer(out, columns={"n": "int"}, size_limit="1KB") as writer:
        for n in range(_SAMPLES):
            writer.write({"n": n})
    return out


def loader_of(data: Path, **options: Any) -> hr.Loader:
    return hr.Loader(hr.open(data), 20, output="numpy", memory="16MB", **options)


def run(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
    )


def threads_of_this_process() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def in_threads(work: Any, count: int = 4) -> list[BaseException]:
    """What ``work`` raised on each of ``count`` threads."""
    raised: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_a_writer_shared_by_threads_takes_every_sample_once(tmp_path: Path) -> None:
    with hr.Writer(tmp_path / "ds", columns={"n": "int"}, size_limit="2KB") as writer:

        def work(number: int) -> None:
            for n in range(number * 250, (number + 1) * 250):
                writer.write({"n": n})

        assert not in_threads(work)
    assert sorted(sample["n"] for sample in hr.open(tmp_path / "ds")) == list(range(1000))


def test_a_writer_closed_under_writing_threads_says_so(tmp_path: Path) -> None:
    writer = hr.Writer(tmp_path / "ds", columns={"n": "int"}, size_limit="1KB")

    def work(number: int) -> None:
        if number == 0:
            writer.close()
            return
        while True:
            writer.write({"n": 1})

    raised = in_threads(work)
    assert [type(error) for error in raised] == [hr.errors.CancelledError] * 3
    assert not (tmp_path / "ds").exists()


def test_threads_that_share_an_iteration_share_one_epoch(numbers: Path) -> None:
    loader = loader_of(numbers, transform=lambda sample, rng: sample)
    batches = iter(loader)
    seen: list[int] = []
    assert not in_threads(lambda _: [seen.extend(batch["n"].tolist()) for batch in batches])
    assert sorted(seen) == list(range(_SAMPLES))
    assert loader.epoch == 1


def test_a_dropped_loader_ends_its_threads_without_the_collector(numbers: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        before = threads_of_this_process()
        for _ in range(5):
            loader = loader_of(numbers, transform=lambda sample, rng: sample)
            for _batch in loader:
                break
            loader.sampler.set_epoch(3)
            del loader
        assert threads_of_this_process() <= before
    finally:
        gc.enable()


def test_a_loader_found_by_the_collector_in_its_own_transform_ends(numbers: Path) -> None:
    code = """
import gc, os, sys, time
import numpy  # which may have threads of its own
import headrace as hr
before = len(os.listdir("/proc/self/task"))
class Owner: pass
def transform(sample, rng):
    return {"n": len([[] for _ in range(3000)])}
for _ in range(20):
    owner = Owner()
    owner.itself = owner
    owner.loader = hr.Loader(hr.open(sys.argv[1]), 20, output="numpy", memory="16MB",
                             threads=2, transform=transform)
    next(iter(owner.loader))
    del owner
    time.sleep(0.02)
gc.collect()
end = time.monotonic() + 60
while len(os.listdir("/proc/self/task")) > before and time.monotonic() < end:
    time.sleep(0.05)
print(len(os.listdir("/proc/self/task")) - before)
"""
    done = run(code, numbers)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


def test_a_transform_that_closes_its_loader_is_told_why_not(numbers: Path) -> None:
    def transform(sample: dict[str, Any], rng: Any) -> dict[str, Any]:
        loader.close()
        return sample

    loader = loader_of(numbers, transform=transform)
    with pytest.raises(hr.errors.InvalidArgumentError, match="cannot close its own loader"):
        next(iter(loader))
    loader.close()


def test_close_does_not_wait_for_the_rest_of_a_batch(numbers: Path) -> None:
    begun = threading.Event()
    go_on = threading.Event()
    calls: list[int] = []

    def transform(sample: dict[str, Any], rng: Any) -> dict[str, Any]:
        calls.append(sample["n"])
        begun.set()
        go_on.wait()
        return sample

    loader = loader_of(numbers, transform=transform, threads=1)
    waiting = threading.Thread(target=lambda: in_threads(lambda _: next(iter(loader)), 1))
    waiting.start()
    begun.wait()
    closing = threading.Thread(target=loader.close)
    closing.start()
    while not loader._stage._is_stopped:  # type: ignore[union-attr]
        time.sleep(0.001)
    go_on.set()
    closing.join()
    waiting.join()
    assert len(calls) == 1


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_no_policy_swallows_an_exit_in_a_transform(numbers: Path, kind: type[Any]) -> None:
    def transform(sample: dict[str, Any], rng: Any) -> dict[str, Any]:
        raise kind(3)

    loader = loader_of(numbers, transform=transform, bad_samples="skip")
    with pytest.raises(hr.errors.InvalidArgumentError, match=kind.__name__) as caught:
        next(iter(loader))
    assert isinstance(caught.value.__cause__, kind)


class Untellable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("x" * 10**6), "1000000 characters"),
        (ValueError("\udcff"), r"ValueError: \\udcff"),
        (Untellable(), "Untellable"),
    ],
)
def test_whatever_a_transform_raises_can_be_told(
    numbers: Path, error: Exception, message: str
) -> None:
    def transform(sample: dict[str, Any], rng: Any) -> dict[str, Any]:
        raise error

    with pytest.raises(hr.errors.InvalidArgumentError, match=message) as caught:
        next(iter(loader_of(numbers, transform=transform)))
    assert "number" in str(caught.value)
    assert len(str(caught.value)) < 4000


@pytest.mark.parametrize(
    "endless",
    [
        "ds[5]",
        "[s for s in ds]",
        "hr.open(sys.argv[1])[5]",
        "[b for b in hr.Loader(ds, 20, output='numpy', memory='16MB')]",
    ],
)
def test_daemon_threads_at_work_do_not_spoil_the_exit(numbers: Path, endless: str) -> None:
    code = f"""
import sys, threading, time
import headrace as hr
ds = hr.open(sys.argv[1])
begun = threading.Event()
def work():
    while True:
        {endless}
        begun.set()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.05)
"""
    done = run(code, numbers)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "call",
    [
        "hr.open(url, timeout=600)",
        "hr.open('s3://b/x', endpoint=url, anonymous=True, timeout=600)",
        "hr.Writer('s3://b/x', columns={'n': 'int'}, endpoint=url, anonymous=True, timeout=600)",
    ],
)
def test_ctrl_c_does_not_wait_for_a_silent_server(call: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        # Where the tests run in the background, SIGINT is ignored and children inherit that.
        code = (
            "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
            f"import headrace as hr\nurl = {url!r}\n{call}"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True
        ) as process:
            silent.accept()  # the call is waiting for an answer now
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=_PATIENCE)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in told


def test_a_limit_on_memory_for_threads_is_an_error_and_no_crash(numbers: Path) -> None:
    code = """
import resource, sys
import numpy
import headrace as hr
ds = hr.open(sys.argv[1])
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (200 << 20),) * 2)
try:
    next(iter(hr.Loader(ds, 20, output="numpy", memory="16MB", threads=256)))
except (hr.HeadraceError, RuntimeError, MemoryError) as error:
    print(error)
"""
    done = run(code, numbers)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("absurd", [-1, 0, 1 << 63, 1 << 64, 1 << 70])
def test_absurd_numbers_are_refused_in_words(numbers: Path, absurd: int) -> None:
    ds = hr.open(numbers)
    calls = {
        "batch_size": lambda: hr.Loader(ds, absurd),
        "global_batch_size": lambda: hr.Loader(ds, global_batch_size=absurd),
        "world_size": lambda: hr.Loader(ds, 4, world_size=absurd, rank=0),
        "memory": lambda: hr.Loader(ds, 4, memory=absurd),
        "threads": lambda: hr.Loader(ds, 4, threads=absurd),
        "skip": lambda: hr.Loader(ds, 4, skip=[(0, absurd or -1)]),
        "chunk": lambda: hr.Order(chunk=absurd),
        "lanes": lambda: hr.Order(lanes=absurd),
        "batch": lambda: ds.deff(absurd),
        "seed": lambda: ds.split(0.5, seed=absurd if absurd not in (0, 1 << 63) else -1),
        "size": lambda: hr.image(absurd),
        "connections": lambda: hr.open(numbers, connections=absurd),
        "epoch": lambda: hr.Loader(ds, 4).set_epoch(absurd or -1),
    }
    for name, call in calls.items():
        with pytest.raises(hr.errors.InvalidArgumentError, match=name):
            call()
    assert len(ds.take(max(absurd, _SAMPLES))) == _SAMPLES


def test_skip_lists_and_collate_of_other_kinds_are_refused(numbers: Path) -> None:
    wrong: Any = [(1,)]
    with pytest.raises(hr.errors.UsageError, match="pairs"):
        loader_of(numbers, skip=wrong)
    wrong = 3
    with pytest.raises(hr.errors.UsageError, match="collate must be a function"):
        loader_of(numbers, collate=wrong)
