"""Refinement by variational rounds, where a fit has the whole table at hand.

Over a stream all features share one precision. Here each feature has a posterior N(c_i, Σ_i) of its
own, so one that is observed in few rows, or only while codes were unlike their usual selves, knows
that. A round (`kernels/variational.py`) updates, in turn,

    codes       given the features' posteriors
    features    given the codes' posteriors, with the prior c_ij ~ N(0, v_j s_i), s_i the variance
                of the feature's entries: small features have small loadings
    noise       σ_i² = (2 b + e_i) / (2 a + n_i − γ_i): e_i are the squared residuals, γ_i of the
                n_i degrees of freedom are taken by codes and loadings. It is MacKay's fixed point;
                EM has the same one, but needs some five times as many rounds where two columns are
                nearly equal. a / b is the mean precision of all features (empirical Bayes).
    variances   v_j = mean_i (c_ij² + Σ_i,jj) / s_i (automatic relevance determination: components
                that the data do not need are switched off); that of the mean stays 1
    basis       codes turned to mean 0 and covariance I, loadings uncorrelated

The mean is left out of relevance determination: its loadings are near zero where columns are
centred, but a column that is seen only while codes are far from zero has a mean that is not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.rows import Rows
from ..linalg.threads import in_threads
from ..linalg.variational import add_moments, code_moments, predict_entries, solve_posteriors
from .hyper import Hyper
from .stats import Matrix, Vector
from .table import BLOCK, Table

# Share of a feature's deviation that its noise is not below: 1 / σ² stays a good number.
LEAST_NOISE = 1e-4


@dataclass(frozen=True, slots=True)
class Posterior:
    """Posterior of the loadings of m features on k components; R = k + 1, the mean comes last.

    Attributes
    ----------
    C : ndarray of shape (m, R)
    covariances : ndarray of shape (m, R (R + 1) / 2)
        Lower triangles, row by row, of the covariances of the rows of C.
    noise : ndarray of shape (m,)
        Variances.
    v : ndarray of shape (R,)
        Prior variances of the columns of C, in units of `sizes`.
    sizes : ndarray of shape (m,)
        Variances of the features' entries.
    fixed : ndarray of shape (m,)
        Features that say nothing of noise and components: constant ones, and such.
    basis_change : ndarray of shape (R at the start, R)
        Accumulated change of basis: x̃_start = basis_change @ x̃.
    """

    C: Matrix
    covariances: Matrix
    noise: Vector
    v: Vector
    sizes: Vector
    fixed: NDArray[np.bool_]
    basis_change: Matrix


class Coded(NamedTuple):
    """Codes (n, R) of a table's rows, and sums of their moments."""

    X: Matrix
    S: Matrix
    """(m, p): over the rows that are listed for a feature, with the table's sign."""
    everything: Vector
    """(p,): what is to be added to each."""
    total: Matrix
    """(R, R): over all rows."""


