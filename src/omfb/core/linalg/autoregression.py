"""Kernels of rows that are consecutive in time, which may be unevenly spaced.

Codes follow x_t = φ_t ∘ x_{t−1} + noise with stationary covariance I, where φ_t = φ^Δ and Δ is the
time since the row before, in steps. With A_t, b_t a row's own system (without its prior) and
τ_t = φ_t / (1 − φ_t²), the codes of a sequence solve

    (A_t + D_t) x_t − τ_t ∘ x_{t−1} − τ_{t+1} ∘ x_{t+1} = b_t,
    D_t = 1 / (1 − φ_t²) + φ_{t+1}² / (1 − φ_{t+1}²),

where the first row has φ_t = 0 and the last φ_{t+1} = 0, by elimination forwards and substitution
backwards, with what is not known of each code:

    Λ_t = A_t + D_t − τ_t Λ_{t−1}⁻¹ τ_t,   η_t = b_t + τ_t Λ_{t−1}⁻¹ η_{t−1},
    x_t = Λ_t⁻¹ (η_t + τ_{t+1} x_{t+1}),   Cov_t = Λ_t⁻¹ + Λ_t⁻¹ τ_{t+1} Cov_{t+1} τ_{t+1} Λ_t⁻¹.

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
    C, G, Sigma, rarity, one, phi, elapsed, starts, features, values, first, last, n_rows,
    carry, inverses, eta,
):  # fmt: skip
    """Fill Λ⁻¹ and η of rows first to last of a sequence of n_rows, and move the carry on.

    `elapsed` (n_rows,) holds the steps since the row before; the first is not read.
    """
    r = C.shape[1] - 1
    tie = np.empty(r)
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
            before = phi[i] ** elapsed[t] if t > 0 else 0.0
            after = phi[i] ** elapsed[t + 1] if t + 1 < n_rows else 0.0
            tie[i] = before / (1.0 - before * before)
            right[i] = b[i] - one * (A[i, r] + count * Sigma[i, r])
            if t > 0:
                right[i] += tie[i] * carry[i, r]
            for j in range(r):
                inverse[i, j] = A[i, j] + count * Sigma[i, j]
            inverse[i, i] += 1.0 / (1.0 - before * before) + after * after / (1.0 - after * after)
        if t > 0:
            for i in range(r):
                for j in range(r):
                    inverse[i, j] -= tie[i] * carry[i, j] * tie[j]
        invert(inverse, 0.0)
        multiply(inverse, right, solution)
        for i in range(r):
            for j in range(r):
                carry[i, j] = inverse[i, j]
            carry[i, r] = solution[i]


@jit
def substitute(inverses, eta, phi, elapsed, has_next, x_next, covariance_next, X, covariances):
    """Fill codes and covariances of rows from the last back, and move those of the next on.

    `elapsed` (q + 1,) holds the steps since the row before of each row, and of the one after them.
    Where `covariances` has room for one only, they are not wanted.
    """
    q, r = eta.shape
    tie = np.empty(r)
    gain = np.empty((r, r))
    scaled = np.empty(r)
    for t in range(q - 1, -1, -1):
        for i in range(r):
            left = phi[i] ** elapsed[t + 1]
            tie[i] = left / (1.0 - left * left)
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
def bridge(E, phi, at_step, means, variances):
    """Means and variances of residuals that are missing (NaN in E), in units of their variance.

    `at_step` (n,) is when each row comes, in steps.
    """
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
                u = phi[i] ** (at_step[t] - at_step[last]) if last >= 0 else 0.0
                w = phi[i] ** (at_step[after] - at_step[t]) if after < n else 0.0
                both = 1.0 - u * u * w * w
                mean = 0.0
                if last >= 0:
                    mean += u * (1.0 - w * w) * E[last, i]
                if after < n:
                    mean += w * (1.0 - u * u) * E[after, i]
                means[t, i] = mean / both
                variances[t, i] = (1.0 - u * u) * (1.0 - w * w) / both
            at = after


@jit
def accumulate(innovations, left):
    """Turn innovations (n, m) into the autoregression that they make: g_t = ρ_t g_{t−1} + v_t.

    `left` (n − 1, m) is ρ from each row to the next.
    """
    n, m = innovations.shape
    for t in range(1, n):
        for i in range(m):
            innovations[t, i] += left[t - 1, i] * innovations[t - 1, i]


@jit
def series_likelihoods(Z, left, signal, noise, out):
    """Fill out (m, q, 2) with Σ log F and Σ v² / F of each feature for q settings.

    Innovations v with variance F are those of an autoregression observed with noise: `left`
    (q, n − 1) is φ^Δ from each row to the next, `signal` and `noise` (q,) are the shares of the
    two in a variance of 1.
    """
    n, m = Z.shape
    mean, variance = np.empty(m), np.empty(m)
    for s in range(left.shape[0]):
        for i in range(m):
            mean[i], variance[i] = 0.0, signal[s]
            out[i, s, 0], out[i, s, 1] = 0.0, 0.0
        for t in range(n):
            rho = left[s, t - 1] if t > 0 else 0.0
            fresh = signal[s] * (1.0 - rho * rho)
            for i in range(m):
                a, P = rho * mean[i], rho * rho * variance[i] + fresh
                z = Z[t, i]
                if z == z:
                    F = P + noise[s]
                    out[i, s, 0] += np.log(F)
                    out[i, s, 1] += (z - a) ** 2 / F
                    gain = P / F
                    a, P = a + gain * (z - a), (1.0 - gain) * P
                mean[i], variance[i] = a, P


@jit
def smooth(Z, phi, signal, noise, at_step, means, variances):
    """Means and variances of missing entries (NaN in Z) of autoregressions observed with noise.

    Kalman's filter forwards and the smoother of Rauch, Tung and Striebel backwards. `phi`, `signal`
    and `noise` (m,) are each feature's coefficient, its variance and that of the noise. Without
    noise it is `bridge`.
    """
    n, m = Z.shape
    mean, variance = np.empty(n), np.empty(n)
    for i in range(m):
        a, P = 0.0, signal[i]
        for t in range(n):
            if t > 0:
                rho = phi[i] ** (at_step[t] - at_step[t - 1])
                a, P = rho * a, rho * rho * P + signal[i] * (1.0 - rho * rho)
            z = Z[t, i]
            if z == z:
                gain = P / (P + noise[i])
                a, P = a + gain * (z - a), (1.0 - gain) * P
            mean[t], variance[t] = a, P
        after, after_variance = mean[n - 1], variance[n - 1]
        for t in range(n - 1, -1, -1):
            if t < n - 1:
                rho = phi[i] ** (at_step[t + 1] - at_step[t])
                ahead = rho * rho * variance[t] + signal[i] * (1.0 - rho * rho)
                gain = variance[t] * rho / ahead
                after = mean[t] + gain * (after - rho * mean[t])
                after_variance = variance[t] + gain * gain * (after_variance - ahead)
            if Z[t, i] != Z[t, i]:
                means[t, i], variances[t, i] = after, after_variance + noise[i]
