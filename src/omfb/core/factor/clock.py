"""When rows come: their times, and the steps between them.

Times are seconds since 1970, or numbers of rows where rows have no times. The step is the usual
time between two rows: autoregressions use φ^(Δt / step), so that rows which are unevenly spaced, or
missing altogether, count as far apart as they are.
"""

from typing import NamedTuple

import numpy as np

from .stats import Vector

# Rows with the same time count as this many steps apart: both are measurements of one moment.
LEAST_STEP = 1e-3


class Clock(NamedTuple):
    """Times of n rows."""

    times: Vector
    at_step: Vector
    """Steps since the first row."""
    elapsed: Vector
    """(n + 1,): steps since the row before; 1 at both ends, where there is none."""


def clock_of(times: Vector, step: float) -> Clock:
    """The clock of rows with these times."""
    elapsed = np.ones(len(times) + 1)
    elapsed[1:-1] = np.maximum(np.diff(times) / step, LEAST_STEP)
    return Clock(times, np.cumsum(elapsed[:-1]) - 1.0, elapsed)


def even_clock(n: int, last: float = 0.0, step: float = 1.0) -> Clock:
    """The clock of n rows that are one step apart, the last of them at a given time."""
    return clock_of(last + step * np.arange(1.0 - n, 1.0), step)


def usual_step(times: Vector) -> float:
    """The median time between rows that differ in time; 1 if there are none."""
    apart = np.diff(times)
    apart = apart[apart > 0.0]
    return float(np.median(apart)) if len(apart) else 1.0
