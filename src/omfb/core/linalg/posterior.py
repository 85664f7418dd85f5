"""Codes of rows under the model with nothing to tune, each with what is not known of it.

With x̃ = (x, 1), the mean in the last column of C, noise 1, and Σ the covariance of a row of C,

    A = G_Ω + w_Ω Σ + I,   x = A⁻¹(C_Ωᵀy − G_xμ − w_Ω Σ_xμ),   w_Ω = Σ_{i ∈ Ω} 1/f_i

where G_xμ and Σ_xμ are last columns. The term with Σ says that C is uncertain; feature i, which has
been observed f_i times as often as the average one, is known with the covariance Σ / f_i.

An entry i whose residual from the other entries of its row, e_i / (1 − c_iᵀA⁻¹c_i), is beyond
`limit` of its standard deviations is an outlier: it is dropped, the largest first, by

    A⁻¹ ← A⁻¹ + u uᵀ / (1 − c_iᵀu),   x ← x − u e_i / (1 − c_iᵀu),   u = A⁻¹c_i.
"""

import numpy as np

from .compiling import inner_jit, jit
from .drift import leave_one_out
from .observed import observed_gram, project
from .small import dot, invert, multiply

# Outliers are few: at most one in so many entries of a row, and one; or two.
FEW_OF = 4
# Largest share of its own prediction that an entry makes, for what divides by the rest.
MOST_LEVERAGE = 1.0 - 1e-9


@jit
def code_rows(
    C, G, Sigma, inverse_shares, limit, starts, features, values, first, last, P, energies,
    X, covariances, total, weights, residual, freedom, dropped, sizes, number, left_out,
):  # fmt: skip
    """Codes X (q, r + 1) of rows first to last; their last entry is given.

    P (q, r + 1) and energies (q,) are C_Ωᵀy and yᵀy, if they have been made already; else empty.
    Where no limit is given nothing is dropped, nor is what would drop it compiled.
    Adds weights[t] A⁻¹ to `total`, and fills A⁻¹ itself where `covariances` has room for it; fills
    the residual energies and the degrees of freedom |Ω| − tr(A⁻¹G_Ω), and marks dropped entries.
    Fills `left_out` (q, 2) where it has room, see `drift.leave_one_out`; row t has the number
    `number` + t.
    """
    r = C.shape[1] - 1
    A = np.empty((r + 1, r + 1))
    H = np.empty((r, r))
    made = np.empty(r + 1)
    g = np.empty(r + 1)
    rhs = np.empty(r)
    u = np.empty(r)
    errors = np.empty(C.shape[0])
    changed, count = False, 0.0
    for t in range(first, last):
        begin, end = starts[t], starts[t + 1]
        seen, y, x = features[begin:end], values[begin:end], X[t]
        one = x[r]
        if P.shape[0] > 0:
            b, energy = P[t], energies[t]
        else:
            b, energy = made, project(C, seen, y, made)
        # Rows that miss the same entries share their system.
        if t == first or changed or not same(seen, features[starts[t - 1] : begin]):
            count = 0.0
            for s in range(seen.shape[0]):
                count += inverse_shares[seen[s]]
            observed_gram(C, G, seen, A)
            for i in range(r):
                for j in range(r):
                    H[i, j] = A[i, j] + count * Sigma[i, j]
                H[i, i] += 1.0
            invert(H, 0.0)
        for i in range(r):
            rhs[i] = b[i] - one * (A[i, r] + count * Sigma[i, r])
        changed = False
        multiply(H, rhs, x[:r])
        multiply(A, x, g)
        left = energy
        for j in range(r + 1):
            left += x[j] * (g[j] - 2.0 * b[j])
        free = 0.0
        for i in range(r):
            for j in range(r):
                free += H[i, j] * A[i, j]
        n_seen = seen.shape[0]
        # Without one of its entries, left + xᵀx is less by the square of how far off that is.
        if limit is not None and left + dot(x[:r], x[:r]) > limit * limit * 0.5:
            n_dropped, left, free = drop_outliers(
                C, seen, y, x, H, u, errors, limit, left, free, dropped[begin:end]
            )
            n_seen -= n_dropped
            changed = n_dropped > 0  # H is that of fewer entries
        if left_out.shape[0] > 0:
            leave_one_out(C, H, seen, y, x, sizes, dropped[begin:end], number + t, u, left_out[t])
        residual[t] = max(left, 0.0)
        freedom[t] = n_seen - min(free, 0.98 * n_seen)
        for i in range(r):
            for j in range(r):
                total[i, j] += weights[t] * H[i, j]
                if covariances.shape[0] > 0:
                    covariances[t, i, j] = H[i, j]


