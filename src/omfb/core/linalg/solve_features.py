"""Each feature's loadings by least squares of its own, for tables that are short.

    S_i = Σ_{t observes i} (x̃_t x̃_tᵀ + Cov_t) + diag(1/v),   c_i = S_i⁻¹ Σ_{t observes i} y_ti x̃_t

The sum over all rows is shared; what a feature misses is taken off it, or what it observes is added
up, whichever is less.
"""

import numpy as np

from .compiling import jit
from .small import factorise, solve


@jit
def add_rows(S, sign, X, covariances, starts, rows, first, last):
    """S_i += sign (x̃x̃ᵀ + Cov) over rows[starts[i]:starts[i+1]], for features first to last."""
    R = X.shape[1]
    r = R - 1
    for i in range(first, last):
        own = S[i]
        for s in range(starts[i], starts[i + 1]):
            t = rows[s]
            x, covariance = X[t], covariances[min(t, covariances.shape[0] - 1)]
            for a in range(r):
                along, row, unsure = sign * x[a], own[a], covariance[a]
                for b in range(r):
                    row[b] += along * x[b] + sign * unsure[b]
                row[r] += along * x[r]
            for b in range(R):
                own[r, b] += sign * x[r] * x[b]


@jit
def solve_features(S, everything, prior, right, first, last, C):
    """Write rows first to last of C: (S_i + everything + prior_i)⁻¹ right_i, of diagonal priors."""
    R = C.shape[1]
    system = np.empty((R, R))
    x = np.empty(R)
    for i in range(first, last):
        for a in range(R):
            for b in range(R):
                system[a, b] = S[i, a, b] + everything[a, b]
            system[a, a] += prior[i, a]
            x[a] = right[i, a]
        if factorise(system, 1e-12):
            solve(system, x)
            for a in range(R):
                C[i, a] = x[a]
