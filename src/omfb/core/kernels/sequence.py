"""A block of fully observed rows, one at a time: Algorithm 1 at the speed of matrix products.

The dictionary after t rows of the block is C_t = C_0 + Σ_{i≤t} e_i k_iᵀ. So the t-th row meets

    b_t = C_{t-1}ᵀ y_t = C_0ᵀ y_t + Σ_{i<t} k_i (e_iᵀ y_t),  e_iᵀ y_t = (Y Yᵀ)_{it} − x_iᵀ b_t^{(i)}

where b_t^{(i)} is that sum up to row i. Given P = Y C_0 and N = Y Yᵀ, the q steps need no vector
of length m. As e_i = y_i − C_0 x_i − Σ_{j<i} e_j (k_jᵀ x_i), the residuals solve a triangular
system, and with X, K (q, r) the codes and gains and U the strictly upper part of K Xᵀ,

    C_q = C_0 + (Y − X C_0ᵀ)ᵀ B = C_0 (I − Xᵀ B) + Yᵀ B,    B = (I + U)⁻¹ K.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..state import Info, State
from .compiling import jit
from .shared import Matrix, Step, check_finite_step, inverse_to_keep, refreshed
from .small import (
    add_symmetric_and_multiply,
    alternate,
    before_row,
    dot,
    invert,
    remember,
    remember_inverse,
)

# H is updated over a whole block, which multiplies its errors: take worse conditioned systems
# row by row, each with an inverse of its own.
SMALLEST_BLOCK_PIVOT = 1e-6
# Of the dictionary's change that is made at a time: what the second cache holds beside its inputs.
SLICE_BYTES = 1 << 18


@jit
def sequence(
    P, N, H, S, S_inverse, lam, memory, weight, ridge, smooth, inner_iter, x_before,
    X, K, D, epsilon, before,
):  # fmt: skip
    """Take the q single-row steps of a block in small space; return how many were taken.

    Changes x_before (the last code), S (but for memory = 1, where the caller adds up all codes at
    once) and, as far as it needs them, H and S_inverse in place.
    Fills X, K and D (codes, gains and g, in rows), ε and the residual energies before learning.
    Stops early at a row whose system is singular: that row is for `singular.py`.
    """
    q, r = P.shape
    b = np.empty(r)
    rhs = np.empty(r)
    work = np.zeros((7, r))
    x, k, g, u, v, x_first = work[0], work[1], work[2], work[3], work[4], work[5]
    on_vv = on_vu = on_uu = 0.0  # what the row before changes in H
    for t in range(q):
        for j in range(r):
            b[j] = P[t, j]
        for i in range(t):
            along = N[i, t] - dot(X[i], b)
            for j in range(r):
                b[j] += along * K[i, j]
        for j in range(r):
            rhs[j] = b[j] + smooth * x_before[j]
        add_symmetric_and_multiply(H, v, u, on_vv, on_vu, on_uu, rhs, x_first)
        inverse_scale = before_row(S, lam, memory, weight + t, 1.0, S_inverse)
        before[t], epsilon[t], stretch, on_vv, on_vu, on_uu = alternate(
            b,
            N[t, t],
            H,
            S_inverse,
            inverse_scale,
            memory,
            ridge,
            smooth,
            inner_iter,
            x_before,
            work,
        )
        if before[t] < 0.0:
            return t
        if memory < 1.0:
            remember(S, lam, memory, weight + t, 1.0, x)
        remember_inverse(S_inverse, inverse_scale, memory, 1.0, k, stretch)
        for j in range(r):
            X[t, j] = x[j]
            K[t, j] = k[j]
            D[t, j] = g[j]
            x_before[j] = x[j]
    return q


@jit
def solve_unit_upper(U, K):
    """B = (I + U)⁻¹ K in place of K, reading only what is above U's diagonal."""
    q, r = K.shape
    for i in range(q - 2, -1, -1):
        for j in range(i + 1, q):
            factor = U[i, j]
            for c in range(r):
                K[i, c] -= factor * K[j, c]


