"""Convert user input to rows of floats, or refuse it; nothing is reinterpreted silently."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import dense_with_holes
from .base import DataError
from .frames import checked_frame, has_columns

# A sparse matrix without entries and with more features than this is taken for a mistake.
LARGEST_EMPTY = 1 << 20
# What NumPy raises when values cannot be converted to floats.
NOT_NUMBERS = (TypeError, ValueError, OverflowError)
# What SciPy raises when the arrays of a sparse matrix are inconsistent.
SPARSE_FAULTS = (*NOT_NUMBERS, AttributeError, IndexError, MemoryError, RuntimeError)
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The float dtype in which numbers of a dtype are learned."""
    return dtype if dtype in FLOATS else np.dtype(np.float64)


def as_floats(X: NDArray[Any]) -> NDArray[Any]:
    """Numbers in the dtype in which they are learned; infinite on overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(X, float_type(X.dtype))


def as_rows(item: Any, name: str) -> NDArray[Any]:
    """One row or a block of them as floats, NaN where missing."""
    if scipy.sparse.issparse(item):
        item = checked_sparse(item, name)
        check_kind(item.dtype, name)
        return dense_with_holes(item.astype(float_type(item.dtype)))
    item = checked_frame(item, name) if has_columns(item) else without_mask(item)
    try:
        if not isinstance(getattr(item, "dtype", None), np.dtype):
            item = np.asarray(item)  # lists with None are objects to NumPy
        check_kind(item.dtype, name)
        rows = as_floats(item)
    except NOT_NUMBERS as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: non-numeric values ({error}).") from error
    if rows.ndim not in (1, 2) or rows.shape[-1] == 0:
        raise DataError(
            f"{name}: an array of shape {rows.shape}. "
            f"Bring rows (n_features,) or blocks of them (n_rows, n_features)."
        )
    return np.atleast_2d(rows)


def without_mask(X: Any) -> Any:
    """A masked array as an array with NaN for masked entries; other arrays unchanged."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    check_kind(X.dtype, "the masked array")
    mask, known = np.ma.getmaskarray(X), np.array(X.data)
    try:
        known[mask] = 0  # masked values may be anything
        return np.where(mask, np.nan, as_floats(known))
    except NOT_NUMBERS as error:
        raise DataError(f"the masked array: non-numeric values ({error}).") from error


def check_kind(dtype: np.dtype[Any], name: str) -> None:
    """Refuse dtypes that NumPy would convert to floats with loss of meaning."""
    if dtype.kind == "c":
        raise DataError(f"{name}: complex numbers. Give real and imaginary parts as features.")
    if dtype.kind in "mM":
        raise DataError(f"{name}: dates or times ({dtype}), not numbers.")


def checked_sparse(X: Any, name: str) -> Any:
    """The same sparse matrix after a check of its indices, which compiled code will follow.

    It shares memory with X, but not SciPy's cached flags: a user who changed indices may have left
    them unsorted or duplicated.
    """
    try:
        if X.format == "coo":
            _check_within(X.row, X.shape[0], len(X.data))
            _check_within(X.col, X.shape[1], len(X.data))
            X = type(X)((X.data, (X.row, X.col)), shape=X.shape)
        elif X.format in ("csr", "csc"):
            _check_compressed(X, *(X.shape if X.format == "csr" else X.shape[::-1]))
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        else:
            _check_lengths(X)
            X = X.tocsr()
            _check_compressed(X, *X.shape)
    except SPARSE_FAULTS as error:
        raise DataError(f"{name}: not a valid sparse matrix ({error}).") from error
    if X.dtype.kind not in "biufc":
        raise DataError(f"{name}: non-numeric values ({X.dtype}).")
    return X


def _check_compressed(X: Any, across: int, along: int) -> None:
    """Raise a ValueError for inconsistent row pointers or indices out of range."""
    starts = X.indptr
    if starts.shape != (across + 1,) or starts.dtype.kind not in "iu" or starts[0] != 0:
        raise ValueError("its row pointers do not fit its shape")
    if (starts[1:] < starts[:-1]).any() or starts[-1] > len(X.data):
        raise ValueError("its row pointers decrease, or exceed the number of entries")
    _check_within(X.indices, along, len(X.data))


def _check_lengths(X: Any) -> None:
    """Raise a ValueError for inconsistent arrays of BSR, DIA and LIL matrices."""
    if X.format == "bsr":
        _check_compressed(X, *(n // k for n, k in zip(X.shape, X.data.shape[1:], strict=True)))
    elif X.format == "dia" and X.data.shape[:-1] != X.offsets.shape:
        raise ValueError("its numbers of offsets and diagonals differ")
    elif X.format == "lil":
        rows, data = ([len(row) for row in part] for part in (X.rows, X.data))
        if rows != data or len(rows) != X.shape[0]:
            raise ValueError("its numbers of positions and entries differ in a row")


def _check_within(positions: NDArray[Any], size: int, count: int) -> None:
    """Raise a ValueError unless there are `count` positions from 0 to `size` − 1."""
    if positions.shape != (count,) or positions.dtype.kind not in "iu":
        raise ValueError("its numbers of positions and entries differ")
    if count and not 0 <= positions.min() <= positions.max() < size:
        raise ValueError("an entry is outside the matrix")


def refuse_huge_and_empty(X: Any, name: str) -> None:
    """Raise a DataError for a huge sparse matrix without entries."""
    if X.nnz == 0 and X.shape[1] > LARGEST_EMPTY:
        raise DataError(f"{name}: no entry is stored, so every value is missing.")
