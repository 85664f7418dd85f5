"""What a row's observed entries do with the dictionary: its products, its Gram matrix, its update.

Rows come as `starts`, `features`, `values`: row t observes features[starts[t]:starts[t+1]].
A row's small system is G_Ω = C_Ωᵀ C_Ω, from whichever side has fewer rows of C to multiply:
the observed one, or G less the missing one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiling import inner_jit, jit
from .rows import Rows
from .small import dot

# Taking the missing side off G leaves G_Ω with an error of G's size. Where the missing
# features hold nearly all of an atom's energy, that error is too large: sum the observed side.
SMALLEST_SHARE_LEFT = 1e-3
# Rows of C that are multiplied at a time; not a power of two, which would share cache lines.
STRIP = 264


@jit
def compress(Y, starts, features, values):
    """List the observed entries of a dense Y with NaN for missing; there must be room for one more.

    Every entry is written, and the next one over it if it was missing: holes come at random, and a
    branch that is guessed wrong costs more than a write.
    """
    at = 0
    starts[0] = 0
    for t in range(Y.shape[0]):
        for i in range(Y.shape[1]):
            features[at] = i
            values[at] = Y[t, i]
            at += not np.isnan(Y[t, i])
        starts[t + 1] = at


def compressed(Y: NDArray[Any]) -> Rows:
    """The observed entries of a dense Y with NaN for missing."""
    starts = np.empty(len(Y) + 1, np.int64)
    features, values = np.empty(Y.size + 1, np.int32), np.empty(Y.size + 1, Y.dtype)
    compress(Y, starts, features, values)
    return Rows(starts, features[: starts[-1]], values[: starts[-1]])


@inner_jit
def add_products(strip, width, total):
    """Add the products of the strip's rows, up to a width: total is right up to its diagonal.

    Four with two at a time: eight sums for six loaded numbers, in the registers.
    """
    for i in range(0, strip.shape[0], 4):
        a, b, c, d = strip[i], strip[i + 1], strip[i + 2], strip[i + 3]
        for j in range(0, i + 4, 2):
            e, f = strip[j], strip[j + 1]
            ae = be = ce = de = af = bf = cf = df = 0.0
            for s in range(width):
                ae += a[s] * e[s]
                be += b[s] * e[s]
                ce += c[s] * e[s]
                de += d[s] * e[s]
                af += a[s] * f[s]
                bf += b[s] * f[s]
                cf += c[s] * f[s]
                df += d[s] * f[s]
            total[i, j] += ae
            total[i + 1, j] += be
            total[i + 2, j] += ce
            total[i + 3, j] += de
            total[i, j + 1] += af
            total[i + 1, j + 1] += bf
            total[i + 2, j + 1] += cf
            total[i + 3, j + 1] += df


@jit
def observed_gram(C, G, features, out):
    """out = G_Ω = Σ_i c_i c_iᵀ over the observed i, from the cheaper side where that is accurate.

    Rows of C are turned into columns of a strip, which stays in the first cache.
    """
    m, r = C.shape
    padded = (r + 3) // 4 * 4
    strip = np.empty((padded, STRIP))
    total = np.empty((padded, padded))
    for j in range(r, padded):
        for s in range(STRIP):
            strip[j, s] = 0.0
    by_missing = 2 * features.shape[0] > m
    while True:  # once, or twice where the missing side is not accurate
        for i in range(padded):
            for j in range(padded):
                total[i, j] = 0.0
        n_rows = m - features.shape[0] if by_missing else features.shape[0]
        feature, passed = 0, 0  # the next one that may be missing, and how many observed are before
        for at in range(0, n_rows, STRIP):
            count = min(STRIP, n_rows - at)
            width = (count + 7) // 8 * 8  # whole vectors
            for s in range(count):
                if by_missing:
                    while passed < features.shape[0] and features[passed] == feature:
                        feature, passed = feature + 1, passed + 1
                row = C[feature if by_missing else features[at + s]]
                feature += 1
                for j in range(r):
                    strip[j, s] = row[j]
            for j in range(r):
                for s in range(count, width):
                    strip[j, s] = 0.0
            add_products(strip, width, total)
        accurate = True
        for i in range(r):
            for j in range(i + 1):
                out[i, j] = G[i, j] - total[i, j] if by_missing else total[i, j]
                out[j, i] = out[i, j]
            accurate = accurate and out[i, i] >= SMALLEST_SHARE_LEFT * G[i, i]
        if accurate or not by_missing:
            return
        by_missing = False


@jit
def project(C, features, values, b):
    """b = C_Ωᵀ y_Ω; returns y_Ωᵀ y_Ω."""
    n = 0.0
    for j in range(C.shape[1]):
        b[j] = 0.0
    count = features.shape[0]
    for at in range(0, count - 3, 4):  # four features at a time: b is loaded a quarter as often
        o, p, q, s = features[at], features[at + 1], features[at + 2], features[at + 3]
        on_o, on_p = np.float64(values[at]), np.float64(values[at + 1])
        on_q, on_s = np.float64(values[at + 2]), np.float64(values[at + 3])
        n += on_o * on_o + on_p * on_p + on_q * on_q + on_s * on_s
        for j in range(C.shape[1]):
            b[j] += on_o * C[o, j] + on_p * C[p, j] + on_q * C[q, j] + on_s * C[s, j]
    for at in range(count // 4 * 4, count):
        y = np.float64(values[at])
        n += y * y
        i = features[at]
        for j in range(C.shape[1]):
            b[j] += y * C[i, j]
    return n


@inner_jit
def multiply_few(C, features, A):
    """A = C_Ω C_Ωᵀ."""
    for s in range(features.shape[0]):
        for p in range(s + 1):
            A[s, p] = dot(C[features[s]], C[features[p]])
            A[p, s] = A[s, p]


@inner_jit
def approach_few(C, features, values, A_inverse, errors, x):
    """x ← x + C_Ωᵀ A⁻¹ (y − C_Ω x) with A = C_Ω C_Ωᵀ, whose size is that of the observed entries.

    From zero, that is the shortest x with C_Ω x = y; once more, and what rounding left is gone.
    """
    for s in range(features.shape[0]):
        errors[s] = values[s] - dot(C[features[s]], x)
    for s in range(features.shape[0]):
        row, along = C[features[s]], dot(A_inverse[s], errors)
        for j in range(x.shape[0]):
            x[j] += along * row[j]


@inner_jit
def learn_observed(C, features, values, x, k):
    """c_i ← c_i + (y_i − c_iᵀx) k for the observed features i, two at a time."""
    count, r = features.shape[0], C.shape[1]
    for at in range(0, count - 1, 2):
        a, b = C[features[at]], C[features[at + 1]]
        on_a = on_b = 0.0
        for j in range(r):
            on_a += a[j] * x[j]
            on_b += b[j] * x[j]
        on_a, on_b = values[at] - on_a, values[at + 1] - on_b
        for j in range(r):
            a[j] += on_a * k[j]
            b[j] += on_b * k[j]
    if count % 2 == 1:
        last = C[features[count - 1]]
        error = values[count - 1] - dot(last, x)
        for j in range(r):
            last[j] += error * k[j]
