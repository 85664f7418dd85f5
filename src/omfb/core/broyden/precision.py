"""The precision S of the dictionary before and after rows, and when to recompute G."""

from dataclasses import replace

import numpy as np

from ..info import Info
from ..linalg.rows import Matrix, gram, inverse_of
from ..linalg.workspace import aligned_copy
from .reduced_space import retained_fraction
from .state import MOSTLY_OBSERVED, BroydenConfig, State

Step = tuple[State, Matrix, Info]


def refreshed(state: State) -> State:
    """The state with G recomputed from C, if that is due.

    The rank-two updates of G are exact except for rounding, which accumulates. Recomputing costs
    m r² operations, so doing it after 16 r m learned entries adds about 2 %.
    """
    due = recompute_due(state.entries_since_gram, state.C.size)
    return replace(state, G=gram(state.C), entries_since_gram=0) if due else state


def recompute_due(entries_since_gram: int, size: int) -> bool:
    """Whether G should be recomputed from a C of this size."""
    return entries_since_gram >= 16 * size


def precision_before(
    S: Matrix, config: BroydenConfig, weight: float, rows: int, share: float
) -> tuple[Matrix, Matrix]:
    """S̄ = retained S + (1 − ρ) λ I before a batch of rows, and its inverse."""
    S_before = retained_fraction(float(config.forget_factor), weight, float(rows), float(share)) * S
    S_before += (1.0 - config.forget_factor) * config.lam * np.eye(len(S))
    return S_before, inverse_of(S_before)


def start_weight_after(state: State, rows: int, share: float) -> float:
    """The weight of the start in S after more rows with this share observed, for ρ = 1."""
    if share < MOSTLY_OBSERVED:
        return state.start_weight
    return state.start_weight * (state.weight / (state.weight + rows))


def start_weight_after_each(state: State, shares: Matrix) -> float:
    """`start_weight_after` for rows that each have their own share."""
    counts = state.weight + np.arange(len(shares))
    left = np.where(shares >= MOSTLY_OBSERVED, counts / (counts + 1.0), 1.0)
    return state.start_weight * float(np.prod(left))


def inverse_to_keep(S: Matrix, config: BroydenConfig) -> Matrix:
    """S⁻¹ for ρ = 1, which kernels update; S̄⁻¹ for ρ = 0; otherwise a workspace for S̄⁻¹."""
    if config.forget_factor == 1.0:
        return inverse_of(S)
    return aligned_copy(np.eye(len(S)) / config.lam)
