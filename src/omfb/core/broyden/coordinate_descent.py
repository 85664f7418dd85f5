"""Codes with a sign, an ℓ1 penalty or both: coordinate descent, then exact on their support.

With q = G x − b, a code minimises

    f(x) = ½ xᵀ G x − bᵀ x + a‖x‖₁ + ½ α‖x‖²,    x ≥ 0 if it is to be positive.

One coordinate at a time, x_j ← soft(G_jj x_j − q_j, a) / (G_jj + α), finds the support within a few
sweeps but converges slowly where atoms are alike. There, f is quadratic: its minimum solves
(G + α I) z = b − a sign(x) on the support. If z has the signs of x it is the code; otherwise x goes
towards z as far as they agree, and one more coordinate is zero. Each of these steps lowers f, and
the last one leaves the KKT conditions satisfied to rounding.
"""

import numpy as np

from ..linalg.compiling import inner_jit, jit
from ..linalg.small import dot, factorise, solve

# Sweeps over all coordinates before the system on the support is solved.
SWEEPS = 4
# The largest violation of the KKT conditions, relative to the gradient's terms.
TOLERANCE = 1e-11
# Where rounding keeps a code from that, it is left as it is after so many rounds.
MOST_ROUNDS = 200
# Where the system on the support is singular, z stays close to x: this share of the diagonal.
PROXIMAL = 1e-7


@inner_jit
def sweep(G, l1, ridge, positive, x, q):
    """Minimise along each coordinate in turn; return the largest change of the gradient."""
    largest = 0.0
    for j in range(x.shape[0]):
        curvature = G[j, j] + ridge
        aim = G[j, j] * x[j] - q[j]
        if not curvature > 0.0:  # an atom of zeros
            new = 0.0
        elif aim > l1:
            new = (aim - l1) / curvature
        elif positive or aim >= -l1:
            new = 0.0
        else:
            new = (aim + l1) / curvature
        change = new - x[j]
        if change != 0.0:
            x[j] = new
            row = G[j]
            for i in range(x.shape[0]):
                q[i] += change * row[i]
            largest = max(largest, abs(change) * curvature)
    return largest


@inner_jit
def violation(l1, ridge, positive, x, q):
    """The largest violation of the KKT conditions."""
    worst = 0.0
    for j in range(x.shape[0]):
        slope = q[j] + ridge * x[j]
        if x[j] != 0.0:
            slope = abs(slope + (l1 if x[j] > 0.0 else -l1))
        elif positive:
            slope = -slope - l1
        else:
            slope = abs(slope) - l1
        worst = max(worst, slope)
    return worst


@inner_jit
def solve_on_support(G, b, l1, ridge, smallest, x, support, z):
    """Minimise f where the signs of x do not change; False if the system cannot be solved."""
    n = 0
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            support[n] = j
            n += 1
    proximal = 0.0
    while n > 0:
        A = np.empty((n, n))  # a slice of a larger array would have another type
        largest = 0.0
        for s in range(n):
            i = np.int64(support[s])
            largest = max(largest, G[i, i] + ridge)
            for p in range(n):
                A[s, p] = G[i, np.int64(support[p])]
        for s in range(n):
            i = np.int64(support[s])
            A[s, s] += ridge + proximal * largest
            z[s] = b[i] - (l1 if x[i] > 0.0 else -l1) + proximal * largest * x[i]
        if not factorise(A, smallest):
            if proximal > 0.0:
                return False
            proximal = PROXIMAL
            continue
        solve(A, z[:n])
        step, at = 1.0, -1
        for s in range(n):
            old = x[np.int64(support[s])]
            if not old * z[s] > 0.0:
                share = old / (old - z[s])
                if at < 0 or share < step:
                    step, at = share, s
        for s in range(n):
            i = np.int64(support[s])
            x[i] = z[s] if at < 0 else x[i] + step * (z[s] - x[i])
        if at < 0:
            return True
        x[np.int64(support[at])] = 0.0
        kept = 0
        for s in range(n):  # rounding may have taken another one across zero
            if x[np.int64(support[s])] != 0.0:
                support[kept] = support[s]
                kept += 1
        n = kept
    return True


@inner_jit
def gradient(G, b, x, q):
    """q = G x − b."""
    for j in range(x.shape[0]):
        q[j] = -b[j]
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            along, row = x[j], G[j]
            for i in range(x.shape[0]):
                q[i] += along * row[i]


@jit
def descend(G, b, l1, ridge, positive, smallest, x, work):
    """The code x, from the x that is given; `work` is (3, r)."""
    q, support, z = work[0], work[1], work[2]
    gradient(G, b, x, q)
    if not np.isfinite(dot(b, b) + dot(q, q)):
        for j in range(x.shape[0]):
            x[j] = np.nan
        return
    scale = l1
    for j in range(x.shape[0]):
        scale = max(scale, abs(b[j]))
    for _ in range(MOST_ROUNDS):
        for _ in range(SWEEPS):
            if sweep(G, l1, ridge, positive, x, q) <= TOLERANCE * scale:
                break
        solve_on_support(G, b, l1, ridge, smallest, x, support, z)
        gradient(G, b, x, q)
        size = scale
        for j in range(x.shape[0]):
            size = max(size, abs(x[j]) * (G[j, j] + ridge))
        if violation(l1, ridge, positive, x, q) <= TOLERANCE * size:
            return


@jit
def descend_rows(G, B, l1, ridge, positive, smallest, first, last, X):
    """Codes X[first:last] of rows that share G."""
    work = np.empty((3, B.shape[1]))
    for t in range(first, last):
        for j in range(B.shape[1]):
            X[t, j] = 0.0
        descend(G, B[t], l1, ridge, positive, smallest, X[t], work)


@jit
def descend_systems(grams, P, energy, chosen, l1, ridge, positive, smallest, X, residual):
    """Codes and residual energies of the chosen rows, each of which has a Gram matrix."""
    r = P.shape[1]
    work = np.empty((3, r))
    for at in range(chosen.shape[0]):
        t = chosen[at]
        for j in range(r):
            X[t, j] = 0.0
        descend(grams[at], P[t], l1, ridge, positive, smallest, X[t], work)
        residual[t] = max(energy[t] - dot(P[t], X[t]) + dot(work[0], X[t]), 0.0)
