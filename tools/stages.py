#!/usr/bin/env python3
"""Runs the stages behind `make test`, `make lint` and `make test-long`, and says what each took.

    tools/stages.py lint | test | test-long | package        (see --help)

Every stage prints its name, its commands and its time, so that any of them can be run by hand.
A stage that others build on stops the run when it fails; test stages let the rest run. The last
line counts the test cases of all C++ runs and of pytest, as their own reports state them.

Which build variants run is a choice for two cores: tests run under clang with address and
undefined-behaviour sanitizers (the same tree holds the fuzzers and the thread-safety analysis) and
under gcc with the thread sanitizer (only of layers that lock or start threads); the package is the
optimised gcc build. A plain debug run of the same tests would find nothing that these three do not,
so it is left to `cmake --preset dev`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
REPORTS = ROOT / "build" / "reports"
REQUIREMENTS = [ROOT / "tools" / "requirements" / f"{n}.txt" for n in ("build", "lint", "test")]
JOBS = str(len(os.sched_getaffinity(0)))


class StageError(Exception):
    """A command of a stage failed; the text says which."""


@dataclass
class Stage:
    name: str
    run: Callable[[], None]
    # Later stages need this one: its failure ends the run.
    required: bool = False


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


@dataclass
class Options:
    fuzz_seconds: int = 10
    slow: bool = False
    counts: dict[str, Count] = field(default_factory=dict)
    pytest_summary: str = ""


def sh(*command: str | Path, env: dict[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    shown = words if len(words) < 16 else [*words[:8], f"... ({len(words) - 8} more)"]
    print("$ " + " ".join(shown), flush=True)
    result = subprocess.run(
        words, cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, check=False
    )
    if result.returncode != 0:
        raise StageError(f"`{' '.join(shown)}` ended with {result.returncode}")


def sh_summary(*command: str | Path) -> str:
    """Like sh(), with the environment's programs first on PATH; returns the last line printed."""
    words = [str(word) for word in command]
    print("$ " + " ".join(words), flush=True)
    env = {**os.environ, "PATH": f"{VENV}/bin:{os.environ['PATH']}"}
    last = ""
    with subprocess.Popen(
        words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    if process.returncode != 0:
        raise StageError(f"`{' '.join(words)}` ended with {process.returncode}: {last}")
    return last


def tracked(*patterns: str) -> list[str]:
    """Files git knows, and new ones that it does not ignore."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard", "--", *patterns]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in set(out.split("\0")) if name and (ROOT / name).is_file())


def tool(name: str) -> Path:
    return VENV / "bin" / name


# --- Environment ---------------------------------------------------------------------------------


def make_venv() -> None:
    """.venv with the exact versions of tools/requirements; untouched while those are unchanged."""
    text = "".join(path.read_text() for path in REQUIREMENTS) + sys.version
    stamp, want = VENV / "headrace-stamp", hashlib.sha256(text.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == want:
        print(f"{VENV.name} is up to date")
        return
    sh(sys.executable, "-m", "venv", "--clear", VENV)
    wanted = [word for path in REQUIREMENTS for word in ("-r", str(path))]
    sh(tool("python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted)
    stamp.write_text(want)


def install_package() -> None:
    """Installs the package built from this tree and puts its stubs where mypy looks for them."""
    sh(
        tool("python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "--no-deps",
        "--force-reinstall",
        "-Ccmake.define.HEADRACE_WERROR=ON",
        ".",
    )
    program = "import sysconfig; print(sysconfig.get_path('platlib'))"
    out = subprocess.run(
        [tool("python"), "-c", program], check=True, capture_output=True, text=True
    )
    installed = Path(out.stdout.strip()) / "headrace"
    shutil.copyfile(installed / "_core.pyi", ROOT / "python" / "headrace" / "_core.pyi")


# --- Lint ----------------------------------------------------------------------------------------


def check_layers() -> None:
    sh(tool("python"), "tools/check_layers.py")


def check_format() -> None:
    sh(tool("clang-format"), "--dry-run", "-Werror", *tracked("*.h", "*.cc"))
    sh(tool("ruff"), "format", "--check", "--quiet", ".")


def check_python() -> None:
    sh(tool("ruff"), "check", "--quiet", ".")


def check_types() -> None:
    if not (ROOT / "python" / "headrace" / "_core.pyi").is_file():
        install_package()
    sh(tool("mypy"), "python/headrace", *tracked("tools/*.py"))


def check_tidy(options: Options) -> None:
    deep = ["--deep"] if options.slow else []
    command = ["tools/run_clang_tidy.py", "--build", "build/clang", "-j", JOBS]
    sh(sys.executable, *command, *deep)


def apply_format() -> None:
    sh(tool("clang-format"), "-i", *tracked("*.h", "*.cc"))
    sh(tool("ruff"), "format", "--quiet", ".")
    sh(tool("ruff"), "check", "--quiet", "--fix", ".")


# --- Builds and tests ----------------------------------------------------------------------------


def configure(preset: str) -> None:
    sh("cmake", "--preset", preset, "--log-level=WARNING")


def build(preset: str) -> None:
    configure(preset)
    sh("cmake", "--build", "--preset", preset, "-j", JOBS)


def threaded_layers() -> list[str]:
    """Layers with a lock, an atomic or a thread in them: the thread sanitizer's business."""
    layers = []
    for folder in sorted((ROOT / "cpp" / "headrace").iterdir()):
        sources = [*folder.glob("*.cc"), *folder.glob("*.h")]
        has_tests = any(path.name.endswith("_test.cc") for path in sources)
        pattern = re.compile(r"std::j?thread|\bMutex\b|std::atomic|Executor")
        if has_tests and any(pattern.search(path.read_text()) for path in sources):
            layers.append(folder.name)
    return layers


def build_tsan() -> None:
    configure("tsan")
    targets = [f"headrace_{layer}_test" for layer in threaded_layers()]
    sh("cmake", "--build", "--preset", "tsan", "-j", JOBS, "--target", *targets)


def test_cpp(options: Options, preset: str, *extra: str) -> None:
    """Runs the tests of one preset, keeping what each binary reports about its cases."""
    reports = REPORTS / preset
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    env = {"GTEST_OUTPUT": f"xml:{reports}/", "GTEST_COLOR": "no"}
    if options.slow:
        env["RC_PARAMS"] = "max_success=2000"  # RapidCheck's default is 100
    try:
        junit = reports / "ctest.junit"
        sh("ctest", "--preset", preset, "-j", JOBS, "--output-junit", junit, *extra, env=env)
    finally:
        options.counts[f"C++ {preset}"] = count_cpp(reports)


def test_tsan(options: Options) -> None:
    test_cpp(options, "tsan", "-R", f"^({'|'.join(threaded_layers())})$")


def count_cpp(reports: Path) -> Count:
    """Test cases as googletest reports them; a binary that died counts as one failure."""
    total = Count()
    for path in sorted(reports.glob("*.xml")):
        total.add(count_suites(path))
    summary = reports / "ctest.junit"
    if not summary.is_file():
        return total
    failed_binaries = [
        case.get("name", "")
        for case in ET.parse(summary).iter("testcase")
        if case.get("status") == "fail"
    ]
    if failed_binaries and total.failed < len(failed_binaries):
        total.failed = len(failed_binaries)
    return total


def count_suites(path: Path) -> Count:
    count = Count()
    for case in ET.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
        elif case.find("skipped") is not None:
            count.skipped += 1
        else:
            count.passed += 1
    return count


def fuzz(options: Options) -> None:
    sh(
        sys.executable,
        "tools/run_fuzzers.py",
        "--build",
        "build/clang",
        "-j",
        JOBS,
        "--seconds",
        str(options.fuzz_seconds),
    )


def consume_from_cmake() -> None:
    """A program outside this tree finds the installed library with find_package(headrace).

    What the package was built from serves: its folder holds the optimised archives already.
    """
    folders = sorted((ROOT / "build").glob("py-*/CMakeCache.txt"), key=lambda p: p.stat().st_mtime)
    if not folders:
        raise StageError("no build/py-*: install the package first")
    prefix, consumer = ROOT / "build" / "install", ROOT / "build" / "consumer"
    for folder in (prefix, consumer):
        shutil.rmtree(folder, ignore_errors=True)
    sh("cmake", "--install", folders[-1].parent, "--prefix", prefix, "--component", "cpp")
    source = ROOT / "tests" / "cmake_consumer"
    sh("cmake", "-G", "Ninja", "-S", source, "-B", consumer, f"-DCMAKE_PREFIX_PATH={prefix}")
    sh("cmake", "--build", consumer)
    sh(consumer / "consumer")


def make_peers() -> None:
    """Real peers and servers, each set in an environment of its own."""
    sh(sys.executable, "tools/peer_envs.py", "servers", "mosaic")


def test_python(options: Options) -> None:
    """pytest ends with an error of its own (5) when it collects no test."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / "pytest.junit"
    report.unlink(missing_ok=True)
    extra = ["-m", "not torch"] if options.slow else []
    try:
        options.pytest_summary = sh_summary(
            tool("python"), "-m", "pytest", "-q", f"--junit-xml={report}", *extra
        )
    finally:
        if report.is_file():
            options.counts["Python"] = count_suites(report)


def test_torch(options: Options) -> None:
    """The tests marked torch, by the peers' interpreter: it has torch, .venv has the package."""
    report = REPORTS / "pytest-torch.junit"
    report.unlink(missing_ok=True)
    program = "import sysconfig; print(sysconfig.get_path('platlib'))"
    packages = subprocess.run(
        [tool("python"), "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        sh(
            ROOT / ".venv-mosaic" / "bin" / "python",
            *("-m", "pytest", "-q", "-m", "torch", f"--junit-xml={report}", "python/tests"),
            env={"PYTHONPATH": packages},
        )
    finally:
        if report.is_file():
            options.counts["Python with torch"] = count_suites(report)


# --- Lists of stages -----------------------------------------------------------------------------


def stages_of(target: str, options: Options) -> list[Stage]:
    venv = Stage("python environment", make_venv, required=True)
    package = Stage("install the package", install_package, required=True)
    quick_lint = [
        Stage("layers and tidiness", check_layers),
        Stage("format", check_format),
        Stage("ruff", check_python),
    ]
    if target == "package":
        return [venv, package]
    if target == "format":
        return [venv, Stage("format", apply_format)]
    if target == "lint":
        return [
            venv,
            *quick_lint,
            Stage("mypy", check_types),
            Stage("configure clang", lambda: configure("clang"), required=True),
            Stage("clang-tidy", lambda: check_tidy(options)),
        ]
    return [
        venv,
        *quick_lint,
        package,
        Stage("mypy", check_types),
        Stage(
            "build clang: address+undefined, thread-safety analysis, fuzzers",
            lambda: build("clang"),
            required=True,
        ),
        Stage("clang-tidy", lambda: check_tidy(options)),
        Stage("C++ tests, address+undefined", lambda: test_cpp(options, "clang")),
        Stage(f"fuzzers, {options.fuzz_seconds} s each", lambda: fuzz(options)),
        Stage("build tsan", build_tsan, required=True),
        Stage("C++ tests, thread sanitizer", lambda: test_tsan(options)),
        Stage("find_package(headrace)", consume_from_cmake),
        Stage("peers and servers", make_peers, required=True),
        Stage("Python tests", lambda: test_python(options)),
        Stage("Python tests with torch", lambda: test_torch(options)),
    ]


def run(stages: list[Stage]) -> tuple[list[tuple[str, float]], list[str]]:
    times: list[tuple[str, float]] = []
    failures: list[str] = []
    for number, stage in enumerate(stages, 1):
        print(f"\n=== {number}/{len(stages)} {stage.name}", flush=True)
        start = time.monotonic()
        try:
            stage.run()
        except StageError as error:
            failures.append(f"{stage.name}: {error}")
            print(f"=== FAILED: {error}", flush=True)
        seconds = time.monotonic() - start
        times.append((stage.name, seconds))
        print(f"=== {stage.name}: {seconds:.1f} s", flush=True)
        if failures and stage.required and failures[-1].startswith(stage.name):
            print("=== the stages after this one need it: stopping", flush=True)
            break
    return times, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", choices=["package", "format", "lint", "test", "test-long"])
    parser.add_argument("--fuzz-seconds", type=int, help="a fuzzer's time (10; test-long: 1200)")
    args = parser.parse_args()
    long = args.target == "test-long"
    options = Options(args.fuzz_seconds or (1200 if long else 10), slow=long)
    times, failures = run(stages_of(args.target, options))

    print()
    for name, seconds in times:
        print(f"{seconds:8.1f} s  {name}")
    print(f"{sum(seconds for _, seconds in times):8.1f} s  in all")
    for failure in failures:
        print(f"FAILED  {failure}")
    if options.pytest_summary:
        print(f"pytest: {options.pytest_summary}")
    if options.counts:
        total = Count()
        for name, count in options.counts.items():
            print(f"{name}: {count}")
            total.add(count)
        print(total)
    elif not failures:
        print("ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
