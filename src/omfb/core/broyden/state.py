"""State carried between steps (`State`)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..require import demand
from .config import BroydenConfig

__all__ = ["HEAD_START", "MOSTLY_OBSERVED", "BroydenConfig", "State", "check_state"]
# Rows for each component that must come before early ones begin to count less.
HEAD_START = 5
# Share of a row's entries: with less, rows say little about atoms, and none is worth losing.
MOSTLY_OBSERVED = 0.5
# How far below zero rounding may leave a square, as a share of the largest one.
ROUNDED_SQUARE = 1e-3


@dataclass(frozen=True, slots=True)
class State:
    """All that the next step needs. Treat its arrays as read-only.

    Attributes
    ----------
    config : BroydenConfig
    C : ndarray of shape (n_features, n_components)
        The dictionary, in units of `scale`.
    G : ndarray of shape (n_components, n_components)
        Its Gram matrix, kept up to date by rank-two updates.
    S : ndarray of shape (n_components, n_components)
        Accumulated precision of the dictionary, shared by all features.
    code : ndarray of shape (n_components,) or None
        Code of the last row; None before there was one.
    n_seen : int
        Rows so far.
    drift : int
        Entries of the data learned from since G was last computed from C.
    scale : float
        A power of two, other than 1 only for data of extreme size.
    least_ridge : float
        Ridge that a forgetting or shrinking config has at least, in units of scale².
    since, entries, residual : int, int, float
        Rows since the dictionary was last pulled towards zero, their observed entries and their
        residual energy.
    prior : float
        What S held of `shrink` at that time.
    kept : float
        With ``forget_factor=1``, what S still holds of what it was at first; 0 if a file does not tell.
    """

    config: BroydenConfig
    C: NDArray[Any]
    G: NDArray[np.float64]
    S: NDArray[np.float64]
    code: NDArray[np.float64] | None = None
    n_seen: int = 0
    drift: int = 0
    scale: float = 1.0
    least_ridge: float = 0.0
    since: int = 0
    entries: int = 0
    residual: float = 0.0
    prior: float = 0.0
    kept: float = 0.0

    @property
    def ridge(self) -> float:
        """Pull of a code towards zero, in units of scale².

        With 0 < memory < 1 the alternation makes the dictionary ever smaller and the codes ever
        larger, by about (noise / signal) / window² for each row, and nothing would stop it. So it
        is where the dictionary is pulled towards zero.
        """
        ridge = self._in_units(self.config.ridge)
        fading = 0.0 < self.config.forget_factor < 1.0 or self.config.shrink > 0.0
        return max(ridge, self.least_ridge) if fading else ridge

    @property
    def smooth(self) -> float:
        """Pull of a code towards the code before, in units of scale²."""
        return self._in_units(self.config.smooth)

    @property
    def weight(self) -> float:
        """What the rows so far count beside the next one: S keeps weight / (weight + 1) of itself.

        So a row counts in proportion to how late it came. The first codes belong to a dictionary
        that was still poor, and to count them like the others leaves a larger error; the head
        start is for the first rows, which are too few to lose any. Rows that are mostly missing
        fade nothing: there the weight of the first dictionary prevents overfitting.
        """
        return float(self.n_seen + HEAD_START * self.C.shape[1])

    def _in_units(self, pull: float) -> float:
        return pull if self.scale == 1.0 else min(pull / self.scale / self.scale, 1e300)


def check_state(state: State) -> None:
    """Refuse, by a ValueError, a state that no sequence of steps can have led to.

    For states that come from a file: what is wrong there would show as garbage or worse much
    later.
    """
    C, G, S, code = state.C, state.G, state.S, state.code
    demand(C.ndim == 2 and C.dtype in (np.float32, np.float64), "its dictionary is no matrix")
    demand(C.size > 0, "its dictionary is empty")
    r = C.shape[1]
    for matrix in (G, S):
        demand(matrix.shape == (r, r) and matrix.dtype == np.float64, "its parts do not fit")
        squares = np.diagonal(matrix)
        # Atoms of very different size: the small ones' squares may be rounded to below zero.
        demand(bool((squares >= -ROUNDED_SQUARE * squares.max()).all()), "a negative square")
    demand(code is None or (code.shape == (r,) and code.dtype == np.float64), "a code of no size")
    for array in (C, G, S) if code is None else (C, G, S, code):
        demand(bool(np.isfinite(array).all()), "NaN or infinity in its parts")
    demand(state.scale > 0.0 and math.frexp(state.scale)[0] == 0.5, "a scale that is none")
    numbers = (state.n_seen, state.drift, state.since, state.entries)
    demand(min(numbers) >= 0, "a counter that is no count")
    sums = (state.least_ridge, state.residual, state.prior, state.kept)
    demand(min(sums) >= 0.0, "a number below zero")
    demand(state.since <= state.n_seen, "more rows than it has seen")
    demand(state.entries <= state.since * len(C), "more entries than its rows have")