def block_length(r: int) -> int:
    """Rows of a block: of the work beside the floor, Y Yᵀ grows with q and C A falls with it.

    Their sum is least at q = √2 r, with the small space a little below; with fewer rows than 64
    the products and the calls lose speed.
    """
    return max(64, 8 * round(1.2 * r / 8))


def learn_block(
    state: State, Y: NDArray[Any], N: NDArray[Any], reuse: bool, free: list[NDArray[Any]]
) -> Step:
    """Learn from the rows of one block, as many as have a regular system.

    `N` is Y Yᵀ. Arrays of C's shape are taken from `free` before new ones are made, and the
    state's own goes there if it may be reused. The caller sees from the number of codes how
    many rows were learned from.
    """
    state = refreshed(state)
    rule, C = state.rule, state.C
    r = C.shape[1]
    q = len(Y)
    S = state.S.copy()
    S_inverse = inverse_to_keep(S, rule)
    x_before = np.zeros(r) if state.code is None else state.code.copy()
    X, K, D = np.empty((q, r)), np.empty((q, r)), np.empty((q, r))
    epsilon, before = np.empty(q), np.empty(q)
    H = state.G + (state.ridge + state.smooth) * np.eye(r)
    done = 0
    if invert(H, SMALLEST_BLOCK_PIVOT):
        P = (Y @ C).astype(np.float64, copy=False)
        N = N.astype(np.float64, copy=False)
        done = sequence(
            P, N, H, S, S_inverse, rule.lam, rule.memory, state.weight, state.ridge, state.smooth,
            rule.inner_iter, x_before, X, K, D, epsilon, before,
        )  # fmt: skip
    if done == 0:
        return state, X[:0], Info(0.0, 0.0)
    Y, X, K, D, epsilon = Y[:done], X[:done], K[:done], D[:done], epsilon[:done]
    if rule.memory == 1.0:
        counts = state.weight + np.arange(1, done + 1)  # row by row what `remember` does
        S = state.weight / counts[-1] * S + (X.T * (counts / counts[-1])) @ X
    D += (0.5 * epsilon)[:, None] * K
    half = D.T @ K
    G = state.G + half + half.T
    check_finite_step(X, K, G, S)
    B = K
    solve_unit_upper(K @ X.T, B)
    new = _learned(C, Y, X, B, free)
    if reuse:
        free.append(C)
    learned = replace(
        state, C=new, G=G, S=S, code=x_before,
        n_seen=state.n_seen + done, drift=state.drift + Y.size,
    )  # fmt: skip
    return learned, X, Info(float(before[:done].sum()), float(np.trace(N[:done, :done])))


def _learned(
    C: NDArray[Any], Y: NDArray[Any], X: Matrix, B: Matrix, free: list[NDArray[Any]]
) -> NDArray[Any]:
    """C (I − Xᵀ B) + Yᵀ B, by the cheapest way for so many rows."""
    new = free.pop() if free else np.empty_like(C)
    X, B = X.astype(C.dtype, copy=False), B.astype(C.dtype, copy=False)
    m, r = C.shape
    A = np.eye(r, dtype=C.dtype) - X.T @ B
    # A slice of the features at a time, so that the sum finds its second term in the cache.
    change = np.empty((min(m, max(256, SLICE_BYTES // (r * C.itemsize))), r), C.dtype)
    for start in range(0, m, len(change)):
        here = slice(start, start + len(change))
        part = change[: len(C[here])]
        if len(Y) < r:
            np.matmul((Y[:, here] - X @ C[here].T).T, B, out=part)
            np.add(C[here], part, out=new[here])
        else:
            np.matmul(C[here], A, out=new[here])
            np.matmul(Y[:, here].T, B, out=part)
            new[here] += part
    return new
