"""Dense linear algebra of small, symmetric matrices (r × r), compiled."""

import numpy as np

from .compiling import inner_jit, jit

# S holds codes of very different size where the data jump in scale. Pivots of S below this share
# of its diagonal are rounding.
SMALLEST_PRECISION = 1e-15


@inner_jit
def dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@inner_jit
def multiply(M, x, out):
    """out = M x for a small square M; two rows at a time, so that x is loaded half as often."""
    r = x.shape[0]
    for i in range(0, r - 1, 2):
        a, b = M[i], M[i + 1]
        on_a = on_b = 0.0
        for j in range(r):
            on_a += a[j] * x[j]
            on_b += b[j] * x[j]
        out[i] = on_a
        out[i + 1] = on_b
    if r % 2 == 1:
        out[r - 1] = dot(M[r - 1], x)


@jit
def invert(M, smallest):
    """Invert a symmetric positive definite M in place; False if it is numerically singular.

    That is, if what the other rows do not explain of a row is `smallest` of its diagonal entry.
    Such a pivot is raised to that, if that is above zero: a precision matrix is inverted anyway.

    Sweeps one diagonal entry after the other, on the upper triangle: with c the column of the
    pivot, M ← M − c cᵀ / c_p, but for row and column p, which become c / c_p and −1 / c_p. Four
    sweeps share a pass over M, which is what the time goes into. The pivots are Cholesky's.
    """
    r = M.shape[0]
    regular = True
    diagonal = np.empty(r)
    for i in range(r):
        diagonal[i] = M[i, i]
    columns = np.empty((4, r))
    factors = np.empty((4, r))
    for first in range(0, r, 4):
        count = min(4, r - first)
        for s in range(count, 4):
            for i in range(r):
                columns[s, i] = 0.0
            for i in range(r):
                factors[s, i] = 0.0
        for s in range(count):
            least = smallest * diagonal[first + s]
            if not _sweep(M, first + s, columns, factors, s, least):
                if not least > 0.0:
                    return False
                regular = False
        for i in range(r):
            right = M[i, i:]  # loops from zero vectorise
            a, b, c, d = columns[0, i:], columns[1, i:], columns[2, i:], columns[3, i:]
            on_a, on_b, on_c, on_d = factors[0, i], factors[1, i], factors[2, i], factors[3, i]
            for j in range(r - i):
                right[j] -= on_a * a[j] + on_b * b[j] + on_c * c[j] + on_d * d[j]
    for i in range(r):
        for j in range(i, r):
            M[i, j] = -M[i, j]
            M[j, i] = M[i, j]
    return regular


@inner_jit
def _sweep(M, p, columns, factors, s, least):
    """Make column and factor of the s-th sweep of a pass, and write row and column p of M.

    The sweeps before it in the same pass are not yet in M. They are added to this column, and
    then leave row and column p alone.
    """
    column, factor = columns[s], factors[s]
    for i in range(p):
        column[i] = M[i, p]
    for i in range(p, M.shape[0]):
        column[i] = M[p, i]
    for earlier in range(s):
        along = columns[earlier, p]
        for i in range(M.shape[0]):
            column[i] -= factors[earlier, i] * along
        columns[earlier, p] = 0.0
        factors[earlier, p] = 0.0
    regular = column[p] > least  # not where it is NaN
    pivot = column[p] if regular else least
    for i in range(M.shape[0]):
        factor[i] = column[i] / pivot
    factor[p] = -1.0 / pivot
    for i in range(p):
        M[i, p] = factor[i]
    for i in range(p, M.shape[0]):
        M[p, i] = factor[i]
    column[p] = 0.0
    factor[p] = 0.0
    return regular


@jit
def factorise(M, smallest):
    """M = Uᵀ D U in place: D⁻¹ on the diagonal, U above it; False if numerically singular.

    A third of the work of `invert`, with the same pivots, for where one solution is all.
    """
    r = M.shape[0]
    diagonal = np.empty(r)
    for i in range(r):
        diagonal[i] = M[i, i]
    scaled = np.empty((4, r))  # four rows of D U
    for first in range(0, r, 4):
        count = min(4, r - first)
        for s in range(count):
            p = first + s
            row, right = scaled[s, p:], M[p, p:]
            for j in range(r - p):
                row[j] = right[j]
            for earlier in range(s):
                along, above = M[first + earlier, p], scaled[earlier, p:]
                for j in range(r - p):
                    row[j] -= along * above[j]
            if not row[0] > smallest * diagonal[p]:  # also catches NaN
                return False
            inverse = 1.0 / row[0]
            for j in range(r - p):
                right[j] = row[j] * inverse
            right[0] = inverse
        if count < 4:
            return True
        for i in range(first + 4, r):
            right = M[i, i:]
            a, b, c, d = scaled[0, i:], scaled[1, i:], scaled[2, i:], scaled[3, i:]
            on_a, on_b = M[first, i], M[first + 1, i]
            on_c, on_d = M[first + 2, i], M[first + 3, i]
            for j in range(r - i):
                right[j] -= on_a * a[j] + on_b * b[j] + on_c * c[j] + on_d * d[j]
    return True


@jit
def solve(U, x):
    """Solve for the right-hand side x in place, given what `factorise` made."""
    r = x.shape[0]
    for p in range(r):
        along, row, rest = x[p], U[p, p + 1 :], x[p + 1 :]
        for j in range(r - p - 1):
            rest[j] -= along * row[j]
        x[p] = along * U[p, p]
    for p in range(r - 2, -1, -1):
        x[p] -= dot(U[p, p + 1 :], x[p + 1 :])


@inner_jit
def subtract_outer(M, left, down, k, scaled):
    """M ← left M − down k kᵀ.

    down k is written down first: a quotient that is a factor of a product moves into the loop,
    and a division there takes three times as long as all the rest.
    """
    for i in range(k.shape[0]):
        scaled[i] = down * k[i]
    for i in range(k.shape[0]):
        along, row = scaled[i], M[i]
        for j in range(k.shape[0]):
            row[j] = left * row[j] - along * k[j]
