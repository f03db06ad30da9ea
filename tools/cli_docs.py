#!/usr/bin/env python3
"""Writes docs/cli.md from the command line's own parser, so that page and program cannot differ.

    tools/cli_docs.py            rewrites docs/cli.md
    tools/cli_docs.py --check    ends with 1 when it is out of date

Needs the installed package. The page is made from the argparse tree and not from `--help`, whose
layout changes between Python versions.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from headrace.cli import build_parser

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

_INTRODUCTION = """\
# The command line

This page is made from the program by `tools/cli_docs.py`; every command prints the same with
`--help`.

Results go to standard output, notes, errors and progress bars to standard error. An error is one
line, `headrace: error: ...`, that says what, where and what to try; `HEADRACE_DEBUG=1` or `--debug`
adds the traceback. Nothing ever asks a question, so every command can run in a job. Progress bars
are drawn on terminals only.

With `--json` a command prints exactly one JSON document. Its `schema` names its kind and version;
a failed command prints `{"error": {"code": ..., "message": ...}}` instead.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a check failed, or the work could not be done |
| 2 | wrong usage |
| 130, 143 | ended by Ctrl-C, or by SIGTERM, after removing half-made output |
| 141 | the reader of the output went away (`headrace cat ... | head`) |
"""


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands' parsers by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise SystemExit("the parser has no commands")


def render(parser: argparse.ArgumentParser) -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for name, child in commands(parser).items():
        parts.append(f"\n## headrace {name}\n")
        parts.append(f"```\nheadrace {name} {' '.join(_synopsis(child))}\n```\n")
        parts.append(f"```text\n{(child.description or '').strip()}\n```\n")
        for group in child._action_groups:
            rows = [_row(action) for action in group._group_actions if action.dest != "help"]
            if rows:
                title = {"positional arguments": "argument", "options": "option"}
                heading = title.get(group.title or "", f"{group.title} option")
                parts.append(f"| {heading} | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
        examples = (child.epilog or "").partition("examples:\n")[2].rstrip()
        lines = [line.removeprefix("  ") for line in examples.splitlines()]
        parts.append("```sh\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def _synopsis(parser: argparse.ArgumentParser) -> list[str]:
    words = ["[OPTIONS]"]
    for action in parser._actions:
        if not action.option_strings:
            word = str(action.metavar or action.dest)
            words.append({"*": f"[{word} ...]", "+": f"{word} [...]"}.get(str(action.nargs), word))
    return words


def _row(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest)
    shown = ", ".join(f"`{name} {value}`".replace(" `", "`") for name in action.option_strings)
    cells = [shown or f"`{value}`", action.help or ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> int:
    arguments = argparse.ArgumentParser(description="writes docs/cli.md")
    arguments.add_argument("--check", action="store_true", help="change nothing, end with 1 if old")
    page = render(build_parser())
    if not arguments.parse_args().check:
        PAGE.write_text(page)
        return 0
    if PAGE.read_text() == page:
        return 0
    print(f"{PAGE} is out of date: run tools/cli_docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
