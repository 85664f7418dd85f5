"""Data frames out as they came in, without needing pandas or polars."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def like_frame(X: Any, filled: NDArray[Any]) -> Any:
    """`filled` as a frame like X if X is a pandas or polars one; otherwise as it is.

    Labels and columns without holes stay as they are, and float columns keep their type.
    """
    module = type(X).__module__.partition(".")[0]
    if module == "pandas" and hasattr(X, "columns"):
        return _like_pandas(X, filled)
    if module == "polars" and hasattr(X, "with_columns"):
        return _like_polars(X, filled)
    return filled


def _like_pandas(X: Any, filled: NDArray[Any]) -> Any:
    frame = X.copy()
    for position in np.flatnonzero(X.isna().to_numpy().any(axis=0)):
        given = X.iloc[:, position]
        values = given.to_numpy(dtype=np.float64, na_value=np.nan)
        whole = np.where(np.isnan(values), filled[:, position], values)
        column = type(given)(whole, index=X.index, name=given.name)
        is_float = str(given.dtype).lower() in ("float32", "float64")
        frame.isetitem(position, column.astype(given.dtype) if is_float else column)
    return frame


def _like_polars(X: Any, filled: NDArray[Any]) -> Any:
    columns = []
    for position, given in enumerate(X.get_columns()):
        is_float = given.dtype.is_float()
        if given.null_count() or (is_float and given.is_nan().any()):
            column = type(given)(given.name, filled[:, position])
            columns.append(column.cast(given.dtype) if is_float else column)
    return X.with_columns(columns)