def refine(table: Table, start: Posterior, one: float, shared: bool, hyper: Hyper) -> Posterior:
    """The posterior after some rounds from a start.

    Parameters
    ----------
    table : Table
    start : Posterior
    one : float
        The code of the mean: 1, or 0 where there is none.
    shared : bool
        Whether features share one noise.
    hyper : Hyper
    """
    posterior, counts = pruned(table, start, hyper), table.numbers
    weights = counts / max(float(counts.sum()), 1e-300)
    for _ in range(
        int(np.clip(hyper.refine_work // work_of(table, posterior), *hyper.refine_rounds))
    ):
        before = posterior.noise
        posterior = one_round(table, posterior, one, shared, hyper)
        if float(weights @ np.abs(np.log(posterior.noise / before))) < hyper.refine_tolerance:
            break
    return posterior


def work_of(table: Table, now: Posterior) -> float:
    """Multiply-adds of a round, about."""
    (m, R), listed = now.C.shape, table.listed.n_entries
    return 2.0 * listed * now.covariances.shape[1] + (len(table.rows) + 3.0 * m) * R**3


def one_round(table: Table, now: Posterior, one: float, shared: bool, hyper: Hyper) -> Posterior:
    """Codes, features, noise, basis and variances, each updated once."""
    coded = code(table, now, one)
    C, covariances, spread, left = solve(table, coded, now)
    noise = _noise(table, now, spread, left, shared, hyper)
    T = _basis(coded.total, table.total, C, covariances, now, one)
    C, covariances = C @ T, _turned(covariances, T)
    varying = ~now.fixed
    square = C**2 + covariances[:, _diagonal(C.shape[1])]
    v = np.append(np.mean(square[varying, :-1] / now.sizes[varying, None], axis=0), now.v[-1])
    after = replace(
        now,
        C=C,
        covariances=covariances,
        noise=noise,
        v=np.maximum(v, 1e-300),
        basis_change=now.basis_change @ T,
    )
    return pruned(table, after, hyper)


def pruned(table: Table, now: Posterior, hyper: Hyper) -> Posterior:
    """The posterior without components of whose codes a row tells next to nothing."""
    seen = table.information / table.total
    square = now.C**2 + now.covariances[:, _diagonal(now.C.shape[1])]
    told = (seen / now.noise) @ square[:, :-1]
    kept = told > hyper.idle_information
    if not kept.any():  # at least one stays
        C = np.zeros_like(now.C)
        C[:, -1] = now.C[:, -1]
        now, kept[0] = replace(now, C=C), True
    return now if kept.all() else _with_components(now, kept)


def code(table: Table, now: Posterior, one: float, noise: Vector | None = None) -> Coded:
    """Codes of the table's rows, and what the features need of them."""
    X = np.empty((len(table.rows), now.C.shape[1]))
    S, everything = np.zeros_like(now.covariances), np.zeros(now.covariances.shape[1])
    for first, XX, block in coded_blocks(table, now, one, X, noise):
        if table.weights is not None:
            XX *= table.weights[first : first + len(XX), None]
        everything += XX.sum(axis=0)
        weights = table.listed_weights(block)
        add = partial(add_moments, S, table.sign, XX, block.starts, block.features, weights)
        in_threads(add, len(S), len(block.features) * S.shape[1])
    total = unpacked(everything[None], X.shape[1])[0]
    return Coded(X, S, everything if table.sign < 0.0 else np.zeros_like(everything), total)


def coded_blocks(
    table: Table, now: Posterior, one: float, X: Matrix, noise: Vector | None = None
) -> Iterator[tuple[int, Matrix, Rows]]:
    """Fill X with the codes of one block of rows after the other; yield where, and moments."""
    noise = now.noise if noise is None else noise
    M = expected_squares(now)
    M /= noise[:, None]
    loadings = now.C / noise[:, None]
    everything = M.sum(axis=0) if table.sign < 0.0 else np.zeros(M.shape[1])
    n, (starts, features, _), values = len(X), table.rows, table.values
    weights = table.listed_weights(table.listed)
    for at, block in enumerate(table.blocks):
        first = at * BLOCK
        last = min(first + BLOCK, n)
        XX = np.empty((last - first, M.shape[1]))
        code_part = partial(
            _code_part, first, XX, M, everything, table.sign, loadings, one, starts, features,
            values, table.listed.starts, table.listed.features, weights, X,
        )  # fmt: skip
        in_threads(code_part, last - first, len(block.features) * M.shape[1])
        yield first, XX, block


def _code_part(first: int, XX: Matrix, *args: Any) -> None:
    """Codes of some rows of a block: the last arguments are the first and last of these."""
    *given, X, i, j = args
    code_moments(*given, first + i, first + j, X, XX[i:j])


def solve(table: Table, coded: Coded, now: Posterior) -> tuple[Matrix, Matrix, Vector, Vector]:
    """Loadings and covariances of the features; spread and residuals as in `solve_posteriors`."""
    C, covariances = np.empty_like(now.C), np.empty_like(now.covariances)
    spread, left = np.empty(len(C)), np.empty(len(C))
    precision = 1.0 / (now.v * now.sizes[:, None])
    in_threads(
        lambda first, last: solve_posteriors(
            coded.S, coded.everything, now.noise, precision, coded.X, *table.columns,
            table.column_weights, first, last, C, covariances, spread, left,
        ),
        len(C),
        len(C) * C.shape[1] ** 3 + table.rows.n_entries * C.shape[1],
    )  # fmt: skip
    return C, covariances, spread, left


def predict(
    table: Table, now: Posterior, one: float, wanted: Rows, temper: float, *, variances: bool
) -> tuple[Vector, Vector]:
    """Means of the entries that are wanted of each row, and variances if these are asked for.

    With noise `temper` times as large. Values of `wanted` do not matter.
    """
    noise, E = temper * now.noise, np.empty((0, now.covariances.shape[1]))
    if variances:
        E = 2.0 * expected_squares(now)
        E[:, _diagonal(now.C.shape[1])] /= 2.0
    X = np.empty((len(table.rows), now.C.shape[1]))
    mean = np.empty(wanted.n_entries)
    variance = np.empty(wanted.n_entries if variances else 0)
    for first, XX, _ in coded_blocks(table, now, one, X, noise):
        predict_entries(
            E, now.C, X, XX, wanted.starts, wanted.features, first, first + len(XX), mean, variance
        )
    return mean, variance + noise[wanted.features] if variances else variance


def _noise(
    table: Table, now: Posterior, spread: Vector, left: Vector, shared: bool, hyper: Hyper
) -> Vector:
    """The noise of the features, or the one that they share."""
    counts = table.numbers
    taken = np.minimum(spread / now.noise, counts)
    free = np.where(now.fixed, 0.0, counts - taken)
    least = LEAST_NOISE**2 * now.sizes
    if shared:
        usual = float(left[~now.fixed].sum()) / max(float(free.sum()), 1e-300)
        return np.maximum(usual, least) if free.sum() > 0.0 else now.noise
    typical = now.sizes / np.mean((now.sizes / now.noise)[~now.fixed])
    found = (2.0 * hyper.noise_shape * typical + left) / (2.0 * hyper.noise_shape + free)
    # A step at a time: what codes take of a feature changes with its noise.
    found = np.clip(found, now.noise / 4.0, now.noise * 4.0)
    return np.where(now.fixed, now.noise, np.maximum(found, least))


def _basis(
    total: Matrix, n: float, C: Matrix, covariances: Matrix, now: Posterior, one: float
) -> Matrix:
    """T: codes x̃ become T⁻¹x̃, of mean 0 and covariance I, and C becomes C T, uncorrelated."""
    R = C.shape[1]
    r, T = R - 1, np.eye(R)
    mean = total[:r, r] / n * (one > 0.0)
    values, vectors = np.linalg.eigh(total[:r, :r] / n - np.outer(mean, mean))
    root = vectors * np.sqrt(np.maximum(values, 1e-8 * values[-1]))
    scaled = C[:, :r] / np.sqrt(now.sizes)[:, None]
    spread = unpacked((covariances / now.sizes[:, None]).sum(axis=0)[None], R)[0]
    _, rotation = np.linalg.eigh(root.T @ (scaled.T @ scaled + spread[:r, :r]) @ root)
    T[:r, :r] = root @ rotation[:, ::-1]
    T[:r, r] = mean
    return T


def _with_components(now: Posterior, kept: NDArray[np.bool_]) -> Posterior:
    """The posterior of some of the components."""
    which = np.append(np.flatnonzero(kept), len(kept))
    R = len(kept) + 1
    rows, columns = _triangle(R)
    both = np.isin(rows, which) & np.isin(columns, which)
    return replace(
        now, C=np.ascontiguousarray(now.C[:, which]), v=now.v[which],
        basis_change=now.basis_change[:, which],
        covariances=np.ascontiguousarray(now.covariances[:, both]),
    )  # fmt: skip


def expected_squares(now: Posterior) -> Matrix:
    """Packed E[c cᵀ] of each feature."""
    rows, columns = _triangle(now.C.shape[1])
    squares: Matrix = now.C[:, rows] * now.C[:, columns]
    squares += now.covariances
    return squares


def packed(matrices: Matrix) -> Matrix:
    """Lower triangles (q, R (R + 1) / 2) of symmetric matrices (q, R, R), row by row."""
    rows, columns = _triangle(matrices.shape[1])
    return np.ascontiguousarray(matrices[:, rows, columns])


def unpacked(triangles: Matrix, R: int) -> Matrix:
    """The symmetric matrices (q, R, R) of which these are the lower triangles."""
    rows, columns = _triangle(R)
    full = np.empty((len(triangles), R, R))
    full[:, rows, columns] = triangles
    full[:, columns, rows] = triangles
    return full


def _turned(triangles: Matrix, T: Matrix) -> Matrix:
    """Packed Tᵀ Σ T."""
    return packed(T.T @ unpacked(triangles, len(T)) @ T)


@lru_cache
def _triangle(R: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.tril_indices(R)


def _diagonal(R: int) -> NDArray[np.int64]:
    """Where the diagonal is in a packed matrix."""
    at = np.arange(R)
    diagonal: NDArray[np.int64] = at * (at + 3) // 2
    return diagonal
