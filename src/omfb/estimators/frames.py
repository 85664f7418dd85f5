"""Data frames out as they came in, without needing pandas or polars."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.frames import non_numeric_kind


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas, polars or Dask."""
    module = type(X).__module__.partition(".")[0]
    return (module in ("pandas", "dask") and hasattr(X, "iloc") and hasattr(X, "columns")) or (
        module == "polars" and hasattr(X, "with_columns") and hasattr(X, "get_columns")
    )


def like_frame(
    X: Any, filled: NDArray[Any], positions: list[int], *, keep_types: bool = True,
    missing: NDArray[np.bool_] | None = None,
) -> Any:  # fmt: skip
    """The frame X with some of its columns filled.

    Labels, observed entries and columns without missing ones stay as they are. Columns keep their
    type: floats always, integers if the filled values are whole, booleans by rounding.

    Parameters
    ----------
    X : frame of pandas or polars
    filled : ndarray of shape (n_samples, n_features)
    positions : list of int
        Which column of X each feature is.
    keep_types : bool
        If False, as for the bounds of intervals, all but floats become float64.
    missing : ndarray of shape (n_samples, n_features) or None
        Which entries are filled; None is those that the frame says are missing.
    """
    like = _like_pandas if hasattr(X, "iloc") else _like_polars
    return like(X, filled, positions, keep_types, missing)


def _like_pandas(
    X: Any, filled: NDArray[Any], positions: list[int], keep_types: bool, where: Any
) -> Any:
    frame = X.copy()
    for at, position in enumerate(positions):
        given = X.iloc[:, position]
        missing = given.isna().to_numpy(dtype=bool) if where is None else where[:, at]
        if not missing.any():
            continue
        booleans = non_numeric_kind(X, position) == "booleans"
        dtype = "bool" if booleans else str(given.dtype).lower()
        new = _fitting(dtype, filled[missing, at], keep_types)
        if new is None:
            values = given.to_numpy(dtype=np.float64, na_value=np.nan)
            values[missing] = filled[missing, at]
            column = type(given)(values, index=X.index, name=given.name)
        else:
            column = given.copy()
            column.iloc[missing] = new
        frame.isetitem(position, column)
    return frame


def _like_polars(
    X: Any, filled: NDArray[Any], positions: list[int], keep_types: bool, where: Any
) -> Any:
    columns = []
    for at, position in enumerate(positions):
        given = X.get_columns()[position]
        values = given.cast(float).to_numpy()
        missing = np.isnan(values) if where is None else where[:, at]
        if not missing.any():
            continue
        new = _fitting(str(given.dtype).lower(), filled[missing, at], keep_types)
        if new is None:
            column = type(given)(given.name, np.where(missing, filled[:, at], values))
        else:
            whole = np.zeros(len(values), new.dtype)
            whole[missing] = new
            other = type(given)(given.name, whole).cast(given.dtype)
            column = given.zip_with(type(given)(~missing), other)
        columns.append(column)
    return X.with_columns(columns)


def _fitting(dtype: str, new: NDArray[Any], keep_types: bool) -> NDArray[Any] | None:
    """Filled values as a column of a type can hold them; None if it cannot."""
    if dtype.startswith(("float", "double", "half")):
        return new.astype(np.float32 if dtype.startswith(("float32", "float[")) else np.float64)
    if not keep_types:
        return None
    if dtype.startswith("bool"):
        return np.asarray(new >= 0.5)
    bits = re.match(r"u?int(8|16|32|64)", dtype)
    if bits is None or not np.array_equal(new, np.floor(new)):
        return None
    limits = np.iinfo(bits[0])
    # Not `<=`: the largest 64-bit integer becomes a larger float.
    fits = limits.min <= new.min() and new.max() < float(limits.max)
    return new.astype(bits[0]) if fits else None