@jit
def count_systems(starts, features):
    """How many systems `code_rows` makes of rows."""
    count = 0
    for t in range(starts.shape[0] - 1):
        seen = features[starts[t] : starts[t + 1]]
        if t == 0 or not same(seen, features[starts[t - 1] : starts[t]]):
            count += 1
    return count


@inner_jit
def same(a, b):
    """Whether two lists of features are the same."""
    if a.shape[0] != b.shape[0]:
        return False
    alike = True
    for i in range(a.shape[0]):
        alike = alike and a[i] == b[i]
    return alike


@inner_jit
def drop_outliers(C, seen, y, x, H, u, errors, limit, left, free, dropped):
    """Drop entries beyond the limit from a row's code, the largest first.

    Several outliers hide each other, and make others seem far off. So more are dropped than may
    be, and those that the rest predicts after all come back.

    Changes the code x and the inverse H in place, marks what was dropped, and returns how many
    that were, the residual energy and the degrees of freedom that the code takes of the others. A
    row in which many entries are far off shows something new: then all of them are believed.
    """
    r = H.shape[0]
    count, most = 0, 1 + max(1, seen.shape[0] // FEW_OF)
    x_before, H_before = x.copy(), H.copy()
    left_before, free_before = left, free
    at, tried = 0, max(most, seen.shape[0] // 2)
    while at >= 0 and count <= tried:
        residuals(C, seen, y, x, errors)
        at, lever = farthest(C, seen, H, u, errors, limit, dropped)
        if at >= 0 and count < tried:
            without(x, H, u, errors[at], lever)
            dropped[at] = True
            free -= lever
        count += at >= 0
    back = 0 if count <= tried else -1  # -1: some outliers are left
    while back >= 0 and count > 0:
        residuals(C, seen, y, x, errors)
        back, lever = nearest(C, seen, H, u, errors, limit, dropped)
        if back >= 0:
            without(x, H, u, -errors[back], -lever)
            dropped[back] = False
            free += lever / (1.0 + lever)
            count -= 1
    if count <= most:
        residuals(C, seen, y, x, errors)
        left = 0.0
        for s in range(seen.shape[0]):
            left += 0.0 if dropped[s] else errors[s] * errors[s]
        return count, left, max(free, 0.0)
    for i in range(r):
        x[i] = x_before[i]
        for j in range(r):
            H[i, j] = H_before[i, j]
    for s in range(seen.shape[0]):
        dropped[s] = False
    return 0, left_before, free_before


@inner_jit
def without(x, H, u, error, lever):
    """The code and A⁻¹ without an entry; with it if error and lever are negated."""
    for i in range(H.shape[0]):
        x[i] -= u[i] * error / (1.0 - lever)
        for j in range(H.shape[0]):
            H[i, j] += np.sign(lever) * u[i] * u[j] / (1.0 - lever)


@inner_jit
def residuals(C, seen, y, x, errors):
    """Residuals of a row's entries."""
    for s in range(seen.shape[0]):
        errors[s] = y[s] - dot(C[seen[s]], x)


@inner_jit
def farthest(C, seen, H, u, errors, limit, dropped):
    """The entry farthest from what the others say, if beyond the limit, else −1; and cᵀA⁻¹c.

    Leaves A⁻¹c in u.
    """
    best, chosen, lever = limit, -1, 0.0
    for s in range(seen.shape[0]):
        if not dropped[s]:
            own = min(leverage(C[seen[s]], H, u), MOST_LEVERAGE)
            size = abs(errors[s]) / np.sqrt(1.0 - own)
            if size > best:
                best, chosen, lever = size, s, own
    if chosen >= 0:
        leverage(C[seen[chosen]], H, u)
    return chosen, lever


@inner_jit
def nearest(C, seen, H, u, errors, limit, dropped):
    """The dropped entry nearest to what the others say, if within the limit, else −1; and cᵀA⁻¹c.

    Leaves A⁻¹c in u.
    """
    best, chosen, lever = limit, -1, 0.0
    for s in range(seen.shape[0]):
        if dropped[s]:
            own = leverage(C[seen[s]], H, u)
            size = abs(errors[s]) / np.sqrt(1.0 + own)
            if size <= best:
                best, chosen, lever = size, s, own
    if chosen >= 0:
        leverage(C[seen[chosen]], H, u)
    return chosen, lever


@inner_jit
def leverage(c, H, u):
    """cᵀA⁻¹c; leaves A⁻¹c in u."""
    r = H.shape[0]
    for i in range(r):
        u[i] = dot(H[i], c[:r])
    return dot(u, c[:r])


@jit
def spread(C, H, Sigma, x, inverse_shares, features, out):
    """Predictive variances of the given features, in units of their noise.

    1 + cᵀA⁻¹c + (x̃ᵀΣx̃ + tr(A⁻¹Σ)) / f: the noise, what is not known of the code, and what is
    not known of the dictionary.
    """
    r = H.shape[0]
    unsure = 0.0
    for i in range(r + 1):
        unsure += x[i] * dot(Sigma[i], x)
    for i in range(r):
        for j in range(r):
            unsure += H[i, j] * Sigma[i, j]
    for s in range(features.shape[0]):
        c = C[features[s]]
        known = 0.0
        for i in range(r):
            if c[i] != 0.0:  # where a fit has spared components, most are zero
                known += c[i] * dot(H[i], c[:r])
        out[s] = 1.0 + known + unsure * inverse_shares[features[s]]


@jit
def spread_rows(C, H, Sigma, X, inverse_shares, starts, features, first, last, out):
    """`spread` of rows first to last, for features[starts[t]:starts[t+1]] of row t.

    H (q, r, r), or (1, r, r) if all rows share it.
    """
    for t in range(first, last):
        begin, end = starts[t], starts[t + 1]
        if begin < end:
            A_inverse, which = H[min(t, H.shape[0] - 1)], features[begin:end]
            spread(C, A_inverse, Sigma, X[t], inverse_shares, which, out[begin:end])


@jit
def spread_rows_own(C, H, Sigma, X, starts, features, first, last, out):
    """Predictive variances as `spread_rows`, where each feature has a covariance of its own.

    1 + cᵀA⁻¹c + x̃ᵀΣ_i x̃ + tr(A⁻¹Σ_i) for C (m, r + 1), H (q, r, r) or (1, r, r), and Sigma
    (m, r + 1, r + 1).
    """
    r = H.shape[1]
    for t in range(first, last):
        A_inverse, x = H[min(t, H.shape[0] - 1)], X[t]
        for s in range(starts[t], starts[t + 1]):
            c, own = C[features[s]], Sigma[features[s]]
            variance = 1.0
            for i in range(r):
                variance += x[i] * dot(own[i], x)
                for j in range(r):
                    variance += A_inverse[i, j] * (c[i] * c[j] + own[i, j])
            out[s] = variance + x[r] * dot(own[r], x)
