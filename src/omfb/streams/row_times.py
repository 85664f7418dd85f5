"""When the rows of a source came: the last of their times, and whether these are in order."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Times that are kept: more than any model asks for.
KEPT = 1 << 16


class RowTimes(NamedTuple):
    """Times of all rows of a source.

    Attributes
    ----------
    last : ndarray
        When the last rows came, in seconds since 1970; NaN is missing.
    n_rows : int
        How many rows there are.
    fault : int or None
        The first row, from 0, whose time is missing or before that of the row before.
    repeat : int or None
        The first row, from 0, that came at the same time as the row before.
    """

    last: NDArray[np.float64]
    n_rows: int = 0
    fault: int | None = None
    repeat: int | None = None

    def after(self, times: NDArray[np.float64]) -> "RowTimes":
        """What is known once more rows have come."""
        if len(times) == 0:
            return self
        before = self.last[-1:] if len(self.last) else times[:1] - 1.0
        apart = np.diff(np.concatenate([before, times]))
        wrong = np.flatnonzero(~(apart >= 0.0) | np.isnan(times))
        same = np.flatnonzero(apart == 0.0)
        return RowTimes(
            np.concatenate([self.last, times])[-KEPT:],
            self.n_rows + len(times),
            self.n_rows + int(wrong[0]) if self.fault is None and len(wrong) else self.fault,
            self.n_rows + int(same[0]) if self.repeat is None and len(same) else self.repeat,
        )


NO_TIMES = RowTimes(np.zeros(0))


def row_times_of(pieces: Iterable[NDArray[np.float64]]) -> RowTimes:
    """The times of rows that come piece by piece."""
    found = NO_TIMES
    for times in pieces:
        found = found.after(times)
    return found
