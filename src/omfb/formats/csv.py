"""CSV and TSV.

Each row is a line. Cells may be quoted, but a quoted cell may not span lines. A number is what
Python's `float` reads; pyarrow, if installed, does the same faster.
"""

import math
import re
import signal
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.arrays import with_missing
from ..streams.base import DataError, Note, rows_of
from ._cells import Cells, has_marks, is_infinite, may_mean_missing
from ._dates import seconds_of, texts_of_times
from ._header import Layout, date_of_cell, first_line_tells, layout_of
from ._lines import LineFormat
from ._text import BYTE_ORDER_MARK, Lines, RowError, parse_lines, texts_of, whole_lines
from .reading import Reading
from .registry import Format, FormatError, TimeColumn, Writer

# Separators of cells, the least likely to be part of a cell first.
MARKS = (b"\t", b";", b"|", b",")
OPEN_QUOTE = "a quoted cell does not end on its line; put each row on one line"


@dataclass(frozen=True)
class Delimited:
    """How to read the lines of one file.

    Attributes
    ----------
    delimiter : bytes
    names : list of str or None
        Names of all columns, if the file has a header.
    n_columns : int
    chosen : list of int
        The columns that are features, in the model's order.
    cells : Cells
    notes : tuple of Note
    time_column : str or None
        The date column by which the rows are in time order.
    time_at : int or None
        Its position.
    zoned : bool
        Whether its dates have a time zone.
    """

    delimiter: bytes
    names: list[str] | None
    n_columns: int
    chosen: list[int]
    cells: Cells
    notes: tuple[Note, ...] = ()
    time_column: str | None = None
    time_at: int | None = None
    zoned: bool = False

    @property
    def header_lines(self) -> int:
        """Number of lines before the first row."""
        return 0 if self.names is None else 1

    @property
    def column_names(self) -> list[str] | None:
        """See `Lines.column_names`."""
        return self.names

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the chosen columns."""
        return None if self.names is None else [self.names[i] for i in self.chosen]

    def is_blank(self, line: bytes) -> bool:
        """Whether a line is not a row; with one column, an empty line is a missing value."""
        return self.n_columns > 1 and not line.strip(b"\r\n")

    def parse(self, chunk: bytes) -> NDArray[np.float64]:
        """See `Lines.parse`."""
        values = _parse_fast(chunk, self)
        if values is not None:
            return values
        return parse_lines(chunk, self)

    def parse_line(self, line: bytes, row: int = 0) -> list[float]:
        """See `Lines.parse_line`."""
        texts = split(line.rstrip(b"\r\n"), self.delimiter)
        if len(texts) != self.n_columns:
            raise RowError(row, None, self._wrong_count(line, len(texts)))
        if len(self.chosen) < len(texts) or self.chosen != self._all:
            texts = [texts[i] for i in self.chosen]
        if not self.cells.plain or self.cells.missing_numbers:
            return self._values(texts, row)
        missing = self.cells.missing
        try:  # nearly all lines: plain numbers and missing values
            values = [math.nan if text in missing else float(text) for text in texts]
        except ValueError:
            return self._values(texts, row)
        if math.inf in values or -math.inf in values or b"_" in line:
            return self._values(texts, row)
        return values

    def times(self, chunk: bytes) -> NDArray[np.float64] | None:
        """See `Lines.times`."""
        if self.time_at is None:
            return None
        lines = (line for line in whole_lines(chunk) if not self.is_blank(line))
        return np.array([seconds_of(self._date(line, self.time_at)) for line in lines])

    def _date(self, line: bytes, at: int) -> datetime | None:
        if b'"' in line:
            texts = split(line.rstrip(b"\r\n"), self.delimiter)
        else:  # the cells after it need not be found
            texts = line.rstrip(b"\r\n").split(self.delimiter, at + 1)
        return date_of_cell(texts[at]) if at < len(texts) else None

    @cached_property
    def _all(self) -> list[int]:
        return list(range(self.n_columns))

    def _wrong_count(self, line: bytes, found: int) -> str:
        if line.count(b'"') % 2:
            return OPEN_QUOTE
        if not line.strip():
            return f"an empty line, {self.n_columns} cells expected; delete it"
        cells = "1 cell" if found == 1 else f"{found} cells"
        return f"{cells} instead of {self.n_columns}; add or remove delimiters"

    def _values(self, texts: list[bytes], row: int) -> list[float]:
        """The values of the chosen cells; an error names the first that is not a number."""
        values = []
        for i, text in zip(self.chosen, texts, strict=True):
            try:
                values.append(self.cells.value(text))
            except ValueError:
                raise self._cell_error(text, row, i) from None
        return values

    def _cell_error(self, text: bytes, row: int, column: int) -> RowError:
        name = repr(self.names[column]) if self.names is not None else str(column + 1)
        if text.count(b'"') % 2:
            return RowError(row, name, OPEN_QUOTE)
        shown = text[:40].decode("utf-8", "backslashreplace")
        if is_infinite(text):
            return RowError(row, name, f"{shown!r} is infinite; leave the cell empty")
        if has_marks(text):
            problem = f"{shown!r} is not a number; say which mark is the decimal one"
            return RowError(row, name, problem, "decimal")
        if may_mean_missing(text):
            problem = f"{shown!r} is not a number; say so if it means missing"
            return RowError(row, name, problem, "missing")
        problem = f"{shown!r} is not a number; leave the cell empty, or the column out"
        return RowError(row, name, problem, "exclude")

    def fill(self, line: bytes, which: Any, values: Any) -> bytes:
        """See `Lines.fill`."""
        body = line.rstrip(b"\r\n")
        texts = split(body, self.delimiter)
        for feature, text in zip(which.tolist(), texts_of(values), strict=True):
            texts[self.chosen[feature]] = self.cells.written(text, self.delimiter)
        return self.delimiter.join(texts) + line[len(body) :]

    def extend(self, line: bytes, names: list[str], values: Any) -> bytes:
        """See `Lines.extend`."""
        body = line.rstrip(b"\r\n")
        texts = [self.cells.written(text, self.delimiter) for text in texts_of(values)]
        return self.delimiter.join([body, *texts]) + line[len(body) :]

    def extend_header(self, preamble: bytes, names: list[str]) -> bytes:
        """See `Lines.extend_header`; a file without a header gets none."""
        if self.names is None or not names:
            return preamble
        body = preamble.rstrip(b"\r\n")
        texts = [quoted(name, self.delimiter) for name in names]
        return self.delimiter.join([body, *texts]) + preamble[len(body) :]


class Csv(LineFormat):
    """Lines of cells between commas, semicolons, tabs or bars, whichever fits all lines."""

    name = "csv"
    endings: tuple[str, ...] = (".csv", ".txt")
    takes_batches = True
    delimiter = b","
    detects_delimiter = True

    def detect(self, sample: list[bytes], name: str, reading: Reading) -> Delimited:
        """See `LineFormat.detect`."""
        first = sample[0].removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
        if not first.strip():
            raise DataError(
                f"{name}: the first line is empty. It must hold column names or numbers."
            )
        lines = [line.rstrip(b"\r\n") for line in sample[1:]]
        delimiter = self.delimiter_of(first, [line for line in lines if line.strip()], reading)
        texts = split(first, delimiter)
        rows = [split(line, delimiter) for line in lines]
        rows = [row for row in rows if len(row) == len(texts) and any(row)]
        cells = Cells.of(reading)
        found: Layout = layout_of(texts, rows, name, cells, reading)
        return Delimited(
            delimiter, found.names, len(texts), found.chosen, cells, found.notes,
            found.time_column, found.time_at, found.zoned,
        )  # fmt: skip

    def delimiter_of(self, first: bytes, others: list[bytes], reading: Reading) -> bytes:
        """The mark that splits the first line and most of the others into equally many cells.

        A header may have other marks in its names, as in ``temp;C,wind``. If there is only one
        line, or a tie, the first of `MARKS` wins: commas may be decimal marks.
        """
        marks = marks_in(first, reading)
        if not others:
            return marks[0] if marks else self.delimiter

        def lines_alike(mark: bytes) -> int:
            n_cells = len(split(first, mark))
            return sum(len(split(line, mark)) == n_cells for line in others)

        best = max(marks, key=lines_alike, default=self.delimiter)
        return best if lines_alike(best) else self.delimiter

    def recognises(self, first: bytes) -> bool:
        """See `LineFormat.recognises`."""
        return first.lstrip()[:1] not in (b"{", b"[")

    def needs_more(self, first: bytes, reading: Reading) -> bool:
        """See `LineFormat.needs_more`: a model's columns are known by name or number."""
        line = first.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
        texts = split(line, self.delimiter_of(line, [], reading))
        ambiguous = self.detects_delimiter and len(marks_in(line, reading)) > 1
        return ambiguous or not first_line_tells(texts, Cells.of(reading), reading)

    def rewrites(self, lines: Lines, target: Format) -> bool:
        """See `LineFormat.rewrites`: tab-separated lines also fit a .tsv file."""
        tabs = isinstance(lines, Delimited) and lines.delimiter == b"\t"
        return target is self or (isinstance(target, Tsv) and tabs)

    def writer(
        self, stream: Any, names: list[str], dtype: np.dtype[Any], time: TimeColumn | None = None
    ) -> Writer:
        """See `Format.writer`."""
        return CsvWriter(stream, names, self.delimiter, time)

    def batch_writer(self, stream: Any, schema: Any) -> Any:
        """See `Format.batch_writer`."""
        import pyarrow
        from pyarrow import csv

        for field in schema:
            if pyarrow.types.is_nested(field.type):
                raise FormatError(
                    f"text cannot hold column {field.name!r} of type {field.type}: "
                    f"write a .parquet or .arrow file"
                )
        options = csv.WriteOptions(delimiter=self.delimiter.decode())
        return csv.CSVWriter(stream, schema, write_options=options)


