"""What a user gives as rows, made into floats or refused: nothing is taken for what it is not."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import dense_with_holes
from .base import DataError

# Features of a matrix in which every value is missing: beyond it, its shape is a mistake.
LARGEST_EMPTY = 1 << 20
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which numbers of a type are learned from."""
    return dtype if dtype in FLOATS else np.dtype(np.float64)


def as_rows(item: Any, name: str) -> NDArray[Any]:
    """One row or a block of them as floats, NaN where missing."""
    if scipy.sparse.issparse(item):
        check_sparse(item, name)
        check_kind(item.dtype, name)
        return dense_with_holes(item.astype(float_type(item.dtype)))
    item = without_mask(item)
    dtype = getattr(item, "dtype", None)
    if not isinstance(dtype, np.dtype):
        item = np.asarray(item)
        # Lists with None are objects to NumPy; what is no number among them fails below.
        dtype = item.dtype
    check_kind(dtype, name)
    try:
        rows = np.asarray(item, float_type(dtype))
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: non-numeric values ({error}).") from error
    if rows.ndim not in (1, 2):
        raise DataError(
            f"{name}: {rows.ndim} dimensions. "
            f"Bring rows (n_features,) or blocks of them (n_rows, n_features)."
        )
    return np.atleast_2d(rows)


def without_mask(X: Any) -> Any:
    """An array whose masked entries are NaN; other arrays as they are."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    check_kind(X.dtype, "the masked array")
    floats: Any = X.astype(float_type(X.dtype))
    return floats.filled(np.nan)


def check_kind(dtype: np.dtype[Any], name: str) -> None:
    """Refuse types that NumPy would make into floats by dropping what matters."""
    if dtype.kind == "c":
        raise DataError(f"{name}: complex numbers. Give real and imaginary parts as features.")
    if dtype.kind in "mM":
        raise DataError(f"{name}: dates or times ({dtype}), not numbers.")


def check_sparse(X: Any, name: str) -> None:
    """Refuse a sparse matrix whose indices lead out of it: compiled code would follow them."""
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo" and X.ndim == 2:
            for coordinates, size in zip((X.row, X.col), X.shape, strict=True):
                if len(coordinates) != len(X.data):
                    raise ValueError("as many rows and columns as entries are needed")
                if len(coordinates) and not 0 <= coordinates.min() <= coordinates.max() < size:
                    raise ValueError("an entry lies outside the matrix")
        else:  # made safely, by SciPy itself
            X.tocsr().check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{name}: not a valid sparse matrix ({error}).") from error


def refuse_huge_and_empty(X: Any, name: str) -> None:
    """Refuse a sparse matrix that stores nothing, but asks for a huge dictionary."""
    if X.nnz == 0 and X.shape[1] > LARGEST_EMPTY:
        raise DataError(f"{name}: no entry is stored, so every value is missing.")
