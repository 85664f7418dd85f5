"""Dates and times in text, in ISO 8601 with at least a day."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise

EPOCH = datetime(1970, 1, 1)
# With fewer dates it is not clear whether rows are in time order.
ENOUGH_DATES = 3
# The share of rows that come after the one before, in a column that says when rows came. Others
# are reported; a column in which more rows fall or repeat tells something else.
RISING = 0.95


def date_of(text: str) -> datetime | None:
    """The date that a text is; None if it is none."""
    try:
        return datetime.fromisoformat(text.replace("/", "-")) if text[4:5] in ("-", "/") else None
    except ValueError:
        return None


def seconds_of(date: datetime | None) -> float:
    """Seconds since 1970; NaN if there is no date. Dates without a time zone count as UTC."""
    if date is None:
        return float("nan")
    if date.tzinfo is not None:
        date = date.astimezone(UTC).replace(tzinfo=None)
    return (date - EPOCH) / timedelta(seconds=1)


def rising(values: Sequence[datetime | None]) -> bool:
    """Whether dates say when rows came: nearly all of them are there, and rise."""
    if len(values) < ENOUGH_DATES or values[0] is None:
        return False
    try:
        rises = [
            before is not None and after is not None and before < after
            for before, after in pairwise(values)
        ]
    except TypeError:  # with and without a time zone
        return False
    return sum(rises) >= RISING * len(rises)


def texts_of_times(seconds: Sequence[float], zoned: bool) -> list[str]:
    """Times as text, as dates if all of them are beginnings of days."""
    dates = [EPOCH + timedelta(seconds=each) for each in seconds]
    if not zoned and all(date.time() == time() for date in dates):
        return [date.date().isoformat() for date in dates]
    return [date.isoformat(sep=" ") + ("+00:00" if zoned else "") for date in dates]
