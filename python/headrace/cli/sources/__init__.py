"""What `headrace pack` reads: each kind of source gives columns and a sequence of row makers."""

from headrace.cli.sources.base import Row, RowMaker, Source
from headrace.cli.sources.detect import KINDS, detect_kind, open_source

__all__ = ["KINDS", "Row", "RowMaker", "Source", "detect_kind", "open_source"]
