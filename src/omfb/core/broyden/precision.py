"""The precision S of the dictionary before and after rows, and when G is computed anew."""

from dataclasses import replace

import numpy as np

from ..info import Info
from ..linalg.rows import Matrix, gram, inverse_of
from ..linalg.workspace import aligned_copy
from .reduced_space import retained_fraction
from .state import MOSTLY_OBSERVED, BroydenConfig, State

Step = tuple[State, Matrix, Info]


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
    S: Matrix, config: BroydenConfig, weight: float, rows: int, share: float
) -> tuple[Matrix, Matrix]:
    """S̄ = retained S + (1 − ρ) λ I before a batch of rows, and its inverse."""
    S_before = retained_fraction(float(config.forget_factor), weight, float(rows), float(share)) * S
    S_before += (1.0 - config.forget_factor) * config.lam * np.eye(len(S))
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


def inverse_to_keep(S: Matrix, config: BroydenConfig) -> Matrix:
    """S⁻¹ where ρ = 1 and kernels keep it; S̄⁻¹ where ρ = 0; else room for what they make."""
    if config.forget_factor == 1.0:
        return inverse_of(S)
    return aligned_copy(np.eye(len(S)) / config.lam)
