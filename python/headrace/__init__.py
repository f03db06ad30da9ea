"""Headrace streams training data to accelerators so that no rank ever waits."""

from headrace import order
from headrace._core import version as __version__
from headrace.errors import HeadraceError
from headrace.order import Order

__all__ = ["HeadraceError", "Order", "__version__", "order"]
