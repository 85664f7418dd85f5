"""The formats by file extension; other packages add theirs through an entry point."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from io import UnsupportedOperation
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError, Source, rows_per_block
from ..streams.row_times import RowTimes, row_times_of
from .reading import Reading

GROUP = "omfb.formats"
COMPRESSED = (".gz", ".zst")


class FormatError(DataError):
    """The format of the output file cannot represent something in the data."""


class Filled(NamedTuple):
    """Filled rows (n, n_features), and extra columns (n, n_extra); NaN is left empty."""

    rows: NDArray[Any]
    further: NDArray[Any]


class TimeColumn(NamedTuple):
    """A first column of times: its name, and whether they have a time zone, which is UTC."""

    name: str
    zoned: bool = False


Times = NDArray[np.float64] | None
"""When rows came, in seconds since 1970, NaN where unknown; None if they have no times."""


class Fill(Protocol):
    """Fills the missing entries of rows, block by block."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of filled values."""

    @property
    def further_names(self) -> list[str]:
        """Names of extra columns after those of the table; usually none."""

    def __call__(
        self, rows: NDArray[Any], done: float | None = None, times: Times = None
    ) -> Filled:
        """The rows, filled; `done` is the share of the file up to these rows."""


class Writer(Protocol):
    """Writes rows, block by block."""

    def write(self, rows: Any, times: Any = None) -> None:
        """Append rows (n, n_columns), with their times if these have a column."""

    def close(self) -> None:
        """Finish the file."""


class TableSource(Source):
    """The rows of a file, which can be filled into another file.

    Attributes
    ----------
    n_columns : int
        Number of columns of the file, features or not.
    chosen : sequence of int
        The columns that are features, in the order of the features.
    reading : Reading
        How the file is read.
    time_column : str or None
        The date column by which the rows are in time order, if there is one.
    zoned : bool
        Whether its dates have a time zone.
    """

    format: "Format"
    n_columns: int
    chosen: Any
    reading: Reading = Reading()
    time_column: str | None = None
    zoned: bool = False
    _row_times: RowTimes | None = None

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`; other markers of missing values give other rows."""
        return {**super().fingerprint(), "cells": self.reading.cells}

    def rewrites_into(self, target: "Format") -> bool:
        """Whether a file of the target's format can hold everything that is in this one."""
        return False

    def rewrite(self, stream: Any, target: "Format", fill: Fill) -> None:
        """Write the filled file to a stream if it `rewrites_into`; observed values stay."""
        raise UnsupportedOperation(f"{self.format.name} files are not rewritten in place")

    def row_times(self) -> RowTimes | None:
        """See `Source.row_times`; of a pipe, those of the rows that have come so far."""
        if self.time_column is None:
            return super().row_times()
        if self._row_times is None:
            self._row_times = row_times_of(self.times_in_order())
        return self._row_times

    def times_in_order(self) -> Iterator[NDArray[np.float64]]:
        """When rows came, some rows at a time, if there is a column that says so."""
        raise UnsupportedOperation(f"{self.format.name} files have no times")

    def timed_blocks(self) -> Iterator[tuple[Any, float | None, Times]]:
        """`in_order`, with the times of the rows."""
        for rows, done in self.in_order():
            yield rows, done, None

    def in_order(self) -> Iterator[tuple[Any, float | None]]:
        """Blocks of finite rows in order, each with the share of the file done so far."""
        length = rows_per_block(self.n_features, self.dtype, 1)
        done = 0
        for rows, position, _ in self.blocks(length, False, np.random.RandomState(0)):
            self.check_finite_rows(rows, done)
            done += rows.shape[0]
            yield rows, self.fraction(position)


class Format(ABC):
    """One kind of file: how to open and write it.

    To add a format, write a subclass and name it in the entry point group ``omfb.formats``.

    Attributes
    ----------
    name : str
    endings : tuple of str
        Extensions of file names, in lower case, with the dot.
    of_lines : bool
        Whether each row is a line, so that files can be piped and compressed.
    takes_batches : bool
        Whether it can hold Arrow record batches with columns of any type.
    names_columns : bool
        Whether its columns have names, which extra columns need.
    """

    name: str
    endings: tuple[str, ...]
    of_lines: bool = False
    takes_batches: bool = False
    names_columns: bool = True

    @abstractmethod
    def open(self, path: Path, reading: Reading) -> TableSource:
        """The rows of a file."""

    @abstractmethod
    def writer(
        self, stream: Any, names: list[str], dtype: np.dtype[Any], time: TimeColumn | None = None
    ) -> Writer:
        """A writer of rows of numbers to a binary stream, after a column of times if given.

        `time` is only given to formats that name their columns, and only if there are times.
        """

    def batch_writer(self, stream: Any, schema: Any) -> Any:
        """A pyarrow writer of record batches, if the format `takes_batches`."""
        raise UnsupportedOperation(f"{self.name} files keep no record batches")


@cache
def built_in() -> tuple[Format, ...]:
    """The formats of this package."""
    from .arrow import Arrow
    from .csv import Csv, Tsv
    from .ndjson import Ndjson
    from .npy import Npy
    from .npz import Npz
    from .parquet import Parquet

    return Csv(), Tsv(), Ndjson(), Npy(), Npz(), Parquet(), Arrow()


@cache
def added() -> tuple[Format, ...]:
    """The formats of other packages, loaded when no built-in one fits."""
    formats = []
    for entry in entry_points(group=GROUP):
        try:
            formats.append(entry.load()())
        except Exception as error:
            raise DataError(f"the format {entry.name!r} of {entry.value} fails: {error}") from error
    return tuple(formats)


def format_named(name: str) -> Format:
    """The built-in format of this name."""
    return next(format for format in built_in() if format.name == name)


def format_of(path: str | Path) -> Format:
    """The format of a file by its extension; a DataError if there is none."""
    path = Path(path)
    packed = path.suffix.lower() in COMPRESSED
    ending = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    for known in (built_in, added):
        for format in known():
            if ending in format.endings and (format.of_lines or not packed):
                return format
    raise DataError(
        f"{path}: cannot tell what kind of file it is. Use one of these extensions: "
        f"{' '.join(endings())}; text may also end in .gz or .zst."
    )


def endings() -> list[str]:
    """All extensions."""
    return [ending for format in (*built_in(), *added()) for ending in format.endings]
