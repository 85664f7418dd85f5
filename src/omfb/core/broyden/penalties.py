"""Penalties on codes, and the minimisers that compute codes: the only place that does.

A code x of a row with the Gram matrix G and the projection b minimises

    ½ xᵀ G x − bᵀ x + penalty(x).

Every kind of block asks a `Penalty` for codes. The update of the dictionary and everything derived
from it (G, b, the recursion of `block.py`) hold for any code.

To add a penalty, write a class with `codes` and `smooth = 0.0` in a file of its own, and pass it in
the config as `penalty`, or have `penalty_of` construct it from the config's numbers (example:
`tests/core/broyden/test_penalties.py`). Nothing else changes: complete rows go through
`sequence_with`, rows with missing entries through `alternate_row`, mini-batches and `encode`
through `codes` itself.

A penalty may also have compiled kernels with the same result, selected by its type: `Quadratic` has
`sequence`, `learn_each`, `solve_systems` and `chain`, `ElasticNet` those of `elastic_net.py` and
`coordinate_descent.py`.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..linalg.small import invert
from ..linalg.threads import in_threads
from .coordinate_descent import descend_rows
from .state import State

Matrix = NDArray[np.float64]


class Penalty(Protocol):
    """The cost of a code in addition to its residual."""

    @property
    def smooth(self) -> float:
        """Pull of a code towards the previous one; 0 where rows are independent."""

    def codes(self, G: Matrix, B: Matrix, x_before: Matrix | None = None) -> Matrix:
        """Codes (q, r) of the rows of B (q, r), which share G and the previous code."""


class Quadratic(NamedTuple):
    """½ α‖x‖² + ½ τ‖x − x₋‖²: a linear system; its minimum-norm solution where singular."""

    ridge: float
    smooth: float
    smallest: float  # a pivot of G must exceed this share of its diagonal entry

    def codes(self, G: Matrix, B: Matrix, x_before: Matrix | None = None) -> Matrix:
        pulled = G + (self.ridge + self.smooth) * np.eye(len(G))
        if self.smooth > 0.0 and x_before is not None:
            B = B + self.smooth * x_before
        H = pulled.copy()
        # The square of an atom of 1e-155 has an inverse that overflows: treat it as zero.
        if invert(H, self.smallest) and np.isfinite(H).all():
            return B @ H
        return solve_minimum_norm(pulled, B.T, self.smallest).T


class ElasticNet(NamedTuple):
    """a‖x‖₁ + ½ α‖x‖², and x ≥ 0 if positive: exact, by coordinate descent."""

    l1: float
    ridge: float
    positive: bool
    smallest: float

    @property
    def smooth(self) -> float:
        return 0.0

    def codes(self, G: Matrix, B: Matrix, x_before: Matrix | None = None) -> Matrix:
        B, X = np.ascontiguousarray(B), np.empty(B.shape)
        in_threads(
            lambda first, last: descend_rows(G, B, *self, first, last, X),
            len(B), len(B) * len(G) ** 2 * SWEEPS_OF_A_CODE,
        )  # fmt: skip
        return X


# About as many sweeps cost as much as a code does; only the number of threads depends on it.
SWEEPS_OF_A_CODE = 10


def penalty_of(state: State) -> Penalty:
    """The penalty that a state's config asks for: its own, or that of its numbers."""
    config = state.config
    own: Penalty | None = getattr(config, "penalty", None)
    if own is not None:
        return own
    if config.positive_code or config.alpha * config.l1_ratio > 0.0:
        smallest = smallest_pivot(state.C.dtype)
        return ElasticNet(state.l1, float(state.ridge), config.positive_code, smallest)
    return Quadratic(float(state.ridge), float(state.smooth), smallest_pivot(state.C.dtype))


def smallest_pivot(dtype: np.dtype[np.floating]) -> float:
    """Smallest pivot of G, as a share of its diagonal entry, that is more than rounding.

    G has the squares of C's singular values, so this is about the type's precision, with a margin:
    at 1e-12, codes of float64 lose so many digits that G is off CᵀC by 1e-5 after 200 rows.
    """
    return 1e-10 if dtype == np.float64 else 1e-8


def solve_minimum_norm(G: Matrix, rhs: Matrix, smallest: float) -> Matrix:
    """The minimum-norm least squares solution of G x = rhs for a positive semidefinite G.

    Needed for fewer observed entries than components, dependent atoms, or more components than
    features, where neither ridge nor smooth makes the system regular.
    """
    if not np.isfinite(G).all():  # eigh does not converge; the caller refuses NaN
        return np.full_like(rhs, np.nan)
    # Scaled by its largest entry: eigenvalues of 1e-300 would vanish in eigh.
    scale = float(np.max(np.abs(np.diagonal(G))))
    if not scale > 0.0:
        return np.zeros_like(rhs)
    values, vectors = np.linalg.eigh(G / scale)
    nonzero = values > smallest * values[-1]
    basis = vectors[:, nonzero]
    solution: Matrix = (basis / values[nonzero]) @ (basis.T @ (rhs / scale))
    return solution


class Alternated(NamedTuple):
    x: Matrix
    k: Matrix
    g: Matrix
    epsilon: float
    before: float  # residual energy before learning


def alternate_row(
    penalty: Penalty, G: Matrix, b: Matrix, n: float, S_before_inverse: Matrix,
    inner_iter: int, x_before: Matrix | None,
) -> Alternated:  # fmt: skip
    """Alternate between code and dictionary of one row in reduced space, with any penalty."""
    G_now, b_now, before = G, b, None
    for _ in range(inner_iter):
        x = penalty.codes(G_now, b_now[None], x_before)[0]
        z = S_before_inverse @ x
        k = z / (1.0 + max(float(x @ z), 0.0))
        g = b - G @ x
        epsilon = max(float(n - 2 * (b @ x) + x @ G @ x), 0.0)
        before = epsilon if before is None else before
        gk = np.outer(g, k)
        G_now = G + gk + gk.T + epsilon * np.outer(k, k)
        b_now = b + k * (n - b @ x)
    assert before is not None  # inner_iter >= 1
    return Alternated(x, k, g, epsilon, before)
