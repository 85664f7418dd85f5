"""NumPy's .npz archives: a sparse matrix, or an array that is read while decompressing."""

import lzma
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import dense_with_holes
from ..streams.arrays import with_missing
from ..streams.base import DataError, whole_file
from ..streams.blocks import checked_sparse, float_type
from ..streams.grouped import GroupedSource
from .compression import allowed_size, bomb
from .npy import HEADER_FAULTS, ArrayTable, NpyWriter, read_header, refuse_choice, to_whole
from .reading import Reading
from .registry import Fill, Format, TableSource, TimeColumn, Writer

# What Python's and SciPy's readers raise for a damaged archive. A MemoryError is not a sign of
# damage.
ZIP_FAULTS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, LookupError,
    RuntimeError, *(fault for fault in HEADER_FAULTS if fault is not MemoryError),
)  # fmt: skip
# Bytes read at a time.
PART_BYTES = 1 << 22
# The members of SciPy's sparse matrices; each kind has some of them.
SPARSE_MEMBERS = ("indices", "indptr", "data", "row", "col", "offsets", "shape", "format")


class ZippedSource(TableSource, GroupedSource):
    """An array in a .npz file, read and decompressed from beginning to end."""

    worth_prefetching = True
    path: Path

    def __init__(self, format: Format, path: Path, member: str, reading: Reading) -> None:
        refuse_choice(path, reading)
        self.format, self.name = format, str(path)
        self.path, self.member = path, member
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            shape, _, self.stored = read_header(stream, self.name)
        self.n_rows, self.n_features = shape
        self.n_columns, self.chosen = self.n_features, range(self.n_features)
        self.dtype = float_type(self.stored)
        self.missing = reading.missing_numbers

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return 1

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        done = skip
        for stored in self._stored(skip):
            rows = with_missing(stored.astype(self.dtype, copy=False), self.missing)
            self.check_finite_rows(rows, done)
            done += len(rows)
            yield rows

    def _stored(self, skip: int) -> Iterator[NDArray[Any]]:
        row_bytes = self.n_features * self.stored.itemsize
        at_once = max(1, PART_BYTES // row_bytes)
        left = (self.n_rows or 0) - skip
        with (
            whole_file(self.name, ".npz", *ZIP_FAULTS),
            zipfile.ZipFile(self.path) as archive,
            archive.open(self.member) as stream,
        ):
            read_header(stream, self.name)
            stream.seek(skip * row_bytes, 1)
            while left > 0:
                count = min(left, at_once)
                data = stream.read(count * row_bytes)
                if len(data) < count * row_bytes:
                    raise EOFError(f"{left} rows of those announced are not there")
                left -= count
                yield np.frombuffer(data, self.stored).reshape(-1, self.n_features)

    def rewrites_into(self, target: Format) -> bool:
        """See `TableSource.rewrites_into`."""
        return target is self.format

    def rewrite(self, stream: Any, target: Format, fill: Fill) -> None:
        """See `TableSource.rewrite`; the other arrays are copied."""
        with zipfile.ZipFile(stream, "w") as archive, zipfile.ZipFile(self.path) as old:
            for info in old.infolist():
                if info.filename != self.member:
                    _copy(old, archive, info)
            with archive.open(self.member, "w", force_zip64=True) as member:
                writer = NpyWriter(member, self.n_features, self.stored, self.n_rows)
                for rows in self._filled(fill):
                    writer.write(rows)

    def _filled(self, fill: Fill) -> Iterator[Any]:
        done = 0
        for stored in self._stored(0):
            rows = with_missing(stored.astype(self.dtype), self.missing)
            self.check_finite_rows(rows, done)
            done += len(rows)
            filled = fill(rows, done / (self.n_rows or 1)).rows
            if self.stored.kind != "f":  # as floats, integers might lose digits
                missing = np.isnan(rows) & ~np.isnan(filled)
                stored = stored.copy()
                stored[missing] = to_whole(filled[missing], self.stored)
                filled = stored
            yield filled


class SparseTable(ArrayTable):
    """A sparse matrix in a .npz file; filled, it is an array."""

    def rewrite(self, stream: Any, target: Format, fill: Fill) -> None:
        """See `TableSource.rewrite`."""
        with (
            zipfile.ZipFile(stream, "w") as archive,
            archive.open("X.npy", "w", force_zip64=True) as member,
        ):
            writer = NpyWriter(member, self.n_features, self.dtype, self.n_rows)
            for rows, done in self.in_order():
                writer.write(fill(dense_with_holes(rows), done).rows)


class Npz(Format):
    """An archive with a sparse matrix, a single array, or an array called X."""

    name = "npz"
    endings = (".npz",)
    names_columns = False

    def open(self, path: Path, reading: Reading) -> TableSource:
        """See `Format.open`."""
        path.open("rb").close()  # its errors are clearer
        with whole_file(path, ".npz", *ZIP_FAULTS):
            with zipfile.ZipFile(path) as archive:
                sizes = {info.filename: info.file_size for info in archive.infolist()}
                if "format.npy" in sizes and "data.npy" in sizes:
                    X = _sparse(archive, str(path))
                    return SparseTable(self, X, path, reading)
                member = chosen_member(path, list(sizes))
                with archive.open(member) as stream:
                    header = read_header(stream, str(path))
                    if sizes[member] - stream.tell() < header.n_bytes:
                        raise EOFError(f"{member} has fewer rows than it announces")
            if header.columnwise:
                with np.load(path, allow_pickle=False) as arrays:
                    X = np.ascontiguousarray(arrays[member[:-4]])
                return ArrayTable(self, X, path, reading)
            return ZippedSource(self, path, member, reading)

    def writer(
        self, stream: Any, names: list[str], dtype: np.dtype[Any], time: TimeColumn | None = None
    ) -> Writer:
        """See `Format.writer`."""
        return NpzWriter(stream, names, dtype)


class NpzWriter:
    """An array called X in an archive, through a temporary .npy file."""

    def __init__(self, stream: Any, names: list[str], dtype: np.dtype[Any]) -> None:
        self._stream = stream
        folder = os.path.dirname(os.path.realpath(stream.name))
        self._spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._npy = NpyWriter(self._spool, len(names), dtype)

    def write(self, rows: Any, times: Any = None) -> None:
        """See `Writer.write`."""
        self._npy.write(rows)

    def close(self) -> None:
        """See `Writer.close`."""
        self._npy.close()
        self._spool.seek(0)
        with (
            zipfile.ZipFile(self._stream, "w") as archive,
            archive.open("X.npy", "w", force_zip64=True) as member,
        ):
            shutil.copyfileobj(self._spool, member)
        self._spool.close()


def chosen_member(path: Path, members: list[str]) -> str:
    """The array of a .npz file that holds the rows."""
    arrays = [name for name in members if name.endswith(".npy")]
    for name in arrays:
        if len(arrays) == 1 or name in ("X.npy", "arr_0.npy"):
            return name
    known = ", ".join(name[:-4] for name in arrays) or "none"
    raise DataError(f"{path}: has the arrays {known}. Save the one to read alone, or as X.")


def _sparse(archive: zipfile.ZipFile, name: str) -> Any:
    """The sparse matrix of an archive as CSR, after a check of its members."""
    for member in SPARSE_MEMBERS:
        if f"{member}.npy" in archive.namelist():
            _check_size(archive, f"{member}.npy")
    assert archive.filename is not None
    # A sparse matrix is loaded at once, unlike arrays.
    if sum(info.file_size for info in archive.infolist()) > allowed_size(archive.filename):
        raise bomb(name)
    X = scipy.sparse.load_npz(archive.filename)
    if X.ndim != 2 or X.dtype.kind not in "fiub" or X.dtype.itemsize > 8:
        raise ValueError(f"a matrix of {X.ndim} dimensions and type {X.dtype}")
    return checked_sparse(X, name).tocsr()


def _check_size(archive: zipfile.ZipFile, member: str) -> None:
    """Raise an error for a member shorter than its header says, before allocating memory."""
    with archive.open(member) as stream:
        if np.lib.format.read_magic(stream) == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        count = 1
        for size in shape:
            count *= size
        if count < 0 or count * dtype.itemsize > archive.getinfo(member).file_size - stream.tell():
            raise EOFError(f"{member} is shorter than it announces")


def _copy(old: zipfile.ZipFile, new: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Copy a member, however large, in small parts."""
    target = zipfile.ZipInfo(info.filename, info.date_time)
    target.compress_type, target.external_attr = info.compress_type, info.external_attr
    large = info.file_size > 1 << 30
    with old.open(info) as source, new.open(target, "w", force_zip64=large) as member:
        shutil.copyfileobj(source, member, PART_BYTES)
