"""Options that several commands share, and the parser that reports errors in one line."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from headrace.cli.failures import UsageError

# argparse words it alike in every version but for the quotes around the choices.
_INVALID_CHOICE = re.compile(r"argument ([^:]+): invalid choice: '([^']*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError in place of printing a page and exiting."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        # An abbreviation that works today would break scripts when a longer option is added.
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(**kwargs)

    def error(self, message: str) -> NoReturn:
        words = self.prog.split(" ")
        choice = _INVALID_CHOICE.match(message)
        if choice is not None:
            known = re.findall(r"[\w.-]+", choice[3])
            what = "command" if choice[1] == "COMMAND" else choice[1]
            hint = did_you_mean(choice[2], known)
            message = f"there is no {what} '{choice[2]}'{hint} (there are: {', '.join(known)})"
        place = f"{' '.join(words[1:])}: " if len(words) > 1 else ""
        raise UsageError(f"{place}{message} (see `{self.prog} --help`)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, extra = super().parse_known_args(args, namespace)
        unknown = [word for word in extra if word.startswith("-") and word != "-"]
        if unknown:
            # A subcommand's parser sees its own options; the error then names the right command.
            word = unknown[0].split("=", 1)[0]
            self.error(f"there is no option {word}{did_you_mean(word, self._option_names())}")
        if extra:
            self.error(f"there is no place for the argument '{extra[0]}'")
        return parsed, extra

    def _option_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """ "; did you mean X?" for the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def number(
    kind: type[int] | type[float], low: float, high: float = float("inf")
) -> Callable[[str], Any]:
    """An argparse type: a number in [low, high]."""

    def convert(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(0) if low > 0 else kind(low) - 1
        if not low <= value <= high:
            upper = f" and at most {high:g}" if high != float("inf") else ""
            raise argparse.ArgumentTypeError(f"'{text}' is not a number of at least {low:g}{upper}")
        return value

    return convert


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?", re.IGNORECASE)


def size(text: str) -> int:
    """An argparse type: "64MB", "1.5GiB", "4096". Units are powers of 1024, as in Mosaic MDS."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 64MB, 1.5GB or 4096")
    value = int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is less than one byte")
    return value


def add_general(parser: argparse.ArgumentParser) -> None:
    """Options of every command that does work."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", action="store_true", help="print one JSON document instead of text"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no notes")
    group.add_argument(
        "--debug",
        action="store_true",
        help="show the Python traceback of an error (also: HEADRACE_DEBUG=1)",
    )


def add_store(parser: argparse.ArgumentParser) -> None:
    """Options of every command that reads a URL."""
    group = parser.add_argument_group("store")
    group.add_argument(
        "--endpoint", metavar="URL", help="S3-compatible server to ask instead of AWS"
    )
    group.add_argument("--region", metavar="NAME", help="region that requests are signed for")
    group.add_argument("--profile", metavar="NAME", help="profile of the shared AWS config files")
    group.add_argument("--anonymous", action="store_true", help="send no signature")
    group.add_argument(
        "--addressing",
        choices=("path", "virtual"),
        help="bucket in the path or in the host name (default: path with --endpoint)",
    )
    group.add_argument("--ca-bundle", metavar="FILE", help="PEM file in place of the system's CAs")
    group.add_argument(
        "--timeout",
        metavar="S",
        type=number(float, 0.001, 86400),
        help="seconds for one request with its retries (default: 60)",
    )
    group.add_argument(
        "--connections",
        metavar="N",
        type=number(int, 1, 1024),
        help="requests in flight at once, at most (default: 16)",
    )


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """The data set a command reads, and where its index is when that lies elsewhere."""
    parser.add_argument(
        "url", metavar="URL", help="folder, s3://, http:// or https:// URL of a data set"
    )
    parser.add_argument("--split", metavar="NAME", help="folder below the URL, e.g. train")
    parser.add_argument("--index", metavar="FILE", help="headrace.index that lies elsewhere")


def store_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The store options of the command line, as keyword arguments of `headrace.open`."""
    names = (
        "endpoint",
        "region",
        "profile",
        "addressing",
        "ca_bundle",
        "timeout",
        "connections",
    )
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.anonymous:
        given["anonymous"] = True
    return given


def open_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Everything of the command line that `headrace.open` takes beside the URL."""
    given = store_arguments(args)
    given.update({n: getattr(args, n) for n in ("split", "index") if getattr(args, n) is not None})
    return given
