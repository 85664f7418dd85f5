"""Codes of consecutive rows under a random-walk prior, jointly optimal for a fixed dictionary.

Minimises Σ_t ‖y_t − C x_t‖²_Ω + α‖x_t‖² + τ‖x_t − x_{t−1}‖², a block tridiagonal system, by
elimination forwards and substitution backwards:

    Λ_t = G_t + (α + links τ) I − τ² Λ_{t−1}⁻¹,   η_t = b_t + τ Λ_{t−1}⁻¹ η_{t−1},
    x_t = Λ_t⁻¹ (η_t + τ x_{t+1}),                links = number of neighbours of row t.

Only the last Λ can be singular, if no row determines some direction of the codes; its pseudoinverse
gives the codes of jointly minimum norm.

What row t needs of the past is (Λ_{t−1}⁻¹, Λ_{t−1}⁻¹ η_{t−1}), the `carry` (r, r + 1). A previous
code x₋ that is fixed is the carry (0, x₋); without a past the first row is free.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..linalg.compiling import jit
from ..linalg.small import invert, multiply
from .penalties import Matrix, Quadratic, solve_minimum_norm

# Memory for the forward pass; parts that do not fit are eliminated again, at twice their time.
KEPT_BYTES = 1 << 26
# Grams (q, r, r), or (1, r, r) where all rows share one, and projections (q, r).
Systems = tuple[Matrix, Matrix]


@jit
def eliminate(grams, P, ridge, smooth, has_past, has_future, carry, inverses, eta):
    """Fill Λ⁻¹ and η of each row and update `carry`; the very last Λ is not inverted."""
    q, r = P.shape
    solution = np.empty(r)
    for t in range(q):
        gram = grams[min(t, grams.shape[0] - 1)]
        inverse = inverses[t]
        back = smooth if has_past or t > 0 else 0.0
        on = smooth if has_future or t + 1 < q else 0.0
        for i in range(r):
            for j in range(r):
                inverse[i, j] = gram[i, j] - back * back * carry[i, j]
            inverse[i, i] += ridge + back + on
            eta[t, i] = P[t, i] + back * carry[i, r]
        if on == 0.0:
            return
        invert(inverse, 0.0)
        multiply(inverse, eta[t], solution)
        for i in range(r):
            for j in range(r):
                carry[i, j] = inverse[i, j]
            carry[i, r] = solution[i]


@jit
def substitute(inverses, eta, smooth, x_after, X):
    """Fill the codes from the last row to the first; `x_after` is zero if nothing follows."""
    q, r = X.shape
    for t in range(q - 1, -1, -1):
        for j in range(r):
            eta[t, j] += smooth * (X[t + 1, j] if t + 1 < q else x_after[j])
        multiply(inverses[t], eta[t], X[t])


def chain(
    penalty: Quadratic, parts: Sequence[Callable[[], Systems]], x_before: Matrix | None
) -> list[Matrix]:  # fmt: skip
    """Jointly optimal codes of all parts of one sequence; each part is made when needed.

    The forward pass keeps the carry at the start of each part, and the eliminated systems of the
    last parts up to KEPT_BYTES; the backward pass makes and eliminates the others again.
    """
    carries: list[Matrix] = []
    eliminated: dict[int, tuple[Matrix, Matrix]] = {}
    for index, part in enumerate(parts):
        systems = part()
        if not carries:
            carries.append(_start(systems[1].shape[1], x_before))
        carry = carries[-1].copy()
        done = _eliminate(penalty, systems, index, len(parts), x_before, carry)
        eliminated[index] = done
        if len(eliminated) > max(KEPT_BYTES // done[0].nbytes, 1):
            del eliminated[min(eliminated)]
        carries.append(carry)
    inverses, _ = eliminated[len(parts) - 1]
    inverses[-1] = solve_minimum_norm(inverses[-1], np.eye(len(carries[0])), penalty.smallest)
    codes: list[Matrix] = []
    x_after = np.zeros(carries[0].shape[0])
    for index in reversed(range(len(parts))):
        if index not in eliminated:
            carry = carries[index]
            done = _eliminate(penalty, parts[index](), index, len(parts), x_before, carry)
            eliminated[index] = done
        inverses, eta = eliminated.pop(index)
        X = np.empty_like(eta)
        substitute(inverses, eta, penalty.smooth, x_after, X)
        x_after = X[0].copy()
        codes.append(X)
    return codes[::-1]


def chain_one(penalty: Quadratic, grams: Matrix, P: Matrix, x_before: Matrix | None) -> Matrix:
    """Jointly optimal codes of a sequence of one part."""
    return chain(penalty, [lambda: (grams, P)], x_before)[0]


def _start(r: int, x_before: Matrix | None) -> Matrix:
    carry = np.zeros((r, r + 1))
    if x_before is not None:
        carry[:, r] = x_before
    return carry


def _eliminate(
    penalty: Quadratic, systems: Systems, index: int, n_parts: int, x_before: Matrix | None,
    carry: Matrix,
) -> tuple[Matrix, Matrix]:  # fmt: skip
    grams, P = systems
    inverses, eta = np.empty((*P.shape, P.shape[1])), np.empty_like(P)
    has_past = index > 0 or x_before is not None
    ridge, smooth, _ = penalty
    eliminate(grams, P, ridge, smooth, has_past, index + 1 < n_parts, carry, inverses, eta)
    return inverses, eta
