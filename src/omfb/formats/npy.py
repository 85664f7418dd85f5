"""NumPy's .npy files, read block by block."""

import io
import math
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..streams.arrays import ArraySource
from ..streams.base import Blocks, DataError, Position, rows_per_block, whole_file
from .reading import Reading
from .registry import Fill, Format, TableSource, TimeColumn, Writer

# What NumPy raises for a damaged header, which it parses as Python.
HEADER_FAULTS = (
    ValueError, EOFError, SyntaxError, TypeError, tokenize.TokenError, RecursionError,
    OverflowError, AttributeError, MemoryError,
)  # fmt: skip
# Bytes of a .npy header that fits any number of rows.
NPY_HEADER = 128


class Header(NamedTuple):
    """Shape and type of the array of a .npy file, and whether it is stored by columns."""

    shape: tuple[int, ...]
    columnwise: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class ArrayTable(TableSource, ArraySource):
    """An array as a table: all columns are features."""

    path: Path

    def __init__(self, format: Format, X: Any, path: Path, reading: Reading) -> None:
        refuse_choice(path, reading)
        ArraySource.__init__(self, X, str(path), reading.missing_numbers)
        self.path = path
        self.format, self.n_columns, self.chosen = format, self.n_features, range(self.n_features)

    def rewrites_into(self, target: Format) -> bool:
        """See `TableSource.rewrites_into`."""
        return target is self.format

    def rewrite(self, stream: Any, target: Format, fill: Fill) -> None:
        """See `TableSource.rewrite`."""
        writer = target.writer(stream, [""] * self.n_features, self.stored)
        for rows in filled_blocks(self, fill):
            writer.write(rows)
        writer.close()


class NpySource(ArrayTable):
    """Rows of a .npy file that is stored row by row.

    They are read with system calls rather than through a memory map: there, each row in random
    order is a page fault, and the extra pages have to be dropped again, which takes twice as long.
    """

    def __init__(
        self, format: Format, X: np.memmap[Any, Any], path: Path, reading: Reading
    ) -> None:
        super().__init__(format, X, path, reading)
        self._mapped = None
        self._first_byte = X.offset
        self._file: Any = None

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """See `Source.blocks`."""
        with self.path.open("rb", buffering=0) as self._file:
            yield from super().blocks(length, shuffle, rng, position)

    def stored_blocks(self, length: int) -> Iterator[Any]:
        """See `ArraySource.stored_blocks`."""
        with self.path.open("rb", buffering=0) as self._file:
            yield from super().stored_blocks(length)

    def _rows(self, which: Any) -> NDArray[Any]:
        together = isinstance(which, slice)
        count = which.stop - which.start if together else len(which)
        rows = np.empty((count, self.n_features), self.stored)
        size, first = self.n_features * self.stored.itemsize, self._first_byte
        target = rows.reshape(-1).view(np.uint8).data
        if together:
            self._read(target, first + which.start * size)
            return rows
        for at, number in enumerate(which.tolist()):
            self._read(target[at * size : (at + 1) * size], first + number * size)
        return rows

    def _read(self, target: memoryview, start: int) -> None:
        """Fill the target: one call may read fewer bytes."""
        self._file.seek(start)
        done = 0
        while done < len(target):
            count = self._file.readinto(target[done:])
            if count == 0:
                raise DataError(f"{self.name}: the file became shorter while it was read.")
            done += count


class Npy(Format):
    """One array of two dimensions."""

    name = "npy"
    endings = (".npy",)
    names_columns = False

    def open(self, path: Path, reading: Reading) -> TableSource:
        """See `Format.open`."""
        with path.open("rb") as stream:
            header = read_header(stream, str(path))
            begin = stream.tell()
            size = stream.seek(0, io.SEEK_END) - begin
        if size < header.n_bytes:
            raise DataError(
                f"{path}: not a complete .npy file (rows of {header.n_bytes} bytes are announced, "
                f"{size} are there)."
            )
        with whole_file(path, ".npy", ValueError, OSError):
            X: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        if X.flags.c_contiguous:
            return NpySource(self, X, path, reading)
        return ArrayTable(self, X, path, reading)

    def writer(
        self, stream: Any, names: list[str], dtype: np.dtype[Any], time: TimeColumn | None = None
    ) -> Writer:
        """See `Format.writer`."""
        return NpyWriter(stream, len(names), dtype)


class NpyWriter:
    """An array whose number of rows is written at the end, unless it is known before."""

    def __init__(
        self, stream: Any, width: int, dtype: np.dtype[Any], n_rows: int | None = None
    ) -> None:
        self._stream, self._width, self._dtype = stream, width, dtype
        self._announced, self._written = n_rows, 0
        stream.write(self._header(n_rows or 0))

    def _header(self, n_rows: int) -> bytes:
        shape = f"({n_rows}, {self._width})"
        text = f"{{'descr': '{self._dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
        padded = text.ljust(NPY_HEADER - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()

    def write(self, rows: Any, times: Any = None) -> None:
        """See `Writer.write`."""
        self._stream.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._written += len(rows)

    def close(self) -> None:
        """See `Writer.close`."""
        if self._announced is None:
            self._stream.seek(0)
            self._stream.write(self._header(self._written))
            self._stream.seek(0, io.SEEK_END)


def refuse_choice(path: Path, reading: Reading) -> None:
    """Raise a DataError for options that choose columns: arrays have no names."""
    if reading.chooses:
        parameter = "columns" if reading.columns is not None else "exclude"
        raise DataError(
            f"{path}: columns can be chosen from tables, not from NumPy files.", parameter
        )


def filled_blocks(source: ArrayTable, fill: Fill) -> Iterator[Any]:
    """The rows of an array in its own dtype, with missing values filled.

    Integers are never converted to floats and back, which might lose digits.
    """
    if source.stored.kind == "f":
        for rows, done in source.in_order():
            yield fill(rows, done).rows
        return
    n_done = 0
    for rows in source.stored_blocks(rows_per_block(source.n_features, source.dtype, 1)):
        n_done += rows.shape[0]
        missing = np.isin(rows, source.missing)
        if missing.any():
            floats = np.where(missing, np.nan, rows.astype(source.dtype))
            filled = fill(floats, n_done / source.n_rows).rows
            rows = rows.copy()
            missing &= ~np.isnan(filled)  # others stay as they are
            rows[missing] = to_whole(filled[missing], rows.dtype)
        yield rows


def to_whole(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers rounded to an integer dtype and clipped to its range."""
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    whole = [min(max(round(float(v)), int(limits[0])), int(limits[1])) for v in values]
    return np.array(whole, dtype)


def read_header(stream: Any, name: str) -> Header:
    """The header of the array that begins here."""
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            header = Header(*np.lib.format.read_array_header_1_0(stream))
        else:
            header = Header(*np.lib.format.read_array_header_2_0(stream))
    except HEADER_FAULTS as error:
        raise DataError(f"{name}: not a NumPy array file ({str(error)[:200]}).") from error
    shape, _, dtype = header
    if len(shape) != 2 or dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise DataError(
            f"{name}: an array of shape {shape} and type {dtype}, but rows of numbers are needed: "
            f"two dimensions, of a float or integer type."
        )
    if not all(type(size) is int and 0 < size < 2**63 for size in shape):
        raise DataError(f"{name}: an array of shape {shape} has no rows of numbers.")
    return header
