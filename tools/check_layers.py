#!/usr/bin/env python3
"""Holds the code against tools/layers.toml and the tidiness rules; ends with 1 when one is broken.

    tools/check_layers.py [--root DIR]

Reads the #include lines and the CMake link lines of cpp/headrace, and the imports of
python/headrace. What it can find: a dependency upward or undeclared, a cycle, an impure header or
call in a pure layer, a third-party header in one of our headers, a call that only named files may
make; tidy_rules.py has the rules about text. Each message names file and line, the rule, and what
to do instead.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tidy_rules
from tidy_rules import Finding, strip_cpp

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
TEST_FILE = re.compile(r"_(test|fuzz|bench)\.cc$|_(testing|test_util)\.(h|cc)$|^test_\w+\.(h|cc)$")


@dataclass
class Layer:
    name: str
    folder: Path
    uses: set[str]
    is_pure: bool
    declared: set[str] = field(default_factory=set)
    sources: list[Path] = field(default_factory=list)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


class Checker:
    def __init__(self, root: Path, rules: dict[str, Any]) -> None:
        self.root = root
        self.rules = rules
        self.standard = {*rules["headers"]["standard"].split(), *rules["headers"]["types"]}
        self.findings: list[Finding] = []
        self.layers: dict[str, Layer] = {}
        # file -> the files of ours that it includes, with line numbers
        self.includes: dict[Path, list[tuple[int, Path]]] = {}

    def report(self, path: Path, line: int, rule: str, text: str) -> None:
        self.findings.append(Finding(path.relative_to(self.root), line, rule, text))

    def run(self) -> list[Finding]:
        self.load_layers()
        for layer in self.layers.values():
            self.check_cmake(layer)
            for path in layer.sources:
                self.check_file(layer, path)
        self.check_cycles()
        self.check_bindings()
        self.check_python()
        self.findings += tidy_rules.check_tree(self.root, self.rules)
        return sorted(set(self.findings))

    # --- The table -------------------------------------------------------------------------------

    def load_layers(self) -> None:
        table = self.rules["layers"]
        toml = self.root / "tools" / "layers.toml"
        seen: set[str] = set()
        for name, entry in table.items():
            upward = set(entry["uses"]) - seen
            if upward:
                self.report(
                    toml, 1, "layers", f"{name} uses {sorted(upward)} above it in the table"
                )
            seen.add(name)
        cpp = self.root / "cpp" / "headrace"
        for folder in sorted(path for path in cpp.glob("*") if path.is_dir()):
            entry = table.get(folder.name)
            if entry is None:
                self.report(
                    folder, 1, "layers", f"{folder.name} is no layer: add it to layers.toml"
                )
                continue
            sources = sorted([*folder.rglob("*.h"), *folder.rglob("*.cc")])
            layer = Layer(folder.name, folder, set(entry["uses"]), entry.get("pure", False))
            layer.sources = sources
            self.layers[folder.name] = layer

    # --- CMake -----------------------------------------------------------------------------------

    def check_cmake(self, layer: Layer) -> None:
        path = layer.folder / "CMakeLists.txt"
        if not path.is_file():
            if any(source.suffix == ".cc" for source in layer.sources):
                self.report(layer.folder, 1, "cmake", "has sources and no CMakeLists.txt")
            else:
                layer.declared = set(layer.uses)
            return
        text = re.sub(r"#[^\n]*", lambda m: " " * len(m[0]), path.read_text())
        for match in re.finditer(r"\b(headrace_layer|target_link_libraries)\s*\(([^()]*)\)", text):
            self.check_link_call(layer, path, text, match)
        words = set(text.replace("(", " ").replace(")", " ").split())
        for source in layer.sources:
            name = source.relative_to(layer.folder).as_posix()
            if source.suffix == ".cc" and name not in words:
                self.report(source, 1, "cmake", f"is in no list of {layer.name}/CMakeLists.txt")

    def check_link_call(self, layer: Layer, path: Path, text: str, match: re.Match[str]) -> None:
        words = [(m[0], match.start(2) + m.start()) for m in re.finditer(r"\S+", match[2])]
        is_layer_call = match[1] == "headrace_layer"
        section = "NAME" if is_layer_call else "LIBS"
        # Link lines of a test, fuzzer or benchmark program are those of a test file.
        for_tests = not is_layer_call and bool(words) and words[0][0] != f"headrace_{layer.name}"
        for word, offset in words[1:]:
            if re.fullmatch(r"SOURCES|TESTS|FUZZERS|BENCHES|DEPS|LIBS|TEST_LIBS", word):
                section = word
                continue
            target = re.fullmatch(r"headrace(?:_|::)(\w+)", word)
            name = word if section == "DEPS" else target[1] if target else ""
            line = line_of(text, offset)
            if section in ("DEPS", "LIBS") and name in self.rules["layers"]:
                if not for_tests:
                    self.check_edge(layer, name, path, line, is_test=False)
                    layer.declared.add(name)
            elif section == "DEPS":
                self.report(path, line, "layers", f"DEPS names {word}, which is no layer")
            elif section == "TEST_LIBS" and name in self.rules["layers"]:
                self.check_edge(layer, name, path, line, is_test=True)
            elif section == "LIBS" and layer.is_pure and word in self.rules["pure"]["libraries"]:
                self.report(path, line, "pure", f"{layer.name} is pure and must not link {word}")

    def check_edge(self, layer: Layer, to: str, path: Path, line: int, is_test: bool) -> bool:
        """Reports a dependency of `layer` on `to` that the table does not allow."""
        if to == layer.name or to in layer.uses or (is_test and to == "testing"):
            return True
        allowed = ", ".join(sorted(layer.uses)) or "nothing"
        self.report(
            path, line, "layers",
            f"{layer.name} must not depend on {to} (it may use {allowed}): move the code down, or"
            " pass it in through an interface",
        )  # fmt: skip
        return False

    # --- One C++ file ----------------------------------------------------------------------------

    def check_file(self, layer: Layer, path: Path) -> None:
        text = path.read_text(errors="replace")
        is_test = bool(TEST_FILE.search(path.name)) or layer.name == "testing"
        for match in INCLUDE.finditer(text):
            self.check_include(layer, path, line_of(text, match.start()), match, is_test)
        code = strip_cpp(text)
        name = path.relative_to(self.root / "cpp" / "headrace").as_posix()
        for rule in self.rules["calls"]:
            if name in rule["files"] or (is_test and not rule.get("tests_too")):
                continue
            for match in re.finditer(rule["pattern"], code):
                self.report(
                    path, line_of(code, match.start()), rule["name"],
                    f"`{match[0].strip()}` is not allowed here: use {rule['use']}",
                )  # fmt: skip
        if layer.is_pure and not is_test:
            for match in re.finditer(
                r"\bsteady_clock\s*\(\s*\)|\bf?open\s*\(|\bfreopen\s*\(", code
            ):
                self.report(
                    path, line_of(code, match.start()), "pure",
                    f"{layer.name} is pure: take the time or the bytes as an argument",
                )  # fmt: skip

    def check_include(
        self, layer: Layer, path: Path, line: int, match: re.Match[str], is_test: bool
    ) -> None:
        quote, name = match[1], match[2]
        if layer.is_pure and not is_test:
            pure = self.rules["pure"]
            if name in pure["headers"] or name.startswith(tuple(pure["header_prefixes"])):
                self.report(
                    path, line, "pure",
                    f"{layer.name} is pure (no I/O, thread, clock) and must not include {name}:"
                    " take what you need as an argument",
                )  # fmt: skip
        if quote == "<":
            is_ours = name.startswith("headrace/")
            own = path.relative_to(self.root / "cpp" / "headrace").as_posix()
            is_adapter = own in self.rules["headers"]["adapters"]
            if is_ours:
                self.report(path, line, "include", f'write "{name}" in quotes')
            elif (
                path.suffix == ".h" and name not in self.standard and not is_test and not is_adapter
            ):
                self.report(
                    path, line, "include",
                    f"<{name}> in a header puts it on every user: include it in a .cc and hide it"
                    " behind std::unique_ptr<Impl>",
                )  # fmt: skip
            return
        target = self.root / "cpp" / name
        if not name.startswith("headrace/") or not target.is_file():
            text = "there is no such file" if "/" in name else 'write "headrace/<layer>/..."'
            self.report(path, line, "include", f'"{name}": {text}')
            return
        self.includes.setdefault(path, []).append((line, target))
        own = target.relative_to(self.root / "cpp" / "headrace").as_posix()
        if path.suffix == ".h" and own in self.rules["headers"]["adapters"]:
            self.report(path, line, "include", f"{name} is private to its adapter's .cc files")
        if TEST_FILE.search(target.name) and not is_test:
            self.report(path, line, "layers", f"{name} is for tests: the product must not use it")
        to = Path(name).parts[1]
        if not self.check_edge(layer, to, path, line, is_test) or is_test or to == layer.name:
            return
        if to not in layer.declared:
            text = f"{layer.name}/CMakeLists.txt does not declare {to}: add it to DEPS"
            self.report(path, line, "layers", text)

    def check_cycles(self) -> None:
        state: dict[Path, int] = {}
        trail: list[Path] = []

        def visit(path: Path) -> None:
            state[path] = 1
            trail.append(path)
            for line, target in self.includes.get(path, []):
                if state.get(target) == 1:
                    ring = [*trail[trail.index(target) :], target]
                    names = " -> ".join(p.relative_to(self.root / "cpp").as_posix() for p in ring)
                    self.report(
                        path, line, "cycle", f"{names}: move what both need to a third file"
                    )
                elif target not in state:
                    visit(target)
            trail.pop()
            state[path] = 2

        for path in sorted(self.includes):
            if path not in state:
                visit(path)

    # --- Bindings and Python ---------------------------------------------------------------------

    def check_bindings(self) -> None:
        """Bindings may use every layer but testing and sim's tests; each file is in the list."""
        folder = self.root / "python" / "src"
        lists = folder / "CMakeLists.txt"
        words = set(re.split(r"[\s()]+", lists.read_text())) if lists.is_file() else set()
        for path in sorted([*folder.glob("*.cc"), *folder.glob("*.h")]):
            text = path.read_text(errors="replace")
            if path.suffix == ".cc" and path.name not in words:
                self.report(path, 1, "cmake", "is in no list of python/src/CMakeLists.txt")
            for match in INCLUDE.finditer(text):
                if match[2].startswith("headrace/testing/"):
                    line = line_of(text, match.start())
                    self.report(path, line, "layers", "the product must not use headrace/testing")

    def check_python(self) -> None:
        package = self.root / "python" / "headrace"
        for path in sorted(package.rglob("*.py")):
            part = path.relative_to(package).parts[0]
            try:
                tree = ast.parse(path.read_text(errors="replace"))
            except SyntaxError as error:
                self.report(path, error.lineno or 1, "python", f"cannot be read: {error.msg}")
                continue
            top_level = set(map(id, tree.body))
            for node in ast.walk(tree):
                for module in imported(node, path, package):
                    text = python_import_error(part, module, id(node) in top_level)
                    if text:
                        self.report(path, getattr(node, "lineno", 1), "python layers", text)


