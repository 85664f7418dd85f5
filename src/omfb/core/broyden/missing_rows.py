"""Rows with missing entries, one at a time: Algorithm 2.

After the update of the observed rows of C, G ← G + g kᵀ + k gᵀ + ε k kᵀ holds for the G of all
features as well.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..info import Info
from ..linalg.compiling import jit
from ..linalg.observed import approach_few, learn_observed, multiply_few, observed_gram, project
from ..linalg.rows import Matrix, Rows, check_finite_step
from ..linalg.small import SMALLEST_PRECISION, dot, factorise, invert, multiply
from .elastic_net import learn_each_code
from .penalties import ElasticNet, Penalty, Quadratic, alternate_row, penalty_of
from .precision import Step, inverse_to_keep, precision_before, refreshed, start_weight_after_each
from .reduced_space import (
    add_symmetric,
    alternate,
    before_row,
    multiply_inverse,
    remember,
    remember_inverse,
)
from .state import State

# From this many components on, a row's few solves cost less by factorisation than by an inverse.
FACTORISED_FROM = 24


@jit
def learn_each(
    C, G, S, S_inverse, starts, features, values, first,
    lam, forget_factor, weight, ridge, smooth, inner_iter, smallest, x_before, X, totals,
):  # fmt: skip
    """Take single-row steps from row `first` on; return the row that could not be taken, or q.

    Updates C, G, S, S_inverse and x_before (the last code) in place, fills the codes X and adds
    to the totals: residual energy before learning, and observed energy. Stops before a row whose
    system is numerically singular, which `alternate_row` takes. Where the code or gain of row t
    overflows, stops before it and returns −1 − t.
    """
    q = starts.shape[0] - 1
    r = C.shape[1]
    b = np.empty(r)
    A = np.empty((r, r))
    H = np.empty((r, r))
    rhs = np.empty(r)
    left = np.empty(r)
    work = np.empty((7, r))
    x, k, g, x_first = work[0], work[1], work[2], work[5]
    pull = ridge + smooth
    factorised = r >= FACTORISED_FROM
    for t in range(first, q):
        seen = features[starts[t] : starts[t + 1]]
        given = values[starts[t] : starts[t + 1]]
        if seen.shape[0] == 0:  # nothing to learn: the code follows from the previous one
            for j in range(r):
                x_before[j] = x_before[j] * (smooth / pull) if pull > 0.0 else 0.0
                X[t, j] = x_before[j]
            continue
        energy = project(C, seen, given, b)
        share = seen.shape[0] / C.shape[0]
        fits = seen.shape[0] <= r and pull == 0.0  # exactly: C does not change
        if fits:
            few = np.empty((seen.shape[0], seen.shape[0]))
            multiply_few(C, seen, few)
            if not invert(few, smallest):
                return t
            for j in range(r):
                x[j] = 0.0
            for _ in range(2):
                approach_few(C, seen, given, few, left, x)
        else:
            observed_gram(C, G, seen, A)
            for i in range(r):
                A[i, i] += pull
                rhs[i] = b[i] + smooth * x_before[i]
                for j in range(r):
                    H[i, j] = A[i, j]
            if not (factorise(H, smallest) if factorised else invert(H, smallest)):
                return t
            multiply_inverse(H, factorised, rhs, x_first)
            # `alternate` needs a code that solves its system: one step of iterative refinement.
            multiply(A, x_first, left)
            for j in range(r):
                left[j] = rhs[j] - left[j]
            multiply_inverse(H, factorised, left, x)
            for j in range(r):
                x_first[j] += x[j]
        inverse_scale = before_row(S, lam, forget_factor, weight + t, share, S_inverse)
        if 0.0 < forget_factor < 1.0:
            invert(S_inverse, SMALLEST_PRECISION)
        if fits:
            before = epsilon = 0.0
            multiply(S_inverse, x, k)
            stretch = 1.0 + inverse_scale * max(dot(x, k), 0.0)
            for j in range(r):
                k[j] *= inverse_scale / stretch
                g[j] = 0.0
        else:
            if forget_factor > 0.0:
                multiply(S_inverse, x_first, work[6])
            before, epsilon, stretch, _, _, _ = alternate(
                b, energy, H, factorised, S_inverse, inverse_scale, forget_factor, ridge, smooth,
                inner_iter, x_before, work,
            )  # fmt: skip
        if before < 0.0:
            return t
        size = (epsilon + dot(g, g) + 1.0) * dot(k, k) + dot(x, x)
        for j in range(r):
            size += S[j, j]
        if not np.isfinite(size):  # then C, G or S would not be finite either
            return -1 - t
        totals[0] += before
        totals[1] += energy
        if not fits:
            learn_observed(C, seen, given, x, k)
            add_symmetric(G, k, g, epsilon, 1.0, 0.0)
        remember(S, lam, forget_factor, weight + t, share, x)
        remember_inverse(S_inverse, inverse_scale, forget_factor, share, k, stretch, work[6])
        for j in range(r):
            X[t, j] = x[j]
            x_before[j] = x[j]
    return q


def learn_missing(state: State, rows: Rows, reuse: bool) -> Step:
    """Learn from rows with missing entries, one at a time; with `reuse`, in place."""
    state = refreshed(state)
    config, r, q = state.config, state.C.shape[1], len(rows)
    C = state.C if reuse else state.C.copy()
    G, S = state.G.copy(), state.S.copy()
    S_inverse = inverse_to_keep(S, config)
    penalty = penalty_of(state)
    x_before = np.zeros(r) if state.code is None else state.code.copy()
    X, totals = np.empty((q, r)), np.zeros(2)
    at = 0
    while True:
        if isinstance(penalty, Quadratic):
            at = learn_each(
                C, G, S, S_inverse, rows.starts, rows.features, rows.values, at, float(config.lam),
                float(config.forget_factor), state.weight, penalty.ridge, penalty.smooth,
                int(config.inner_iter), penalty.smallest, x_before, X, totals,
            )  # fmt: skip
        elif isinstance(penalty, ElasticNet):
            at = learn_each_code(
                C, G, S, S_inverse, rows.starts, rows.features, rows.values, float(config.lam),
                float(config.forget_factor), state.weight, *penalty, int(config.inner_iter), X,
                totals,
            )  # fmt: skip
            x_before = X[-1].copy()
        if at == q:
            break
        if at < 0:
            check_finite_step(np.array([np.inf]))
        _, seen, given = rows.part(at, at + 1)
        now = replace(state, C=C, n_seen=state.n_seen + at)
        X[at], *energies = _learn_one(now, penalty, G, S, seen, given, x_before)
        totals += energies
        S_inverse = inverse_to_keep(S, config)
        x_before = X[at].copy()
        at += 1
    learned = replace(
        state, C=C, G=G, S=S, code=x_before,
        n_seen=state.n_seen + q,
        entries_since_gram=state.entries_since_gram + len(rows.values),
        start_weight=start_weight_after_each(state, np.diff(rows.starts) / len(C)),
    )  # fmt: skip
    return learned, X, Info(*totals.tolist())


def _learn_one(
    state: State, penalty: Penalty, G: Matrix, S: Matrix, seen: NDArray[np.int32],
    given: NDArray[Any], x_before: Matrix,
) -> tuple[Matrix, float, float]:  # fmt: skip
    """Learn from one row with any penalty; updates C, G and S in place."""
    config, C = state.config, state.C
    b, G_seen = np.empty(C.shape[1]), np.empty_like(G)
    n = project(C, seen, given, b)
    observed_gram(C, G, seen, G_seen)
    share = len(seen) / len(C)
    S_before, S_before_inverse = precision_before(S, config, state.weight, 1, share)
    x, k, g, epsilon, before = alternate_row(
        penalty, G_seen, b, n, S_before_inverse, config.inner_iter, x_before
    )
    S_after = S_before + share * np.outer(x, x) if config.forget_factor > 0.0 and len(seen) else S
    gk = np.outer(g, k)
    C_after = C[seen] + np.outer(given - C[seen] @ x, k)
    G_after = G + gk + gk.T + epsilon * np.outer(k, k)
    check_finite_step(x, C_after, G_after, S_after)
    C[seen], G[:], S[:] = C_after, G_after, S_after
    return x, before, n
