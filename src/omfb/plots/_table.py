"""Tables as plots need them: numbers, names of columns, times of rows."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Table(NamedTuple):
    """Columns of numbers.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        NaN is missing.
    names : list of str or None
    at : ndarray of shape (n_rows,)
        Times of the rows, or numbers.
    label : str
        What `at` is.
    """

    values: NDArray[np.float64]
    names: list[str] | None
    at: NDArray[Any]
    label: str

    def take(self, columns: list[int]) -> "Table":
        """Some of the columns."""
        names = None if self.names is None else [self.names[i] for i in columns]
        return self._replace(values=self.values[:, columns], names=names)

    def name_of(self, column: int) -> str:
        """The name of a column."""
        return f"feature {column}" if self.names is None else self.names[column]


def table_of(X: Any, names: Iterable[str] | None = None) -> Table:
    """X as a table: a frame of pandas or polars, or anything that NumPy takes as rows.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
    names : iterable of str, optional
        The columns to take of a frame; by default those that hold numbers.
    """
    if not hasattr(X, "columns"):
        values = _rows_and_columns(X.toarray() if hasattr(X, "toarray") else np.asarray(X))
        return Table(values.astype(np.float64), None, np.arange(len(values)), "row")
    all_names = [str(name) for name in X.columns]
    chosen = set(all_names) if names is None else set(map(str, names))
    kept, columns = [], []
    for position, name in enumerate(all_names):
        if name not in chosen:
            continue
        column = _numbers(X, position)
        if column is not None:
            kept.append(name)
            columns.append(column)
    if not columns:
        raise ValueError("X has no column of numbers to draw.")
    at, label = _row_labels(X)
    return Table(_rows_and_columns(np.column_stack(columns)), kept, at, label)


def missing_of(X: Any) -> tuple[NDArray[np.bool_], Table]:
    """Which entries are missing, in columns of any kind, and the table without its values."""
    if not hasattr(X, "columns"):
        table = table_of(X)
        return np.isnan(table.values), table
    columns = [_column(X, position) for position in range(len(X.columns))]
    marks = np.column_stack([_is_missing(column) for column in columns])
    at, label = _row_labels(X)
    names = [str(name) for name in X.columns]
    return marks, Table(_rows_and_columns(np.zeros(marks.shape)), names, at, label)


def chosen_columns(table: Table, columns: Any, usual: list[int]) -> tuple[list[int], bool]:
    """Positions of the columns that a user names, and whether it is a single one."""
    if columns is None:
        return usual, False
    single = isinstance(columns, str | int | np.integer)
    chosen = [columns] if single else list(columns)
    if not chosen:
        raise ValueError("columns is empty: name at least one column, or leave it out.")
    return [_position(table, column) for column in chosen], single


def _position(table: Table, column: Any) -> int:
    n_columns = table.values.shape[1]
    if table.names is not None and str(column) in table.names:
        return table.names.index(str(column))
    if isinstance(column, int | np.integer) and -n_columns <= column < n_columns:
        return int(column) % n_columns
    known = f"0 to {n_columns - 1}" if table.names is None else ", ".join(table.names[:10])
    raise ValueError(f"columns: there is no column {column!r} of numbers; there are {known}.")


def _rows_and_columns(values: NDArray[Any]) -> NDArray[Any]:
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"X needs rows and features, but has the shape {values.shape}.")
    return values


def _column(X: Any, position: int) -> Any:
    return X.iloc[:, position] if hasattr(X, "iloc") else X.get_columns()[position]


def _numbers(X: Any, position: int) -> NDArray[np.float64] | None:
    """A column as floats; None if it does not hold numbers."""
    column = _column(X, position)
    kind = str(column.dtype).lower()
    if not kind.startswith(("float", "int", "uint", "double", "decimal")):
        return None
    if hasattr(column, "to_numpy") and hasattr(X, "iloc"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _is_missing(column: Any) -> NDArray[np.bool_]:
    if hasattr(column, "isna"):
        return np.asarray(column.isna(), dtype=bool)
    missing = np.asarray(column.is_null(), dtype=bool)
    if column.dtype.is_float():
        missing |= np.asarray(column.is_nan().fill_null(True), dtype=bool)
    return missing


def _row_labels(X: Any) -> tuple[NDArray[Any], str]:
    """Times or numbers of the rows of a frame, and what to call them."""
    index = getattr(X, "index", None)
    if index is not None:
        if hasattr(index, "to_timestamp"):  # periods
            index = index.to_timestamp()
        if getattr(index, "tz", None) is not None:
            index = index.tz_localize(None)
        at = index.to_numpy()
        if at.dtype.kind == "M":
            return at, str(index.name or "time")
        if at.dtype.kind in "iuf" and np.all(at[1:] > at[:-1]):
            return at, str(index.name or "row")
    return np.arange(len(X)), "row"
