"""Between a state and the posterior that refines it (`refine.py`)."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from ..linalg.rows import gram
from .e_step import encode_rows
from .features import still_constant
from .rank import active_components, switched_off_variance
from .refine import Posterior, code, packed, solve, unpacked
from .robust import clip_rows
from .state import FeaturePosterior, State, evolve
from .stats import Matrix, Vector, inverse
from .table import Table

# Noise is divided by.
LEAST_NOISE = 1e-301

LOGGER = logging.getLogger("omfb")


def posterior_of(state: State, table: Table) -> Posterior:
    """The posterior to start from, in units of the noise: features differ by their counts only."""
    counts, values = np.diff(table.columns.starts), table.columns.values
    owners = np.repeat(np.arange(len(counts)), counts)
    each = table.column_weights if len(table.column_weights) else np.ones(len(values))
    n = np.maximum(np.bincount(owners, each, len(counts)), 1e-300)
    mean = np.bincount(owners, each * values, len(counts)) / n
    sizes = np.bincount(owners, each * (values - mean[owners]) ** 2, len(counts)) / n
    fixed = still_constant(state) | ~state.features.known | (counts < 2) | ~(sizes > 1e-12)
    if fixed.all():
        fixed[:] = False
    units = (state.params.scale / state.params.noise_std) ** 2
    sizes = np.where(sizes > 1e-12, sizes, units)
    C = state.params.C.astype(np.float64, copy=False)
    share = np.mean(C[:, :-1] ** 2 / sizes[:, None], axis=0)
    there = active_components(state)
    there[np.argmax(share)] = True
    active = np.append(np.flatnonzero(there), state.n_components)
    v = np.append(np.maximum(share[there], 1e-4), 1.0)
    covariance = packed(state.batch.Sigma[np.ix_(active, active)][None])
    return Posterior(
        np.ascontiguousarray(C[:, active]),
        state.batch.inverse_coverage[:, None] * covariance, np.ones(len(C)), v, sizes, fixed,
        np.eye(state.n_components + 1)[:, active],
    )  # fmt: skip


def with_posterior(state: State, table: Table, found: Posterior, temper: float = 1.0) -> State:
    """The state with a posterior of its whole table, and `temper` times the noise.

    What the stream needs to go on follows: S from the codes, noise statistics from residuals.
    """
    (m, R), K = state.params.C.shape, found.C.shape[1]
    active = np.append(np.arange(K - 1), R - 1)
    noise = np.where(found.fixed, found.noise, temper * found.noise)
    coded = code(table, found, state.one, noise)
    left = solve(table, coded, replace(found, noise=noise))[3]
    known = state.features.known[:, None]
    own = known * found.covariances / noise[:, None]
    loadings = known * found.C / np.sqrt(noise)[:, None]
    C = np.zeros_like(state.params.C)
    C[:, active] = loadings
    v = np.full(R, switched_off_variance(m, state.stats.n_rows))
    diagonal = unpacked(own.mean(axis=0)[None], K)[0].diagonal()
    v[active] = np.maximum(np.mean(loadings**2, axis=0) + diagonal, 1e-12)
    S = np.diag(np.full(R, max(state.stats.n_rows, 1.0)))
    S[np.ix_(active, active)] = coded.total * (state.stats.n_rows / table.total)
    S += np.diag(1.0 / v)
    S_inverse, Sigma = inverse(S), np.zeros((R, R))
    Sigma[np.ix_(active, active)] = S_inverse[np.ix_(active, active)]
    noise_std = np.maximum(state.params.noise_std * np.sqrt(noise), LEAST_NOISE)
    center = state.params.center + state.one * noise_std * loadings[:, -1]
    if state.one:  # clip limits are counted from the centre, which spikes may have moved
        C[:, -1] = 0.0
    counts = table.numbers
    sums = state.stats.residual_sums.copy()
    sums[0] = np.where(counts > 0.0, left / np.maximum(counts, 1e-300) / noise, 1.0) * sums[1]
    return evolve(
        state, C=C, C_batch=None, G=gram(C), S=S, Sigma=Sigma, S_inverse=S_inverse, v=v,
        code_cov_sum=np.zeros((R - 1, R - 1)),
        center=center, noise_std=noise_std, residual_sums=sums,
        code_cov_weight=0.0, prior_weight=1.0,
        residual_energy=state.stats.residual_dof,
        inverse_coverage=_own_coverage(own, Sigma[np.ix_(active, active)]),
        basis_change=state.params.basis_change @ _completed(found.basis_change, R),
        posterior=FeaturePosterior(active, unpacked(own, K)),
    )  # fmt: skip


def _own_coverage(covariances: Matrix, shared: Matrix) -> Vector:
    """How many times the shared covariance each feature's own is, on average over directions."""
    precision = inverse(shared)
    weights = packed((2.0 * precision - np.diag(precision.diagonal()))[None])[0]
    times: Vector = covariances @ weights / len(precision)
    return np.maximum(times, 1e-6)


def _completed(basis: Matrix, R: int) -> Matrix:
    """A square change of basis: components that were dropped go where they are independent."""
    square = np.empty((R, R))
    square[:, [*range(basis.shape[1] - 1), R - 1]] = basis
    square[:, basis.shape[1] - 1 : R - 1] = scipy.linalg.null_space(basis.T)
    return square


def prune(state: State) -> State:
    """The state without components of whose codes a row tells next to nothing: it fills faster.

    For long tables, which are not refined; a stream may bring them back.
    """
    seen = state.schedule.n_entries / max(state.n_seen * len(state.params.C), 1)
    told = (
        seen
        * (state.batch.G + float(state.batch.inverse_coverage.sum()) * state.batch.Sigma).diagonal()
    )
    idle = told < state.config.hyper.idle_information
    idle[[int(np.argmax(told[:-1])), -1]] = False  # at least one stays
    C, Sigma = state.params.C.copy(), state.batch.Sigma.copy()
    C[:, idle] = 0.0
    Sigma[idle], Sigma[:, idle] = 0.0, 0.0
    return evolve(state, C=C, C_batch=None, G=gram(C), Sigma=Sigma)


def is_narrow(state: State) -> bool:
    """Whether rounds over complete rows cost next to nothing; they find the number of components.

    Filled values hardly change: complete rows know all features alike.
    """
    m, R = len(state.params.C), 1 + int(active_components(state).sum())
    return m * R**3 <= state.config.hyper.refine_work / 1000.0


def too_wide(state: State) -> bool:
    """Whether a round over a table of so many columns and components takes too long; says so."""
    m, R = len(state.params.C), 1 + int(active_components(state).sum())
    if m * R**3 <= state.config.hyper.refine_work / 8.0:
        return False
    LOGGER.warning(
        "%d columns with %d components are too many to refine each column by itself: filled "
        "values rest on the stream's estimate.", m, R - 1,
    )  # fmt: skip
    return True


def solve_complete(state: State, X: Any) -> State:
    """One round for complete rows: all features share a system, and it takes two products."""
    rows = clip_rows(state, X)
    if not rows.complete:
        return state
    codes = encode_rows(state, rows, rows.weights)
    weighted = codes.X if rows.weights is None else codes.X * rows.weights[:, None]
    S = weighted.T @ codes.X + np.diag(1.0 / state.params.v)
    S[:-1, :-1] += codes.cov_sum
    assert rows.values is not None
    C = rows.values.T @ (weighted @ inverse(S)).astype(state.params.C.dtype)
    return evolve(state, C=C, G=gram(C))