def imported(node: ast.AST, path: Path, package: Path) -> Iterator[str]:
    """Full names of the modules and names that an import statement brings in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            folder = ["headrace", *path.relative_to(package).parts[:-1]]
            base = ".".join([*folder[: len(folder) - node.level + 1], *([base] if base else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


def python_import_error(part: str, module: str, at_top: bool) -> str:
    words = module.split(".")
    if words[0] == "torch" and at_top and part not in ("integrations", "testing"):
        return "importing headrace must not import torch: import it in the function that needs it"
    if words[0] != "headrace" or len(words) < 2:
        return ""
    if part == "cli" and words[1].startswith("_") and words[1] != "__version__":
        return f"the command line uses the public API only: not {module}"
    if part not in ("cli", "__main__.py") and words[1] == "cli":
        return "the package must not use its command line: move the code to a public module"
    if part != "testing" and words[1] == "testing":
        return "headrace.testing is for tests: the package must not import it"
    if part not in ("integrations", "cli") and words[1] == "integrations" and at_top:
        return "integrations are imported on request: import it in the function that needs it"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    root = args.root.resolve()
    with (root / "tools" / "layers.toml").open("rb") as file:
        rules = tomllib.load(file)
    findings = Checker(root, rules).run()
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings" if findings else "layers and tidiness: ok")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
