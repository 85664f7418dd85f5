"""Only what is known gets filled: gaps that are too long, or filled too uncertainly, stay empty."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import checked_count, checked_number, shown
from .frames import is_frame
from .time_index import checked_seconds, index_kind
from .times import Times, time_axis

Flags = NDArray[np.bool_]


def gap_rows(missing: Flags) -> NDArray[np.int64]:
    """How many consecutive rows miss the column, for each entry that is missing; otherwise 0."""
    before, after = _nearest(missing)
    return np.where(missing, after - before - 1, 0)


def gap_seconds(missing: Flags, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time between the known values around each missing entry; otherwise 0.

    A gap at an end lasts from the known value to that end, and one of a whole column for ever.
    """
    n = len(missing)
    before, after = _nearest(missing)
    length = times[np.minimum(after, n - 1)] - times[np.maximum(before, 0)]
    length = np.where((before < 0) & (after >= n), np.inf, length)
    return np.where(missing, length, 0.0)


def _nearest(missing: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The known row before and after each entry: −1 and n where there is none."""
    n = len(missing)
    rows = np.arange(n)[:, None]
    before = np.maximum.accumulate(np.where(missing, -1, rows), axis=0)
    after = np.minimum.accumulate(np.where(missing, n, rows)[::-1], axis=0)[::-1]
    return before, after


class Limits:
    """Up to which gaps, and how surely, entries are filled.

    Parameters
    ----------
    max_gap : int, duration or None
        Rows or time of a gap.
    max_std : float or None
        Standard deviation of a filled value, in those of its column.
    """

    def __init__(self, max_gap: Any, max_std: Any) -> None:
        self.rows: int | None = None
        self.seconds: float | None = None
        self.std: float | None = None
        if isinstance(max_gap, str | np.timedelta64) or hasattr(max_gap, "total_seconds"):
            self.seconds = checked_seconds("max_gap", max_gap)
        elif max_gap is not None:
            self.rows = checked_count("max_gap", max_gap, "rows, or a duration such as '6h'")
        if max_std is not None:
            self.std = checked_number("max_std", max_std, "above 0", "1 is the column's own")
            if self.std == 0.0:
                raise ValueError(f"max_std must be above 0, got {shown(max_std)}.")

    @property
    def any(self) -> bool:
        """Whether there is a limit."""
        return self.rows is not None or self.seconds is not None or self.std is not None

    def left(self, missing: Flags, std: Any, scale: NDArray[np.float64], times: Times) -> Flags:
        """Which missing entries stay empty."""
        left = np.zeros_like(missing)
        if self.rows is not None:
            left |= gap_rows(missing) > self.rows
        if self.seconds is not None:
            if times is None:
                raise ValueError(
                    "max_gap is a duration, but the rows of X have no times. Give a number of "
                    "rows, or a frame with times in ascending order as its index."
                )
            left |= gap_seconds(missing, times) > self.seconds
        return left | self.uncertain(missing, std, scale)

    def uncertain(self, missing: Flags, std: Any, scale: NDArray[np.float64]) -> Flags:
        """Which missing entries are known less surely than `max_std`."""
        return np.zeros_like(missing) if self.std is None else missing & (std > self.std * scale)


class LongGaps:
    """Gaps beyond the limits on their length, of rows that come piece by piece.

    Parameters
    ----------
    limits : Limits
    n_features : int
    """

    def __init__(self, limits: Limits, n_features: int) -> None:
        self._limits = limits
        self._open = np.full(n_features, -1)  # the row where a gap began that goes on
        self._since = np.full(n_features, np.nan)  # the time of the known value before it
        self._n_rows, self._last = 0, np.nan
        self._found: list[list[tuple[int, int]]] = [[] for _ in range(n_features)]
        self._ends: list[NDArray[np.int64]] = []

    def add(self, missing: Flags, times: Times) -> None:
        """Look at the next rows."""
        n = len(missing)
        if n == 0:
            return
        at = np.zeros(n) if times is None else times
        if self._n_rows == 0:
            self._last = float(at[0])  # of a gap at the beginning
        before = np.append(self._last, at)
        for j in np.flatnonzero(missing.any(axis=0) | (self._open >= 0)).tolist():
            column = np.concatenate([[self._open[j] >= 0], missing[:, j]])
            for i in np.flatnonzero(column[1:] != column[:-1]).tolist():
                row = self._n_rows + i
                if missing[i, j]:
                    self._open[j], self._since[j] = row, before[i]
                else:
                    self._close(j, row, float(at[i]), ended=True)
        self._n_rows += n
        self._last = float(at[-1])

    def end(self) -> None:
        """No more rows come."""
        for j in np.flatnonzero(self._open >= 0).tolist():
            self._close(j, self._n_rows, self._last, ended=False)
        self._ends = [np.array([stop for _, stop in gaps], np.int64) for gaps in self._found]

    def _close(self, j: int, stop: int, time: float, *, ended: bool) -> None:
        start, limits = int(self._open[j]), self._limits
        whole = start == 0 and not ended  # nothing of the column is known
        length = np.inf if whole else time - float(self._since[j])
        long = limits.rows is not None and stop - start > limits.rows
        if long or (limits.seconds is not None and length > limits.seconds):
            self._found[j].append((start, stop))
        self._open[j] = -1

    def within(self, first: int, count: int) -> Flags:
        """Which entries of `count` rows from a row on are in long gaps."""
        left = np.zeros((count, len(self._found)), bool)
        for j, (gaps, ends) in enumerate(zip(self._found, self._ends, strict=True)):
            at = int(np.searchsorted(ends, first, side="right"))
            while at < len(gaps) and gaps[at][0] < first + count:
                left[max(gaps[at][0] - first, 0) : gaps[at][1] - first, j] = True
                at += 1
        return left


def emptied(X: Any, names: list[Any], left: Flags) -> Any:
    """A filled frame without the entries that are left, in the columns of these names."""
    if not hasattr(X, "iloc"):
        import polars as pl

        return X.with_columns([
            pl.when(pl.Series(left[:, at])).then(None).otherwise(pl.col(name)).alias(name)
            for at, name in enumerate(names)
        ])  # fmt: skip
    X = X.copy()
    for at, name in enumerate(names):
        if left[:, at].any():
            position = list(X.columns).index(name)
            X.isetitem(position, X.iloc[:, position].mask(left[:, at]))
    return X


def with_all_rows(X: Any, freq: Any) -> Any:
    """A frame with the rows that were never there: one at each time of the frequency.

    Rows at other times stay.
    """
    kind = index_kind(X)
    if kind is None or not is_frame(X):
        raise ValueError("freq needs a pandas frame with times as its index.")
    index = time_axis(X)
    if not index.is_monotonic_increasing or index.has_duplicates:
        raise ValueError(
            "freq needs times in ascending order that do not repeat: X.sort_index(), and drop or "
            "join rows of the same time."
        )
    import pandas as pd

    ranges = {
        "datetime": pd.date_range, "period": pd.period_range, "timedelta": pd.timedelta_range,
    }  # fmt: skip
    try:
        every = ranges[kind](index[0], index[-1], freq=freq)
    except ValueError as error:
        raise ValueError(f"freq must be one of pandas, such as 'h' or 'D': {error}.") from error
    return X.set_axis(index).reindex(index.union(every).rename(index.name))
