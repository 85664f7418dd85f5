"""A mini-batch with missing entries: exact, a case that the paper leaves open.

For fixed codes the objective separates by feature. With Ω_i the rows of the batch that observe
feature i, X_i their codes and e_i their residuals,

    S_i = S̄ + X_iᵀ X_i,    c_i ← c_i + e_iᵀ X_i S_i⁻¹ = c_i + e_iᵀ (I + X_i S̄⁻¹ X_iᵀ)⁻¹ X_i S̄⁻¹

by whichever system is smaller. Features are independent, so any range of them can be one thread's
work. Neighbouring features are often observed by the same rows and then share the inverse.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..info import Info
from ..linalg.compiling import jit
from ..linalg.observed import approach_few, multiply_few, observed_gram, project
from ..linalg.patterns import by_pattern
from ..linalg.rows import Matrix, Rows, check_finite_step, gram, row_squares
from ..linalg.small import SMALLEST_PRECISION, dot, factorise, invert, solve
from ..linalg.threads import in_threads
from .coordinate_descent import descend_systems
from .penalties import ElasticNet, Penalty, Quadratic, penalty_of
from .precision import Step, precision_before, refreshed, start_weight_after
from .smooth_codes import chain_one
from .state import State

# Gram matrices computed at a time: what the second-level cache holds.
GRAMS_BYTES = 1 << 19


@jit
def systems(C, G, starts, features, values, chosen, grams, P, energy):
    """Fill P[t] = C_Ωᵀy and energy[t] = yᵀy of the chosen rows t, and `grams` with their G_Ω."""
    for at in range(chosen.shape[0]):
        t = chosen[at]
        seen = features[starts[t] : starts[t + 1]]
        energy[t] = project(C, seen, values[starts[t] : starts[t + 1]], P[t])
        observed_gram(C, G, seen, grams[at])


@jit
def solve_systems(grams, P, energy, chosen, ridge, smallest, X, residual, regular):
    """Codes and residual energies of the chosen rows; `regular` says which could be solved.

    As (G_Ω + α I) x = b, the residual energy ‖y − C x‖² is yᵀy − bᵀx − α xᵀx. Overwrites `grams`.
    """
    r = P.shape[1]
    for at in range(chosen.shape[0]):
        t = chosen[at]
        A, b, x = grams[at], P[t], X[t]
        for j in range(r):
            A[j, j] += ridge
            x[j] = b[j]
        regular[t] = factorise(A, smallest)
        if regular[t]:
            solve(A, x)
            residual[t] = max(energy[t] - dot(b, x) - ridge * dot(x, x), 0.0)


@jit
def solve_few_each(C, starts, features, values, chosen, smallest, X, energy, regular):
    """Codes and energies of chosen rows with at most r entries, which a code fits exactly.

    X must be zero at first; `regular` says which rows could be solved.
    """
    errors = np.empty(C.shape[1])
    for at in range(chosen.shape[0]):
        t = chosen[at]
        seen = features[starts[t] : starts[t + 1]]
        given = values[starts[t] : starts[t + 1]]
        energy[t] = 0.0
        for s in range(given.shape[0]):
            energy[t] += np.float64(given[s]) * np.float64(given[s])
        A = np.empty((seen.shape[0], seen.shape[0]))
        multiply_few(C, seen, A)
        regular[t] = invert(A, smallest)
        for _ in range(2):
            approach_few(C, seen, given, A, errors, X[t])


@jit
def learn_features(
    C_after, C_before, starts, rows, values, first, last, X, Z, T, S_before
):  # fmt: skip
    """Write rows first to last of C_after, given Z = X S̄⁻¹ and T = X S̄⁻¹ Xᵀ.

    C_before has the rows of C, before the batch, of the features that the batch observes; every
    round starts from it. rows[starts[f]:starts[f+1]] are the batch's rows that observe feature f
    of these.
    """
    r = X.shape[1]
    most = X.shape[0]
    A = np.empty((1, 1))
    outer = np.empty((r, r))
    error = np.empty(most)
    change = np.empty(r)
    previous_start, previous_end = 0, 0  # the feature whose pattern the inverse belongs to
    for f in range(first, last):
        start, end = starts[f], starts[f + 1]
        count = end - start
        same = count == previous_end - previous_start
        for s in range(count):
            error[s] = values[start + s] - dot(C_before[f], X[rows[start + s]])
            same = same and rows[start + s] == rows[previous_start + s]
        for j in range(r):
            change[j] = 0.0
        if count <= r:
            if not same or A.shape[0] != count:
                A = np.empty((count, count))  # a slice of a larger array would have another type
                for s in range(count):
                    for p in range(count):
                        A[s, p] = T[rows[start + s], rows[start + p]]
                    A[s, s] += 1.0
                invert(A, SMALLEST_PRECISION)
            for s in range(count):
                weight = 0.0
                for p in range(count):
                    weight += A[s, p] * error[p]
                for j in range(r):
                    change[j] += weight * Z[rows[start + s], j]
            for j in range(r):
                C_after[f, j] = C_before[f, j] + change[j]
        else:
            if not same:
                for a in range(r):
                    for j in range(r):
                        outer[a, j] = S_before[a, j]
                for s in range(start, end):
                    x = X[rows[s]]
                    for a in range(r):
                        for j in range(r):
                            outer[a, j] += x[a] * x[j]
                invert(outer, SMALLEST_PRECISION)
            for s in range(count):
                for j in range(r):
                    change[j] += error[s] * X[rows[start + s], j]
            for j in range(r):
                C_after[f, j] = C_before[f, j] + dot(outer[j], change)
        previous_start, previous_end = start, end


def learn_missing_batch(state: State, rows: Rows, reuse: bool) -> Step:
    """Learn from one mini-batch with missing entries; with `reuse`, in place."""
    state = refreshed(state)
    config = state.config
    C = state.C if reuse else state.C.copy()
    G = state.G
    share = len(rows.values) / (len(rows) * len(C))
    S_before, S_before_inverse = precision_before(state.S, config, state.weight, len(rows), share)
    penalty = penalty_of(state)
    entries = _by_feature(rows)
    C_before = C[entries.observed].astype(np.float64, copy=False)
    few = 4 * len(entries.observed) < len(C)
    G_others = state.G - gram(C_before) if few else None
    info = None
    try:
        for _ in range(config.inner_iter):
            X, now = missing_codes(penalty, C, G, rows, state.code)
            check_finite_step(X)
            info = now if info is None else info
            C[entries.observed] = _learned(C_before, entries, X, S_before, S_before_inverse)
            G = gram(C) if G_others is None else G_others + gram(C[entries.observed])
        S = state.S
        if config.forget_factor > 0.0 and len(rows.values) > 0:
            shares = np.diff(rows.starts) / len(C)  # per row, as in `remember`
            S = S_before + (X.T * shares) @ X
        check_finite_step(G, S)
    except ValueError:
        C[entries.observed] = C_before
        raise
    assert info is not None  # inner_iter >= 1
    learned = replace(
        state,
        C=C,
        G=G,
        S=S,
        code=X[-1].copy() if len(rows.values) > 0 or state.code is not None else None,
        n_seen=state.n_seen + len(rows),
        entries_since_gram=state.entries_since_gram + len(rows.values) if few else 0,
        start_weight=start_weight_after(state, len(rows), share),
    )
    return learned, X, info


def residual_info(grams: Matrix, P: Matrix, energy: Matrix, X: Matrix) -> Info:
    """Residual and energy of rows, given their systems and codes."""
    fitted = X @ grams[0] if len(grams) == 1 else (X[:, None] @ grams)[:, 0]
    residual = np.maximum(energy - np.sum((2.0 * P - fitted) * X, axis=1), 0.0)
    return Info(float(residual.sum()), float(energy.sum()))


def row_systems(C: NDArray[Any], G: Matrix, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
    """G_Ω (q, r, r), C_Ωᵀy (q, r) and yᵀy (q,) of each row, in threads where they pay off."""
    q, r = len(rows), C.shape[1]
    grams, P, energy = np.empty((q, r, r)), np.empty((q, r)), np.empty(q)
    every = np.arange(q)
    in_threads(
        lambda first, last: systems(
            C, G, *rows, every[first:last], grams[first:last], P, energy
        ),
        q,
        len(rows.values) * r * r,
    )  # fmt: skip
    return grams, P, energy


def missing_codes(
    penalty: Penalty, C: NDArray[Any], G: Matrix, rows: Rows, x_before: Matrix | None = None
) -> tuple[Matrix, Info]:
    """Codes of rows with missing entries; rows that miss the same entries share a system."""
    if isinstance(penalty, Quadratic) and penalty.smooth > 0.0:
        grams, P, energy = row_systems(C, G, rows)
        X = chain_one(penalty, grams, P, x_before)
        return X, residual_info(grams, P, energy, X)
    if len(rows) == 1:
        return _single_codes(penalty, C, G, rows)
    groups, single = by_pattern(rows, *C.shape)
    if not groups:
        return _single_codes(penalty, C, G, rows)
    X = np.empty((len(rows), C.shape[1]))
    X[single], info = _single_codes(penalty, C, G, rows.take(single))
    for group in groups:
        X[group], more = _shared_codes(penalty, C, G, rows, group)
        info = info.plus(more)
    return X, info


def _single_codes(penalty: Penalty, C: NDArray[Any], G: Matrix, rows: Rows) -> tuple[Matrix, Info]:
    """Codes of rows, one system per row."""
    q, r = len(rows), C.shape[1]
    X, regular = np.zeros((q, r)), np.zeros(q, np.bool_)
    P, residual, energy = np.empty((q, r)), np.zeros(q), np.empty(q)
    at_once = max(GRAMS_BYTES // (8 * r * r), 1)

    def solve_several(first: int, last: int) -> None:
        grams = np.empty((min(at_once, last - first), r, r))
        for start in range(first, last, at_once):
            chosen = several[start : min(start + at_once, last)]
            systems(C, G, *rows, chosen, grams, P, energy)
            if isinstance(penalty, Quadratic):
                ridge, _, smallest = penalty
                solve_systems(grams, P, energy, chosen, ridge, smallest, X, residual, regular)
            elif isinstance(penalty, ElasticNet):
                descend_systems(grams, P, energy, chosen, *penalty, X, residual)
                regular[chosen] = True

    if isinstance(penalty, (Quadratic, ElasticNet)):
        several, few = np.arange(q), np.arange(0)
        if isinstance(penalty, Quadratic) and penalty.ridge == 0.0:
            counts = np.diff(rows.starts)
            several, few = np.flatnonzero(counts > r), np.flatnonzero(counts <= r)
        in_threads(solve_several, len(several), len(rows.values) * r * r)
        if len(few):
            solve_few_each(C, *rows, few, penalty.smallest, X, energy, regular)
    for t in np.flatnonzero(~regular).tolist():
        grams, P, energy[t : t + 1] = row_systems(C, G, rows.part(t, t + 1))
        X[t] = penalty.codes(grams[0], P)[0]
        residual[t] = residual_info(grams, P, energy[t : t + 1], X[t : t + 1]).residual
    return X, Info(float(residual.sum()), float(energy.sum()))


def _shared_codes(
    penalty: Penalty, C: NDArray[Any], G: Matrix, rows: Rows, group: NDArray[np.int64]
) -> tuple[Matrix, Info]:
    """Codes of rows that observe the same features: one system and one product."""
    features = rows.features[rows.starts[group[0]] : rows.starts[group[0] + 1]]
    Y = rows.values[rows.starts[group][:, None] + np.arange(len(features))]
    gram_seen = np.empty_like(G)
    observed_gram(C, G, features, gram_seen)
    P = (Y @ C[features]).astype(np.float64, copy=False)
    X = penalty.codes(gram_seen, P)
    return X, residual_info(gram_seen[None], P, row_squares(Y), X)


class _ByFeature(NamedTuple):
    observed: NDArray[np.int32]
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    values: Matrix


def _by_feature(rows: Rows) -> _ByFeature:
    """The same entries by feature; features that no row observes are left out."""
    order = np.argsort(rows.features, kind="stable")
    features = rows.features[order]
    new = np.flatnonzero(np.diff(features, prepend=-1))
    row_of_entry = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
    starts = np.append(new, len(features))
    values = rows.values[order].astype(np.float64, copy=False)
    return _ByFeature(features[new], starts, row_of_entry[order], values)


def _learned(
    C_before: Matrix, entries: _ByFeature, X: Matrix, S_before: Matrix, S_before_inverse: Matrix
) -> Matrix:
    """The observed features' rows of C after learning from codes X."""
    C_after = np.empty_like(C_before)
    Z = X @ S_before_inverse
    T = Z @ X.T
    _, *which = entries
    in_threads(
        lambda first, last: learn_features(
            C_after, C_before, *which, first, last, X, Z, T, S_before
        ),
        len(C_after),
        len(entries.values) * len(X) * min(X.shape),
    )  # fmt: skip
    return C_after
