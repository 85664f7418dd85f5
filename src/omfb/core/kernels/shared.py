"""What the kinds of block share: where numbers get too small, when to recompute a Gram matrix."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..state import MOSTLY_OBSERVED, Info, Rule, State
from .room import aligned_copy
from .small import SMALLEST_PRECISION, invert, retained_fraction

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

    def take(self, chosen: NDArray[np.int64]) -> "Rows":
        """The chosen rows, in that order."""
        counts = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], counts)
        return Rows(starts, self.features[entries], self.values[entries])


def row_squares(Y: NDArray[Any]) -> Matrix:
    """yᵀy of each row; finite only if all its entries are."""
    return np.matmul(Y[:, None, :], Y[:, :, None])[:, 0, 0].astype(np.float64, copy=False)


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
    after 16 r m learned entries adds some 2 %.
    """
    due = recompute_due(state.drift, state.C.size)
    return replace(state, G=gram(state.C), drift=0) if due else state


def recompute_due(drift: int, size: int) -> bool:
    """Whether G should be computed from C, which has that size."""
    return drift >= 16 * size


def precision_before(
    S: Matrix, rule: Rule, weight: float, rows: int, share: float
) -> tuple[Matrix, Matrix]:
    """S̄ = retained S + (1 − ρ) λ I before a batch of rows, and its inverse."""
    S_before = retained_fraction(float(rule.memory), weight, float(rows), float(share)) * S
    S_before += (1.0 - rule.memory) * rule.lam * np.eye(len(S))
    return S_before, inverse_of(S_before)


def kept_after(state: State, rows: int, share: float) -> float:
    """What S holds of its start after so many rows, that share of each observed, for ρ = 1."""
    if share < MOSTLY_OBSERVED:
        return state.kept
    return state.kept * (state.weight / (state.weight + rows))


def kept_after_each(state: State, shares: Matrix) -> float:
    """`kept_after` rows of which each has its own share."""
    counts = state.weight + np.arange(len(shares))
    left = np.where(shares >= MOSTLY_OBSERVED, counts / (counts + 1.0), 1.0)
    return state.kept * float(np.prod(left))


def inverse_to_keep(S: Matrix, rule: Rule) -> Matrix:
    """S⁻¹ where ρ = 1 and kernels keep it; S̄⁻¹ where ρ = 0; else room for what they make."""
    if rule.memory == 1.0:
        return inverse_of(S)
    return aligned_copy(np.eye(len(S)) / rule.lam)


def inverse_of(S: Matrix) -> Matrix:
    """The inverse of a precision matrix; zeros if it is none, as a damaged file may hold."""
    if not (S.diagonal() > 0.0).all():
        return np.zeros_like(S)
    inverse = aligned_copy(S)
    invert(inverse, SMALLEST_PRECISION)
    return inverse


def check_finite_step(*small: Matrix) -> None:
    """Refuse a step whose codes, gains, Gram or precision matrix overflow."""
    if not all(np.isfinite(array).all() for array in small):
        raise ValueError(
            "X holds values too large or too small beside what the model has learned: its codes "
            "overflow. Rescale X, or fit a new model to data of this size."
        )
