"""Headrace streams training data to accelerators so that no rank ever waits.

Open a data set where it lies, iterate over shuffled batches, and resume on any number of ranks from
one small state: see ``open``, ``Loader`` and ``Order``; ``Writer`` packs, ``build_index`` indexes.
"""

from headrace import errors, order
from headrace._core import version as __version__
from headrace.batch import Ragged
from headrace.dataset import Dataset, Shard, open
from headrace.decode import ImageDecode, image
from headrace.errors import HeadraceError
from headrace.indexing import IndexSummary, Problem, build_index, verify
from headrace.loader import Loader
from headrace.order import Order
from headrace.writer import Writer

__all__ = [
    "Dataset",
    "HeadraceError",
    "ImageDecode",
    "IndexSummary",
    "Loader",
    "Order",
    "Problem",
    "Ragged",
    "Shard",
    "Writer",
    "__version__",
    "build_index",
    "errors",
    "image",
    "open",
    "order",
    "verify",
]
