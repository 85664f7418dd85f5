"""Streams of arrays, memory-mapped or in memory, sparse matrices, frames and Dask arrays."""

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.weighted import WeightedRows
from .base import Block, Blocks, Position, Source
from .blocks import (
    FLOATS,
    check_kind,
    checked_sparse,
    float_type,
    refuse_huge_and_empty,
    without_mask,
)
from .frames import checked_frame, has_columns
from .grouped import GroupedSource

# Entries from which the observed share of an array is estimated.
SHARE_ENTRIES = 1 << 18


class ArraySource(Source):
    """Rows of an array, memory map, CSR matrix or frame; shuffling permutes all rows.

    Parameters
    ----------
    X : array, memory map, sparse matrix or frame
    name : str
        For messages.
    missing : tuple of float
        Numbers that stand for a missing value.
    """

    def __init__(self, X: Any, name: str = "X", missing: tuple[float, ...] = ()) -> None:
        self.name = name
        X = checked_frame(X, name) if has_columns(X) else without_mask(X)
        if scipy.sparse.issparse(X):
            X = checked_sparse(X, name)
            refuse_huge_and_empty(X, name)
            self.is_sparse = True
        # A plain view of the map: slicing the subclass creates a new map object, which is slow.
        self._X = np.asarray(X) if isinstance(X, np.memmap) else X
        self.n_rows, self.n_features = X.shape
        self.feature_names = names_of(X)
        self.dtype = _float_type_of(X, name)
        self.stored = getattr(X, "dtype", self.dtype)
        self.missing = missing
        self._mapped = _mapping(X)
        self.worth_prefetching = self._mapped is not None
        self._order: NDArray[Any] | None = None

    @property
    def share(self) -> float:  # type: ignore[override]
        """See `Source.share`; estimated from rows spread over an array."""
        assert self.n_rows is not None
        if scipy.sparse.issparse(self._X):
            stored: Any = self._X
            return float(stored.nnz) / max(self.n_rows * self.n_features, 1)
        count = max(4, min(256, SHARE_ENTRIES // max(self.n_features, 1)))
        some = np.unique(np.linspace(0, self.n_rows - 1, count).astype(int))
        rows = ArraySource._rows(self, some)  # subclasses may need an open file
        if rows.dtype.kind != "f":
            return 1.0
        return 1.0 - float(np.mean(np.isnan(with_missing(rows, self.missing))))

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """See `Source.blocks`; of a memory map, only one block at a time stays in memory."""
        n = self._X.shape[0]
        order = None
        if shuffle:
            any_row = shuffle == "uniform"
            order = np.asarray(rng.randint(n, size=n) if any_row else rng.permutation(n))
        self._order = order
        for start in range(position or 0, n, length):
            end = min(start + length, n)
            numbers = None if order is None else order[start:end]
            yield Block(self._floats(self._block(start, end, order)), end, numbers)

    def row_number(self, block_length: int, position: Position, at: int) -> int:
        """See `Source.row_number`."""
        number = position - block_length + at
        return number if self._order is None else int(self._order[number])

    def stored_blocks(self, length: int) -> Iterator[Any]:
        """The rows in order, in the dtype in which they are stored."""
        for start in range(0, self._X.shape[0], length):
            yield self._block(start, min(start + length, self._X.shape[0]), None)

    def _block(self, start: int, end: int, order: NDArray[np.int64] | None) -> Any:
        rows = self._rows(slice(start, end) if order is None else order[start:end])
        if self._mapped is not None:
            rows = np.array(rows) if order is None else rows
            self._mapped.madvise(mmap.MADV_DONTNEED)
        return rows

    def _rows(self, which: Any) -> Any:
        if hasattr(self._X, "iloc"):
            return self._X.iloc[which].to_numpy(dtype=self.dtype, na_value=np.nan)
        rows = self._X[which]
        return rows.to_numpy() if hasattr(rows, "to_numpy") else rows

    def _floats(self, rows: Any) -> Any:
        rows = rows if rows.dtype == self.dtype else rows.astype(self.dtype)
        return with_missing(rows, self.missing)

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`."""
        return (position or 0) / max(self._X.shape[0], 1)


class WeightedSource(ArraySource):
    """Rows of an array or CSR matrix that have weights.

    Parameters
    ----------
    rows : WeightedRows
    name : str
        For messages.
    """

    def __init__(self, rows: WeightedRows, name: str = "X") -> None:
        super().__init__(rows.rows, name)
        self._weighted = rows.with_rows(self._X)

    def _rows(self, which: Any) -> Any:
        return self._weighted[which]

    @property
    def share(self) -> float:  # type: ignore[override]
        """See `Source.share`."""
        return ArraySource(self._X).share


class DaskSource(GroupedSource):
    """A Dask array, a block of rows at a time."""

    name = "the Dask array"
    worth_prefetching = True

    def __init__(self, X: Any, names: list[str] | None = None) -> None:
        check_kind(X.dtype, self.name)
        X = X.rechunk({1: -1})
        self._X, self.feature_names = X, names
        self.n_features = int(X.shape[1])
        self.dtype = float_type(X.dtype)
        self.n_rows = None if np.isnan(X.shape[0]) else int(X.shape[0])

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return int(self._X.numblocks[0])

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        block = np.asarray(self._X.blocks[group].compute()).astype(self.dtype, copy=False)
        before = sum(self._X.chunks[0][:group])
        self.check_finite_rows(block, None if np.isnan(before) else int(before))
        yield block[skip:]


def with_missing(rows: Any, missing: tuple[float, ...]) -> Any:
    """A copy of the rows with NaN in place of the numbers that stand for missing values."""
    if not missing:
        return rows
    rows = rows.copy()
    values = rows.data if scipy.sparse.issparse(rows) else rows
    values[np.isin(values, missing)] = np.nan
    return rows


def _float_type_of(X: Any, name: str) -> np.dtype[Any]:
    dtype = getattr(X, "dtype", None)
    if dtype is not None:
        check_kind(dtype, name)
        return float_type(dtype)
    return FLOATS[{str(kind).lower() for kind in X.dtypes} != {"float32"}]


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a frame; None if not all of them are text."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def _mapping(X: Any) -> mmap.mmap | None:
    """The memory map behind an array, if its pages can be dropped without losing data."""
    while isinstance(X, np.ndarray):
        # Pages of a copy-on-write map ("c") are the only copy of data written to them.
        if isinstance(X, np.memmap) and X.mode in ("r", "r+"):
            mapped = X._mmap  # type: ignore[attr-defined]  # noqa: SLF001
            return mapped if hasattr(mapped, "madvise") else None
        X = X.base
    return None
