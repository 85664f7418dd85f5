"""Open a stream for a file, array, frame, Dask array or iterator."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..streams.arrays import ArraySource, DaskSource, names_of
from ..streams.base import DataError, Source
from ..streams.frames import with_plain_floats
from ..streams.iterables import IteratorSource
from .reading import Names, Reading
from .registry import TableSource, format_of


def open_stream(
    data: Any, *, columns: Names = None, exclude: Names = None, header: bool | None = None,
    missing: Any = None, decimal: str = ".", thousands: str | None = None,
    model_features: list[str] | None = None,
) -> Source:  # fmt: skip
    """A stream of the rows of a file, array, frame, Dask array or iterator.

    Parameters
    ----------
    data : path, array-like, frame, Dask array, iterator of rows or blocks, or Source
        The extension of a file says its format: .csv .tsv .ndjson .npy .npz .parquet .arrow …;
        text may be compressed (.csv.gz, .ndjson.zst).
    columns : str, list or None, default=None
        Which columns of a table are features: names, patterns (``"temp_*"``) or numbers from 1
        (``"3,5-8"``), separated by commas in a string. By default the numeric columns.
    exclude : str, list or None, default=None
        Columns that are not features, in the same notation.
    header : bool or None, default=None
        Whether the first line of a CSV file holds names; None detects it.
    missing : str, number, list or None, default=None
        Further values that stand for a missing one, such as ``-999`` or ``["-", "?"]``.
    decimal : str, default="."
        The decimal mark in text.
    thousands : str or None, default=None
        The mark between groups of digits in text.
    model_features : list of str or None, default=None
        The features of a model, which are looked up by name if the data have names.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.formats import open_stream
    >>> stream = open_stream(iter(np.eye(4)))
    >>> stream.n_features, stream.n_rows, stream.rereadable
    (4, None, False)
    """
    if isinstance(data, Source):
        return data
    reading = Reading.of(
        columns=columns, exclude=exclude, header=header, missing=missing, decimal=decimal,
        thousands=thousands, model_features=model_features,
    )  # fmt: skip
    if isinstance(data, str | os.PathLike):
        return open_file(Path(data), reading)
    if reading.chooses:
        raise DataError("columns can only be chosen from a file; index the array instead.")
    if type(data).__module__.partition(".")[0] == "dask":
        if hasattr(data, "to_dask_array"):
            return DaskSource(with_plain_floats(data).to_dask_array(), names_of(data))
        return DaskSource(data)
    if isinstance(data, Iterator):
        return IteratorSource(data)
    return ArraySource(data, missing=reading.missing_numbers)


def open_file(path: Path, reading: Reading) -> TableSource:
    """The rows of a file, in the format that its name says."""
    if path.is_dir():
        raise DataError(f"{path}: a folder. Give one of the files in it.")
    format = format_of(path)
    if path.exists() and not path.is_file() and not format.of_lines:
        raise DataError(f"{path}: a pipe or device. Only CSV and NDJSON can be read from one.")
    source = format.open(path, reading)
    source.reading = reading
    return source


def is_stream(X: Any) -> bool:
    """Whether X is read block by block: a path, stream, Dask array or iterator."""
    if isinstance(X, str | os.PathLike | Source | Iterator):
        return True
    return type(X).__module__.partition(".")[0] == "dask"
