"""Times of rows, by the index of a pandas frame, and warnings about those that mislead."""

import datetime
import re
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..core.require import require
from ..streams.frames import refuse_lazy
from ..streams.row_times import RowTimes

Times = NDArray[np.float64] | None
"""Seconds since 1970 (of durations: since zero), one for each row; None if rows have no times."""

KINDS = ("DatetimeIndex", "PeriodIndex", "TimedeltaIndex")
DATE_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}")
# Steps that differ by less than this factor count as equal: months have 28 to 31 days.
SIMILAR = 1.5
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def has_index(X: Any) -> bool:
    """Whether X is a frame of pandas, or of Dask."""
    refuse_lazy(X)
    return hasattr(X, "columns") and hasattr(X, "index")


def time_axis(X: Any) -> Any:
    """The index of a frame as one of `KINDS`; None if it does not hold times."""
    index: Any = X.index if has_index(X) else None
    kind = type(index).__name__
    if kind == "Index" and _are_dates(index):
        return _converted(index)
    return index if kind in KINDS else None


def times_of(X: Any) -> Times:
    """The times of the rows of a frame: from a DatetimeIndex, PeriodIndex, TimedeltaIndex or dates.

    A period counts as its beginning. NaN is a time that is missing.
    """
    index = time_axis(X)
    if index is None:
        return None
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    if getattr(index, "tz", None) is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    values = np.asarray(index.to_numpy())
    unit = "datetime64[ns]" if values.dtype.kind == "M" else "timedelta64[ns]"
    seconds = values.astype(unit).astype(np.int64) / 1e9
    return np.where(np.isnat(values), np.nan, seconds)


def has_times(X: Any) -> bool:
    """Whether X is a frame whose rows are in ascending order of time, by its index."""
    times = times_of(X)
    if times is not None:
        return bool((np.diff(times) >= 0.0).all()) and not np.isnan(times).any()
    of_times = getattr(getattr(getattr(X, "index", None), "dtype", None), "kind", "") == "M"
    return of_times and getattr(X, "known_divisions", False)  # a dataframe of Dask, in order


def ordered_times(X: Any) -> Times:
    """`times_of` rows in ascending order; None of others."""
    return times_of(X) if has_times(X) else None


def is_out_of_order(X: Any) -> bool:
    """Whether X is a frame with times that do not ascend from row to row."""
    return times_of(X) is not None and not has_times(X)


def out_of_order(X: Any) -> str:
    """The message about a frame with times that do not ascend."""
    times = times_of(X)
    return NO_TIME if times is not None and np.isnan(times).any() else OUT_OF_ORDER


def has_dates_as_text(X: Any) -> bool:
    """Whether the index of a frame holds text that begins with a date."""
    index: Any = X.index if has_index(X) else None
    # An index of Dask has the same name, and would have to be computed.
    plain = type(index).__name__ == "Index" and type(index).__module__.startswith("pandas")
    if not plain or len(index) < 2:
        return False
    return all(isinstance(label, str) and DATE_TEXT.match(label) for label in index[:20])


def _are_dates(index: Any) -> bool:
    """Whether an index holds dates or times as objects of Python, or a type of pyarrow for them."""
    kind = str(index.dtype)
    if kind.startswith(("timestamp", "date")):
        return True
    return kind == "object" and len(index) > 0 and all(
        isinstance(label, datetime.date) for label in index
    )  # fmt: skip


def _converted(index: Any) -> Any:
    from pandas import to_datetime

    converted = to_datetime(index, utc=True)
    naive = len(index) == 0 or getattr(index[0], "tzinfo", None) is None
    return converted.tz_localize(None) if naive else converted


@dataclass(frozen=True, slots=True)
class Stamps:
    """How the times of a model's rows go on.

    Attributes
    ----------
    step : float or None
        Median distance of consecutive rows in seconds; None while it is unknown.
    last : float or None
        Time of the last row that was learned from; None if it has no time.
    """

    step: float | None = None
    last: float | None = None

    def after(self, times: Times) -> Self:
        """The stamps once rows with these times have been learned from."""
        if times is None or len(times) == 0 or np.isnan(times).any():
            return replace(self, last=None)
        step = self.step
        if step is None:
            before = [] if self.last is None else [self.last]
            step = typical_step(np.array([*before, *times]))
        return replace(self, step=step, last=float(times[-1]))

    def problems(self, times: Times, *, learning: bool) -> list[str]:
        """Messages about times that are not what they seem to be.

        Parameters
        ----------
        times : ndarray or None
            Of the rows of X, in ascending order.
        learning : bool
            Whether the model is to learn from the rows, which then follow those before.
        """
        if times is None or len(times) == 0:
            return []
        messages = []
        if (np.diff(times) == 0.0).any():
            messages.append(REPEATED)
        if learning and self.last is not None and times[0] <= self.last:
            messages.append(EARLIER)
        step = typical_step(times)
        if step is not None and self.step is not None:
            ratio = max(step, self.step) / min(step, self.step)
            if ratio > SIMILAR:
                messages.append(
                    f"Rows of X are {_shown(step)} apart, but those that the model was fitted to "
                    f"{_shown(self.step)}: how rows follow each other was estimated for that step. "
                    f"Resample X, or set temporal=False to silence this warning."
                )
        return messages

    def header(self) -> dict[str, Any]:
        """The stamps as JSON can hold them."""
        return {"step": self.step, "last": self.last}

    @classmethod
    def of_header(cls, header: Any) -> Self:
        """The stamps from a file; a ValueError if they cannot be."""
        step, last = header["step"], header["last"]
        for value in (step, last):
            require(value is None or (type(value) is float and np.isfinite(value)), "its times")
        require(step is None or step > 0.0, "its times")
        return cls(step, last)


REPEATED = (
    "Times of X's index repeat: rows of the same time are taken for several measurements of one "
    "moment. Join them, or set temporal=False to silence this warning."
)
EARLIER = (
    "X begins before the end of what the model has learned from, but its rows are taken for the "
    "next ones in time. Learn in the order of time, or set temporal=False to silence this warning."
)
OUT_OF_ORDER = (
    "The times of X's index are not in ascending order, so rows are not filled from their "
    "neighbours. Sort them by X.sort_index(), or set temporal=False to silence this warning."
)
NO_TIME = (
    "Some times of X's index are missing (NaT), so rows are not filled from their neighbours. Drop "
    "these rows, or set temporal=False to silence this warning."
)
DATES_AS_TEXT = (
    "X's index holds dates as text, so rows are not taken for consecutive in time. Convert it by "
    "pandas.to_datetime(X.index), or set temporal=False to silence this warning."
)


def column_problems(times: RowTimes | None, column: str | None) -> list[str]:
    """Messages about a column of a file that says when rows came, but not of all, or not in order.

    Parameters
    ----------
    times : RowTimes or None
    column : str or None
        Its name.
    """
    if times is None or (times.fault is None and times.repeat is None):
        return []
    name = f"column {column!r}"
    if times.fault is not None:
        return [
            f"the times of {name} do not rise, or one is missing, at row {times.fault + 1}: they "
            f"are not used. Sort the rows, and give each a time."
        ]
    return [
        f"the times of {name} repeat at row {(times.repeat or 0) + 1}: rows of the same time are "
        f"taken for several measurements of one moment."
    ]


def typical_step(times: NDArray[np.float64]) -> float | None:
    """Median distance of times that differ, in seconds; None if there is none."""
    distances = np.diff(times)
    distances = distances[distances > 0.0]
    return float(np.median(distances)) if len(distances) else None


def _shown(seconds: float) -> str:
    for unit, name in UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"
