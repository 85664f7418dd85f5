"""Features that are added to a model: names that a stream brings for the first time.

A new feature begins as one that the head did not observe (`features.py`): its first entries give
its mean and unit, and it is learned at the speed of a new one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.capacity import extended
from .rank import switched_off_variance
from .state import State, evolve
from .stats import inverse


def add_features(state: State, count: int) -> State:
    """The state with `count` more features, of which nothing was observed.

    If more features may have more components, these are added, too, switched off. Arrays have room
    for more features, so that one costs O(r) amortised.
    """
    m, hyper = len(state.params.C), state.config.hyper
    params, batch, features = state.params, state.batch, state.features
    rng = np.random.default_rng([state.seed, m])
    shown = rng.random((len(state.holdout.masks), count)) < 1.0 - hyper.holdout_share
    known = not state.config.scale and not state.config.center

    def more(values: NDArray[Any], new: Any) -> NDArray[Any]:
        """An array of features with the same value for each new one."""
        return extended(values, count, new)

    def rows(C: NDArray[Any]) -> NDArray[Any]:
        return extended(C, count, 0.0, axis=0)

    def usual(values: NDArray[Any]) -> float:
        """The median of the features; the last of those that wait for a unit has it already."""
        return float(np.median(values) if features.known[-1] else values[-1])

    grown = evolve(
        state,
        C=rows(params.C),
        C_batch=None if batch.C_batch is None else rows(batch.C_batch),
        center=more(params.center, usual(params.center) if state.config.center else 0.0),
        scale=more(params.scale, usual(params.scale)),
        noise_std=more(params.noise_std, usual(params.noise_std)),
        inverse_coverage=more(batch.inverse_coverage, 1.0 / hyper.least_coverage),
        counts=more(state.stats.counts, 0.0),
        residual_sums=more(state.stats.residual_sums, 0.0),
        masks=more(state.holdout.masks, shown),
        n_dropped=more(state.outliers.n_dropped, 0),
        run_length=more(state.outliers.run_length, 0),
        known=more(features.known, known),
        pending_moments=more(features.pending_moments, 0.0),
        integer=more(features.integer, True),
        constant=more(features.constant, False),
        varied=more(features.varied, False),
        constant_value=more(features.constant_value, 0.0),
        last_seen=more(features.last_seen, state.n_seen)
        if len(features.last_seen) == m
        else features.last_seen,
        temporal=None,
        posterior=None,
    )
    missing = state.config.components_for(m + count) - state.n_components
    return _add_components(grown, missing, rng) if missing > 0 else grown


def _add_components(state: State, count: int, rng: np.random.Generator) -> State:
    """The state with more components, which are switched off: signal can bring them in."""
    m, params, stats, batch = len(state.params.C), state.params, state.stats, state.batch
    r = state.n_components
    v = switched_off_variance(m, stats.n_rows)

    def columns(C: NDArray[Any], loadings: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(np.concatenate([C[:, :r], loadings, C[:, r:]], axis=1))

    def square(M: NDArray[Any], diagonal: float) -> NDArray[Any]:
        """The matrix with more rows and columns before that of the mean, if it has one."""
        out = np.zeros((len(M) + count, len(M) + count))
        which = np.concatenate([np.arange(r), np.arange(r + count, len(out))])
        out[np.ix_(which, which)] = M
        new = np.arange(r, r + count)
        out[new, new] = diagonal
        return out

    loadings = np.sqrt(v) * rng.standard_normal((m, count))
    loadings[~state.features.known] = 0.0
    loadings = loadings.astype(params.C.dtype)
    codes = state.coding
    S = square(stats.S, stats.n_rows + 1.0 / v)
    G = columns(codes, loadings).astype(np.float64)
    return evolve(
        state,
        C=columns(params.C, loadings),
        C_batch=None if batch.C_batch is None else columns(codes, loadings),
        v=np.concatenate([params.v[:r], np.full(count, v), params.v[r:]]),
        basis_change=square(params.basis_change, 1.0),
        G=G.T @ G,
        Sigma=square(batch.Sigma, 1.0 / (stats.n_rows + 1.0 / v)),
        S=S,
        S_inverse=inverse(S),
        code_cov_sum=square(stats.code_cov_sum, 0.0),
    )
