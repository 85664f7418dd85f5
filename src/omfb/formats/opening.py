"""The stream for whatever the user points at."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..streams.arrays import ArraySource, DaskSource, open_npy, open_npz
from ..streams.base import DataError, Source
from ..streams.iterables import IteratorSource
from .columnar import ARROW_ENDINGS, PARQUET_ENDINGS, ColumnarSource
from .lines import JSON_ENDINGS, TAB_ENDINGS, LineFile, detect_lines, line_kind

LINE_ENDINGS = (".csv", ".txt", *TAB_ENDINGS, *JSON_ENDINGS)
ENDINGS = (*LINE_ENDINGS, ".npy", ".npz", *PARQUET_ENDINGS, *ARROW_ENDINGS)


def open_stream(
    data: Any, *, columns: str | None = None, header: bool | None = None,
    wanted: list[str] | None = None,
) -> Source:  # fmt: skip
    """A stream of the rows of a file, array, frame, Dask array or iterator.

    Parameters
    ----------
    data : path, array-like, frame, Dask array, iterator of rows or blocks, or Source
        A file's kind is told by its ending: .csv .tsv .ndjson .npy .npz .parquet .arrow …
    columns : str or None, default=None
        Which columns of a table are features: names, or numbers from 1, between commas.
    header : bool or None, default=None
        Whether the first line of a CSV file holds names; None is to look.
    wanted : list of str or None, default=None
        The features of a model, to be found by name where the data have names.

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
    if isinstance(data, str | os.PathLike):
        return _open_file(Path(data), columns, header, wanted)
    if columns is not None:
        raise DataError("columns can be chosen of a file only; index the array instead.")
    if type(data).__module__.partition(".")[0] == "dask":
        return DaskSource(data.to_dask_array() if hasattr(data, "to_dask_array") else data)
    if isinstance(data, Iterator):
        return IteratorSource(data)
    return ArraySource(data)


def _open_file(
    path: Path, columns: str | None, header: bool | None, wanted: list[str] | None
) -> Source:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise DataError(
            f"{path}: cannot tell what kind of file it is. Give it one of the endings "
            f"{' '.join(ENDINGS)}."
        )
    if path.is_dir():
        raise DataError(f"{path}: a folder. Give one of the files in it.")
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        return ColumnarSource(path, columns, wanted)
    if ending in LINE_ENDINGS:
        return _open_lines(path, columns, header, wanted)
    if columns is not None:
        raise DataError(f"{path}: --columns chooses columns of tables, not of NumPy files.")
    return open_npy(path) if ending == ".npy" else open_npz(path)


def _open_lines(
    path: Path, columns: str | None, header: bool | None, wanted: list[str] | None
) -> LineFile:
    with path.open("rb") as stream:
        first = stream.readline(1 << 28)
    if not first:
        raise DataError(f"{path}: the file is empty.")
    lines = detect_lines(
        first, str(path), line_kind(path), columns=columns, header=header, wanted=wanted
    )
    return LineFile(path, lines)


def is_stream(X: Any) -> bool:
    """Whether X is to be read block by block: a path, stream, Dask array or iterator."""
    if isinstance(X, str | os.PathLike | Source | Iterator):
        return True
    return type(X).__module__.partition(".")[0] == "dask"
