"""Times of frames: from the index of rows to seconds, and from seconds to the index of forecasts.

pandas is imported only where a frame of it is made or was given.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.factor.config import TimeIndex
from .times import time_axis

# Kinds of `time_axis`, by the name of its class.
KINDS = {"DatetimeIndex": "datetime", "PeriodIndex": "period", "TimedeltaIndex": "timedelta"}
# Rows at the end whose index shows how often rows come.
SHOWN = 256


def index_kind(X: Any) -> str | None:
    """Which kind of times the index of a frame holds; None if none."""
    return KINDS.get(type(time_axis(X)).__name__)


def seconds_of(index: Any) -> NDArray[np.float64]:
    """An index of times as seconds since 1970, or since zero."""
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    if getattr(index, "tz", None) is not None:
        index = index.tz_convert(None)
    values = index.to_numpy()
    seconds: NDArray[np.float64] = (values - np.zeros(1, values.dtype)) / np.timedelta64(1, "s")
    return seconds


def time_index_of(X: Any) -> TimeIndex | None:
    """What is to be known of the index of a frame to go on with it."""
    kind = index_kind(X)
    if kind is None:
        return None
    index = time_axis(X)
    freq = index.freqstr
    if freq is None and len(index) >= 3 and kind != "period":
        freq = _inferred(index[-SHOWN:])
    timezone = getattr(index, "tz", None)
    name = index.name if isinstance(index.name, str) else None
    return TimeIndex(kind, freq, None if timezone is None else str(timezone), name)


def time_index_of_column(name: str, zoned: bool, times: NDArray[np.float64]) -> TimeIndex:
    """The same of a column of a file, whose last times are known, unless it is a pipe."""
    return TimeIndex("datetime", _inferred_from(times[-SHOWN:]), "UTC" if zoned else None, name)


def _inferred_from(times: NDArray[np.float64]) -> str | None:
    """How often rows come, if pandas can tell."""
    if len(times) < 3 or np.isnan(times).any():
        return None
    try:
        import pandas as pd
    except ImportError:
        return None
    return _inferred(pd.DatetimeIndex(np.rint(1e6 * times).astype("datetime64[us]")))


def _inferred(index: Any) -> str | None:
    """How often rows come, as pandas writes it; None if they are uneven."""
    import pandas as pd

    with warnings.catch_warnings():  # some versions announce that they will return an object
        warnings.simplefilter("ignore")
        found = pd.infer_freq(index)
    return found if found is None or isinstance(found, str) else str(found.freqstr)


def future_index(about: TimeIndex, last: float, step: float, steps: int) -> Any:
    """The index of the rows that follow one at the time `last`; None if pandas is not there."""
    try:
        import pandas as pd
    except ImportError:
        return None
    if about.kind == "timedelta":
        seconds = last + step * np.arange(1, steps + 1)
        return pd.to_timedelta(np.rint(1e6 * seconds).astype(np.int64), unit="us").rename(
            about.name
        )
    stamp = pd.Timestamp(round(1e6 * last), unit="us")
    if about.kind == "period" and about.freq is not None:
        first = pd.Period(stamp, about.freq)
        return pd.period_range(first, periods=steps + 1, freq=about.freq, name=about.name)[1:]
    if about.timezone is not None:
        stamp = stamp.tz_localize("UTC").tz_convert(about.timezone)
    if about.freq is not None:
        index = pd.date_range(stamp, periods=steps + 1, freq=about.freq, name=about.name)
        if index[0] == stamp:
            return index[1:]
    ahead = pd.to_timedelta(
        np.rint(1e6 * step * np.arange(1, steps + 1)).astype(np.int64), unit="us"
    )
    return (stamp + ahead).rename(about.name)


def checked_seconds(name: str, value: Any) -> float:
    """A duration in seconds: a timedelta, or text such as "36h" or "2D"."""
    if isinstance(value, np.timedelta64):
        seconds = float(value / np.timedelta64(1, "s"))
    elif hasattr(value, "total_seconds"):
        seconds = float(value.total_seconds())
    else:
        seconds = _from_text(name, value)
    if not seconds > 0.0:
        raise ValueError(f"{name} must be longer than nothing, got {value!r}.")
    return seconds


def _from_text(name: str, value: Any) -> float:
    number = str(value).rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = str(value)[len(number) :].strip().lower()
    units = {
        "s": 1.0, "sec": 1.0, "min": 60.0, "t": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0,
        "day": 86400.0, "days": 86400.0, "w": 604800.0, "week": 604800.0, "y": 31556952.0,
        "year": 31556952.0, "ms": 1e-3, "hours": 3600.0, "hour": 3600.0, "weeks": 604800.0,
        "minutes": 60.0, "minute": 60.0, "seconds": 1.0, "second": 1.0, "us": 1e-6,
    }  # fmt: skip
    try:
        return (float(number) if number.strip() else 1.0) * units[unit]
    except (KeyError, ValueError):
        raise ValueError(
            f"{name} must be a duration such as '36h', '2D' or a timedelta, got {value!r}."
        ) from None
