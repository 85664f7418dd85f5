"""Sources of rows: blocks from arrays, iterators and files, with positions to resume from."""

from .base import DataError, Position, Source, errors_about, rows_per_block
from .prefetch import prefetched

__all__ = [
    "DataError",
    "Position",
    "Source",
    "errors_about",
    "prefetched",
    "rows_per_block",
]
