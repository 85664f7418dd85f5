"""One row of a stream: what the batched kernels do, without their cost for each call.

`list_row` whitens a row and lists its observed entries; `learn_row` is `recursion.gains` and
`recursion.learn_features` for a single row, in O(m + |Ω| r + r²).
"""

import numpy as np

from .compiling import jit
from .small import dot, multiply, subtract_outer


@jit
def list_row(y, center, noise, C, one, limit, features, values):
    """List the observed entries of a row in units of the noise; return how many there are.

    −1 if one is infinite, or more than `limit` marginal standard deviations from the mean.
    """
    r = C.shape[1] - 1
    count = 0
    for i in range(y.shape[0]):
        value = (y[i] - center[i]) / noise[i]
        if value == value:
            if not abs(value) <= limit:
                marginal = np.sqrt(1.0 + dot(C[i, :r], C[i, :r]))
                if not abs(value) <= abs(one * C[i, r]) + limit * marginal:
                    return -1
            features[count] = i
            values[count] = value
            count += 1
    return count


@jit
def learn_row(
    C, C_batch, features, values, x, Sigma, S, S_inverse, share, keep, mean_count, counts, sums,
    least_share, work,
):  # fmt: skip
    """Learn from one row with the code x; return its leverage x̃ᵀ Σ x̃.

    Changes C, S, S_inverse, counts and sums (2, m) in place. `work` is (3, R).
    """
    m, R = C.shape
    z, scaled, product = work[0], work[1], work[2]
    multiply(Sigma, x, product)
    leverage = max(dot(x, product), 0.0)
    fresh = 1.0 / keep
    multiply(S_inverse, x, z)
    for j in range(R):
        z[j] *= fresh
    h = max(dot(x, z), 0.0)
    subtract_outer(S_inverse, fresh, share / (1.0 + share * h), z, scaled)
    subtract_outer(S, keep, -share, x, scaled)
    for i in range(m):
        counts[i] *= keep
        sums[0, i] *= keep
        sums[1, i] *= keep
    for s in range(features.shape[0]):
        i = features[s]
        c = C[i]
        coverage = min(max(counts[i] / mean_count, least_share), 1.0)
        before = values[s] - dot(C_batch[i], x)
        sums[0, i] += before * before / (1.0 + leverage / coverage)
        sums[1, i] += 1.0
        along = (values[s] - dot(c, x)) / (coverage + h)
        for j in range(R):
            c[j] += along * z[j]
        counts[i] += 1.0
    return leverage
