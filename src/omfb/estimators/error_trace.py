"""The history of the error of predictions, in constant memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.info import Info
from ..learner.fit_stream import Progress
from ..learner.learner import Learner
from ..learner.snapshot import Learned

# Points of a history; when there are more, neighbours are joined.
MAX_POINTS = 512
# Rows between two points of a young stream: of single rows, few have entries that are held out.
MIN_ROWS = 16


class ErrorTrace:
    """Errors of consecutive stretches of rows, at most `MAX_POINTS` of them."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._energies: list[tuple[float, float]] = []
        self._every, self._next_end = MIN_ROWS, 0
        self._before = Info(0.0, 0.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ErrorTrace) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def note(self, learned: Learned) -> None:
        """Add a point if enough rows were learned since the last one."""
        n_seen = learned.n_seen
        if n_seen < self._next_end:
            return
        now = learned.totals
        # Totals begin anew with each pass.
        before = self._before if now.energy >= self._before.energy else Info(0.0, 0.0)
        self._before = now
        residual, energy = now.residual - before.residual, now.energy - before.energy
        if energy > 0.0:
            self._ends.append(n_seen)
            self._energies.append((max(residual, 0.0), energy))
        self._next_end = n_seen + self._every
        if len(self._ends) > MAX_POINTS:
            self._join()

    def _join(self) -> None:
        """Halve the number of points; the last of an odd number stays."""
        ends, energies = self._ends, self._energies
        odd = len(ends) % 2
        pairs = zip(energies[0 : len(ends) - odd : 2], energies[1::2], strict=True)
        self._energies = [(a[0] + b[0], a[1] + b[1]) for a, b in pairs] + energies[
            len(ends) - odd :
        ]
        self._ends = ends[1::2] + ends[len(ends) - odd :]
        self._every *= 2

    def points(self) -> NDArray[np.float64]:
        """Rows learned and the error of the rows up to there: (n_points, 2)."""
        ends, energies = list(self._ends), list(self._energies)
        n = min(len(ends), len(energies))  # another thread may be adding one
        errors = [Info(*energy).error for energy in energies[:n]]
        return np.column_stack([np.array(ends[:n], np.float64), np.array(errors, np.float64)])


def trace_of(model: Any) -> ErrorTrace:
    """The trace of an estimator; a new one if it has none yet."""
    trace = model.__dict__.get("_trace")
    if trace is None:
        trace = model.__dict__.setdefault("_trace", ErrorTrace())
    assert isinstance(trace, ErrorTrace)
    return trace


def traced(
    learner: Learner, trace: ErrorTrace, on_block: Callable[[Progress], object] | None
) -> Callable[[Progress], None]:
    """A function to call after each block, which adds to the trace and then calls `on_block`."""

    def note(progress: Progress) -> None:
        learned = learner.snapshot().learned
        if learned is not None and learned.state is not None:  # asking for a state would make one
            trace.note(learned)
        if on_block is not None:
            on_block(progress)

    return note
