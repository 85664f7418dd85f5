"""Where rows come from: blocks of arrays, iterators and files, with positions to return to."""

from .ahead import read_ahead
from .base import DataError, Position, Source, errors_about, rows_per_block


def __getattr__(name: str) -> object:
    if name in ("open_stream", "is_stream"):
        raise ImportError(f"omfb.streams.{name} of omfb 0.1 is now omfb.formats.{name}.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DataError",
    "Position",
    "Source",
    "errors_about",
    "read_ahead",
    "rows_per_block",
]
