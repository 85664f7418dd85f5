"""Rows in time: codes and residuals that remember.

Codes follow x_t = φ ∘ x_{t−1} + noise, each of variance 1. With A_t and b_t a row's own system
(without its prior), p = 1 / (1 − φ²) and τ = φ / (1 − φ²), the codes of a sequence solve

    (A_t + D_t) x_t − τ ∘ (x_{t−1} + x_{t+1}) = b_t,   D_t = p (first or last), p (1 + φ²) (between)

by elimination forwards and substitution backwards, with what is not known of each code:

    Λ_t = A_t + D_t − τ Λ_{t−1}⁻¹ τ,   η_t = b_t + τ Λ_{t−1}⁻¹ η_{t−1},
    x_t = Λ_t⁻¹ (η_t + τ x_{t+1}),     Cov_t = Λ_t⁻¹ + Λ_t⁻¹ τ Cov_{t+1} τ Λ_t⁻¹.

What row t needs of the past is (Λ_{t−1}⁻¹, Λ_{t−1}⁻¹ η_{t−1}), the `carry` (r, r + 1).

A feature's residual follows e_t = φ_i e_{t−1} + noise, too. In a gap, a steps after the last
residual that is known and b steps before the next, with u = φ^a and w = φ^b,

    mean (u (1 − w²) e_last + w (1 − u²) e_next) / (1 − u²w²),
    variance (1 − u²)(1 − w²) / (1 − u²w²).
"""

import numpy as np

from .compiling import jit
from .observed import observed_gram, project
from .small import dot, invert, multiply


@jit
def eliminate(
    C, G, Sigma, rarity, one, phi, starts, features, values, first, last, n_rows,
    carry, inverses, eta,
):  # fmt: skip
    """Fill Λ⁻¹ and η of rows first to last of a sequence of n_rows, and move the carry on."""
    r = C.shape[1] - 1
    A = np.empty((r + 1, r + 1))
    b = np.empty(r + 1)
    solution = np.empty(r)
    for t in range(first, last):
        seen = features[starts[t] : starts[t + 1]]
        project(C, seen, values[starts[t] : starts[t + 1]], b)
        observed_gram(C, G, seen, A)
        count = 0.0
        for s in range(seen.shape[0]):
            count += rarity[seen[s]]
        inverse, right = inverses[t - first], eta[t - first]
        for i in range(r):
            stiff = 1.0 / (1.0 - phi[i] * phi[i])
            tie = stiff * phi[i]
            for j in range(r):
                inverse[i, j] = A[i, j] + count * Sigma[i, j]
                if t > 0:
                    tie_j = phi[j] / (1.0 - phi[j] * phi[j])
                    inverse[i, j] -= tie * carry[i, j] * tie_j
            between = 0 < t < n_rows - 1
            alone = n_rows == 1
            inverse[i, i] += 1.0 if alone else stiff * (1.0 + phi[i] * phi[i] * between)
            right[i] = b[i] - one * (A[i, r] + count * Sigma[i, r])
            if t > 0:
                right[i] += tie * carry[i, r]
        invert(inverse, 0.0)
        multiply(inverse, right, solution)
        for i in range(r):
            for j in range(r):
                carry[i, j] = inverse[i, j]
            carry[i, r] = solution[i]


@jit
def substitute(inverses, eta, phi, has_next, x_next, covariance_next, X, covariances):
    """Fill codes and covariances of rows from the last back, and move those of the next on.

    Where `covariances` has room for one only, they are not wanted.
    """
    q, r = eta.shape
    tie = np.empty(r)
    gain = np.empty((r, r))
    scaled = np.empty(r)
    for i in range(r):
        tie[i] = phi[i] / (1.0 - phi[i] * phi[i])
    for t in range(q - 1, -1, -1):
        inverse, covariance = inverses[t], covariances[min(t, covariances.shape[0] - 1)]
        if has_next or t + 1 < q:
            for i in range(r):
                eta[t, i] += tie[i] * x_next[i]
        multiply(inverse, eta[t], X[t, :r])
        for i in range(r):
            for j in range(r):
                covariance[i, j] = inverse[i, j]
        if covariances.shape[0] > 1 and (has_next or t + 1 < q):
            for i in range(r):  # gain = Λ⁻¹ τ Cov_next τ, both symmetric
                for j in range(r):
                    scaled[j] = inverse[i, j] * tie[j]
                for j in range(r):
                    gain[i, j] = dot(scaled, covariance_next[j]) * tie[j]
            for i in range(r):
                for j in range(r):
                    covariance[i, j] += dot(gain[i], inverse[j])
        for i in range(r):
            x_next[i] = X[t, i]
            for j in range(r):
                covariance_next[i, j] = covariance[i, j]


@jit
def bridge(E, phi, means, variances):
    """Means and variances of residuals that are missing (NaN in E), in units of their variance."""
    n, m = E.shape
    for i in range(m):
        last, at = -1, 0
        while at < n:
            if E[at, i] == E[at, i]:
                last = at
                at += 1
                continue
            after = at
            while after < n and E[after, i] != E[after, i]:
                after += 1
            for t in range(at, after):
                u = phi[i] ** (t - last) if last >= 0 else 0.0
                w = phi[i] ** (after - t) if after < n else 0.0
                both = 1.0 - u * u * w * w
                mean = 0.0
                if last >= 0:
                    mean += u * (1.0 - w * w) * E[last, i]
                if after < n:
                    mean += w * (1.0 - u * u) * E[after, i]
                means[t, i] = mean / both
                variances[t, i] = (1.0 - u * u) * (1.0 - w * w) / both
            at = after
