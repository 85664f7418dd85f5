"""Data frames out as they came in, without needing pandas or polars."""

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


def numeric_part(X: Any, names: list[str] | None = None) -> Any:
    """The columns of a frame that hold numbers, or those of the given names; others as they are."""
    if not is_frame(X):
        return X
    columns = list(X.columns)
    if names is not None and set(names) <= set(columns):
        return X if columns == names else X[names]
    kept = _numeric(X)
    if not kept:
        raise ValueError("X has no column of numbers to learn from.")
    if len(kept) == len(columns):
        return X
    return X.iloc[:, kept] if hasattr(X, "iloc") else X[:, kept]


def _numeric(X: Any) -> list[int]:
    """Which columns hold numbers, by their position: names may be there twice, or be none."""
    return [at for at in range(len(X.columns)) if non_numeric_kind(X, at) is None]


def like_frame(X: Any, filled: NDArray[Any], names: list[str] | None = None) -> Any:
    """`filled` as a frame like X if X is a pandas or polars one; otherwise as it is.

    Labels and columns without missing entries stay as they are, and float columns keep their type.
    The columns of `filled` are those of the given names, wherever X has them.
    """
    if not is_frame(X):
        return filled
    columns = list(X.columns)
    if names is not None and columns != names and set(names) <= set(columns):
        positions = [columns.index(name) for name in names]
    elif filled.shape[1] < len(columns):
        positions = _numeric(X)
    else:
        positions = list(range(len(columns)))
    like = _like_pandas if hasattr(X, "iloc") else _like_polars
    return like(X, filled, positions)


def _like_pandas(X: Any, filled: NDArray[Any], positions: list[int]) -> Any:
    frame = X.copy()
    for at, position in enumerate(positions):
        given = X.iloc[:, position]
        if not given.isna().any():
            continue
        values = given.to_numpy(dtype=np.float64, na_value=np.nan)
        whole = np.where(np.isnan(values), filled[:, at], values)
        column = type(given)(whole, index=X.index, name=given.name)
        is_float = str(given.dtype).lower() in ("float32", "float64")
        frame.isetitem(position, column.astype(given.dtype) if is_float else column)
    return frame


def _like_polars(X: Any, filled: NDArray[Any], positions: list[int]) -> Any:
    columns = []
    for at, position in enumerate(positions):
        given = X.get_columns()[position]
        is_float = given.dtype.is_float()
        if given.null_count() or (is_float and given.is_nan().any()):
            column = type(given)(given.name, filled[:, at])
            columns.append(column.cast(given.dtype) if is_float else column)
    return X.with_columns(columns)