class Tsv(Csv):
    """Lines of cells between tabs."""

    name = "tsv"
    endings = (".tsv", ".tab")
    delimiter = b"\t"
    detects_delimiter = False

    def delimiter_of(self, first: bytes, others: list[bytes], reading: Reading) -> bytes:
        """See `Csv.delimiter_of`."""
        return b"\t"

    def recognises(self, first: bytes) -> bool:
        """See `LineFormat.recognises`: a first line with tabs is read as CSV between tabs."""
        return False


class CsvWriter:
    """Rows of numbers as lines, after a header."""

    def __init__(
        self, stream: Any, names: list[str], delimiter: bytes, time: TimeColumn | None = None
    ) -> None:
        self._stream, self._delimiter, self._time = stream, delimiter, time
        names = names if time is None else [time.name, *names]
        stream.write(delimiter.join(quoted(name, delimiter) for name in names) + b"\n")

    def write(self, rows: Any, times: Any = None) -> None:
        """See `Writer.write`."""
        first: list[list[bytes]] = [[] for _ in rows]
        if self._time is not None:
            first = [[text.encode()] for text in texts_of_times(times, self._time.zoned)]
        for row, time in zip(rows, first, strict=True):
            self._stream.write(self._delimiter.join([*time, *texts_of(row)]) + b"\n")

    def close(self) -> None:
        """See `Writer.close`."""


