"""Which components are active, and states without the others."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .state import FeaturePosterior, Flags, State, evolve


def active_components(state: State) -> Flags:
    """Which components have more variance than pure noise would give them.

    The largest variance of n rows of noise in m dimensions is (1 + √(m / n))².
    """
    m = len(state.params.C)
    a = m / max(state.stats.n_rows, 1.0)
    present = np.diagonal(state.batch.G)[:-1] > 1e-12  # not pruned at the end of a fit
    edge = state.config.hyper.active_variance * (2.0 * np.sqrt(a) + a) / m
    return present & (state.params.v[:-1] > edge)


def switched_off_variance(n_features: int, n_rows: float) -> float:
    """What is left of the variance of a component that is switched off.

    ω / n with 1/ω = 2√a + a/(1 + √a)², a = m / n: below that, noise cannot bring it back, but
    signal can.
    """
    n = max(n_rows, 1.0)
    a = n_features / n
    return float(1.0 / (2.0 * np.sqrt(a) + a / (1.0 + np.sqrt(a)) ** 2) / n)


def with_components(state: State, which: NDArray[np.int64]) -> State:
    """The state with these components only, the mean among them, to make codes with."""
    square = np.ix_(which, which)
    batch, stats = state.batch, state.stats
    return evolve(
        state, C=np.ascontiguousarray(state.params.C[:, which]), C_batch=None, G=batch.G[square],
        S=stats.S[square], Sigma=batch.Sigma[square], S_inverse=batch.S_inverse[square],
        v=state.params.v[which], code_cov_sum=stats.code_cov_sum[np.ix_(which[:-1], which[:-1])],
        basis_change=np.eye(len(which)), posterior=_restricted(state.posterior, which),
    )  # fmt: skip


def _restricted(
    posterior: FeaturePosterior | None, which: NDArray[np.int64]
) -> FeaturePosterior | None:
    """The features' posterior by the numbers that components have among `which`."""
    if posterior is None or not np.isin(posterior.active, which).all():
        return None
    return replace(posterior, active=np.searchsorted(which, posterior.active))


def drop_empty(state: State) -> tuple[State, NDArray[np.int64]]:
    """The state without components that were pruned, and which it keeps; the mean is the last.

    Pruned components have no loadings and no variance: codes and predictions are the same without
    them.
    """
    G, Sigma = state.batch.G, state.batch.Sigma
    present = (np.diagonal(G) > 0.0) | (np.diagonal(Sigma) > 0.0)
    present[-1] = True
    which = np.flatnonzero(present)
    return (state if present.all() else with_components(state, which)), which
