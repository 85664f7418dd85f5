"""Data frames out as they came in, without needing pandas or polars."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def like_frame(X: Any, filled: NDArray[Any]) -> Any:
    """`filled` as a frame like X if X is a pandas or polars one: same labels, columns that had
    no holes untouched. Otherwise the array as it is."""
    module = type(X).__module__.partition(".")[0]
    if module == "pandas" and hasattr(X, "columns"):
        frame = X.copy()
        for position in np.flatnonzero(X.isna().to_numpy().any(axis=0)):
            values = X.iloc[:, position]
            column = type(values)(filled[:, position], index=X.index)
            frame.isetitem(position, column.where(values.isna(), values.astype(column.dtype)))
        return frame
    if module == "polars" and hasattr(X, "with_columns"):
        holes = [name for name in X.columns if _has_holes(X[name])]
        columns = {name: filled[:, X.columns.index(name)] for name in holes}
        return X.with_columns(**columns) if columns else X
    return filled


def _has_holes(column: Any) -> bool:
    return bool(column.null_count() or (column.dtype.is_float() and column.is_nan().any()))
