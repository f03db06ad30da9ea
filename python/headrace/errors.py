"""What Headrace raises: one tree, whose members are also the built-in exceptions callers expect.

Every error has ``code`` (the same word in C++, Python and JSON) and ``retryable`` (whether trying
again later can help). The message says what, which object, which bytes, and what to try; it never
holds a secret.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "CancelledError",
    "CorruptDataError",
    "DeadlineError",
    "DeniedError",
    "ExhaustedError",
    "HeadraceError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "ThrottledError",
    "UnavailableError",
    "UnimplementedError",
    "UsageError",
]


class HeadraceError(Exception):
    """The root of the tree."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False


class InvalidArgumentError(HeadraceError, ValueError):
    """Something was asked for that cannot be meant."""

    code = "invalid_argument"


class UsageError(InvalidArgumentError, TypeError):
    """A call with an argument that does not exist or does not go with another one."""


class NotFoundError(HeadraceError, FileNotFoundError):
    """The object is not there."""

    code = "not_found"


class DeniedError(HeadraceError, PermissionError):
    """Credentials or permissions refuse it."""

    code = "denied"


class CorruptDataError(HeadraceError, ValueError):
    """The bytes are there, and wrong."""

    code = "corrupt"


class UnavailableError(HeadraceError, ConnectionError):
    """The store cannot answer now."""

    code = "unavailable"
    retryable = True


class ThrottledError(HeadraceError, ConnectionError):
    """The store asks for fewer requests."""

    code = "throttled"
    retryable = True


class DeadlineError(HeadraceError, TimeoutError):
    """Time ran out."""

    code = "deadline"


class CancelledError(HeadraceError):
    """The loader or data set was closed meanwhile."""

    code = "cancelled"


class ExhaustedError(HeadraceError, RuntimeError):
    """A local limit is reached: the memory budget, the disk."""

    code = "exhausted"


class UnimplementedError(HeadraceError, NotImplementedError):
    """Meaningful, and not in this release."""

    code = "unimplemented"


class InternalError(HeadraceError, RuntimeError):
    """A mistake of Headrace itself; please report it."""

    code = "internal"


_BY_CODE: dict[str, type[HeadraceError]] = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        NotFoundError,
        DeniedError,
        CorruptDataError,
        UnavailableError,
        ThrottledError,
        DeadlineError,
        CancelledError,
        ExhaustedError,
        UnimplementedError,
        InternalError,
    )
}


def _from_code(code: str, message: str) -> HeadraceError:
    """The exception for a status of the core, which calls this."""
    return _BY_CODE.get(code, InternalError)(message)
