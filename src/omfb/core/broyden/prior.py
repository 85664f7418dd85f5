"""The prior on the dictionary (`shrink`), and what codes are not sure of.

Let entries of C be normal around zero with variance σ²/β, codes with σ²/α, and the noise with σ².
Then a code is known up to the covariance σ² (G_Ω + α I)⁻¹ only, and a dictionary that trusts it
fully learns the noise. Both belong to S, and pull C towards zero:

    S' = S + P,   C' = C S S'⁻¹,   P = β I + Σ s σ² (s G + (α + τ) I)⁻¹

the sum over the rows, s their observed share; of β I only what S has lost since the last time.
P has full rank, so this costs m r² operations and more: it is done after every 4r rows, for all
of them at once. σ² is their residual energy for each observed entry.
"""

from dataclasses import replace

import numpy as np

from ..linalg.rows import check_finite_step, gram, inverse_of
from .penalties import smallest_pivot, solve_minimum_norm
from .state import MOSTLY_OBSERVED, State

PERIOD = 4  # times r, in rows


def rows_to_go(state: State) -> int:
    """Rows until `with_prior` is due, in whole mini-batches."""
    size = state.config.batch_size
    left = max(PERIOD * state.C.shape[1] - state.since, 1)
    return -(-left // size) * size


def with_prior(state: State, rows: int, entries: int, residual: float) -> State:
    """Note the rows that were learned and, if it is due, pull the dictionary towards zero."""
    (m, r), config = state.C.shape, state.config
    since, entries = state.since + rows, state.entries + entries
    residual += state.residual
    if since < PERIOD * r:
        return replace(state, since=since, entries=entries, residual=residual)
    state = replace(state, since=0, entries=0, residual=0.0)
    if entries == 0:
        return state
    share = entries / (since * m)
    left = config.forget_factor**since  # of what S held
    remembered = (
        since if config.forget_factor == 1.0 else (1.0 - left) / (1.0 - config.forget_factor)
    )  # rows
    if share >= MOSTLY_OBSERVED:
        left *= 1.0 - since / state.weight
    eye = np.eye(r)
    pulled = share * state.G + (state.ridge + state.smooth) * eye
    covariance = solve_minimum_norm(pulled, eye, smallest_pivot(state.C.dtype))
    S_after = state.S + max(config.shrink - left * state.prior, 0.0) * eye
    S_after += remembered * share * (residual / entries) * covariance
    check_finite_step(S_after)
    C = state.C @ (state.S @ inverse_of(S_after)).astype(state.C.dtype, copy=False)
    G = gram(C)
    check_finite_step(G)
    return replace(state, C=C, G=G, S=S_after, drift=0, prior=float(config.shrink))
