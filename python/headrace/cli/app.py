"""Assembles the command line, runs one command, and turns every way of ending into an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, ModuleType

from headrace.cli import bench, cat, completion, index, info, pack, verify
from headrace.cli.failures import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_PIPE_CLOSED,
    EXIT_USAGE,
    Failure,
    Terminated,
    UsageError,
)
from headrace.cli.options import Parser
from headrace.cli.output import Output, write_json
from headrace.cli.text import printable

COMMANDS: tuple[ModuleType, ...] = (pack, index, info, cat, verify, bench, completion)

_DESCRIPTION = """\
Packs training data into shards, checks them, looks into them and measures how fast they load.

examples:
  headrace pack photos/ out/photos            class folders of pictures into MDS shards
  headrace info out/photos                    what is in a data set
  headrace cat s3://bucket/photos 0 17        two samples, for people
  headrace verify out/photos                  every byte, offset and hash
  headrace bench s3://bucket/photos           samples per second, waits, memory
"""
_EPILOG = """\
exit codes:
  0  done    1  a check failed or the work could not be done    2  wrong usage
  130  interrupted (Ctrl-C)    141  the reader of the output went away    143  terminated

`headrace COMMAND --help` shows the options and examples of a command.
"""


def build_parser() -> Parser:
    """The whole command line as an argparse tree."""
    parser = Parser(prog="headrace", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"headrace {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in COMMANDS:
        child = commands.add_parser(
            module.NAME, help=module.SUMMARY, description=module.DESCRIPTION, epilog=module.EXAMPLES
        )
        module.add_arguments(child)
        child.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; never raises, never exits, never asks."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = os.environ.get("HEADRACE_DEBUG", "") not in ("", "0") or "--debug" in words
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Under a locale without UTF-8 a character is shown as an escape, which beats failing.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _signals():
            code = _run(words)
            sys.stdout.flush()
        return code
    except SystemExit as stop:  # --help and --version
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_PIPE_CLOSED
    except KeyboardInterrupt:
        _report("interrupted", debug)
        return EXIT_INTERRUPTED
    except Terminated as stop:
        _report("terminated", debug)
        return 128 + stop.signum
    except Exception as error:
        return _fail(error, words, debug)


def _run(words: list[str]) -> int:
    parser = build_parser()
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    out = Output(as_json=getattr(args, "json", False), quiet=getattr(args, "quiet", False))
    code: int = args.run(args, out)
    return code


def _fail(error: Exception, words: list[str], debug: bool) -> int:
    """Says what went wrong, in one line on standard error and as JSON where that was asked for."""
    code, exit_code, message = _classify(error)
    if debug:
        traceback.print_exception(error)
    if "--json" in words:
        try:
            write_json({"error": {"code": code, "message": message}})
            sys.stdout.flush()
        except OSError:
            _silence_stdout()
    _report(f"error: {message}", debug=False)
    return exit_code


def _classify(error: Exception) -> tuple[str, int, str]:
    """(stable code, exit code, message) of an error."""
    from headrace.errors import HeadraceError

    text = str(error) or type(error).__name__
    if isinstance(error, UsageError):
        return error.code, EXIT_USAGE, text
    if isinstance(error, Failure):
        return error.code, EXIT_FAILED, text
    if isinstance(error, HeadraceError):
        return str(error.code), EXIT_FAILED, text
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename is not None else ""
        return "os_error", EXIT_FAILED, f"{name}{error.strerror or text}"
    if isinstance(error, MemoryError):
        return "exhausted", EXIT_FAILED, "out of memory"
    hint = "this is a bug; HEADRACE_DEBUG=1 shows where"
    return "internal", EXIT_FAILED, f"{type(error).__name__}: {text} ({hint})"


def _report(text: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    try:
        sys.stderr.write(f"headrace: {printable(text)}\n")
        sys.stderr.flush()
    except OSError:
        pass  # Nobody can read it.


def _silence_stdout() -> None:
    """Keeps the interpreter from failing once more when it flushes a broken pipe at exit."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
    except (OSError, ValueError):
        pass


@contextmanager
def _signals() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP unwind like Ctrl-C, so that half-made output is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Terminated(signum)

    before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGHUP)}
    for signum, handler in before.items():
        if handler is signal.SIG_DFL:  # nohup's choice to ignore SIGHUP stays
            signal.signal(signum, stop)
    try:
        yield
    finally:
        for signum, handler in before.items():
            if handler is not None:
                signal.signal(signum, handler)


def _version() -> str:
    from headrace import __version__

    return str(__version__)


__all__ = ["COMMANDS", "EXIT_OK", "build_parser", "main"]
