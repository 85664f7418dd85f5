"""Files and pipes of lines: common code of CSV, TSV and NDJSON."""

import stat
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError
from ..streams.grouped import GroupedSource
from ..streams.row_times import NO_TIMES, RowTimes
from ._reader import IDLE_SECONDS, LONGEST_LINE, PART_BYTES, LineReader
from ._text import BYTE_ORDER_MARK, Lines, RowError, fill_lines, located, whole_lines
from .compression import compression_of, open_compressed
from .reading import Reading
from .registry import Fill, Format, TableSource, Times, built_in

# Bytes read at a time: enough for the parser's threads, little memory.
GROUP_BYTES = 1 << 23
# The first lines, from which the layout is detected.
SAMPLE_BYTES, SAMPLE_LINES = 1 << 18, 200


class LineFormat(Format):
    """A format with one row per line."""

    of_lines = True

    @abstractmethod
    def detect(self, sample: list[bytes], name: str, reading: Reading) -> Lines:
        """How to read a file, from its first lines."""

    def detected(self, sample: list[bytes], name: str, reading: Reading) -> Lines:
        """The same; refuses what is no text of bytes."""
        if any(b"\0" in line for line in sample[:2]):
            raise DataError(
                f"{name}: has zero bytes, as UTF-16 and binary files do. Save it as UTF-8 text."
            )
        return self.detect(sample, name, reading)

    @abstractmethod
    def recognises(self, first: bytes) -> bool:
        """Whether a first line looks like this format."""

    @abstractmethod
    def needs_more(self, first: bytes, reading: Reading) -> bool:
        """Whether the first line alone does not determine how to read a pipe."""

    def rewrites(self, lines: Lines, target: Format) -> bool:
        """Whether lines of this kind may stand in a file of the target's format."""
        return target is self

    def open(self, path: Path, reading: Reading) -> TableSource:
        """See `Format.open`; a named pipe is read as a pipe."""
        if not stat.S_ISREG(path.stat().st_mode):
            return open_pipe(path, self.name, reading, str(path))
        if compression_of(path) is not None:
            return CompressedLines(self, path, reading)
        with path.open("rb") as stream:
            sample = whole_lines(stream.read(SAMPLE_BYTES))
            if len(sample) > 1:
                sample = sample[:-1] if not sample[-1].endswith(b"\n") else sample
            elif sample:
                sample[0] += stream.readline(LONGEST_LINE)
        if not sample:
            raise DataError(f"{path}: the file is empty.")
        return LineFile(self, path, self.detected(sample[:SAMPLE_LINES], str(path), reading))


class LineSource(TableSource, GroupedSource):
    """Rows that are lines of text, from a file or a pipe."""

    format: LineFormat
    lines: Lines

    def _know(self, format: LineFormat, lines: Lines, name: str) -> None:
        self.format, self.lines, self.name = format, lines, name
        self.n_features, self.n_columns = len(lines.chosen), lines.n_columns
        self.chosen, self.feature_names = lines.chosen, lines.feature_names
        self.column_names = lines.column_names or ()
        self.notes, self.time_column = lines.notes, lines.time_column
        self.zoned = lines.zoned

    @abstractmethod
    def preamble(self) -> bytes:
        """What comes before the first row."""

    @abstractmethod
    def parsed_chunks(self) -> Iterator[tuple[bytes, NDArray[Any], float | None]]:
        """Complete lines, their rows, and the share done, from the beginning to the end."""

    def times_in_order(self) -> Iterator[NDArray[np.float64]]:
        """See `TableSource.times_in_order`."""
        for chunk in self.chunks():
            times = self.lines.times(chunk)
            assert times is not None
            yield times

    @abstractmethod
    def chunks(self) -> Iterator[bytes]:
        """Complete lines, from the beginning to the end."""

    def timed_blocks(self) -> Iterator[tuple[Any, float | None, Times]]:
        """See `TableSource.timed_blocks`."""
        for chunk, rows, done in self.parsed_chunks():
            yield rows, done, self.lines.times(chunk)

    def rewrites_into(self, target: Format) -> bool:
        """See `TableSource.rewrites_into`."""
        return self.format.rewrites(self.lines, target)

    def rewrite(self, stream: Any, target: Format, fill: Fill) -> None:
        """See `TableSource.rewrite`; observed cells are copied byte for byte."""
        names = fill.further_names
        stream.write(self.lines.extend_header(self.preamble(), names))
        for chunk, rows, done in self.parsed_chunks():
            filled, further = fill(rows, done, self.lines.times(chunk))
            filled = filled.astype(fill.dtype, copy=False)
            stream.write(fill_lines(chunk, self.lines, rows, filled, names, further))


