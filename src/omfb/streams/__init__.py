"""Where rows come from: blocks of arrays, iterators and files, with positions to return to."""

from .. import _moved
from .ahead import read_ahead
from .base import DataError, Position, Source, errors_about, rows_per_block


def __getattr__(name: str) -> object:
    _moved.refuse(f"{__name__}.{name}", ImportError)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DataError",
    "Position",
    "Source",
    "errors_about",
    "read_ahead",
    "rows_per_block",
]
