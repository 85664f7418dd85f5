"""The prior on the dictionary (`shrink`), and the uncertainty of codes.

Let entries of C be normal around zero with variance σ²/β, codes with σ²/α, and the noise with σ².
Then a code has the posterior covariance σ² (G_Ω + α I)⁻¹, and a dictionary that ignores it learns
the noise. Prior and covariance both enter S and pull C towards zero:

    S' = S + P,   C' = C S S'⁻¹,   P = β I + Σ s σ² (s G + (α + τ) I)⁻¹

where the sum is over the rows, s is their observed share, and of β I only the part counts that S
has lost since the last update. P has full rank, so this costs more than m r² operations: it is done
once every 4r rows. σ² is their residual energy per observed entry.
"""

from dataclasses import replace

import numpy as np

from ..linalg.rows import check_finite_step, gram, inverse_of
from .constraints import constrained
from .penalties import smallest_pivot, solve_minimum_norm
from .state import MOSTLY_OBSERVED, State

PERIOD = 4  # rows per component
# Sparse rows with zeros cost less than a row of the dictionary has features: for these the period
# has at least one row for so many features, which makes it cost about as much as they do.
FEATURES_PER_ROW = 8


def period(state: State) -> int:
    """Rows between two pulls, or between two moments at which constraints are met."""
    m, r = state.C.shape
    rows = PERIOD * r
    return max(rows, m // FEATURES_PER_ROW) if state.config.absent == "zero" else rows


def rows_to_go(state: State) -> int:
    """Rows until the next pull or constraint is due, in whole mini-batches."""
    size = state.config.batch_size
    left = max(period(state) - state.rows_since_shrink, 1)
    return -(-left // size) * size


def with_prior(state: State, rows: int, entries: int, residual: float) -> State:
    """Count the rows that were learned and, if it is due, pull or constrain the dictionary."""
    (m, r), config = state.C.shape, state.config
    rows += state.rows_since_shrink
    entries += state.entries_since_shrink
    residual += state.residual_since_shrink
    if rows < period(state):
        return replace(
            state, rows_since_shrink=rows, entries_since_shrink=entries,
            residual_since_shrink=residual,
        )  # fmt: skip
    state = replace(state, rows_since_shrink=0, entries_since_shrink=0, residual_since_shrink=0.0)
    if config.constrains_dictionary:
        return constrained(state)
    if entries == 0:
        return state
    share = entries / (rows * m)
    retained = config.forget_factor**rows  # of S at the last update
    effective_rows = (
        rows if config.forget_factor == 1.0 else (1.0 - retained) / (1.0 - config.forget_factor)
    )
    if share >= MOSTLY_OBSERVED:
        retained *= 1.0 - rows / state.weight
    eye = np.eye(r)
    pulled = share * state.G + (state.ridge + state.smooth) * eye
    covariance = solve_minimum_norm(pulled, eye, smallest_pivot(state.C.dtype))
    S_after = state.S + max(config.shrink - retained * state.prior_precision, 0.0) * eye
    S_after += effective_rows * share * (residual / entries) * covariance
    check_finite_step(S_after)
    C = state.C @ (state.S @ inverse_of(S_after)).astype(state.C.dtype, copy=False)
    G = gram(C)
    check_finite_step(G)
    return replace(
        state, C=C, G=G, S=S_after, entries_since_gram=0, prior_precision=float(config.shrink)
    )
