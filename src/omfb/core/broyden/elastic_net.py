"""Steps of single rows whose codes have a sign, an ℓ1 penalty or both (`coordinate_descent.py`).

The alternation of `reduced_space.py` with G itself in place of H, as such codes are not linear in
b: with k and x of one round, g = b − G x and ε = n − bᵀx − gᵀx,

    G' = G + g kᵀ + k gᵀ + ε k kᵀ,     b' = b + k (n − bᵀx).
"""

import numpy as np

from ..linalg.compiling import inner_jit, jit
from ..linalg.observed import learn_observed, observed_gram, project
from ..linalg.small import SMALLEST_PRECISION, dot, invert, multiply
from .coordinate_descent import descend
from .reduced_space import (
    add_symmetric,
    before_row,
    pass_on,
    remember,
    remember_inverse,
)


@inner_jit
def alternate_codes(
    G, b, n, S_inverse, inverse_scale, forget_factor, l1, ridge, positive, smallest, inner_iter,
    now, work,
):  # fmt: skip
    """Alternate between code and dictionary in reduced space.

    `now` is a workspace (r, r), `work` one (8, r), whose rows 0 to 2 are x, k, g on return. Returns
    the residual energy before learning, ε, and 1 + xᵀS̄⁻¹x.
    """
    x, k, g, z, b_now = work[0], work[1], work[2], work[3], work[4]
    r = b.shape[0]
    before, epsilon, stretch = 0.0, 0.0, 1.0
    for j in range(r):
        x[j] = 0.0
    for round_ in range(inner_iter):
        lift = n - dot(b, x)
        for i in range(r):
            b_now[i] = b[i]
            for j in range(r):
                now[i, j] = G[i, j]
        if round_ > 0:
            add_symmetric(now, k, g, epsilon, 1.0, 0.0)
            for j in range(r):
                b_now[j] += lift * k[j]
        descend(now, b_now, l1, ridge, positive, smallest, x, work[5:8])
        if forget_factor == 0.0:
            for j in range(r):
                z[j] = S_inverse[0, 0] * x[j]  # S̄ = λ I
        else:
            multiply(S_inverse, x, z)
            for j in range(r):
                z[j] *= inverse_scale
        stretch = 1.0 + max(dot(x, z), 0.0)
        multiply(G, x, g)
        for j in range(r):
            k[j] = z[j] / stretch
            g[j] = b[j] - g[j]
        epsilon = max(n - dot(b, x) - dot(g, x), 0.0)
        if round_ == 0:
            before = epsilon
    return before, epsilon, stretch


@jit
def sequence_of_codes(
    P, N, G, S, S_inverse, lam, forget_factor, weight, share, l1, ridge, positive, smallest,
    inner_iter, X, K, D, before,
):  # fmt: skip
    """`block.sequence` for such codes; G and S are overwritten, as are P and S_inverse."""
    q, r = P.shape
    now, work = np.empty((r, r)), np.empty((8, r))
    x, k, g = work[0], work[1], work[2]
    for t in range(q):
        inverse_scale = before_row(S, lam, forget_factor, weight + t, share, S_inverse)
        if 0.0 < forget_factor < 1.0:
            invert(S_inverse, SMALLEST_PRECISION)
        before[t], epsilon, stretch = alternate_codes(
            G, P[t], N[t, t], S_inverse, inverse_scale, forget_factor, l1, ridge, positive,
            smallest, inner_iter, now, work,
        )  # fmt: skip
        if forget_factor < 1.0:
            remember(S, lam, forget_factor, weight + t, share, x)
        remember_inverse(S_inverse, inverse_scale, forget_factor, share, k, stretch, work[3])
        add_symmetric(G, k, g, epsilon, 1.0, 0.0)
        for j in range(r):
            X[t, j] = x[j]
            K[t, j] = k[j]
            D[t, j] = g[j] + 0.5 * epsilon * k[j]
        pass_on(X, K, N, P, t)


@jit
def learn_each_code(
    C, G, S, S_inverse, starts, features, values, lam, forget_factor, weight, l1, ridge, positive,
    smallest, inner_iter, X, totals,
):  # fmt: skip
    """`missing_rows.learn_each` for such codes; returns −1 − t if row t overflows, else q."""
    q = starts.shape[0] - 1
    r = C.shape[1]
    b, seen_gram, now, work = np.empty(r), np.empty((r, r)), np.empty((r, r)), np.empty((8, r))
    x, k, g = work[0], work[1], work[2]
    for t in range(q):
        seen = features[starts[t] : starts[t + 1]]
        given = values[starts[t] : starts[t + 1]]
        if seen.shape[0] == 0:
            for j in range(r):
                X[t, j] = 0.0
            continue
        energy = project(C, seen, given, b)
        share = seen.shape[0] / C.shape[0]
        observed_gram(C, G, seen, seen_gram)
        inverse_scale = before_row(S, lam, forget_factor, weight + t, share, S_inverse)
        if 0.0 < forget_factor < 1.0:
            invert(S_inverse, SMALLEST_PRECISION)
        before, epsilon, stretch = alternate_codes(
            seen_gram, b, energy, S_inverse, inverse_scale, forget_factor, l1, ridge, positive,
            smallest, inner_iter, now, work,
        )  # fmt: skip
        size = (epsilon + dot(g, g) + 1.0) * dot(k, k) + dot(x, x)
        for j in range(r):
            size += S[j, j]
        if not np.isfinite(size):  # then C, G or S would not be finite either
            return -1 - t
        totals[0] += before
        totals[1] += energy
        learn_observed(C, seen, given, x, k)
        add_symmetric(G, k, g, epsilon, 1.0, 0.0)
        remember(S, lam, forget_factor, weight + t, share, x)
        remember_inverse(S_inverse, inverse_scale, forget_factor, share, k, stretch, work[3])
        for j in range(r):
            X[t, j] = x[j]
    return q
