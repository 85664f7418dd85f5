"""Rows that observe the same features, one at a time: Algorithm 1 at the speed of matrix products.

The dictionary after t rows of a block is C_t = C_0 + Σ_{i≤t} e_i k_iᵀ. So the t-th row meets

    b_t = C_{t-1}ᵀ y_t = C_0ᵀ y_t + Σ_{i<t} k_i (e_iᵀ y_t),  e_iᵀ y_t = (Y Yᵀ)_{it} − x_iᵀ b_t^{(i)}

where b_t^{(i)} is that sum up to row i. Given P = Y C_0 and N = Y Yᵀ, the q steps need no vector
of length m. As e_i = y_i − C_0 x_i − Σ_{j<i} e_j (k_jᵀ x_i), the residuals solve a triangular
system, and with X, K (q, r) the codes and gains and U the strictly upper part of K Xᵀ,

    C_q = C_0 + (Y − X C_0ᵀ)ᵀ B = C_0 (I − Xᵀ B) + Yᵀ B,    B = (I + U)⁻¹ K.

Where all rows miss the same features, C, Y and G are those of the others, and everything holds.

This file works in reduced space; `runs.py` makes P and N and updates the dictionary.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..linalg.compiling import jit
from ..linalg.rows import Matrix, check_finite_step
from ..linalg.small import SMALLEST_PRECISION, invert, multiply
from ..linalg.workspace import Workspace, aligned, aligned_copy
from .elastic_net import sequence_of_codes
from .penalties import ElasticNet, Penalty, Quadratic, alternate_row, penalty_of
from .precision import inverse_to_keep, precision_before, start_weight_after
from .reduced_space import (
    add_symmetric_and_multiply,
    alternate,
    before_row,
    pass_on,
    remember,
    subtract_outer_and_multiply,
    taken_by_row,
)
from .state import MOSTLY_OBSERVED, BroydenConfig, State

# H is updated over a whole block, which multiplies its errors: systems that are worse conditioned
# than this are solved row by row, each with its own inverse.
SMALLEST_BLOCK_PIVOT = 1e-6
# Rows with at most this many features are short.
SHORT = 500
WORKSPACE = Workspace()  # arrays that a block needs and does not return


@jit
def sequence(
    P, N, H, S, S_inverse, lam, forget_factor, weight, share, ridge, smooth, inner_iter, x_before,
    X, K, D, before,
):  # fmt: skip
    """Take the q single-row steps of a block in reduced space; return how many were taken.

    Updates in place P, x_before (the last code), S (unless ρ = 1, where the caller adds all codes
    at once) and, as far as needed, H and S_inverse, which do not include the last row.
    Fills X, K and D (codes, gains and g + ½ ε k, one row each) and `before`, the residual energies
    before learning. Then G' = G + DᵀK + KᵀD.
    Stops early at a row whose system is singular; `learn_missing` takes that row.
    """
    q, r = P.shape
    rhs = np.empty(r)
    work, scaled = np.empty((7, r)), np.empty(r)
    x, k, g, u, v, x_first, z = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    for j in range(r):
        k[j] = u[j] = v[j] = 0.0
    on_vv = on_vu = on_uu = 0.0  # the last row's update of H
    left, down = 1.0, 0.0  # and of the inverse of S
    for t in range(q):
        for j in range(r):
            rhs[j] = P[t, j] + smooth * x_before[j]
        add_symmetric_and_multiply(H, v, u, on_vv, on_vu, on_uu, rhs, x_first)
        inverse_scale = before_row(S, lam, forget_factor, weight + t, share, S_inverse)
        if forget_factor == 1.0:
            subtract_outer_and_multiply(S_inverse, left, down, k, scaled, x_first, z)
        elif forget_factor > 0.0:
            invert(S_inverse, SMALLEST_PRECISION)
            multiply(S_inverse, x_first, z)
        before[t], epsilon, stretch, on_vv, on_vu, on_uu = alternate(
            P[t], N[t, t], H, False, S_inverse, inverse_scale, forget_factor, ridge, smooth,
            inner_iter, x_before, work,
        )  # fmt: skip
        if before[t] < 0.0:
            return t
        if forget_factor < 1.0:
            remember(S, lam, forget_factor, weight + t, share, x)
        left, down = inverse_scale, taken_by_row(share, stretch)
        for j in range(r):
            X[t, j] = x[j]
            K[t, j] = k[j]
            D[t, j] = g[j] + 0.5 * epsilon * k[j]
            x_before[j] = x[j]
        pass_on(X, K, N, P, t)
    return q


@jit
def solve_unit_upper(U, K):
    """B = (I + U)⁻¹ K in place of K, reading only what is above U's diagonal.

    Four rows of B at a time go into those above them.
    """
    q, r = K.shape
    for last in range(q, 0, -4):
        first = max(last - 4, 0)
        for i in range(last - 2, first - 1, -1):
            for j in range(i + 1, last):
                factor = U[i, j]
                for c in range(r):
                    K[i, c] -= factor * K[j, c]
        for i in range(first):
            row, u = K[i], U[i, first:last]
            b0, b1, b2, b3 = K[first], K[first + 1], K[first + 2], K[first + 3]
            u0, u1, u2, u3 = u[0], u[1], u[2], u[3]
            for c in range(r):
                row[c] -= u0 * b0[c] + u1 * b1[c] + u2 * b2[c] + u3 * b3[c]


def block_length(m: int, r: int) -> int:
    """Rows of a block: of the work above the floor, Y Yᵀ grows with q and C A shrinks with it.

    Their sum is smallest at q = √2 r; with C A deferred and the work in reduced space, at about r.
    Below 64 rows the products lose speed, and short rows spend most of their time in calls.
    """
    return max(64 if m > SHORT else 96, 8 * round(0.95 * r / 8))


class Gains(NamedTuple):
    """The gains of single rows, and K Xᵀ: its strictly upper part is U, the rest L."""

    K: Matrix
    KX: Matrix

    @property
    def mean_factor(self) -> float:
        """How much of the dictionary a block keeps: det(A)^(1/r) of A = I − XᵀB.

        A is the product of all I − x kᵀ, whose determinants are 1 − kᵀx.
        """
        return float(np.exp(np.log(1.0 - self.KX.diagonal()).sum() / self.K.shape[1]))

    def towards_the_end(self) -> Matrix:
        """B = (I + U)⁻¹K."""
        B = aligned_copy(self.K)
        solve_unit_upper(self.KX, B)
        return B

    def towards_the_start(self) -> Matrix:
        """V = (I − L)⁻¹K, which is B (I − XᵀB)⁻¹; in reverse, L's system is one like U's."""
        scale = 1.0 / (1.0 - self.KX.diagonal())[::-1, None]
        V = np.ascontiguousarray(scale * self.K[::-1])
        solve_unit_upper(np.ascontiguousarray(-scale * self.KX[::-1, ::-1]), V)
        return V[::-1]


class Block(NamedTuple):
    """The result of a block in reduced space: codes, B, and the updated parts of the state."""

    X: Matrix
    B: Matrix
    G: Matrix
    S: Matrix
    code: Matrix
    residual: float
    gains: Gains | None = None  # of single rows


def after_block(state: State, block: Block, entries: int, share: float) -> State:
    """The state after a block of `entries` observed entries, a `share` of all; C is not updated."""
    done = len(block.X)
    return replace(
        state, G=block.G, S=block.S, code=block.code, n_seen=state.n_seen + done,
        entries_since_gram=state.entries_since_gram + entries,
        start_weight=start_weight_after(state, done, share),
    )  # fmt: skip


class ReducedState(NamedTuple):
    """The part of the state that the next block of rows needs; nothing in it has length m."""

    config: BroydenConfig
    penalty: Penalty
    G: Matrix
    S: Matrix
    code: Matrix | None
    weight: float

    @classmethod
    def of(cls, state: State) -> "ReducedState":
        """The reduced state before a block."""
        return cls(state.config, penalty_of(state), state.G, state.S, state.code, state.weight)

    def after(self, block: Block) -> "ReducedState":
        """The reduced state after a block."""
        return self._replace(
            G=block.G, S=block.S, code=block.code, weight=self.weight + len(block.X)
        )


def take_steps(
    reduced: ReducedState, P: Matrix, N: Matrix, share: float, singular: bool = False
) -> Block | None:
    """Take the steps of a block whose rows observe a `share` of the features; G is over these.

    The block ends before a row whose system is singular, and is None if that is the first row.
    With `singular`, such systems are solved as well, by a slower path for all rows. P is
    overwritten.
    """
    (q, r), forget_factor = P.shape, float(reduced.config.forget_factor)
    config, penalty, G, S = reduced.config, reduced.penalty, reduced.G, reduced.S.copy()
    x_before = np.zeros(r) if reduced.code is None else reduced.code.copy()
    X, K, before = aligned((q, r)), aligned((q, r)), np.empty(q)
    if isinstance(penalty, ElasticNet):
        D, done = np.empty((q, r)), q
        sequence_of_codes(
            P, N, G.copy(), S, inverse_to_keep(S, config), float(config.lam), forget_factor,
            reduced.weight, share, *penalty, int(config.inner_iter), X, K, D, before,
        )  # fmt: skip
        x_before = X[-1].copy()
    elif singular or not isinstance(penalty, Quadratic):
        D = np.empty((q, r))
        made = x_before, X, K, D, before
        done = sequence_with(penalty, P, N, G, S, config, reduced.weight, share, *made)
    else:
        work = WORKSPACE.array((r + q, r), np.float64)
        H, D = work[:r], work[r:]
        H[:] = G
        H.ravel()[:: r + 1] += penalty.ridge + penalty.smooth
        if not invert(H, SMALLEST_BLOCK_PIVOT):
            return None
        done = sequence(
            P, N, H, S, inverse_to_keep(S, config), float(config.lam), forget_factor,
            reduced.weight, share, penalty.ridge, penalty.smooth, int(config.inner_iter),
            x_before, X, K, D, before,
        )  # fmt: skip
    if done == 0:
        return None
    X, K, D = X[:done], K[:done], D[:done]
    if forget_factor == 1.0:  # what `remember` does row by row
        counts = reduced.weight + np.arange(1, done + 1)
        if share < MOSTLY_OBSERVED:
            counts[:] = reduced.weight
        S = reduced.weight / counts[-1] * reduced.S + (X.T * (share * counts / counts[-1])) @ X
    half = D.T @ K
    G = G + (half + half.T)
    check_finite_step(G, S)  # where a code or gain is not finite, neither is G
    gains = Gains(K, K @ X.T)
    B = gains.towards_the_end()
    return Block(X, B, G, S, x_before, float(before[:done].sum()), gains)


def sequence_with(
    penalty: Penalty, P: Matrix, N: Matrix, G: Matrix, S: Matrix, config: BroydenConfig,
    weight: float, share: float, x_before: Matrix, X: Matrix, K: Matrix, D: Matrix, before: Matrix,
) -> int:  # fmt: skip
    """`sequence` for any penalty."""
    for t in range(len(P)):
        S_before, S_before_inverse = precision_before(S, config, weight + t, 1, share)
        x, k, g, epsilon, before[t] = alternate_row(
            penalty, G, P[t], N[t, t], S_before_inverse, config.inner_iter, x_before
        )
        gk = np.outer(g, k)
        G = G + gk + gk.T + epsilon * np.outer(k, k)
        if config.forget_factor > 0.0:
            S[:] = S_before + share * np.outer(x, x)
        P[t + 1 :] += np.outer(N[t, t + 1 :] - P[t + 1 :] @ x, k)
        X[t], K[t], D[t], x_before[:] = x, k, g + 0.5 * epsilon * k, x
    return len(P)