class LineFile(LineSource):
    """A file of lines. A group is the lines that begin within one range of bytes."""

    worth_prefetching = True
    path: Path

    def __init__(self, format: LineFormat, path: Path, lines: Lines) -> None:
        self._know(format, lines, str(path))
        self.path = path
        self._size = path.stat().st_size
        with path.open("rb") as stream:
            mark = len(BYTE_ORDER_MARK) if stream.read(3) == BYTE_ORDER_MARK else 0
            stream.seek(mark)
            for _ in range(lines.header_lines):
                stream.readline()
            self.first_byte = stream.tell()
            if self._size <= GROUP_BYTES:  # short tables: the number of passes depends on it
                self.n_rows = sum(not lines.is_blank(line) for line in whole_lines(stream.read()))

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return max(1, -(-(self._size - self.first_byte) // GROUP_BYTES))

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        rows = self._parsed(group)[1]
        if len(rows) > skip:
            yield rows[skip:]

    def parsed_chunks(self) -> Iterator[tuple[bytes, NDArray[Any], float | None]]:
        """See `LineSource.parsed_chunks`."""
        for group in range(self.n_groups()):
            yield *self._parsed(group), (group + 1) / self.n_groups()

    def chunks(self) -> Iterator[bytes]:
        """See `LineSource.chunks`."""
        for group in range(self.n_groups()):
            yield self._chunk(group)[1]

    def preamble(self) -> bytes:
        """See `LineSource.preamble`."""
        with self.path.open("rb") as stream:
            return stream.read(self.first_byte)

    def _parsed(self, group: int) -> tuple[bytes, NDArray[Any]]:
        start, chunk = self._chunk(group)
        try:
            return chunk, self.lines.parse(chunk)
        except RowError as error:
            raise self._located(error, start) from None

    def _chunk(self, group: int) -> tuple[int, bytes]:
        """The complete lines that begin in a group's range, and the byte where they begin."""
        begin = self.first_byte + group * GROUP_BYTES
        end = min(begin + GROUP_BYTES, self._size)
        with self.path.open("rb") as stream:
            if group > 0:
                stream.seek(begin - 1)
                stream.readline(LONGEST_LINE)  # the rest of a line that began earlier
                begin = stream.tell()
            else:
                stream.seek(begin)
            if begin >= end:
                return begin, b""
            data = stream.read(end - begin)
            if not data.endswith(b"\n"):
                data += stream.readline(LONGEST_LINE)
        return begin, data

    def _located(self, error: RowError, start: int) -> DataError:
        """The error with its file and row, for a chunk that begins at byte `start`."""
        rows = lines = 0
        with self.path.open("rb") as stream:
            stream.seek(self.first_byte)
            while stream.tell() < start:
                data = stream.read(min(GROUP_BYTES, start - stream.tell()))
                data += b"" if data.endswith(b"\n") else stream.readline()
                rows += sum(not self.lines.is_blank(line) for line in whole_lines(data))
                lines += len(whole_lines(data))
        return located(error, self.name, rows, lines + self.lines.header_lines)


class StreamedLines(LineSource):
    """Lines that can only be read from the beginning, as one group."""

    _preamble: bytes

    @abstractmethod
    def begun(self) -> AbstractContextManager[LineReader]:
        """A context with a reader that is at the first row."""

    def preamble(self) -> bytes:
        """See `LineSource.preamble`."""
        return self._preamble

    def chunks(self) -> Iterator[bytes]:
        """See `LineSource.chunks`."""
        with self.begun() as reader:
            while chunk := reader.chunk(GROUP_BYTES >> 3):
                yield chunk

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return 1

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`; the first `skip` rows are read and dropped."""
        done = 0
        for _, rows, _ in self.parsed_chunks():
            done += len(rows)
            if done > skip:
                yield rows[max(0, skip - (done - len(rows))) :]

    def parsed_chunks(self) -> Iterator[tuple[bytes, NDArray[Any], float | None]]:
        """See `LineSource.parsed_chunks`."""
        done, lines = 0, self.lines.header_lines
        with self.begun() as reader:
            while chunk := reader.chunk(GROUP_BYTES >> 3):
                try:
                    rows = self.lines.parse(chunk)
                except RowError as error:
                    self.before_error()
                    raise located(error, self.name, done, lines) from None
                done += len(rows)
                lines += chunk.count(b"\n")
                self.note_times(chunk)
                yield chunk, rows, None

    def note_times(self, chunk: bytes) -> None:
        """Called with the lines that come, which may not come again."""

    def parse_line(self, line: bytes, rows: int, lines: int) -> NDArray[Any]:
        """One line as (1, n_features); `rows` and `lines` came before it."""
        try:
            return np.array([self.lines.parse_line(line)])
        except RowError as error:
            self.before_error()
            raise located(error, self.name, rows, lines) from None

    def before_error(self) -> None:
        """Called before an error about a line is raised."""

    def fraction(self, position: Any) -> float | None:
        """See `Source.fraction`: unknown."""
        return None


class CompressedLines(StreamedLines):
    """A compressed file of lines, which can be read repeatedly."""

    worth_prefetching = True
    path: Path

    def __init__(self, format: LineFormat, path: Path, reading: Reading) -> None:
        self.path = path
        with closing(open_compressed(path)) as stream:
            reader = LineReader(stream, str(path))
            first = reader.line()
            if not first:
                raise DataError(f"{path}: the file is empty.")
            sample = [first, *reader.arrived()[: SAMPLE_LINES - 1]]
        lines = format.detected(sample, str(path), reading)
        self._know(format, lines, str(path))
        self._preamble = _preamble(first, lines)
        self.n_rows = self._n_rows_if_short()

    def _n_rows_if_short(self) -> int | None:
        """The number of rows of a short table, as of one that is not compressed."""
        content = bytearray()
        with closing(open_compressed(self.path)) as stream:
            while part := stream.read(PART_BYTES):
                content += part
                if len(content) > GROUP_BYTES:
                    return None
        rows = whole_lines(bytes(content[len(self._preamble) :]))
        return sum(not self.lines.is_blank(line) for line in rows)

    @contextmanager
    def begun(self) -> Iterator[LineReader]:
        """See `StreamedLines.begun`."""
        with closing(open_compressed(self.path)) as stream:
            reader = LineReader(stream, self.name)
            first = reader.line()
            reader.back(first[len(self._preamble) :])
            yield reader


class PipeSource(StreamedLines):
    """Lines from a pipe: one pass, in their order."""

    rereadable = False

    def __init__(
        self, format: LineFormat, reader: LineReader, lines: Lines, before: bytes, reading: Reading
    ) -> None:
        self._know(format, lines, reader.name)
        self.on_idle = reading.on_idle
        self.reader, self._preamble = reader, before
        reader.idle = self.idle

    def begun(self) -> AbstractContextManager[LineReader]:
        """See `StreamedLines.begun`: a pipe has only one beginning."""
        return nullcontext(self.reader)

    def row_times(self) -> RowTimes | None:
        """See `TableSource.row_times`."""
        return None if self.time_column is None else self._row_times or NO_TIMES

    def note_times(self, chunk: bytes) -> None:
        """See `StreamedLines.note_times`."""
        times = self.lines.times(chunk)
        if times is not None:
            self._row_times = (self._row_times or NO_TIMES).after(times)

    def before_error(self) -> None:
        """Ctrl-C also ends the writer in the middle of a line: let the interrupt come first."""
        time.sleep(IDLE_SECONDS)
        self.idle()


def open_pipe(
    stream: Any, kind: str | None = None, reading: Reading | None = None,
    name: str = "standard input",
) -> PipeSource:  # fmt: skip
    """Rows from a pipe; its kind (csv, tsv, ndjson) is detected from the first line if None."""
    reading = reading or Reading()
    reader = LineReader(stream, name)
    if reading.on_idle is not None:
        reader.idle = reading.on_idle
    first = reader.line()
    while first and not first.strip():
        first = reader.line()
    if not first:
        raise DataError(f"{name}: no rows. Pipe in CSV or NDJSON.")
    format = _line_format(kind, first)
    if format.needs_more(first, reading):
        reader.back(reader.line())
    lines = format.detected([first, *reader.arrived()[: SAMPLE_LINES - 1]], name, reading)
    before = _preamble(first, lines)
    if first != before:
        reader.back(first[len(before) :])
    return PipeSource(format, reader, lines, before, reading)


def _line_format(kind: str | None, first: bytes) -> LineFormat:
    known = [format for format in built_in() if isinstance(format, LineFormat)]
    if kind is not None:
        return next(format for format in known if format.name == kind)
    return next(format for format in known if format.recognises(first))


def _preamble(first: bytes, lines: Lines) -> bytes:
    """The part of the first line that comes before the first row."""
    if lines.header_lines:
        return first
    return first[: len(first) - len(first.removeprefix(BYTE_ORDER_MARK))]
