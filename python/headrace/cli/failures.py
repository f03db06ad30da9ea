"""What ends a command early, beside the package's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import InvalidArgumentError

EXIT_OK = 0
EXIT_FAILED = 1  # a check failed, or the work could not be done
EXIT_USAGE = 2  # the command line asks for something that cannot be meant
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_PIPE_CLOSED = 141  # 128 + SIGPIPE
EXIT_TERMINATED = 143  # 128 + SIGTERM


class UsageError(Exception):
    """The command line asks for something that cannot be meant; ends with 2."""

    code = "usage"


class Failure(Exception):
    """The work could not be done; ends with 1."""

    code = "failed"

    def __init__(self, message: str, code: str = "failed") -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def arguments_of_user() -> Iterator[None]:
    """Around calls whose arguments are the command line's: what they refuse is wrong usage."""
    try:
        yield
    except InvalidArgumentError as error:
        raise UsageError(str(error)) from error


def out_is_there(error: InvalidArgumentError) -> Failure | None:
    """The failure to report when `error` says that the output would have to be overwritten.

    What lies there is no mistake of the command line, and the remedy is an option here.
    """
    text = str(error)
    if "overwrite" not in text:
        return None
    if "overwrite=True" in text:
        return Failure(text.replace("overwrite=True", "--overwrite"), "exists")
    return Failure(f"{text} (--overwrite)", "exists")


class BadRow(Failure):
    """One row of a source cannot be packed; the message names its place."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}", "invalid_argument")


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived. Not an Exception, so that only clean-up code sees it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum
