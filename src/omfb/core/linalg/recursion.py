"""Recursive least squares for a dictionary whose rows share one precision matrix.

Each row fades what S holds by `keep`, and adds its code x̃ by the share of features it observes
(times its weight, if rows have weights):

    z = S̄⁻¹x̃,  h = x̃ᵀz,  S̄ = keep S,   S ← S̄ + share x̃x̃ᵀ

Feature i has seen N_i rows where the average one has seen N̄, so f_i = N_i / N̄ of S is its own:

    c_i ← c_i + (y_i − c_iᵀx̃) z / (f_i / u + h),   N_i ← keep N_i + u      where i is observed,

with the weight u: 1, or that of the row times that of the entry.

`gains` is small space, row after row. `learn_features` goes feature by feature over the rows that
observe it: any range of features is one thread's work, and a row of C stays in the first cache.

Where most entries are observed, `steps` does the same without a vector of length r. With e_t the
residual from the first C, the t-th step of a feature is

    a_t = (e_t − Σ_{s<t} a_s z_sᵀx̃_t) / (f_t + h_t),   zero where it is missing,

and after all rows C has become C + Aᵀ Z: one product.
"""

import numpy as np

from .compiling import jit
from .small import dot, multiply, subtract_outer


@jit
def gains(S, S_inverse, X, shares, keep, Z, h):
    """Fill z and h of each row, and carry S and its inverse on in place."""
    q, R = X.shape
    z, scaled, fresh = np.empty(R), np.empty(R), np.empty(q)
    for t in range(q):
        fresh[t] = 1.0 / keep[t]
    for t in range(q):
        multiply(S_inverse, X[t], z)
        for j in range(R):
            z[j] *= fresh[t]
            Z[t, j] = z[j]
        h[t] = max(dot(X[t], z), 0.0)
        down = shares[t] / (1.0 + shares[t] * h[t])
        subtract_outer(S_inverse, fresh[t], down, z, scaled)
        subtract_outer(S, keep[t], -shares[t], X[t], scaled)


@jit
def learn_features(
    C, C_codes, starts, rows, values, precisions, first, last, X, Z, h, leverage, keep, weights,
    mean_counts, counts, errors, least_share,
):  # fmt: skip
    """Learn features first to last from the rows that observe them, in the order of the rows.

    rows[starts[i]:starts[i+1]] observe feature i, with `precisions` if these are not empty;
    `weights` (q,) are those of the rows. `errors` (2, m) gathers, faded by `keep`, squared
    residuals from the dictionary that made the codes, divided by their variance 1 + leverage / f,
    and how many they are.
    """
    q, R = X.shape
    weighted = precisions.shape[0] > 0
    for i in range(first, last):
        c, c_codes = C[i], C_codes[i]
        count, energy, number = counts[i], errors[0, i], errors[1, i]
        at = 0
        for s in range(starts[i], starts[i + 1]):
            t = rows[s]
            while at <= t:
                count *= keep[at]
                energy *= keep[at]
                number *= keep[at]
                at += 1
            x = X[t]
            share = min(max(count / mean_counts[t], least_share), 1.0)
            precision = precisions[s] if weighted else 1.0
            weight = weights[t] * precision
            before = values[s] - dot(c_codes, x)
            energy += weight * before * before / (1.0 + precision * leverage[t] / share)
            number += weights[t]
            along = (values[s] - dot(c, x)) / (share / weight + h[t])
            for j in range(R):
                c[j] += along * Z[t, j]
            count += weight
        while at < q:
            count *= keep[at]
            energy *= keep[at]
            number *= keep[at]
            at += 1
        counts[i], errors[0, i], errors[1, i] = count, energy, number


@jit
def steps(
    E, before, seen, couplings, h, leverage, keep, mean_counts, counts, errors, least_share,
    first, last,
):  # fmt: skip
    """Turn residuals E (q, m) of features first to last into their steps A, in place.

    couplings[s, t] is z_sᵀx̃_t. `before` are residuals from the dictionary that made the codes, for
    `errors`, as in `learn_features`.
    """
    q = E.shape[0]
    width = 64  # features at a time: their steps stay in the first cache
    for begin in range(first, last, width):
        end = min(begin + width, last)
        for t in range(q):
            row = E[t, begin:end]
            for s in range(t):
                along = couplings[s, t]
                earlier = E[s, begin:end]
                for i in range(end - begin):
                    row[i] -= along * earlier[i]
            residuals, known = before[t, begin:end], seen[t, begin:end]
            number, total, energy = counts[begin:end], errors[1, begin:end], errors[0, begin:end]
            per_row = 1.0 / mean_counts[t]
            for i in range(end - begin):
                count = number[i] * keep[t]
                share = min(max(count * per_row, least_share), 1.0)
                here = 1.0 if known[i] else 0.0
                square = residuals[i] * residuals[i] * share / (share + leverage[t])
                energy[i] = energy[i] * keep[t] + here * square
                total[i] = total[i] * keep[t] + here
                number[i] = count + here
                row[i] = here * row[i] / (share + h[t])
