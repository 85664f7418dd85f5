"""Sources of rows: blocks from arrays, iterators and files, with positions to resume from."""

from .base import DataError, Position, Source, errors_about, rows_per_block
from .prefetch import read_ahead

__all__ = [
    "DataError",
    "Position",
    "Source",
    "errors_about",
    "read_ahead",
    "rows_per_block",
]
