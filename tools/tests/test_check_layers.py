"""Every check of tools/check_layers.py: one sample tree that must fail and one that must pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent
HEADER = "// What it is for.\n// Thread-safety: any.\n// Ownership: none.\n#pragma once\n"
FUNCTION = "void f() {\n" + "  g();\n" * 80 + "}\n"
SHORT = "void f() {\n" + "  g();\n" * 60 + "}\n"
CYCLE = {
    "cpp/headrace/base/a.h": HEADER + '#include "headrace/base/b.h"\n',
    "cpp/headrace/base/b.h": HEADER + '#include "headrace/base/a.h"\n',
}
NO_CYCLE = {
    "cpp/headrace/base/a.h": HEADER + '#include "headrace/base/b.h"\n',
    "cpp/headrace/base/b.h": HEADER,
}


def layer(name: str, body: str, source: str = "x.cc") -> dict[str, str]:
    """One layer of one source; its CMake call is `body` after the name."""
    return {
        f"cpp/headrace/{name}/CMakeLists.txt": f"headrace_layer({name}\n  {body})\n",
        "cpp/headrace/base/ids.h": HEADER,
        "cpp/headrace/store/store.h": HEADER,
        "cpp/headrace/testing/fake.h": HEADER,
        f"cpp/headrace/{name}/{source}": "\n",
    }


def source(layer_name: str, text: str, file: str = "x.cc") -> dict[str, str]:
    body = f"SOURCES {file} DEPS base" if layer_name != "base" else f"SOURCES {file}"
    return {**layer(layer_name, body, file), f"cpp/headrace/{layer_name}/{file}": text}


# name: (words the message must hold, tree that fails, tree that passes)
CASES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "upward include": (
        "order/x.cc:1: [layers] order must not depend on store",
        source("order", '#include "headrace/store/store.h"\n'),
        source("order", '#include "headrace/base/ids.h"\n'),
    ),
    "undeclared include": (
        "does not declare base",
        {**layer("order", "SOURCES x.cc"),
         "cpp/headrace/order/x.cc": '#include "headrace/base/ids.h"\n'},
        source("order", '#include "headrace/base/ids.h"\n'),
    ),
    "testing in the product": (
        "must not depend on testing",
        source("loader", '#include "headrace/testing/fake.h"\n'),
        source("loader", '#include "headrace/testing/fake.h"\n', "x_test.cc"),
    ),
    "test helper in the product": (
        "is for tests",
        {
            **source("order", '#include "headrace/order/y_testing.h"\n'),
            "cpp/headrace/order/y_testing.h": HEADER + "#include <gtest/gtest.h>\n",
        },
        {
            **source("order", '#include "headrace/order/y_testing.h"\n', "x_test.cc"),
            "cpp/headrace/order/y_testing.h": HEADER + "#include <gtest/gtest.h>\n",
        },
    ),
    "upward DEPS": (
        "format/CMakeLists.txt:2: [layers] format must not depend on store",
        layer("format", "SOURCES x.cc DEPS store"),
        layer("format", "SOURCES x.cc DEPS base"),
    ),
    "upward LIBS": (
        "must not depend on store",
        layer("format", "SOURCES x.cc LIBS headrace::store"),
        layer("format", "SOURCES x.cc LIBS zstd::zstd"),
    ),
    "upward link line": (
        "CMakeLists.txt:2: [layers] obs must not depend on exec",
        {**layer("obs", "SOURCES x.cc"),
         "cpp/headrace/obs/CMakeLists.txt":
             "headrace_layer(obs SOURCES x.cc)\ntarget_link_libraries(headrace_obs headrace_exec)"},
        {**layer("obs", "SOURCES x.cc"),
         "cpp/headrace/obs/CMakeLists.txt":
             "headrace_layer(obs SOURCES x.cc)\ntarget_link_libraries(headrace_obs headrace_base)"},
    ),
    "impure link line": (
        "must not link CURL::libcurl",
        layer("codec", "SOURCES x.cc LIBS CURL::libcurl"),
        layer("store", "SOURCES x.cc LIBS CURL::libcurl"),
    ),
    "impure include": (
        "codec/x.cc:1: [pure] codec is pure",
        source("codec", "#include <thread>\n"),
        source("codec", "#include <thread>\n", "x_test.cc"),
    ),
    "impure call": (
        "format is pure",
        source("format", "int f() { return open(path, 0); }\n"),
        source("store", "int f() { return open(path, 0); }\n"),
    ),
    "include cycle": ("[cycle] headrace/base/a.h -> headrace/base/b.h", CYCLE, NO_CYCLE),
    "third-party header": (
        "<curl/curl.h> in a header",
        source("store", HEADER + "#include <curl/curl.h>\n", "x.h"),
        source("store", "#include <curl/curl.h>\n"),
    ),
    "adapter header in another header": (
        "private to its adapter",
        {
            **source("store", HEADER + '#include "headrace/store/curl_transfer.h"\n', "x.h"),
            "cpp/headrace/store/curl_transfer.h": HEADER + "#include <curl/curl.h>\n",
        },
        {
            **source("store", '#include "headrace/store/curl_transfer.h"\n'),
            "cpp/headrace/store/curl_transfer.h": HEADER + "#include <curl/curl.h>\n",
        },
    ),
    "include by short path": (
        "headrace/<layer>/",
        source("base", '#include "ids.h"\n'),
        source("base", '#include "headrace/base/ids.h"\n'),
    ),
    "environment": (
        "base/env.cc",
        source("store", 'auto v = std::getenv("X");\n'),
        source("base", 'auto v = std::getenv("X");\n', "env.cc"),
    ),
    "clock": (
        "the Clock that was passed in",
        source("exec", "auto t = std::chrono::steady_clock::now();\n"),
        source("exec", "auto t = clock.now();  // not steady_clock::now()\n"),
    ),
    "sleep": (
        "Executor::post_at",
        source("exec", "std::this_thread::sleep_for(1s);\n"),
        source("exec", "std::this_thread::sleep_for(1s);\n", "x_test.cc"),
    ),
    "randomness": (
        "base/rng.h",
        source("exec", "std::random_device d;\n", "x_test.cc"),
        source("exec", "Rng rng(seed);\n", "x_test.cc"),
    ),
    "print": (
        "log sink",
        source("exec", 'std::fprintf(stderr, "x");\n'),
        source("exec", 'std::snprintf(buffer, sizeof buffer, "printf(");\n'),
    ),
    "abort": (
        "HR_CHECK",
        source("exec", "std::abort();\n"),
        source("exec", "upload.abort(reason);\n"),
    ),
    "detach": (
        "destructor joins",
        source("exec", "worker.detach();\n", "x_test.cc"),
        source("exec", "worker.join();\n", "x_test.cc"),
    ),
    "thread": (
        "Executor::post",
        source("loader", "std::thread worker;\n"),
        source("exec", "std::thread worker;\n", "thread_executor.cc"),
    ),
    "source in no list": (
        "is in no list",
        {**layer("base", "SOURCES x.cc"), "cpp/headrace/base/y.cc": "\n"},
        layer("base", "SOURCES x.cc"),
    ),
    "binding in no list": (
        "python/src/CMakeLists.txt",
        {"python/src/CMakeLists.txt": "module.cc\n", "python/src/order.cc": "\n"},
        {"python/src/CMakeLists.txt": "module.cc\n", "python/src/module.cc": "\n"},
    ),
    "unknown layer": (
        "is no layer",
        {"cpp/headrace/misc/x.h": HEADER},
        {"cpp/headrace/base/x.h": HEADER},
    ),
    "pragma once": (
        "#pragma once",
        {"cpp/headrace/base/x.h": HEADER.replace("#pragma once\n", "")},
        {"cpp/headrace/base/x.h": HEADER},
    ),
    "purpose line": (
        "what the header is for",
        {"cpp/headrace/base/x.h": HEADER.split("\n", 1)[1]},
        {"cpp/headrace/base/x.h": HEADER},
    ),
    "thread-safety line": (
        "no line `// Thread-safety:",
        {"cpp/headrace/base/x.h": HEADER.replace("Thread-safety", "Threads")},
        {"cpp/headrace/base/x.h": HEADER},
    ),
    "ownership line": (
        "no line `// Ownership:",
        {"cpp/headrace/base/x.h": HEADER.replace("Ownership", "Owner")},
        {"cpp/headrace/base/x.h": HEADER.replace("none.", "the caller's,\n// for ever.")},
    ),
    "columns": (
        "x.cc:2: [size] 101 columns",
        source("base", "\n" + "/" * 101 + "\n"),
        source("base", "\n" + "/" * 100 + "\n"),
    ),
    "ASCII": (
        "U+00B5",
        source("base", "// 5 \u00b5s\n"),
        source("base", "// 5 us\n"),
    ),
    "file length": (
        "501 lines, limit 500",
        source("base", "\n" * 501),
        source("base", "\n" * 501, "x_test.cc"),
    ),
    "test length": (
        "801 lines, limit 800",
        source("base", "\n" * 801, "x_test.cc"),
        source("base", "\n" * 800, "x_test.cc"),
    ),
    "function length": (
        "x.cc:3: [size] function of 82 lines",
        source("base", "namespace headrace {\n\n" + FUNCTION + "}\n"),
        source("base", "namespace headrace {\n\n" + SHORT + SHORT + "}\n"),
    ),
    "Python function length": (
        "function of 81 lines",
        {"tools/x.py": "def f():\n" + "    g()\n" * 80},
        {"tools/x.py": "def f():\n" + "    g()\n" * 60},
    ),
    "unfinished work": (
        "[unfinished]",
        source("base", "// TO" "DO: later\n"),
        source("base", "// Later pages say more.\n"),
    ),
    "machine path": (
        "[machine path]",
        {"tools/x.sh": "cd /ho" "me/someone/headrace\n"},
        {"tools/x.sh": "cd /usr/share/doc\n"},
    ),
    "registry host": (
        "[registry host]",
        {"docs/x.md": "from https://pypi" ".org/simple\n"},
        {"docs/x.md": "from PyPI\n"},
    ),
    "private import of the command line": (
        "public API only",
        {"python/headrace/cli/x.py": "from headrace import _core\n"},
        {"python/headrace/cli/x.py": "from headrace import open\n"},
    ),
    "relative private import of the command line": (
        "public API only",
        {"python/headrace/cli/x.py": "from .._core import thing\n"},
        {"python/headrace/cli/x.py": "from ._table import Table\n"},
    ),
    "package uses its command line": (
        "must not use its command line",
        {"python/headrace/loader.py": "import headrace.cli.x\n"},
        {"python/headrace/loader.py": "import headrace.dataset\n"},
    ),
    "package imports torch": (
        "must not import torch",
        {"python/headrace/loader.py": "import torch\n"},
        {"python/headrace/loader.py": "def f():\n    import torch\n    return torch\n"},
    ),
}  # fmt: skip


def run_on(tree: dict[str, str], root: Path) -> tuple[int, str]:
    (root / "tools").mkdir(parents=True)
    shutil.copy(TOOLS / "layers.toml", root / "tools" / "layers.toml")
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    command = [sys.executable, str(TOOLS / "check_layers.py"), "--root", str(root)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not result.stderr, result.stderr
    return result.returncode, result.stdout


@pytest.mark.parametrize("name", CASES)
def test_check_fails_on_the_bad_sample(name: str, tmp_path: Path) -> None:
    message, bad, _ = CASES[name]
    code, out = run_on(bad, tmp_path)
    assert code == 1
    assert message in out


@pytest.mark.parametrize("name", CASES)
def test_check_passes_the_good_sample(name: str, tmp_path: Path) -> None:
    code, out = run_on(CASES[name][2], tmp_path)
    assert (code, out) == (0, "layers and tidiness: ok\n")


def test_a_table_with_an_upward_edge_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    code, out = run_on({}, root)
    assert code == 0, out
    table = root / "tools" / "layers.toml"
    table.write_text(table.read_text().replace("base = { uses = [] }", 'base = { uses = ["obs"] }'))
    command = [sys.executable, str(TOOLS / "check_layers.py"), "--root", str(root)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "base uses ['obs'] above it" in result.stdout


def test_every_rule_about_calls_and_words_has_a_sample() -> None:
    text = (TOOLS / "layers.toml").read_text()
    names = [line.split('"')[1] for line in text.splitlines() if line.startswith("name = ")]
    samples = {"unfinished": "unfinished work"}
    assert names
    assert [name for name in names if samples.get(name, name) not in CASES] == []
