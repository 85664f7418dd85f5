"""Common code of text lines: numbers as text, and errors that name their row."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError, Note

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RowError(DataError):
    """An error about a cell; `row` and `line` (from 0) are within a chunk."""

    def __init__(
        self, row: int, column: str | None, problem: str, parameter: str | None = None
    ) -> None:
        super().__init__(problem, parameter)
        self.row, self.line, self.column, self.problem = row, row, column, problem


class Lines(Protocol):
    """How to read and fill the lines of a file: `Delimited` or `JsonLines`."""

    @property
    def chosen(self) -> list[int]:
        """The columns that are features."""

    @property
    def n_columns(self) -> int:
        """Number of columns, features or not."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features."""

    @property
    def column_names(self) -> list[str] | None:
        """Names of all known columns."""

    @property
    def header_lines(self) -> int:
        """Number of lines before the first row."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about guesses."""

    @property
    def time_column(self) -> str | None:
        """The date column by which the rows are in time order."""

    @property
    def zoned(self) -> bool:
        """Whether its dates have a time zone."""

    def times(self, chunk: bytes) -> NDArray[np.float64] | None:
        """When the rows of complete lines came, NaN where unknown; None without such a column."""

    def is_blank(self, line: bytes) -> bool:
        """Whether a line is not a row."""

    def parse(self, chunk: bytes) -> NDArray[np.float64]:
        """The rows of complete lines, NaN where missing."""

    def parse_line(self, line: bytes, row: int = 0) -> list[float]:
        """The values of one line."""

    def fill(self, line: bytes, which: Any, values: Any) -> bytes:
        """The line with the values of the features `which` filled in, otherwise unchanged."""

    def extend(self, line: bytes, names: list[str], values: Any) -> bytes:
        """The line of a row with extra columns."""

    def extend_header(self, preamble: bytes, names: list[str]) -> bytes:
        """The text before the first row, with the names of extra columns."""


def located(error: RowError, name: str, rows: int, lines: int) -> DataError:
    """The error with its place, given the numbers of rows and lines before its chunk."""
    row, line = rows + error.row + 1, lines + error.line + 1
    number = f"row {row}" if row == line else f"row {row} (line {line})"
    column = f", column {error.column}" if error.column is not None else ""
    return DataError(f"{name}: {number}{column}: {error.problem}.", error.parameter)


def parse_lines(chunk: bytes, form: Lines) -> NDArray[np.float64]:
    """The rows of complete lines, one by one."""
    lines = whole_lines(chunk)
    rows = np.empty((len(lines), len(form.chosen)))
    number = 0
    for at, line in enumerate(lines):
        if not form.is_blank(line):
            try:
                rows[number] = form.parse_line(line, number)
            except RowError as error:
                error.line = at
                raise
            number += 1
    return rows[:number]


def fill_lines(
    chunk: bytes, form: Lines, rows: Any, filled: Any, names: list[str], further: Any
) -> bytes:
    """The lines of a chunk with the entries missing in `rows` filled, and with extra columns.

    What is missing in `filled`, too, stays as it is.
    """
    missing = np.isnan(rows) & ~np.isnan(filled)
    written, number = [], 0
    for line in whole_lines(chunk):
        if not form.is_blank(line):
            which = np.flatnonzero(missing[number])
            if len(which):
                line = form.fill(line, which, filled[number, which])
            if names:
                line = form.extend(line, names, further[number])
            number += 1
        written.append(line)
    return b"".join(written)


def whole_lines(chunk: bytes) -> list[bytes]:
    """The lines of a chunk with their endings; the last may have none."""
    *ended, last = chunk.split(b"\n")
    lines = [line + b"\n" for line in ended]
    return [*lines, last] if last else lines


def texts_of(values: NDArray[Any], missing: bytes = b"") -> list[bytes]:
    """The shortest text for each value that reads back as the same value; NaN is `missing`."""
    texts = map(repr, values.tolist()) if values.dtype.itemsize == 8 else map(str, values)
    return [missing if text == "nan" else text.encode() for text in texts]
