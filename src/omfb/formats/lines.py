"""Files and pipes of lines: CSV, TSV and NDJSON."""

import io
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError, GroupedSource
from . import delimited, ndjson
from .delimited import BYTE_ORDER_MARK, RowError, whole_lines

# What is read at a time: enough for the parser's threads, little beside memory.
GROUP_BYTES = 1 << 23
# A line longer than this is no row of numbers but a file of another kind.
LONGEST_LINE = 1 << 28
# How long a signal, a checkpoint that is due, or a row may have to wait for a silent pipe.
IDLE_SECONDS = 0.2

TAB_ENDINGS = (".tsv", ".tab")
JSON_ENDINGS = (".ndjson", ".jsonl")


class Lines(Protocol):
    """How the lines of a file are read and filled: `Delimited` or `Ndjson`."""

    @property
    def chosen(self) -> list[int]:
        """The columns that are features."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features."""

    @property
    def header_lines(self) -> int:
        """How many lines come before the first row."""

    def is_blank(self, line: bytes) -> bool:
        """Whether a line is no row."""

    def parse(self, chunk: bytes) -> NDArray[np.float64]:
        """The rows of whole lines."""

    def parse_line(self, line: bytes, row: int = 0) -> list[float]:
        """The values of one line."""

    def fill(self, line: bytes, which: Any, values: Any) -> bytes:
        """The line with some of its values written in."""


def detect_lines(
    first: bytes, name: str, kind: str, *, columns: str | None = None, header: bool | None = None,
    wanted: list[str] | None = None,
) -> Lines:  # fmt: skip
    """How to read lines of a kind (csv, tsv, ndjson), from the first of them."""
    if kind == "ndjson":
        return ndjson.detect(first, name, columns, wanted)
    return delimited.detect(first, name, columns, header, kind == "tsv", wanted)


def line_kind(path: str | os.PathLike[str]) -> str:
    """The kind of lines a file of this ending has."""
    ending = Path(path).suffix.lower()
    if ending in JSON_ENDINGS:
        return "ndjson"
    return "tsv" if ending in TAB_ENDINGS else "csv"


