"""Rules about text that tools/check_layers.py runs: sizes, opening lines, banned words."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Text written by people, in which lines are counted and characters looked at.
CODE = {".h", ".cc", ".py", ".sh", ".cmake"}
WORDS = CODE | {".md", ".toml", ".txt", ".yml", ".yaml", ".json", ".cfg", ".ini", ""}
# The table of rules quotes the words that the rules ban.
TABLE = Path("tools/layers.toml")


@dataclass(frozen=True, order=True)
class Finding:
    path: Path
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule}] {self.text}"


def strip_cpp(text: str) -> str:
    """The text with comments and the insides of literals blanked; every line keeps its number."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith(("/", "R")):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[-1]

    pattern = (
        r'R"(?P<mark>[^\s()\\]{0,16})\((?:.|\n)*?\)(?P=mark)"'
        r"|//[^\n]*|/\*(?:.|\n)*?\*/"
        r'|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    )
    return re.sub(pattern, blank, text)


def long_functions(code: str, limit: int) -> Iterator[tuple[int, int]]:
    """(line, length) of each outermost function longer than `limit`, in text from strip_cpp.

    A brace opens a function when the statement before it has parentheses and every brace around it
    opened a namespace or a type. What it cannot tell (constructors with braced initialisers) it
    leaves out.
    """
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), code,
                  flags=re.MULTILINE)  # fmt: skip
    stack: list[tuple[str, int]] = []
    statement_start = 0
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        if match[0] == "{":
            statement = code[statement_start:at].strip()
            stack.append((kind_of(statement, [kind for kind, _ in stack]), at - len(statement)))
        elif match[0] == "}" and stack:
            kind, start = stack.pop()
            first, last = code.count("\n", 0, start) + 1, code.count("\n", 0, at) + 1
            if kind == "function" and last - first + 1 > limit:
                yield first, last - first + 1
        statement_start = at + 1


def kind_of(statement: str, around: list[str]) -> str:
    statement = re.sub(r"^\s*(public|private|protected)\s*:", "", statement).strip()
    if re.match(r"(inline\s+)?namespace\b|extern\b[^(]*$", statement):
        return "scope"
    if re.match(r"(template\s*<.*>\s*)?(class|struct|union|enum)\b", statement, re.DOTALL):
        return "scope"
    if "(" in statement and all(kind == "scope" for kind in around):
        return "function"
    return "other"


def tracked_files(root: Path) -> list[Path]:
    """Files git knows or does not ignore; all files where there is no repository (tests)."""
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
        out = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
        names = [Path(name) for name in out.split("\0") if name]
    else:
        names = [path.relative_to(root) for path in root.rglob("*")]
    return sorted(name for name in set(names) if (root / name).is_file())


def check_tree(root: Path, rules: dict[str, Any]) -> list[Finding]:
    findings: list[Finding] = []
    for name in tracked_files(root):
        # Golden vectors and fuzz seeds are data; hostile text is their business.
        if name.suffix not in WORDS or name.parts[:2] in (("tests", "golden"), ("tests", "corpus")):
            continue
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        findings += check_words(name, text, rules["words"])
        if name.suffix in CODE or name.name == "CMakeLists.txt":
            findings += check_lines(name, text, rules["sizes"])
        if name.suffix in (".h", ".cc"):
            for line, length in long_functions(strip_cpp(text), rules["sizes"]["function_lines"]):
                findings.append(too_long(name, line, length, rules["sizes"]["function_lines"]))
        if name.suffix == ".h" and name.parts[:2] == ("cpp", "headrace"):
            findings += check_header(name, text)
        if name.suffix == ".py":
            findings += check_python_functions(name, text, rules["sizes"]["function_lines"])
    return findings


def too_long(name: Path, line: int, length: int, limit: int) -> Finding:
    return Finding(
        name, line, "size", f"function of {length} lines, limit {limit}: split it by steps"
    )


def check_words(name: Path, text: str, words: list[dict[str, str]]) -> Iterator[Finding]:
    if name == TABLE:
        return
    for rule in words:
        for match in re.finditer(rule["pattern"], text):
            line = text.count("\n", 0, match.start()) + 1
            yield Finding(name, line, rule["name"], f"`{match[0]}`: use {rule['use']}")


def check_lines(name: Path, text: str, sizes: dict[str, int]) -> Iterator[Finding]:
    lines = text.splitlines()
    is_test = "testing" in name.parts or bool(re.search(r"_(test|bench)\.cc$|^test_", name.name))
    limit = sizes["test_lines" if is_test else "file_lines"]
    if len(lines) > limit:
        yield Finding(
            name, limit + 1, "size", f"{len(lines)} lines, limit {limit}: split by subject"
        )
    for number, line in enumerate(lines, 1):
        if len(line) > sizes["columns"]:
            yield Finding(name, number, "size", f"{len(line)} columns, limit {sizes['columns']}")
        if not line.isascii():
            bad = next(c for c in line if not c.isascii())
            yield Finding(name, number, "ascii", f"U+{ord(bad):04X}: write ASCII or an escape")


def check_header(name: Path, text: str) -> Iterator[Finding]:
    lines = text.splitlines()
    opening = []
    for line in lines:
        if not line.startswith("//"):
            break
        opening.append(line)
    pragma = len(opening) + 1
    if "#pragma once" not in lines[: pragma + 2]:
        yield Finding(name, pragma, "header", "no `#pragma once` right after the opening comment")
    if not opening or opening[0].startswith(("// Thread-safety:", "// Ownership:")):
        yield Finding(name, 1, "header", "the first line must say what the header is for")
    for word in ("Thread-safety:", "Ownership:"):
        if not any(line.startswith(f"// {word}") for line in opening):
            yield Finding(name, 1, "header", f"the opening comment has no line `// {word} ...`")


def check_python_functions(name: Path, text: str, limit: int) -> Iterator[Finding]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > limit:
                yield too_long(name, node.lineno, length, limit)
