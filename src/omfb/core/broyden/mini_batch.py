"""A mini-batch of fully observed rows (the paper's updates 6 and 7), its rounds in reduced space.

Of few features, no more than the batch has rows, the rounds are cheaper with the dictionary itself.

With X (b, r) the codes in rows, S = S̄ + XᵀX and K = X S⁻¹, the update is C = C₋ + Eᵀ K with
E = Y − X C₋ᵀ, and in reduced space

    D = E C₋ = P − X G,   M = E Eᵀ = N − X Pᵀ − P Xᵀ + X G Xᵀ
    G' = G + Dᵀ K + Kᵀ D + Kᵀ M K,   P' = Y C = P + (N − P Xᵀ) K.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..info import Info
from ..linalg.rows import Matrix, check_finite_step, gram, inverse_of
from .block import Block, after_block
from .penalties import Penalty, Quadratic, penalty_of
from .precision import Step, precision_before, refreshed
from .smooth_codes import chain_one
from .state import State


class Rounds(NamedTuple):
    X: Matrix
    K: Matrix
    G: Matrix  # the Gram matrix after the update
    before: Matrix  # residual energy of each row before learning


def gains(X: Matrix, S_before: Matrix, S_before_inverse: Matrix) -> Matrix:
    """K = X (S̄ + XᵀX)⁻¹, by Woodbury where that system is smaller."""
    rows, r = X.shape
    if rows < r:
        Z = X @ S_before_inverse
        return inverse_of(np.eye(rows) + Z @ X.T) @ Z
    return X @ inverse_of(S_before + X.T @ X)


def alternate_batch(
    penalty: Penalty, P: Matrix, N: Matrix, G: Matrix, S_before: Matrix, S_before_inverse: Matrix,
    inner_iter: int, x_before: Matrix | None,
) -> Rounds:  # fmt: skip
    """Alternate between codes and dictionary of one mini-batch `inner_iter` times."""
    G_now, P_now, before = G, P, None
    for _ in range(inner_iter):
        if isinstance(penalty, Quadratic) and penalty.smooth > 0.0:
            X = chain_one(penalty, G_now[None], P_now, x_before)
        else:
            X = penalty.codes(G_now, P_now)
        K = gains(X, S_before, S_before_inverse)
        PX, XG = P @ X.T, X @ G
        M = N - PX - PX.T + XG @ X.T
        before = np.maximum(np.diagonal(M), 0.0) if before is None else before
        DK = (P - XG).T @ K
        G_now = G + DK + DK.T + K.T @ M @ K
        P_now = P + (N - PX) @ K
    assert before is not None  # inner_iter >= 1
    return Rounds(X, K, G_now, before)


def batch_space(state: State, P: Matrix, N: Matrix) -> Block:
    """The step of a mini-batch of complete rows in reduced space."""
    config = state.config
    S_before, S_before_inverse = precision_before(state.S, config, state.weight, len(P), 1.0)
    X, K, G, before = alternate_batch(
        penalty_of(state), P, N, state.G, S_before, S_before_inverse, config.inner_iter, state.code,
    )  # fmt: skip
    S = S_before + X.T @ X if config.forget_factor > 0.0 else state.S
    check_finite_step(X, K, G, S)
    return Block(X, K, G, S, X[-1].copy(), float(before.sum()))


def learn_batch(state: State, Y: NDArray[Any], reuse: bool) -> Step:
    """Learn from one mini-batch of complete rows; with `reuse`, in place."""
    if is_narrow(state):
        return learn_narrow_batch(state, Y, reuse)
    state = refreshed(state)
    C = state.C
    P, N = ((Y @ M).astype(np.float64, copy=False) for M in (C, Y.T))
    block = batch_space(state, P, N)
    X, K = (part.astype(C.dtype, copy=False) for part in (block.X, block.B))
    change = (Y - X @ C.T).T @ K
    C = np.add(C, change, out=C if reuse else change)
    learned = replace(after_block(state, block, Y.size, 1.0), C=C)
    return learned, block.X, Info(block.residual, float(np.trace(N)))


def is_narrow(state: State) -> bool:
    """Whether the products of a round are larger in reduced space than with the dictionary."""
    (m, r), q = state.C.shape, state.config.batch_size
    return m * (3 * q + r) <= 3 * q * (q + r)


def learn_narrow_batch(state: State, Y: NDArray[Any], reuse: bool) -> Step:
    """`learn_batch` where there are few features: each round makes a dictionary."""
    config, penalty, rows = state.config, penalty_of(state), Y.astype(np.float64, copy=False)
    S_before, S_before_inverse = precision_before(state.S, config, state.weight, len(Y), 1.0)
    C = start = state.C.astype(np.float64, copy=False)
    G, before = gram(C), None
    for _ in range(config.inner_iter):
        P = rows @ C
        if isinstance(penalty, Quadratic) and penalty.smooth > 0.0:
            X = chain_one(penalty, G[None], P, state.code)
        else:
            X = penalty.codes(G, P)
        K = gains(X, S_before, S_before_inverse)
        E = rows - X @ start.T
        before = np.einsum("ij,ij->i", E, E) if before is None else before
        C = start + E.T @ K
        G = C.T @ C
    assert before is not None  # inner_iter >= 1
    S = S_before + X.T @ X if config.forget_factor > 0.0 else state.S
    check_finite_step(X, K, G, S)
    block = Block(X, K, G, S, X[-1].copy(), float(before.sum()))
    new = C.astype(state.C.dtype, copy=False)
    if reuse:
        state.C[:] = new
        new = state.C
    learned = replace(after_block(state, block, Y.size, 1.0), C=new)
    return learned, X, Info(block.residual, float(np.einsum("ij,ij->", rows, rows)))
