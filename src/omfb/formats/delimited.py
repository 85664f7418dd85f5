"""Lines of CSV or TSV: which cells are numbers, which are missing, and which are neither.

A row is a line. Cells may be quoted, but a quoted cell may not span lines. What Python's `float`
reads is a number; pyarrow, where it is installed, only does the same faster.
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError, rows_of
from .columns import Columns, choose

MISSING = frozenset([b"", b"NA", b"N/A", b"NaN", b"nan", b"NAN", b"null", b"NULL"])
_MISSING_TEXTS = sorted(text.decode() for text in MISSING)
OPEN_QUOTE = "a quoted cell does not end on its line; put each row on one line"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RowError(DataError):
    """A cell that is no number, in the row-th row (from 0) and the line-th line of a chunk."""

    def __init__(self, row: int, column: str | None, what: str) -> None:
        super().__init__(what)
        self.row, self.line, self.column, self.what = row, row, column, what


@dataclass(frozen=True)
class Delimited:
    """How the lines of one file are to be read.

    Attributes
    ----------
    delimiter : bytes
    names : list of str or None
        Of all columns, if the file has a header.
    n_columns : int
    chosen : list of int
        The columns that are features, in the model's order.
    """

    delimiter: bytes
    names: list[str] | None
    n_columns: int
    chosen: list[int]

    @property
    def header_lines(self) -> int:
        """How many lines come before the first row."""
        return 0 if self.names is None else 1

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the chosen columns."""
        return None if self.names is None else [self.names[i] for i in self.chosen]

    def is_blank(self, line: bytes) -> bool:
        """Whether a line is no row; in a file of one column an empty line is a missing value."""
        return self.n_columns > 1 and not line.strip(b"\r\n")

    def parse(self, chunk: bytes) -> NDArray[np.float64]:
        """The rows of whole lines, NaN where missing, in the order of `chosen`."""
        values = _parse_fast(chunk, self)
        if values is not None:
            return values
        return parse_lines(chunk, self)

    def parse_line(self, line: bytes, row: int = 0) -> list[float]:
        """The chosen values of one line."""
        texts = split(line.rstrip(b"\r\n"), self.delimiter)
        if len(texts) != self.n_columns:
            raise RowError(row, None, self._wrong_count(line, len(texts)))
        if len(self.chosen) < len(texts) or self.chosen != self._all:
            texts = [texts[i] for i in self.chosen]
        try:  # what nearly all lines are: plain numbers and holes
            values = [math.nan if text in MISSING else float(text) for text in texts]
        except ValueError:
            values = [math.inf]
        if math.inf in values or -math.inf in values or b"_" in line:
            values = self._careful(texts, row)
        return values

    @cached_property
    def _all(self) -> list[int]:
        return list(range(self.n_columns))

    def _wrong_count(self, line: bytes, found: int) -> str:
        if line.count(b'"') % 2:
            return OPEN_QUOTE
        if not line.strip():
            return f"an empty line, {self.n_columns} cells expected; delete it"
        return f"{_plural(found, 'cell')} instead of {self.n_columns}; add or remove delimiters"

    def _careful(self, texts: list[bytes], row: int) -> list[float]:
        """The values of the chosen cells; an error names the first that is none."""
        values = []
        for i, text in zip(self.chosen, texts, strict=True):
            try:
                values.append(_number(text))
            except ValueError:
                shown = text[:40].decode("utf-8", "backslashreplace")
                kind = "infinite" if _is_infinite(text) else "not a number"
                what = f"{shown!r} is {kind}; leave the cell empty, or the column out (--columns)"
                if text.count(b'"') % 2:
                    what = OPEN_QUOTE
                raise RowError(row, self.column_name(i), what) from None
        return values

    def column_name(self, column: int) -> str:
        """A column's name as messages give it."""
        return repr(self.names[column]) if self.names is not None else str(column + 1)

    def fill(self, line: bytes, which: Any, values: Any) -> bytes:
        """The line with the cells of the features `which` replaced, and no other byte changed."""
        body = line.rstrip(b"\r\n")
        texts = split(body, self.delimiter)
        for feature, text in zip(which.tolist(), texts_of(values), strict=True):
            texts[self.chosen[feature]] = text
        return self.delimiter.join(texts) + line[len(body) :]


