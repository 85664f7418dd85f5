"""What the kinds of block share: where numbers get too small, when to recompute a Gram matrix."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from ..state import Info, Rule, State
from .small import invert_anyway, retained_fraction

Matrix = NDArray[np.float64]
Step = tuple[State, Matrix, Info]


class Rows(NamedTuple):
    """Rows with missing entries: row t observes features[starts[t]:starts[t+1]], in order."""

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_entries(self) -> int:
        """How many entries are observed."""
        return len(self.values)

    def part(self, first: int, last: int) -> "Rows":
        """Rows first to last, without copying an entry."""
        begin, end = self.starts[first], self.starts[last]
        starts = self.starts[first : last + 1] - begin
        return Rows(starts, self.features[begin:end], self.values[begin:end])


def smallest_pivot(C: NDArray[Any]) -> float:
    """Which share of its diagonal entry a pivot of G may shrink to: beyond it, rounding rules.

    G has the squares of C's singular values, so this is about the square root of the type's
    precision taken twice, with a margin: at 1e-12, codes of float64 lose so much that G drifts
    off CᵀC by 1e-5 in 200 rows.
    """
    return 1e-10 if C.dtype == np.float64 else 1e-8


def gram(C: NDArray[Any]) -> Matrix:
    """CᵀC in float64, in pieces where C is float32: its products need the longer sums."""
    if C.dtype == np.float64:
        return C.T @ C
    total = np.zeros((C.shape[1], C.shape[1]))
    for start in range(0, len(C), 8192):
        piece = C[start : start + 8192].astype(np.float64)
        total += piece.T @ piece
    return total


def refreshed(state: State) -> State:
    """The state with G computed from C, if enough was learned since for rounding to add up.

    The rank-two updates of G are exact but for rounding. Recomputing costs m r², so doing it
    after 8 r m learned entries adds some 3 %.
    """
    m, r = state.C.shape
    if state.drift < 8 * r * m:
        return state
    return replace(state, G=gram(state.C), drift=0)


def precision_before(
    S: Matrix, rule: Rule, weight: float, rows: int, share: float
) -> tuple[Matrix, Matrix]:
    """S̄ = retained S + (1 − ρ) λ I before a batch of rows, and its inverse."""
    S_before = retained_fraction(float(rule.memory), weight, float(rows), float(share)) * S
    S_before += (1.0 - rule.memory) * rule.lam * np.eye(len(S))
    return S_before, inverse_of(S_before)


def inverse_to_keep(S: Matrix, rule: Rule) -> Matrix:
    """S⁻¹ where ρ = 1 and kernels keep it; S̄⁻¹ where ρ = 0; else room for what they make."""
    return inverse_of(S) if rule.memory == 1.0 else np.eye(len(S)) / rule.lam


def inverse_of(S: Matrix) -> Matrix:
    """The inverse of a precision matrix."""
    inverse = S.copy()
    invert_anyway(inverse)
    return inverse


def check_finite_step(*small: Matrix) -> None:
    """Refuse a step whose codes, gains, Gram or precision matrix overflow."""
    if not all(np.isfinite(array).all() for array in small):
        raise ValueError(
            "X holds values too large or too small beside what the model has learned: its codes "
            "overflow. Rescale X, or fit a new model to data of this size."
        )


def in_threads(kernel: Callable[[int, int], None], n_items: int, work: int) -> None:
    """Call kernel(first, last) over ranges of independent items, in threads where that pays.

    Kernels release the interpreter's lock. Plain threads rather than Numba's parallel loops:
    those end the process when it was forked, and take seconds to compile.
    """
    # A pool starts in some 50 µs, the time of about 2e5 multiply-adds.
    n_threads = min(numba.config.NUMBA_NUM_THREADS, n_items, 1 + work // 2_000_000)
    if n_threads <= 1:
        kernel(0, n_items)
        return
    bounds = [n_items * part // n_threads for part in range(n_threads + 1)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(kernel, bounds[:-1], bounds[1:]))
