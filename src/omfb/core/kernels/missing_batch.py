"""A mini-batch with missing entries: what the paper left open, exact.

For fixed codes the objective separates by feature. With Ω_i the rows of the batch that observe
feature i, X_i their codes and e_i their residuals,

    S_i = S̄ + X_iᵀ X_i,    c_i ← c_i + e_iᵀ X_i S_i⁻¹ = c_i + e_iᵀ (I + X_i S̄⁻¹ X_iᵀ)⁻¹ X_i S̄⁻¹

by whichever side is smaller. Features are independent: any range of them is one thread's work.
Neighbouring features are often seen by the same rows; then the inverse is used again.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..state import Info, State
from .chain import chain_one
from .codes import Penalty, Quadratic, penalty_of
from .compiling import jit
from .missing import gram_of_rows, observed_gram, project, solve_few
from .patterns import by_pattern
from .shared import (
    Matrix,
    Rows,
    Step,
    check_finite_step,
    gram,
    kept_after,
    precision_before,
    refreshed,
    row_squares,
)
from .small import copy, dot, factorise, invert_anyway, solve
from .threads import in_threads


@jit
def systems(C, G, starts, features, values, first, last, grams, P, energy):
    """Fill G_Ω, C_Ωᵀy and yᵀy of rows first to last."""
    for t in range(first, last):
        seen = features[starts[t] : starts[t + 1]]
        energy[t] = project(C, seen, values[starts[t] : starts[t + 1]], P[t])
        observed_gram(C, G, seen, grams[t])


@jit
def solve_each(
    C, G, starts, features, values, first, last, ridge, smallest, X, residual, energy, regular
):  # fmt: skip
    """Codes and energies of rows first to last; `regular` says which could be solved.

    As (G_Ω + α I) x = b, the residual energy ‖y − C x‖² is yᵀy − bᵀx − α xᵀx.
    """
    r = C.shape[1]
    b = np.empty(r)
    A = np.empty((r, r))
    for t in range(first, last):
        seen = features[starts[t] : starts[t + 1]]
        given = values[starts[t] : starts[t + 1]]
        energy[t] = project(C, seen, given, b)
        if seen.shape[0] <= r and ridge == 0.0:
            regular[t] = solve_few(C, seen, given, smallest, X[t])
            residual[t] = 0.0
            continue
        observed_gram(C, G, seen, A)
        for j in range(r):
            A[j, j] += ridge
            X[t, j] = b[j]
        regular[t] = factorise(A, smallest)
        if regular[t]:
            solve(A, X[t])
            residual[t] = max(energy[t] - dot(b, X[t]) - ridge * dot(X[t], X[t]), 0.0)


@jit
def learn_features(
    C, C_before, touched, feature_starts, rows, values, first, last, X, Z, T, S_before
):  # fmt: skip
    """Write c_i for the features touched[first:last], given Z = X S̄⁻¹ and T = X S̄⁻¹ Xᵀ.

    C_before[f] is the row of touched[f] before the batch, from which every round starts;
    rows[feature_starts[f]:feature_starts[f+1]] are the batch's rows that observe touched[f].
    """
    r = C.shape[1]
    most = X.shape[0]
    A = np.empty((1, 1))
    outer = np.empty((r, r))
    error = np.empty(most)
    change = np.empty(r)
    previous_start, previous_end = 0, 0  # whose pattern the inverse belongs to
    for f in range(first, last):
        i = touched[f]
        start, end = feature_starts[f], feature_starts[f + 1]
        count = end - start
        same = count == previous_end - previous_start
        for s in range(count):
            error[s] = values[start + s] - dot(C_before[f], X[rows[start + s]])
            same = same and rows[start + s] == rows[previous_start + s]
        for j in range(r):
            change[j] = 0.0
        if count <= r:
            if not same or A.shape[0] != count:
                A = np.empty((count, count))  # a part of a larger array would be another type
                for s in range(count):
                    for p in range(count):
                        A[s, p] = T[rows[start + s], rows[start + p]]
                    A[s, s] += 1.0
                invert_anyway(A)
            for s in range(count):
                weight = 0.0
                for p in range(count):
                    weight += A[s, p] * error[p]
                for j in range(r):
                    change[j] += weight * Z[rows[start + s], j]
            for j in range(r):
                C[i, j] = C_before[f, j] + change[j]
        else:
            if not same:
                copy(S_before, outer)
                for s in range(count):
                    x = X[rows[start + s]]
                    for a in range(r):
                        for j in range(r):
                            outer[a, j] += x[a] * x[j]
                invert_anyway(outer)
            for s in range(count):
                for j in range(r):
                    change[j] += error[s] * X[rows[start + s], j]
            for j in range(r):
                C[i, j] = C_before[f, j] + dot(outer[j], change)
        previous_start, previous_end = start, end


def learn_missing_batch(state: State, rows: Rows, reuse: bool) -> Step:
    """Learn from one mini-batch with missing entries; in place if C may be reused."""
    state = refreshed(state)
    rule = state.rule
    C = state.C if reuse else state.C.copy()
    G = state.G
    share = len(rows.values) / (len(rows) * len(C))
    S_before, S_before_inverse = precision_before(state.S, rule, state.weight, len(rows), share)
    penalty = penalty_of(state)
    entries = _by_feature(rows)
    C_before = C[entries.touched]
    few = 4 * len(entries.touched) < len(C)
    G_others = state.G - _gram_of(C, entries.touched) if few else None
    info = None
    try:
        for _ in range(rule.inner_iter):
            X, now = missing_codes(penalty, C, G, rows, state.code)
            check_finite_step(X)
            info = now if info is None else info
            _learn(C, C_before, entries, X, S_before, S_before_inverse)
            G = gram(C) if G_others is None else G_others + _gram_of(C, entries.touched)
        S = state.S
        if rule.memory > 0.0 and len(rows.values) > 0:
            shares = np.diff(rows.starts) / len(C)  # as in `remember`, row by row
            S = S_before + (X.T * shares) @ X
        check_finite_step(G, S)
    except ValueError:
        C[entries.touched] = C_before
        raise
    assert info is not None  # inner_iter >= 1
    learned = replace(
        state,
        C=C,
        G=G,
        S=S,
        code=X[-1].copy() if len(rows.values) > 0 or state.code is not None else None,
        n_seen=state.n_seen + len(rows),
        drift=state.drift + len(rows.values) if few else 0,
        kept=kept_after(state, np.full(len(rows), share)),
    )
    return learned, X, info


def residual_info(grams: Matrix, P: Matrix, energy: Matrix, X: Matrix) -> Info:
    """Residual and energy of rows with these systems and codes."""
    fitted = X @ grams[0] if len(grams) == 1 else (X[:, None] @ grams)[:, 0]
    residual = np.maximum(energy - np.sum((2.0 * P - fitted) * X, axis=1), 0.0)
    return Info(float(residual.sum()), float(energy.sum()))


def row_systems(C: NDArray[Any], G: Matrix, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
    """G_Ω (q, r, r), C_Ωᵀy (q, r) and yᵀy (q,) of each row, by as many threads as pay off."""
    q, r = len(rows), C.shape[1]
    grams, P, energy = np.empty((q, r, r)), np.empty((q, r)), np.empty(q)
    work = len(rows.values) * r * r
    in_threads(lambda first, last: systems(C, G, *rows, first, last, grams, P, energy), q, work)
    return grams, P, energy


def missing_codes(
    penalty: Penalty, C: NDArray[Any], G: Matrix, rows: Rows, x_before: Matrix | None = None
) -> tuple[Matrix, Info]:
    """Codes of rows with missing entries; rows that miss the same entries share a system."""
    if isinstance(penalty, Quadratic) and penalty.smooth > 0.0:
        grams, P, energy = row_systems(C, G, rows)
        X = chain_one(penalty, grams, P, x_before)
        return X, residual_info(grams, P, energy, X)
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
    """Codes of rows with a system each."""
    q, r = len(rows), C.shape[1]
    X, regular = np.empty((q, r)), np.zeros(q, np.bool_)
    residual, energy = np.empty(q), np.empty(q)
    if isinstance(penalty, Quadratic):
        ridge, _, smallest = penalty
        in_threads(
            lambda first, last: solve_each(
                C, G, *rows, first, last, ridge, smallest, X, residual, energy, regular
            ),
            q,
            len(rows.values) * r * r,
        )
    for t in np.flatnonzero(~regular).tolist():
        grams, P, energy[t : t + 1] = row_systems(C, G, rows.part(t, t + 1))
        X[t] = penalty.codes(grams[0], P)[0]
        residual[t] = residual_info(grams, P, energy[t : t + 1], X[t : t + 1]).residual
    return X, Info(float(residual.sum()), float(energy.sum()))


def _shared_codes(
    penalty: Penalty, C: NDArray[Any], G: Matrix, rows: Rows, group: NDArray[np.int64]
) -> tuple[Matrix, Info]:
    """Codes of rows that observe the same features: one system and one product for all."""
    features = rows.features[rows.starts[group[0]] : rows.starts[group[0] + 1]]
    Y = rows.values[rows.starts[group][:, None] + np.arange(len(features))]
    gram_seen = np.empty_like(G)
    observed_gram(C, G, features, gram_seen)
    P = (Y @ C[features]).astype(np.float64, copy=False)
    X = penalty.codes(gram_seen, P)
    return X, residual_info(gram_seen[None], P, row_squares(Y), X)


class _ByFeature(NamedTuple):
    touched: NDArray[np.int32]
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    values: NDArray[Any]


def _by_feature(rows: Rows) -> _ByFeature:
    """The same entries, feature by feature; features that no row observes do not appear."""
    order = np.argsort(rows.features, kind="stable")
    features = rows.features[order]
    new = np.flatnonzero(np.diff(features, prepend=-1))
    row_of_entry = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
    starts = np.append(new, len(features))
    return _ByFeature(features[new], starts, row_of_entry[order], rows.values[order])


def _gram_of(C: NDArray[Any], rows: NDArray[np.int32]) -> Matrix:
    out = np.empty((C.shape[1], C.shape[1]))
    gram_of_rows(C, rows, out)
    return out


def _learn(
    C: NDArray[Any], C_before: NDArray[Any], entries: _ByFeature, X: Matrix,
    S_before: Matrix, S_before_inverse: Matrix,
) -> None:  # fmt: skip
    Z = X @ S_before_inverse
    T = Z @ X.T
    work = len(entries.values) * len(X) * min(X.shape)
    in_threads(
        lambda first, last: learn_features(
            C, C_before, *entries, first, last, X, Z, T, S_before
        ),
        len(entries.touched),
        work,
    )  # fmt: skip
