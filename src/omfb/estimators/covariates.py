"""Covariates: columns that are always known, and their values in the rows to come."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import shown
from .parameters import is_flag
from .times import Times, times_of

Matrix = NDArray[np.float64]


def checked_covariates(covariates: Any) -> tuple[str | int, ...]:
    """Names or numbers of columns that are always known; there may be none."""
    if covariates is None:
        return ()
    listed = [covariates] if isinstance(covariates, str) else covariates
    wrong = (
        f"covariates must be a list of columns that are always known (names, or numbers from 0), "
        f"got {shown(covariates)}."
    )
    if not np.iterable(listed):
        raise ValueError(wrong)
    found: list[str | int] = []
    for each in listed:
        if isinstance(each, int | np.integer) and not is_flag(each):
            found.append(int(each))
        elif isinstance(each, str):
            found.append(str(each))
        else:
            raise ValueError(wrong)
    if len(set(found)) < len(found):
        raise ValueError(f"covariates must name each column once, got {shown(covariates)}.")
    return tuple(found)


def positions_of(covariates: tuple[str | int, ...], names: Any, n_features: int) -> str | None:
    """Covariates as a config has them: numbers of features, separated by blanks."""
    found = []
    for each in covariates:
        if isinstance(each, str):
            if names is None or each not in names:
                raise ValueError(
                    f"covariates: there is no column {each!r} of numbers"
                    f"{'; X has no names' if names is None else ''}."
                )
            found.append(list(names).index(each))
        elif not 0 <= each < n_features:
            raise ValueError(f"covariates: there is no column {each} of {n_features}.")
        else:
            found.append(each)
    if len(set(found)) == n_features:
        raise ValueError("covariates: all columns are, so nothing is left to predict.")
    return " ".join(map(str, found)) if found else None


def future_values(
    covariates: Any, wanted: Sequence[Any], steps: int, times: Times = None
) -> Matrix | None:
    """The values (steps, q) that covariates will have; None if there are none.

    Parameters
    ----------
    covariates : frame, dict, array-like of shape (steps, q), or None
    wanted : sequence of q names or numbers
        The covariates of the model.
    steps : int
        How many rows ahead.
    times : ndarray of shape (steps,) or None
        When these rows come: a frame with times may have others, too, in any order.
    """
    if not wanted:
        if covariates is not None:
            raise ValueError("covariates: the model was fitted without any.")
        return None
    names = ", ".join(repr(each) for each in wanted)
    if covariates is None:
        raise ValueError(
            f"The model was fitted with covariates: give their values in the {steps} rows to come "
            f"by covariates=, a frame with the columns {names}."
        )
    values = _columns(covariates, wanted, names)
    given = times_of(covariates)
    if given is not None and times is not None:
        values = values[rows_at(given, times)]
    if values.shape != (steps, len(wanted)):
        raise ValueError(
            f"covariates have {values.shape[0]} rows of {values.shape[1]} columns, but {steps} "
            f"rows of {len(wanted)} ({names}) are to come."
        )
    missing = np.argwhere(~np.isfinite(values))
    if len(missing):
        row, at = missing[0]
        raise ValueError(
            f"covariates: {shown(float(values[row, at]))} at row {row + 1} of the rows to come, "
            f"column {wanted[at]!r}. They must be finite numbers."
        )
    return values


def _columns(covariates: Any, wanted: Sequence[Any], names: str) -> Matrix:
    """The wanted columns of covariates, in order."""
    if not (isinstance(covariates, Mapping) or hasattr(covariates, "columns")):
        values = np.asarray(covariates, np.float64)
        return values[:, None] if values.ndim == 1 and len(wanted) == 1 else np.atleast_2d(values)
    there = list(covariates if isinstance(covariates, Mapping) else covariates.columns)
    absent = [each for each in wanted if each not in there]
    if absent:
        raise ValueError(f"covariates lack the column {absent[0]!r}: they need {names}.")
    try:
        columns = [np.asarray(covariates[each], np.float64).ravel() for each in wanted]
        return np.column_stack(columns)
    except ValueError as error:
        raise ValueError(
            f"covariates must be columns of numbers of equal length: {error}"
        ) from error


def rows_at(given: Matrix, times: Matrix) -> NDArray[np.int64]:
    """Which of rows with given times come at some times."""
    where = {round(1e3 * time): row for row, time in enumerate(given) if time == time}
    found = [where.get(round(1e3 * time), -1) for time in times]
    if -1 in found:
        late = np.datetime64(round(1e6 * times[found.index(-1)]), "us").astype("datetime64[s]")
        raise ValueError(
            f"covariates have no row at {late}, {found.index(-1) + 1} rows ahead: their times must "
            f"be those of the rows to come."
        )
    return np.array(found, np.int64)
