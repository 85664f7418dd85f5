"""Ratings as users have them: frames, arrays, files, iterators of (user, item, rating[, time])."""

import datetime
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import shown
from ..formats.triplets import PARTS, read_triplets
from .frames import is_frame

Id = int | str
Columns = Sequence[str | int]

# Squares of larger ratings would be infinite.
LARGEST_RATING = 1e100
SMALLEST_ID, LARGEST_ID = -(2**63), 2**63 - 1
FORMS = (
    "a frame, an array or list of (user, item, rating[, time]), an iterator of such, or the path "
    "of a CSV file"
)


class Ratings(NamedTuple):
    """Checked ratings, in the order in which they were given."""

    users: list[Id]
    items: list[Id]
    ratings: NDArray[np.float64]


def read_ratings(X: Any, columns: Columns | None = None) -> Ratings:
    """Ratings from whatever the user has; those with times in the order of time.

    Raises
    ------
    TypeError, ValueError
        For what is no rating, with its row.
    """
    _check_columns(columns)
    parts = _parts(X, columns)
    lengths = {len(part) for part in parts}
    if lengths == {0}:
        raise ValueError("X has no ratings: give at least one.")
    users, items = (ids_of(part, name) for part, name in zip(parts[:2], PARTS, strict=False))
    ratings = _numbers(parts[2])
    if len(parts) < 4:
        return Ratings(users, items, ratings)
    order = np.argsort(_times(parts[3]), kind="stable")
    return Ratings([users[t] for t in order], [items[t] for t in order], ratings[order])


def ids_of(values: Any, name: str) -> list[Id]:
    """Identifiers as plain int and str; anything else is refused."""
    dtype = getattr(values, "dtype", None)
    if isinstance(values, np.ndarray) and dtype is not None and dtype.kind in "iu":
        values = values.tolist()
        if dtype != np.uint64:
            return list(values)
    return [_id(value, name, row) for row, value in enumerate(values)]


def _id(value: Any, name: str, row: int) -> Id:
    if isinstance(value, str):
        if value:
            return str(value)
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        if SMALLEST_ID <= value <= LARGEST_ID:
            return int(value)
    elif isinstance(value, float | np.floating) and float(value).is_integer():
        if abs(float(value)) < 2**53:
            return int(value)
    elif value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        raise ValueError(f"The {name} of row {row} is missing: drop such rows, or name them.")
    raise ValueError(
        f"The {name} of row {row} is {shown(value)}: give text, or whole numbers of 64 bits."
    )


def _check_columns(columns: Columns | None) -> None:
    if columns is None:
        return
    good = isinstance(columns, list | tuple) and len(columns) in (3, 4)
    if not good or not all(isinstance(column, str | int) for column in columns):
        raise ValueError(
            f"columns must be the names of user, item, rating and, optionally, time, got "
            f"{shown(columns)}."
        )
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns names a column twice: {shown(columns)}.")


def _parts(X: Any, columns: Columns | None) -> list[Any]:
    """The columns of X: users, items, ratings and times, if there are any."""
    if isinstance(X, str | os.PathLike):
        return [part for part in read_triplets(Path(X), columns) if part is not None]
    if is_frame(X):
        return _frame_parts(X, columns)
    if columns is not None:
        raise TypeError(
            "columns are for frames and files: of an array they are user, item, rating and time."
        )
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.shape[1] not in (3, 4):
            raise ValueError(
                f"X has the shape {X.shape}: give rows of (user, item, rating[, time])."
            )
        return [X[:, at] for at in range(X.shape[1])]
    if isinstance(X, dict | bytes) or not isinstance(X, Iterable):
        raise TypeError(f"X is {type(X).__name__}: give {FORMS}.")
    return _row_parts(X)


def _frame_parts(X: Any, columns: Columns | None) -> list[Any]:
    names = list(X.columns)
    if type(X).__module__.startswith("dask"):
        raise TypeError("X is a frame of Dask: ratings are held in memory, so give X.compute().")
    if columns is None:
        if len(names) not in (3, 4):
            raise ValueError(
                f"X has {len(names)} columns: say which are user, item, rating and, optionally, "
                f"time (columns=)."
            )
        columns = names
    for column in columns:
        if names.count(column) != 1:
            raise ValueError(f"X has no column {column!r}, or several; it has {shown(names)}.")
    return [column_of(X[column]) for column in columns]


def column_of(column: Any) -> Any:
    """A column of a frame, or another sequence, as an array of numbers or a list."""
    if not hasattr(column, "to_numpy"):
        return list(column)
    values = column.to_numpy()
    if values.dtype.kind in "iufMm":
        return values
    return column.to_list() if hasattr(column, "to_list") else list(column)


def _row_parts(X: Iterable[Any]) -> list[Any]:
    rows = []
    for number, row in enumerate(X):
        if isinstance(row, str | bytes | dict) or not isinstance(row, Iterable):
            raise TypeError(
                f"Row {number} of X is {shown(row)}: rows are (user, item, rating[, time])."
            )
        rows.append(tuple(row))
    widths = {len(row) for row in rows}
    if not rows:
        return [[], [], []]
    if len(widths) > 1 or not widths <= {3, 4}:
        raise ValueError(
            f"Rows of X have {', '.join(map(str, sorted(widths)))} entries: give all of them "
            f"(user, item, rating), or all of them with a time."
        )
    return [list(part) for part in zip(*rows, strict=True)]


def _numbers(values: Any) -> NDArray[np.float64]:
    """Ratings as finite floats."""
    plain = isinstance(values, np.ndarray) and values.dtype.kind in "iuf"
    if not plain:
        values = [_number(value, row) for row, value in enumerate(values)]
    ratings = np.array(values, np.float64)
    bad = np.flatnonzero(~(np.abs(ratings) <= LARGEST_RATING))
    if len(bad):
        what = "missing" if math.isnan(ratings[bad[0]]) else f"{ratings[bad[0]]:g}, too large"
        raise ValueError(
            f"The rating of row {bad[0]} is {what}: drop rows without a finite rating."
        )
    return ratings


def _number(value: Any, row: int) -> float:
    if value is None or type(value).__name__ == "NAType":
        return math.nan
    if isinstance(value, str | bool | np.bool_ | datetime.date | complex):
        raise TypeError(f"The rating of row {row} is {shown(value)}: give numbers.")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"The rating of row {row} is {shown(value)}: give numbers.") from None


def _times(values: Any) -> NDArray[np.float64]:
    """Times as numbers that order them."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "Mm":
        missing, times = np.isnat(values), values.astype(np.int64).astype(np.float64)
        times[missing] = np.nan
    elif isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        times = values.astype(np.float64)
    else:
        times = np.array([_time(value, row) for row, value in enumerate(values)])
    bad = np.flatnonzero(~np.isfinite(times))
    if len(bad):
        raise ValueError(f"The time of row {bad[0]} is missing: drop such rows, or give no times.")
    return times


def _time(value: Any, row: int) -> float:
    if value is None:
        return math.nan
    try:
        if isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                value = datetime.datetime.fromisoformat(value)
        if isinstance(value, datetime.datetime):
            return value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp()
        if isinstance(value, datetime.date):
            return float(value.toordinal())
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"The time of row {row} is {shown(value)}: give numbers, dates, or ISO 8601 text."
        ) from None
