"""Where rows come from: blocks of arrays, iterators and files, with positions to return to."""

from .ahead import read_ahead
from .base import DataError, Position, Source, errors_about, rows_per_block

__all__ = [
    "DataError",
    "Position",
    "Source",
    "errors_about",
    "read_ahead",
    "rows_per_block",
]
