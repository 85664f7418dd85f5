"""Factors of innovations: what the changes of features share.

Levels of series that wander seem to share much that is chance, as any two trends do. Innovations,
what an autoregression leaves, do not wander, so it is in them that what features share is seen
well. With z the rows about their mean, ρ = φ^Δ and v = (z_t − ρ z_{t−1}) / √(1 − ρ²) where both are
known,

    v = diag(σ) (C u + ε),   u ~ N(0, I),   ε ~ N(0, I),

by the variational rounds of `refine.py`. Given the u of all rows, each feature follows

    g_t = ρ g_{t−1} + √(1 − ρ²) σ C u_t,

and only what is left of it, z − g, is bridged from its own values (`univariate.py`).
"""

import numpy as np
from scipy.linalg import eigh

from ..linalg.autoregression import accumulate
from ..linalg.posterior import code_rows
from ..linalg.rows import Rows, gram
from .hyper import Hyper
from .refine import Posterior, one_round
from .state import Innovations
from .stats import Matrix, Vector
from .table import Table
from .whiten import pattern_of

# Known innovations that must be there on average for each feature.
FEWEST_PAIRS = 20
# Share of its variance below which no innovation's noise begins.
LEAST_NOISE = 0.1


def fit_innovations(Z: Matrix, phi: Vector, at_step: Vector, hyper: Hyper) -> Innovations | None:
    """The factors of the innovations of rows Z without their mean; None if there are none.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        NaN is missing.
    phi : ndarray of shape (m,)
        AR coefficients of the features.
    at_step : ndarray of shape (n,)
        When rows come, in steps.
    hyper : Hyper
    """
    V = innovations(Z, phi, at_step)
    counts = np.sum(~np.isnan(V), axis=0)
    m, k = V.shape[1], min(hyper.innovation_components, V.shape[1] // 2, len(V) // 2)
    if k < 1 or counts.sum() < FEWEST_PAIRS * m:
        return None
    sizes = _sizes(V, counts, hyper)
    V = np.clip(V / sizes, -hyper.clip_innovations, hyper.clip_innovations)
    seen = ~np.isnan(V)
    found = _start(np.nan_to_num(V), seen, k)
    if found is None:
        return None
    table = Table(Rows(*pattern_of(seen), V[seen]), m)
    for _ in range(hyper.innovation_rounds):
        found = one_round(table, found, 0.0, False, hyper)
    C = found.C[:, :-1] / np.sqrt(found.noise)[:, None]
    return Innovations(np.ascontiguousarray(C), sizes * np.sqrt(found.noise))


def innovations(Z: Matrix, phi: Vector, at_step: Vector) -> Matrix:
    """Standardised innovations (n, m) of rows: NaN where an entry or the one before it is."""
    left, size = _fading(phi, at_step)
    V = np.full_like(Z, np.nan)
    V[1:] = (Z[1:] - left * Z[:-1]) / size
    return V


def shared_path(
    found: Innovations, Z: Matrix, phi: Vector, at_step: Vector, hyper: Hyper
) -> tuple[Matrix, Vector]:
    """What innovations that features share add up to (n, m), and how unknown each row's are (n,).

    The second is 0 where the factors of a row's innovations are known, 1 where nothing is.
    """
    (n, m), k = Z.shape, found.C.shape[1]
    limit = hyper.clip_innovations * found.noise_std * np.sqrt(1.0 + np.sum(found.C**2, axis=1))
    V = np.clip(innovations(Z, phi, at_step), -limit, limit) / found.noise_std
    seen = ~np.isnan(V)
    C = np.hstack([found.C, np.zeros((m, 1))])
    X, covariances = np.zeros((n, k + 1)), np.empty((n, k, k))
    code_rows(
        C, gram(C), np.zeros((k + 1, k + 1)), np.zeros(m), None, *pattern_of(seen), V[seen], 0, n,
        np.empty((0, k + 1)), np.empty(0), X, covariances, np.zeros((k, k)), np.ones(n),
        np.zeros(n), np.zeros(n), np.zeros(int(seen.sum()), bool), np.ones(m), 0, np.zeros((0, 2)),
    )  # fmt: skip
    path = (X @ C.T) * found.noise_std
    left, size = _fading(phi, at_step)
    path[0] = 0.0
    path[1:] *= size
    accumulate(path, left)
    weights = np.sum(found.C**2, axis=0)
    unknown = np.einsum("tkk,k->t", covariances, weights) / max(float(weights.sum()), 1e-300)
    return path, unknown


def communality(found: Innovations) -> Vector:
    """Share of the variance of each feature's innovations that the factors explain."""
    squares: Vector = np.sum(found.C**2, axis=1)
    return squares / (1.0 + squares)


def _fading(phi: Vector, at_step: Vector) -> tuple[Matrix, Matrix]:
    """What is left of each feature from row to row (n − 1, m), and the innovations' deviations."""
    left = phi ** np.diff(at_step)[:, None]
    return left, np.sqrt(1.0 - left**2)


def _sizes(V: Matrix, counts: Vector, hyper: Hyper) -> Vector:
    """Deviations of innovations, of which a few may be jumps."""
    squares = np.nansum(V**2, axis=0) / np.maximum(counts, 1)
    limit = hyper.clip_innovations * np.sqrt(squares)
    for _ in range(2):
        squares = np.nansum(np.clip(V, -limit, limit) ** 2, axis=0) / np.maximum(counts, 1)
        limit = hyper.clip_innovations * np.sqrt(squares)
    typical = float(np.median(squares[counts > 0]))
    sizes: Vector = np.sqrt(np.where(squares > 0.0, squares, typical if typical > 0.0 else 1.0))
    return sizes


def _start(V: Matrix, seen: Matrix, k: int) -> Posterior | None:
    """Principal components of innovations, zero where they are not known; None if there are none.

    Of independent innovations no eigenvalue exceeds (1 + √(m / n))². If one does, all that are
    above the average, 1, are tried: weak factors help, and rounds switch off what is none.
    """
    (n, m), share = V.shape, max(float(seen.mean()), 1e-3)
    narrow = m <= n
    products = V.T @ V if narrow else V @ V.T
    last = len(products) - 1
    values, vectors = eigh(products, subset_by_index=(last - k + 1, last))
    values, vectors = values[::-1] / (n * share), vectors[:, ::-1]
    if values[0] <= (1.0 + np.sqrt(m / n)) ** 2:
        return None
    k = int(np.sum(values > 1.0))
    axes = vectors[:, :k] if narrow else V.T @ vectors[:, :k] / np.sqrt(n * share * values[:k])
    C = np.zeros((m, k + 1))
    C[:, :k] = axes * np.sqrt(values[:k] / share)
    noise = np.maximum(1.0 - np.sum(C**2, axis=1), LEAST_NOISE)
    v = np.append(np.maximum(np.mean(C[:, :k] ** 2, axis=0), 1e-4), 1.0)
    return Posterior(
        C, np.zeros((m, (k + 1) * (k + 2) // 2)), noise, v, np.ones(m),
        seen.sum(axis=0) < 2, np.eye(k + 1),
    )  # fmt: skip
