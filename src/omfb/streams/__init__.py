"""Blocks of rows from arrays, files, frames and pipes, with positions one can return to.

`open_stream` makes a `Source` of whatever it is given; `Source.blocks` is one pass over it.
"""

from .ahead import read_ahead
from .base import DataError, Position, Source, errors_about, rows_per_block
from .opening import is_stream, open_stream

__all__ = [
    "DataError",
    "Position",
    "Source",
    "errors_about",
    "is_stream",
    "open_stream",
    "read_ahead",
    "rows_per_block",
]