def detect(
    first: bytes, name: str, columns: str | None, header: bool | None, tabs: bool = False,
    wanted: list[str] | None = None,
) -> Delimited:  # fmt: skip
    """How to read a file, from its first line.

    Parameters
    ----------
    first : bytes
    name : str
        Of the file, for messages.
    columns : str or None
        Which columns the user asks for; None is all but an index without a name.
    header : bool or None
        Whether the first line holds names; None is to look: it does if a cell is neither a
        number nor missing.
    tabs : bool
        Whether tabs delimit, whatever the line looks like.
    wanted : list of str or None
        The features of a model, to be found by name.
    """
    line = first.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
    if not line.strip():
        raise DataError(f"{name}: the first line is empty. It must hold column names or numbers.")
    delimiter = b"\t" if tabs else _delimiter(line)
    texts = split(line, delimiter)
    if header is None:
        header = not all(_is_number(text) for text in texts)
    names = [_unquoted(text).decode("utf-8", "replace") for text in texts] if header else None
    chosen = choose(Columns(name, len(texts), names), columns, wanted)
    return Delimited(delimiter, names, len(texts), chosen)


_CELL = {
    mark: re.compile(rb'"(?:[^"]|"")*"[^%b]*|[^%b]*' % (mark, mark)) for mark in (b",", b";", b"\t")
}


def split(line: bytes, delimiter: bytes) -> list[bytes]:
    """The cells of a line, as they are written."""
    if b'"' not in line:
        return line.split(delimiter)
    pattern = _CELL[delimiter]
    texts, at = [], 0
    while True:
        match = pattern.match(line, at)
        assert match is not None  # the pattern matches nothing, too
        texts.append(match.group())
        at = match.end()
        if at >= len(line):
            return texts
        at += 1
        if at == len(line):
            return [*texts, b""]


def texts_of(values: NDArray[Any]) -> list[bytes]:
    """The shortest text for each value that reads back as the same value."""
    if values.dtype.itemsize == 8:
        return [repr(value).encode() for value in values.tolist()]
    return [str(value).encode() for value in values]


def _delimiter(line: bytes) -> bytes:
    bare = re.sub(rb'"(?:[^"]|"")*"', b"", line)
    return next((mark for mark in (b"\t", b";") if mark in bare), b",")


def _number(text: bytes) -> float:
    """The value of a cell; ValueError if it is neither a finite number nor missing."""
    if text in MISSING:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        bare = _unquoted(text)
        if bare in MISSING:
            return math.nan
        value = float(bare)
    if math.isinf(value) or b"_" in text:  # Python reads 1_000 as a number; others do not
        raise ValueError
    return value


def _unquoted(text: bytes) -> bytes:
    text = text.strip()
    if len(text) >= 2 and text.startswith(b'"') and text.endswith(b'"'):
        text = text[1:-1].replace(b'""', b'"').strip()
    return text


def _is_number(text: bytes) -> bool:
    try:
        _number(text)
    except ValueError:
        return False
    return True


def _is_infinite(text: bytes) -> bool:
    try:
        return math.isinf(float(_unquoted(text)))
    except ValueError:
        return False


def parse_lines(chunk: bytes, form: Any) -> NDArray[np.float64]:
    """The rows of whole lines, one by one."""
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


def whole_lines(chunk: bytes) -> list[bytes]:
    """The lines of a chunk with their endings; the last may have none."""
    *ended, last = chunk.split(b"\n")
    lines = [line + b"\n" for line in ended]
    return [*lines, last] if last else lines


def _parse_fast(chunk: bytes, form: Delimited) -> NDArray[np.float64] | None:
    """What pyarrow makes of whole lines; None where it is not installed or finds a fault."""
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        return None
    if len(chunk) < 1 << 14:
        return None  # starting its threads takes longer than reading a few lines
    if b"_" in chunk or chunk.count(b"\r") != chunk.count(b"\r\n"):
        return None  # digits like 1_000 and line endings that only one of both would accept
    names = [str(i) for i in range(form.n_columns)]
    wanted = [names[i] for i in form.chosen]
    try:
        table = csv.read_csv(
            pyarrow.py_buffer(chunk),
            read_options=csv.ReadOptions(column_names=names, block_size=1 << 20),
            parse_options=csv.ParseOptions(
                delimiter=form.delimiter.decode(), ignore_empty_lines=form.n_columns > 1
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pyarrow.float64()),
                include_columns=wanted,
                null_values=_MISSING_TEXTS,
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    rows = rows_of([column.to_numpy() for column in table.columns], np.dtype(np.float64))
    return None if np.isinf(rows).any() else rows


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