class LineFile(GroupedSource):
    """A file of lines. A group is the lines that begin within one stretch of bytes."""

    read_ahead = True

    def __init__(self, path: Path, lines: Lines) -> None:
        self.name = str(path)
        self.path = path
        self._path = path
        self.lines = lines
        self.n_features = len(lines.chosen)
        self.feature_names = lines.feature_names
        self._size = path.stat().st_size
        with path.open("rb") as stream:
            mark = len(BYTE_ORDER_MARK) if stream.read(3) == BYTE_ORDER_MARK else 0
            stream.seek(mark)
            for _ in range(lines.header_lines):
                stream.readline()
            self.first_byte = stream.tell()

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return max(1, -(-(self._size - self.first_byte) // GROUP_BYTES))

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        rows = self._parsed(group)[1]
        if len(rows) > skip:
            yield rows[skip:]

    def parsed_chunks(self) -> Iterator[tuple[bytes, NDArray[Any]]]:
        """Whole lines, and the rows they hold, from the beginning to the end."""
        for group in range(self.n_groups()):
            yield self._parsed(group)

    def preamble(self) -> bytes:
        """What comes before the first row."""
        with self._path.open("rb") as stream:
            return stream.read(self.first_byte)

    def _parsed(self, group: int) -> tuple[bytes, NDArray[Any]]:
        start, chunk = self._chunk(group)
        try:
            return chunk, self.lines.parse(chunk)
        except RowError as error:
            raise self._located(error, start) from None

    def _chunk(self, group: int) -> tuple[int, bytes]:
        """The whole lines that begin in a group's stretch, and the byte where they begin."""
        begin = self.first_byte + group * GROUP_BYTES
        end = min(begin + GROUP_BYTES, self._size)
        with self._path.open("rb") as stream:
            if group > 0:
                stream.seek(begin - 1)
                stream.readline(LONGEST_LINE)  # the end of a line that began before
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
        """The error with its file and row, the chunk having begun at the byte `start`."""
        rows = lines = 0
        with self._path.open("rb") as stream:
            stream.seek(self.first_byte)
            while stream.tell() < start:
                data = stream.read(min(GROUP_BYTES, start - stream.tell()))
                data += b"" if data.endswith(b"\n") else stream.readline()
                rows += sum(not self.lines.is_blank(line) for line in whole_lines(data))
                lines += len(whole_lines(data))
        return located(error, self.name, rows, lines + self.lines.header_lines)

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`."""
        return {**super().fingerprint(), "bytes": self._size}


def located(error: RowError, name: str, rows: int, lines: int) -> DataError:
    """The error as one line that names its place, so many rows and lines before its chunk."""
    row, line = rows + error.row + 1, lines + error.line + 1
    number = f"row {row}" if row == line else f"row {row} (line {line})"
    column = f", column {error.column}" if error.column is not None else ""
    return DataError(f"{name}: {number}{column}: {error.what}.")


class LineReader:
    """Lines of a pipe, as soon as they are there.

    Parameters
    ----------
    stream : binary file
        Anything with a file descriptor, or any binary stream.
    name : str
        For messages.

    Attributes
    ----------
    idle : callable
        Called every now and then while no data come.
    """

    def __init__(self, stream: Any, name: str = "standard input") -> None:
        self.name = name
        self._stream = stream
        self._waiting = bytearray()
        self._ended = False
        self.idle: Callable[[], None] = _nothing
        try:
            self._descriptor = stream.fileno()
        except (AttributeError, io.UnsupportedOperation):
            self._descriptor = None

    def line(self) -> bytes:
        """The next line with its ending; nothing at the end."""
        searched = 0
        while (end := self._waiting.find(b"\n", searched)) < 0 and not self._ended:
            searched = len(self._waiting)
            self._more(1 << 16)
        return self._taken(end + 1 if end >= 0 else len(self._waiting))

    def chunk(self, size: int) -> bytes:
        """Whole lines of about `size` bytes, or what a slow pipe brings in a while; b"" at the end.

        So a row that has arrived is not kept waiting for a million bytes to come after it.
        """
        patience = time.monotonic() + IDLE_SECONDS
        searched, whole = 0, False
        while not self._ended:
            whole = whole or self._waiting.find(b"\n", searched) >= 0
            searched = len(self._waiting)
            if whole and (searched >= size or time.monotonic() >= patience):
                return self._taken(self._waiting.rindex(b"\n") + 1)
            self._more(1 << 20)
        return self._taken(len(self._waiting))

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._waiting[:count])
        del self._waiting[:count]
        return taken

    def _more(self, size: int) -> None:
        """Wait a while for data; `idle` if none come."""
        if len(self._waiting) > LONGEST_LINE:
            raise DataError(f"{self.name}: a line of more than {LONGEST_LINE} bytes is no row.")
        if self._descriptor is None:
            data = self._stream.read(size)
        elif select.select([self._descriptor], [], [], IDLE_SECONDS)[0]:
            data = os.read(self._descriptor, size)
        else:
            self.idle()
            return
        self._ended = not data
        self._waiting += data

    def back(self, line: bytes) -> None:
        """Put a line back, to be the next one."""
        self._waiting[:0] = line


def _nothing() -> None:
    return


class PipeSource(GroupedSource):
    """Lines from a pipe, once, in the order they come."""

    rereadable = False

    def __init__(self, reader: LineReader, lines: Lines, preamble: bytes) -> None:
        self.name = reader.name
        self.reader, self.lines = reader, lines
        self._preamble = preamble
        self.n_features = len(lines.chosen)
        self.feature_names = lines.feature_names

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return 1

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`; the first `skip` rows are read and dropped."""
        done = 0
        for _, rows in self.parsed_chunks():
            done += len(rows)
            if done > skip:
                yield rows[max(0, skip - (done - len(rows))) :]

    def parsed_chunks(self) -> Iterator[tuple[bytes, NDArray[Any]]]:
        """Whole lines, and the rows they hold, to the end of the pipe."""
        done, lines = 0, self.lines.header_lines
        while chunk := self.reader.chunk(GROUP_BYTES >> 3):
            try:
                rows = self.lines.parse(chunk)
            except RowError as error:
                raise located(error, self.name, done, lines) from None
            done += len(rows)
            lines += chunk.count(b"\n")
            yield chunk, rows

    def preamble(self) -> bytes:
        """What comes before the first row."""
        return self._preamble

    def when_idle(self, call: Callable[[], None]) -> None:
        """See `Source.when_idle`."""
        self.reader.idle = call

    def fraction(self, position: Any) -> float | None:
        """Nobody knows."""
        return None


def open_pipe(
    stream: Any, kind: str | None = None, *, columns: str | None = None,
    header: bool | None = None, wanted: list[str] | None = None, name: str = "standard input",
) -> PipeSource:  # fmt: skip
    """Rows from a pipe: NDJSON if its first line begins with a bracket, CSV otherwise."""
    reader = LineReader(stream, name)
    first = reader.line()
    while first and not first.strip():
        first = reader.line()
    if not first:
        raise DataError(f"{name}: no rows. Pipe in CSV or NDJSON.")
    if kind is None:
        kind = "ndjson" if first.lstrip()[:1] in (b"{", b"[") else "csv"
    lines = detect_lines(first, name, kind, columns=columns, header=header, wanted=wanted)
    if lines.header_lines:
        return PipeSource(reader, lines, first)
    bare = first.removeprefix(BYTE_ORDER_MARK)
    reader.back(bare)
    return PipeSource(reader, lines, first[: len(first) - len(bare)])
