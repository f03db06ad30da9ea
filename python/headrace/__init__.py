"""Headrace streams training data to accelerators so that no rank ever waits."""

from headrace._core import version as __version__

__all__ = ["__version__"]
