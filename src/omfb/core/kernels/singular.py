"""One row whose small system is singular: the alternation with minimum-norm codes, in NumPy.

Reached by fewer observed entries than components, dependent atoms, or more components than
features, and only where ridge + smooth is zero: any pull makes the system regular.
"""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def solve_minimum_norm(G: Matrix, rhs: Matrix, smallest: float) -> Matrix:
    """The shortest least squares solution of G x = rhs for a symmetric G ≥ 0."""
    if not np.isfinite(G).all():  # eigh does not converge; the caller refuses what is not finite
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


def alternate_minimum_norm(
    G: Matrix, b: Matrix, n: float, S_before_inverse: Matrix, pull: float, pulled: Matrix,
    inner_iter: int, smallest: float,
) -> tuple[Matrix, Matrix, Matrix, float, float]:  # fmt: skip
    """Return x, k, g, ε and the residual energy before learning; in textbook form.

    `pull` is α + τ and `pulled` is τ x₋.
    """
    identity = np.eye(len(b))
    G_now, b_now, before = G, b, None
    for _ in range(inner_iter):
        x = solve_minimum_norm(G_now + pull * identity, b_now + pulled, smallest)
        z = S_before_inverse @ x
        k = z / (1.0 + max(float(x @ z), 0.0))
        g = b - G @ x
        epsilon = max(float(n - 2 * (b @ x) + x @ G @ x), 0.0)
        before = epsilon if before is None else before
        gk = np.outer(g, k)
        G_now = G + gk + gk.T + epsilon * np.outer(k, k)
        b_now = b + k * (n - b @ x)
    assert before is not None  # inner_iter >= 1
    return x, k, g, epsilon, before
