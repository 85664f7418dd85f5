"""Rows as the core takes them, from whatever the user has; what is no number is refused by name."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..streams.blocks import checked_sparse, without_mask

FLOATS = [np.float64, np.float32]


class Checked:
    """Rows that were found good, and what they say about the features.

    Attributes
    ----------
    rows : ndarray or CSR matrix of float32 or float64
    feature_names : list of str or None
    """

    def __init__(self, rows: Any, feature_names: list[str] | None) -> None:
        self.rows, self.feature_names = rows, feature_names


def first_rows(X: Any, class_name: str) -> Checked:
    """The first rows of a model, checked.

    scikit-learn writes what it finds about features into the estimator. Here it writes into a
    blank one, so that a fit that fails leaves no trace.
    """
    blank = type(class_name, (BaseEstimator,), {})()
    rows = _validated(blank, X, reset=True)
    names = getattr(blank, "feature_names_in_", None)
    return Checked(rows, None if names is None else [str(name) for name in names])


def next_rows(model: Any, X: Any) -> Any:
    """More rows for a fitted model, checked against its features."""
    return _validated(model, X, reset=False)


def _validated(model: Any, X: Any, *, reset: bool) -> Any:
    """X as an array or CSR matrix of floats, checked by scikit-learn but for infinity.

    Infinity is found by the products that a step needs anyway.
    """
    refuse_non_numeric(X)
    X = without_mask(X)
    if scipy.sparse.issparse(X):
        X = checked_sparse(X, "X")
    try:
        return validate_data(
            model, X, reset=reset, accept_sparse="csr", dtype=FLOATS, ensure_all_finite=False
        )
    except (ValueError, OverflowError) as error:  # the latter of whole numbers beyond all floats
        if isinstance(error, ValueError) and "could not convert" not in str(error):
            raise
        raise ValueError(
            f"X contains non-numeric values ({error}). Drop or encode such columns; NaN is missing."
        ) from error


def has_times(X: Any) -> bool:
    """Whether X is a frame whose rows are in time, by its index."""
    return type(getattr(X, "index", None)).__name__ == "DatetimeIndex"


def refuse_non_numeric(X: Any) -> None:
    """Refuse dates, durations, text and complex numbers, by the name of the column if it has one.

    NumPy would turn some of them into numbers without a word.
    """
    columns = getattr(X, "columns", None)
    if columns is not None and hasattr(X, "dtypes"):
        for at, name in enumerate(columns):
            kind = non_numeric_kind(X, at)
            if kind is not None:
                raise ValueError(
                    f"X contains non-numeric values: column {name!r} holds {kind}. Drop or encode "
                    f"such columns; NaN is missing."
                )
        return
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") in ("M", "m"):
        raise ValueError(
            f"X contains non-numeric values: {dtype}. Encode dates as numbers; NaN is missing."
        )


def non_numeric_kind(X: Any, at: int) -> str | None:
    """What the column of a frame at a position holds, if it is not numbers."""
    text = str(list(X.dtypes)[at]).lower()
    if text.startswith(("datetime", "timedelta", "date", "duration", "time", "period")):
        return "dates or times"
    if text.startswith("interval"):
        return "intervals"
    if text.startswith("complex"):
        return "complex numbers"
    if text.startswith("bool"):
        return "booleans"
    if text in ("string", "str", "utf8", "large_string") or text.startswith(("string[", "categor")):
        return "text"
    if text != "object":
        return None
    if type(X).__module__.startswith("dask"):
        return "objects"  # to look at them would compute something
    column = X.iloc[:, at].dropna() if hasattr(X, "iloc") else X[:, at]
    for value in column:
        if isinstance(value, str):
            return f"text ({value[:20]!r})"
        if type(value).__module__ in ("datetime", "pandas._libs.tslibs.timestamps"):
            return "dates or times"
        return None
    return None


def codes_array(X: Any) -> NDArray[Any]:
    """Codes as an array of finite floats."""
    from sklearn.utils.validation import check_array

    codes: NDArray[Any] = check_array(X, dtype=FLOATS, input_name="X")
    return codes
