"""Types of the columns of pandas, Polars and Dask frames, without importing any of these."""

import datetime
import re
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .base import DataError

# Prefixes of the names of dtypes in all of these libraries.
NUMBERS = re.compile(r"u?int\d|float|half|double|decimal|null|sparse\[(u?int|float)")
OTHERS = {
    "dates or times": ("date", "time", "duration", "period"),
    "intervals": ("interval",),
    "complex numbers": ("complex",),
    "booleans": ("bool",),
    "categories": ("categor", "enum", "dictionary"),
    "structures": ("struct",),
    "text": ("str", "utf8", "large_string"),
}


def refuse_lazy(X: Any) -> None:
    """Refuse a LazyFrame of Polars: even its names would start a computation."""
    if type(X).__name__ == "LazyFrame" and type(X).__module__.startswith("polars"):
        raise TypeError("X is a LazyFrame, whose rows are not known yet. Give X.collect().")


def has_columns(X: Any) -> bool:
    """Whether X is a frame."""
    refuse_lazy(X)
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def non_numeric_kind(X: Any, at: int) -> str | None:
    """The kind of values in a column of a frame; None for numbers.

    A column that mixes numbers and other values raises a DataError.
    """
    dtype = str(list(X.dtypes)[at])
    text = dtype.lower()
    if NUMBERS.match(text):
        return None
    if text == "object":
        return _kind_of_objects(X, at)
    kinds = [kind for kind, names in OTHERS.items() if text.startswith(names)]
    return kinds[0] if kinds else dtype


def checked_frame(X: Any, name: str = "X") -> Any:
    """The frame, checked to contain only numbers; object columns become floats.

    Other values raise a DataError that names their column.
    """
    for at, column in enumerate(X.columns):
        kind = non_numeric_kind(X, at)
        if kind is not None:
            raise DataError(
                f"{name} contains non-numeric values: column {column!r} holds {kind}. Drop or "
                f"encode such columns; NaN is missing."
            )
    return _without_objects(X)


def with_plain_floats(X: Any) -> Any:
    """A Dask dataframe whose columns of pandas' own or pyarrow's numbers are floats of NumPy.

    Arrays made of the others would hold objects, NA among them.
    """
    others = {
        name: np.float32 if str(kind).lower() in ("float32", "float[pyarrow]") else np.float64
        for name, kind in X.dtypes.items()
        if not isinstance(kind, np.dtype)
    }
    return X.astype(others) if others else X


def _without_objects(X: Any) -> Any:
    """The frame with NaN where columns of objects held None, NA or NaT."""
    objects = [at for at, dtype in enumerate(X.dtypes) if str(dtype) == "object"]
    if not objects or not hasattr(X, "isetitem"):
        return X
    X = X.copy(deep=False)
    for at in objects:
        column = X.iloc[:, at]
        X.isetitem(at, column.where(column.notna(), np.nan).astype(np.float64))
    return X


def _kind_of_objects(X: Any, at: int) -> str | None:
    if type(X).__module__.startswith("dask"):
        return "objects"  # looking at the values would start a computation
    column = X.iloc[:, at].dropna() if hasattr(X, "iloc") else X[:, at].drop_nulls()
    examples: dict[type, Any] = {}
    for value in column:
        examples.setdefault(type(value), value)
    others = [kind for kind in examples if kind is bool or not issubclass(kind, Real | Decimal)]
    if not others:
        return None
    what = _described(examples[others[0]])
    if len(others) < len(examples):
        raise DataError(
            f"X contains non-numeric values: column {X.columns[at]!r} holds numbers and {what}. "
            f"Make all of it numbers, with NaN for what is missing, or drop it."
        )
    return what


def _described(value: Any) -> str:
    if isinstance(value, str):
        return f"text ({value[:20]!r})"
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return "dates or times"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    return f"objects ({type(value).__name__})"
