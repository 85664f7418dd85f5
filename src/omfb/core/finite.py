"""Infinity and overflow: finding infinite entries, and keeping results finite."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray


def find_infinity(rows: Any) -> tuple[int, int] | None:
    """Row and column (from 0) of the first infinite entry of an array or sparse matrix, if any."""
    if scipy.sparse.issparse(rows):
        rows = rows if rows.format == "csr" else rows.tocsr()
        if not np.isinf(rows.data).any():
            return None
        entries = rows.tocoo()
        first = np.flatnonzero(np.isinf(entries.data))[0]
        return int(entries.row[first]), int(entries.col[first])
    infinite = np.isinf(rows)
    if not infinite.any():
        return None
    row, column = np.argwhere(infinite)[0]
    return int(row), int(column)


def infinity_problem(row: int | None, column: int, names: Sequence[str] | None = None) -> str:
    """The message about infinity, the same everywhere: rows and columns are counted from 1.

    Parameters
    ----------
    row : int or None
        Counted from 0; None if unknown.
    column : int
        Counted from 0.
    names : sequence of str or None
        Names of the columns, if they have any.

    Examples
    --------
    >>> infinity_problem(3, 2)
    'contains infinity at row 4, column 3 (the first is 1). Replace it; use NaN if it is unknown.'
    >>> infinity_problem(3, 2, ["a", "b", "c"])
    "contains infinity at row 4, column 'c' (the first is 1). Replace it; use NaN if it is unknown."
    """
    shown = column + 1 if names is None else repr(names[column])
    place = f"column {shown}" if row is None else f"row {row + 1}, column {shown}"
    counted = "" if row is None and names is not None else " (the first is 1)"
    return f"contains infinity at {place}{counted}. Replace it; use NaN if it is unknown."


def quiet() -> np.errstate:
    """A context without overflow warnings, for results that are checked afterwards."""
    return np.errstate(over="ignore", invalid="ignore")


def is_ordinary(values: NDArray[Any]) -> bool:
    """Whether values are far enough from the ends of their type's range to start a model.

    Others are tried at once, so that values that cannot be used are refused before they are stored.
    """
    sizes = np.abs(values)
    most = float(np.finfo(values.dtype).max) ** 0.2
    extreme = (sizes >= most) | ((sizes <= 1.0 / most) & (sizes > 0.0))  # False for NaN
    return not extreme.any()


def made_finite(rows: NDArray[Any], made_of: Any) -> NDArray[Any]:
    """Clip infinite results to the largest finite number of their type; NaN raises a ValueError.

    Parameters
    ----------
    rows : ndarray
        Results, such as filled rows.
    made_of : array or sparse matrix
        The rows they were computed from, to tell infinite input from overflow.
    """
    if np.isfinite(rows).all():
        return rows
    where = find_infinity(made_of)
    if where is not None:
        raise ValueError(f"X {infinity_problem(*where)}")
    if np.isnan(rows).any():
        raise ValueError("X contains numbers so large that the result overflows. Rescale X.")
    return within_range(rows)


def within_range(rows: NDArray[Any]) -> NDArray[Any]:
    """Clip infinite entries to the largest finite number of their type."""
    largest = np.finfo(rows.dtype).max
    return np.clip(rows, -largest, largest)
