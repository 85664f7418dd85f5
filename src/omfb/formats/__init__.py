"""File formats, one module each: opening, writing and rewriting."""

from ._lines import open_pipe
from .multi_file import MultiFileSource
from .opening import is_stream, open_file, open_stream
from .reading import Reading
from .registry import Filled, Format, FormatError, TableSource, format_named, format_of

__all__ = [
    "Filled",
    "Format",
    "FormatError",
    "MultiFileSource",
    "Reading",
    "TableSource",
    "format_named",
    "format_of",
    "is_stream",
    "open_file",
    "open_pipe",
    "open_stream",
]
