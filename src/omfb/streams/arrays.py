"""Streams of arrays, memory-mapped or in memory, sparse matrices, frames and Dask arrays."""

import mmap
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .base import DataError, GroupedSource, Position, Source, whole_file

# What Python's and SciPy's readers raise for a damaged archive.
ZIP_FAULTS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, LookupError, TypeError,
    AttributeError, RuntimeError,
)  # fmt: skip
# What NumPy raises for a damaged header, which it reads as Python.
HEADER_FAULTS = (
    ValueError, EOFError, SyntaxError, TypeError, tokenize.TokenError, RecursionError,
)  # fmt: skip
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class ArraySource(Source):
    """Rows of an array, memory map, CSR matrix or frame, in a true random order if shuffled."""

    def __init__(self, X: Any, name: str = "X") -> None:
        self.name = name
        # A plain view of a map: the subclass makes a map of every block, which takes its time.
        self._X = np.asarray(X) if isinstance(X, np.memmap) else X
        self.n_rows, self.n_features = X.shape
        self.feature_names = _names_of(X)
        self.dtype = _float_type(X)
        self.stored = getattr(X, "dtype", self.dtype)
        self._mapped = _mapping(X)
        self.read_ahead = self._mapped is not None

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
        as_stored: bool = False,
    ) -> Iterator[tuple[Any, Position]]:
        """See `Source.blocks`. Of a memory-mapped file, no more than a block stays in memory."""
        n = self._X.shape[0]
        order: Any = None
        if shuffle:
            order = rng.randint(n, size=n) if shuffle == "uniform" else rng.permutation(n)
        for start in range(position or 0, n, length):
            end = min(start + length, n)
            rows = self._rows(slice(start, end) if order is None else order[start:end])
            if self._mapped is not None:
                rows = np.array(rows) if order is None else rows
                self._mapped.madvise(mmap.MADV_DONTNEED)
            yield rows if as_stored else self._floats(rows), end

    def _rows(self, which: Any) -> Any:
        if hasattr(self._X, "iloc"):
            return self._X.iloc[which].to_numpy(dtype=self.dtype, na_value=np.nan)
        rows = self._X[which]
        return rows.to_numpy() if hasattr(rows, "to_numpy") else rows

    def _floats(self, rows: Any) -> Any:
        return rows if rows.dtype == self.dtype else rows.astype(self.dtype)

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`."""
        return (position or 0) / max(self._X.shape[0], 1)


class NpySource(ArraySource):
    """Rows of a memory-mapped .npy file that lie in it one after the other.

    They are read by calls to the system rather than through the map: rows in random order are
    a page fault each, and the pages that come with it have to be dropped again. That takes twice
    the time.
    """

    def __init__(self, X: np.memmap[Any, Any], path: Path) -> None:
        super().__init__(X, str(path))
        self._mapped = None
        self.path = path
        self._path, self._first_byte = path, X.offset
        self._descriptor = -1

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
        as_stored: bool = False,
    ) -> Iterator[tuple[Any, Position]]:
        """See `Source.blocks`."""
        with self._path.open("rb", buffering=0) as file:
            self._descriptor = file.fileno()
            yield from super().blocks(length, shuffle, rng, position, as_stored)

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
            part = target[at * size : (at + 1) * size]
            if os.preadv(self._descriptor, [part], first + number * size) < size:
                self._read(part, first + number * size)
        return rows

    def _read(self, target: memoryview, start: int) -> None:
        """Read as many bytes as there is room for: one call may give fewer."""
        done = 0
        while done < len(target):
            count = os.preadv(self._descriptor, [target[done:]], start + done)
            if count == 0:
                raise DataError(f"{self.name}: the file has become shorter while it was read.")
            done += count


class DaskSource(GroupedSource):
    """A Dask array, a block of rows at a time."""

    name = "the Dask array"
    read_ahead = True

    def __init__(self, X: Any) -> None:
        X = X.rechunk({1: -1})
        self._X = X
        self.n_features = int(X.shape[1])
        self.dtype = X.dtype if X.dtype in FLOATS else np.dtype(np.float64)
        self.n_rows = None if np.isnan(X.shape[0]) else int(X.shape[0])

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return int(self._X.numblocks[0])

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        block = np.asarray(self._X.blocks[group].compute())
        yield block[skip:].astype(self.dtype, copy=False)


class ZippedSource(GroupedSource):
    """An array in a .npz file, read (and decompressed) from its beginning to its end."""

    read_ahead = True

    def __init__(self, path: Path, member: str) -> None:
        self.name = str(path)
        self.path = path
        self._path, self.member = path, member
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            shape, _, self.stored = read_header(stream, self.name)
        self.n_rows, self.n_features = shape
        self.dtype = self.stored if self.stored in FLOATS else np.dtype(np.float64)

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return 1

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        row_bytes = self.n_features * self.stored.itemsize
        at_once = max(1, (1 << 22) // max(row_bytes, 1))
        left = (self.n_rows or 0) - skip
        with (
            whole_file(self.name, ".npz", *ZIP_FAULTS),
            zipfile.ZipFile(self._path) as archive,
            archive.open(self.member) as stream,
        ):
            read_header(stream, self.name)
            stream.seek(skip * row_bytes, 1)
            while left > 0:
                data = stream.read(min(left, at_once) * row_bytes)
                rows = np.frombuffer(data, self.stored).reshape(-1, self.n_features)
                left -= len(rows)
                yield rows.astype(self.dtype, copy=False)


def open_npy(path: Path) -> ArraySource:
    """A .npy file as a memory map."""
    with path.open("rb") as stream:
        read_header(stream, str(path))
    with whole_file(path, ".npy", ValueError, OSError):
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    if X.flags.c_contiguous and hasattr(os, "preadv"):
        return NpySource(X, path)
    return ArraySource(X, str(path))


def open_npz(path: Path) -> Source:
    """The sparse matrix in a .npz file, or the array that is alone in it or is called X."""
    with whole_file(path, ".npz", *ZIP_FAULTS):
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            if "format.npy" in members and "indptr.npy" in members:
                X = scipy.sparse.load_npz(path).tocsr()
                return ArraySource(X, str(path))
        member = chosen_member(path, members)
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            columnwise = read_header(stream, str(path))[1]
        if columnwise:
            with np.load(path, allow_pickle=False) as arrays:
                return ArraySource(np.ascontiguousarray(arrays[member[:-4]]), str(path))
        return ZippedSource(path, member)


def chosen_member(path: Path, members: list[str]) -> str:
    """Which array of a .npz file holds the rows."""
    arrays = [name for name in members if name.endswith(".npy")]
    for name in arrays:
        if len(arrays) == 1 or name in ("X.npy", "arr_0.npy"):
            return name
    known = ", ".join(name[:-4] for name in arrays) or "none"
    raise DataError(f"{path}: has the arrays {known}. Save the one to read alone, or as X.")


def read_header(stream: Any, name: str) -> tuple[tuple[int, int], bool, np.dtype[Any]]:
    """Shape, whether stored by columns, and type of the array that begins here."""
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, columnwise, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, columnwise, dtype = np.lib.format.read_array_header_2_0(stream)
    except HEADER_FAULTS as error:
        raise DataError(f"{name}: not a NumPy array file ({str(error)[:200]}).") from error
    if len(shape) != 2 or dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise DataError(
            f"{name}: an array of shape {shape} and type {dtype}, but rows of numbers are needed: "
            f"two dimensions, of a float or integer type."
        )
    return shape, columnwise, dtype


def _float_type(X: Any) -> np.dtype[Any]:
    dtype = getattr(X, "dtype", None)
    if dtype is not None:
        return dtype if dtype in FLOATS else np.dtype(np.float64)
    kinds = {str(kind).lower() for kind in X.dtypes}
    return FLOATS[0] if kinds == {"float32"} else FLOATS[1]


def _names_of(X: Any) -> list[str] | None:
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def _mapping(X: Any) -> mmap.mmap | None:
    """The memory map behind an array, if its pages can be dropped without losing anything."""
    while isinstance(X, np.ndarray):
        # Pages of a copy-on-write map ("c") are the only copy of what was written to them.
        if isinstance(X, np.memmap) and X.mode in ("r", "r+"):
            mapped = X._mmap  # type: ignore[attr-defined]  # noqa: SLF001
            return mapped if hasattr(mapped, "madvise") else None
        X = X.base
    return None
