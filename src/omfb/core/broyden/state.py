"""The state carried between steps (`State`)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..require import require
from .config import BroydenConfig

__all__ = ["HEAD_START", "MOSTLY_OBSERVED", "BroydenConfig", "State", "check_state"]
# Rows per component before early rows begin to count less.
HEAD_START = 5
# Rows with a smaller share of observed entries say little about atoms, so earlier rows do not fade.
MOSTLY_OBSERVED = 0.5
# How far below zero rounding may push a square, relative to the largest one.
ROUNDED_SQUARE = 1e-3


@dataclass(frozen=True, slots=True)
class State:
    """Everything the next step needs. Treat its arrays as read-only.

    Attributes
    ----------
    config : BroydenConfig
    C : ndarray of shape (n_features, n_components)
        The dictionary, in units of `scale`. Its constraints, if any, hold where
        `rows_since_shrink` is 0 (`constraints.feasible`).
    G : ndarray of shape (n_components, n_components)
        Its Gram matrix, kept up to date by rank-two updates.
    S : ndarray of shape (n_components, n_components)
        Accumulated precision of the dictionary, shared by all features.
    code : ndarray of shape (n_components,) or None
        Code of the last row; None before the first.
    n_seen : int
        Rows so far.
    entries_since_gram : int
        Observed entries since G was last computed from C.
    scale : float
        Unit of the data: a power of two, other than 1 only for data of extreme size.
    least_ridge : float
        Smallest ridge where the dictionary forgets or shrinks, in units of scale².
    rows_since_shrink, entries_since_shrink, residual_since_shrink : int, int, float
        Rows since the dictionary was last pulled towards zero or constrained, their observed
        entries and their residual energy.
    prior_precision : float
        The part of S that came from `shrink` at that time.
    start_weight : float
        With ``forget_factor=1``, the share of the first S that is still in S; 0 if unknown.
    """

    config: BroydenConfig
    C: NDArray[Any]
    G: NDArray[np.float64]
    S: NDArray[np.float64]
    code: NDArray[np.float64] | None = None
    n_seen: int = 0
    entries_since_gram: int = 0
    scale: float = 1.0
    least_ridge: float = 0.0
    rows_since_shrink: int = 0
    entries_since_shrink: int = 0
    residual_since_shrink: float = 0.0
    prior_precision: float = 0.0
    start_weight: float = 0.0

    @property
    def ridge(self) -> float:
        """Pull of a code towards zero, in units of scale².

        With 0 < forget_factor < 1 the alternation makes the dictionary ever smaller and the codes
        ever larger, by about (noise / signal) / window² per row, and nothing would stop it. The
        same holds where the dictionary is pulled towards zero. So the ridge has a minimum there.
        """
        config = self.config
        ridge = self._in_units(config.ridge + (1.0 - config.l1_ratio) * config.alpha)
        fading = 0.0 < config.forget_factor < 1.0 or config.shrink > 0.0
        return max(ridge, self.least_ridge) if fading else ridge

    @property
    def l1(self) -> float:
        """Weight of the sum of a code's absolute values, in units of scale²."""
        return self._in_units(self.config.l1_ratio * self.config.alpha)

    @property
    def smooth(self) -> float:
        """Pull of a code towards the previous one, in units of scale²."""
        return self._in_units(self.config.smooth)

    @property
    def weight(self) -> float:
        """Weight of the rows so far relative to the next one: S keeps weight / (weight + 1).

        So a row counts in proportion to its position. The first codes belong to a dictionary that
        was still poor, and counting them like the others leaves a larger error. The head start
        keeps the first rows, which are too few to lose any. Rows with mostly missing entries do not
        make earlier ones fade: there the weight of the first dictionary prevents overfitting.
        """
        return float(self.n_seen + HEAD_START * self.C.shape[1])

    def _in_units(self, pull: float) -> float:
        return pull if self.scale == 1.0 else min(pull / self.scale / self.scale, 1e300)


def check_state(state: State) -> None:
    """Raise a ValueError for a state that no sequence of steps can produce.

    For states that are read from files, where an error would otherwise show much later.
    """
    C, G, S, code = state.C, state.G, state.S, state.code
    require(C.ndim == 2 and C.dtype in (np.float32, np.float64), "its dictionary is not a matrix")
    require(C.size > 0, "its dictionary is empty")
    r = C.shape[1]
    for matrix in (G, S):
        require(
            matrix.shape == (r, r) and matrix.dtype == np.float64,
            "its arrays do not fit each other",
        )
        squares = np.diagonal(matrix)
        # With atoms of very different size, rounding may push the smallest squares below zero.
        require(bool((squares >= -ROUNDED_SQUARE * squares.max()).all()), "a negative square")
    require(
        code is None or (code.shape == (r,) and code.dtype == np.float64),
        "its code has the wrong shape",
    )
    for array in (C, G, S) if code is None else (C, G, S, code):
        require(bool(np.isfinite(array).all()), "NaN or infinity in its arrays")
    require(
        state.scale > 0.0 and math.frexp(state.scale)[0] == 0.5, "its scale is not a power of two"
    )
    since, entries = state.rows_since_shrink, state.entries_since_shrink
    require(min(state.n_seen, state.entries_since_gram, since, entries) >= 0, "a negative count")
    sums = (state.least_ridge, state.residual_since_shrink, state.prior_precision)
    require(min(*sums, state.start_weight) >= 0.0, "a negative weight")
    require(since <= state.n_seen, "more rows than it has seen")
    if state.config.positive_dict and since == 0:
        require(bool((C >= 0.0).all()), "a negative entry of its dictionary")
    require(entries <= since * len(C), "more entries than its rows have")
