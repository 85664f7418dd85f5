"""A variational round: codes given every feature's own posterior, and features given the codes.

Symbols: row t observes the features Ω_t, feature i is observed by the rows T_i; z is an entry, σ_i²
the noise of a feature. Codes x̃ = (x, one) end with the code of the mean, loadings with the mean.
Both have a posterior, N(x_t, H_t) and N(c_i, Σ_i), and the other side needs its moments only:

    codes      A_t = Σ_{i ∈ Ω_t} M_i,   M_i = (c_i c_iᵀ + Σ_i) / σ_i²
               H_t = (I + A_xx)⁻¹,   x_t = H_t (Σ_{i ∈ Ω_t} z_ti c_i / σ_i² − one · A_xμ)
    features   S_i = Σ_{t ∈ T_i} (x̃_t x̃_tᵀ + H_t)
               Σ_i = (S_i / σ_i² + diag(p_i))⁻¹,   c_i = Σ_i Σ_{t ∈ T_i} z_ti x̃_t / σ_i²

Moments are symmetric: of each, the lower triangle is kept, row by row (`packed`). A sum over Ω_t or
T_i is the sum over everything less that over what is missing, if that is shorter.
"""

import numpy as np

from .compiling import inner_jit, jit
from .posterior import same
from .small import dot, invert


@inner_jit
def add_packed(total, sign, moments, which, weights):
    """Add sign times the packed moments of all in the list `which`, times weights if not empty."""
    for s in range(which.shape[0]):
        one = moments[which[s]]
        factor = sign * weights[s] if weights.shape[0] > 0 else sign
        for a in range(total.shape[0]):
            total[a] += factor * one[a]


@jit
def code_moments(
    M, everything, sign, loadings, one, starts, features, values, list_starts, listed, weights,
    first, last, X, XX,
):  # fmt: skip
    """Codes X (n, R) of rows first to last, and their packed moments XX (last - first, p).

    A row's sum is `everything` (p,) and `sign` times that of M (m, p) over its features in
    `listed`: those that it observes, or those that it misses. `loadings` (m, R) are c_i / σ_i².
    Entries in `listed` have `weights`, and `values` are multiplied by theirs, unless all are 1.
    """
    R = X.shape[1]
    r = R - 1
    A = np.empty(M.shape[1])
    H = np.empty((r, r))
    b = np.empty(r)
    offset = r * (r + 1) // 2  # where the mean's row begins
    for t in range(first, last):
        begin, end = list_starts[t], list_starts[t + 1]
        which = listed[begin:end]
        own = weights[begin:end] if weights.shape[0] > 0 else weights
        before = listed[list_starts[max(t - 1, 0)] : begin]
        if t == first or own.shape[0] > 0 or not same(which, before):
            A[:] = everything
            add_packed(A, sign, M, which, own)
            at = 0
            for i in range(r):
                for j in range(i + 1):
                    H[i, j] = H[j, i] = A[at]
                    at += 1
                H[i, i] += 1.0
            invert(H, 1e-14)
        for i in range(r):
            b[i] = -one * A[offset + i]
        for s in range(starts[t], starts[t + 1]):
            c, z = loadings[features[s]], values[s]
            for i in range(r):
                b[i] += z * c[i]
        x, moments = X[t], XX[t - first]
        for i in range(r):
            x[i] = dot(H[i], b)
        x[r] = one
        at = 0
        for i in range(R):
            for j in range(i + 1):
                moments[at] = x[i] * x[j] + (H[i, j] if i < r else 0.0)
                at += 1


@jit
def add_moments(S, sign, XX, starts, rows, weights, first, last):
    """S_i += sign Σ XX_t over rows[starts[i]:starts[i+1]], for features first to last; packed.

    Times `weights` of these entries, if not empty.
    """
    for i in range(first, last):
        begin, end = starts[i], starts[i + 1]
        own = weights[begin:end] if weights.shape[0] > 0 else weights
        add_packed(S[i], sign, XX, rows[begin:end], own)


@jit
def solve_posteriors(
    S, everything, noise, precision, X, starts, rows, values, weights, first, last, C, Sigma,
    spread, left,
):  # fmt: skip
    """Posteriors of features first to last: C (m, R) and packed Sigma (m, p).

    S (m, p) and `everything` (p,) add up to the features' sums, `noise` are variances, `precision`
    (m, R) is the prior's. `starts`, `rows`, `values` are the table's entries by feature, with
    `weights` if these are not empty. Also fills what is left of a feature's entries,
    Σ_t (z − cᵀx̃)², and `spread`, by how much its expectation under both posteriors is larger.
    """
    R = X.shape[1]
    weighted = weights.shape[0] > 0
    L = np.empty((R, R))
    h = np.empty(R)
    for i in range(first, last):
        scale = 1.0 / noise[i]
        at = 0
        for a in range(R):
            for b in range(a + 1):
                L[a, b] = L[b, a] = scale * (S[i, at] + everything[at])
                at += 1
            L[a, a] += precision[i, a]
            h[a] = 0.0
        invert(L, 1e-14)
        for s in range(starts[i], starts[i + 1]):
            x, z = X[rows[s]], values[s] * (weights[s] if weighted else 1.0)
            for a in range(R):
                h[a] += z * x[a]
        c = C[i]
        for a in range(R):
            c[a] = scale * dot(L[a], h)
        residual = explained = 0.0
        for s in range(starts[i], starts[i + 1]):
            made = dot(c, X[rows[s]])
            weight = weights[s] if weighted else 1.0
            residual += weight * (values[s] - made) ** 2
            explained += weight * made * made
        total = 0.0  # of the expected squares of what the codes make
        at = 0
        for a in range(R):
            for b in range(a + 1):
                Sigma[i, at] = L[a, b]
                twice = 1.0 if a == b else 2.0
                total += twice * (S[i, at] + everything[at]) * (L[a, b] + c[a] * c[b])
                at += 1
        left[i] = residual
        spread[i] = max(total - explained, 0.0)


@jit
def predict_entries(E, C, X, XX, starts, features, first, last, mean, variance):
    """Mean and variance of cᵀx̃ for features[starts[t]:starts[t+1]] of rows first to last.

    E (m, p) are packed c cᵀ + Σ, twice off the diagonal; XX (last - first, p) the rows' moments.
    No variances are made if there is no room for them.
    """
    for t in range(first, last):
        x, moments = X[t], XX[t - first]
        for s in range(starts[t], starts[t + 1]):
            mean[s] = dot(C[features[s]], x)
            if variance.shape[0] > 0:
                total = dot(E[features[s]], moments)
                variance[s] = max(total - mean[s] * mean[s], 0.0)
