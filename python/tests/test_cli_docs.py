"""docs/cli.md says what the program says."""

import importlib.util
from pathlib import Path

from headrace.cli import build_parser

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_is_what_the_parser_gives():
    spec = importlib.util.spec_from_file_location("cli_docs", ROOT / "tools" / "cli_docs.py")
    assert spec is not None and spec.loader is not None
    cli_docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cli_docs)
    wanted = cli_docs.render(build_parser())
    page = (ROOT / "docs" / "cli.md").read_text()
    assert page == wanted, "docs/cli.md is out of date: run tools/cli_docs.py"
    for name, child in cli_docs.commands(build_parser()).items():
        for action in child._actions:
            for option in action.option_strings:
                assert option in page or option in ("-h", "--help"), (name, option)
