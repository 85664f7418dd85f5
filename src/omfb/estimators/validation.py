"""Rows as the core takes them, from whatever the user has; what is no number is refused by name."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..streams import Source
from ..streams.blocks import checked_sparse, without_mask
from ..streams.frames import checked_frame, has_columns
from .rows import has_names, is_named_row

FLOATS = [np.float64, np.float32]
# What NumPy says of things that it cannot make numbers of.
NOT_NUMBERS = re.compile(r"could not convert|must be .* a real number")


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


def look_like_counts(X: Any) -> bool:
    """Whether X is a sparse matrix whose absent entries are likely to be zeros.

    That is, if most are absent, and all that it holds are above zero.
    """
    if not scipy.sparse.issparse(X) or X.nnz == 0:
        return False
    return bool(2 * X.nnz < X.shape[0] * X.shape[1] and X.data.min() > 0.0)


def _validated(model: Any, X: Any, *, reset: bool) -> Any:
    """X as an array or CSR matrix of floats, checked by scikit-learn but for infinity.

    Infinity is found by the products that a step needs anyway.
    """
    _refuse_streams(X)
    if has_columns(X):
        X = checked_frame(X)
    else:
        _refuse_dates(X)
        X = without_mask(X)
    if scipy.sparse.issparse(X):
        X = checked_sparse(X, "X")
    try:
        return validate_data(
            model, X, reset=reset, accept_sparse="csr", dtype=FLOATS, ensure_all_finite=False
        )
    # An OverflowError is of whole numbers beyond all floats.
    except (TypeError, ValueError, OverflowError) as error:
        if not isinstance(error, OverflowError) and not NOT_NUMBERS.search(str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"X contains non-numeric values ({error}). Drop or encode such columns; NaN is missing."
        ) from error


def _refuse_streams(X: Any) -> None:
    """Refuse what only `fit` reads: NumPy would take a path for text, and an iterator for a row.

    Also single rows by name, where tables are expected.
    """
    if has_names(X):
        what = f"a {type(X).__name__}" if is_named_row(X) else "a list"
        raise TypeError(
            f"X is {what}: rows by name are for `partial_fit`, `complete`, `interval` and "
            f"`score_samples`. Give a table: an array, a pandas.DataFrame or a sparse matrix."
        )
    if isinstance(X, str | os.PathLike | Iterator | Source):
        what = f"the path {os.fspath(X)!r}" if isinstance(X, str | os.PathLike) else "a stream"
        raise TypeError(
            f"X is {what}, which only `fit` reads. Give rows: an array, a frame or a sparse matrix."
        )


def _refuse_dates(X: Any) -> None:
    """Refuse dates and durations: NumPy would turn them into numbers without a word."""
    dtype = getattr(X, "dtype", None)
    if isinstance(X, list | tuple):
        with suppress(ValueError):  # rows of different lengths, of which scikit-learn tells
            dtype = np.asarray(X).dtype
    if getattr(dtype, "kind", "") in ("M", "m"):
        raise ValueError(
            f"X contains non-numeric values: {dtype}. Encode dates as numbers; NaN is missing."
        )


def codes_array(X: Any) -> NDArray[Any]:
    """Codes as an array of finite floats."""
    from sklearn.utils.validation import check_array

    codes: NDArray[Any] = check_array(X, dtype=FLOATS, input_name="X")
    return codes