def quoted(name: str, delimiter: bytes) -> bytes:
    """A name as it is written between delimiters."""
    text = name.encode("utf-8", "surrogateescape")
    if any(mark in text for mark in (delimiter, b'"', b"\n", b"\r")):
        text = b'"' + text.replace(b'"', b'""') + b'"'
    return text


_CELL = {mark: re.compile(rb'"(?:[^"]|"")*"[^%b]*|[^%b]*' % (mark, mark)) for mark in MARKS}
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')


def marks_in(line: bytes, reading: Reading) -> list[bytes]:
    """The marks outside of quotes that may separate cells."""
    bare = _QUOTED.sub(b"", line)
    marks = [mark for mark in MARKS if mark in bare]
    in_numbers = {reading.decimal.encode(), reading.thousands.encode()}
    return [mark for mark in marks if mark not in in_numbers] or marks


def split(line: bytes, delimiter: bytes) -> list[bytes]:
    """The cells of a line, as they are written."""
    if b'"' not in line:
        return line.split(delimiter)
    pattern = _CELL[delimiter]
    texts, at = [], 0
    while True:
        match = pattern.match(line, at)
        assert match is not None  # the pattern also matches an empty cell
        texts.append(match.group())
        at = match.end()
        if at >= len(line):
            return texts
        at += 1
        if at == len(line):
            return [*texts, b""]


def _parse_fast(chunk: bytes, form: Delimited) -> NDArray[np.float64] | None:
    """The rows of complete lines by pyarrow; None if it is not installed or finds a fault."""
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        return None
    if len(chunk) < 1 << 14:
        return None  # starting its threads takes longer than reading a few lines
    if b"_" in chunk or chunk.count(b"\r") != chunk.count(b"\r\n"):
        return None  # digits like 1_000 and line endings that only one of both would accept
    plain = form.cells.without_groups(chunk)
    if plain is None:
        return None
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # Keep a custom handler of Ctrl-C: pyarrow would install its own, and the thread behind it
        # may abort the process while it exits.
        pyarrow.enable_signal_handlers(False)
    # Copied into pyarrow's memory: its threads release Python objects late, and a process that
    # ends at that moment is aborted.
    lines = pyarrow.BufferOutputStream()
    lines.write(plain)
    names = [str(i) for i in range(form.n_columns)]
    features = [names[i] for i in form.chosen]
    try:
        table = csv.read_csv(
            lines.getvalue(),
            read_options=csv.ReadOptions(column_names=names, block_size=1 << 20),
            parse_options=csv.ParseOptions(
                delimiter=form.delimiter.decode(), ignore_empty_lines=form.n_columns > 1
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(features, pyarrow.float64()),
                include_columns=features,
                null_values=sorted(text.decode() for text in form.cells.missing),
                decimal_point=form.cells.decimal.decode(),
            ),
        )
    # Cancelled: pyarrow saw Ctrl-C; the handler runs after these rows.
    except (pyarrow.ArrowInvalid, pyarrow.ArrowCancelled):
        return None
    if b'"' in chunk:  # a quoted cell may span lines, which `parse_line` refuses
        lines_with_rows = sum(not form.is_blank(line) for line in whole_lines(chunk))
        if len(table) != lines_with_rows:
            return None
    rows = rows_of([column.to_numpy() for column in table.columns], np.dtype(np.float64))
    return None if np.isinf(rows).any() else with_missing(rows, form.cells.missing_numbers)
