"""The dictionary during a run of blocks: the products around `block.py`, in threads.

P = Y C and N = Y Yᵀ are sums over features, and the update of C is independent by feature. So the
features are cut into pieces (`linalg/threads.py`), and a piece of C is updated with one block and
multiplied with the next, for its part of P and N, while both are in the cache.

A block makes C A + YᵀB of C, with A = I − XᵀB. The product C A is deferred: with C = D T,

    T ← T A,   D ← D + YᵀW,   W = B T⁻¹,   P = (Y D) T

where V = B A⁻¹ comes from the gains by a triangular system (`block.py`), so that W = V T₋⁻¹ and
T⁻¹ = T₋⁻¹ + XᵀW need no other inverse. Rounding errors of D enter C multiplied by T, so D becomes
D T before T is badly conditioned.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.row_products import add_row_products
from ..linalg.rows import Matrix, gram
from ..linalg.threads import Team
from ..linalg.workspace import Workspace, aligned
from .block import Block, Gains

# Largest ‖T‖ ‖T⁻¹‖ / r (Frobenius norms) for which C is stored as D T. On the benchmarks' stream,
# the faces and generated rows, float32 then ends at most 3.5 times as far from the exact C as
# without T, and mostly equally far; with a limit of 4, up to 8 times.
LARGEST_CONDITION = 2.0
# Deferring C A costs work in reduced space; from this many multiply-adds on it pays off.
WORTH_DEFERRING = 6_000_000
# OpenBLAS does products of up to this many multiply-adds without packing its inputs first.
SMALL_PRODUCT = 1_000_000
# Fewest features of a slice for small products; features of a slice where r is too large for them.
LEAST_WIDTH, WIDTH = 256, 1024
# Small slices per NumPy call: more leave the cache, fewer make threads wait for the interpreter's
# lock.
STACK = 4
# The features are cut into at most this many pieces, enough to balance the threads' work.
MOST_PIECES = 16
WORKSPACE = Workspace()  # the two products whose sum is the new dictionary

# Computes the new D of a range of features, which consists of the given number of slices.
Change = Callable[[slice, int], NDArray[Any]]


class Factor(NamedTuple):
    """T of C = D T, and its inverse."""

    T: Matrix
    inverse: Matrix

    @property
    def is_well_conditioned(self) -> bool:
        """Whether C may be stored as D T; False where T or its inverse is not finite."""
        product = np.linalg.norm(self.T) * np.linalg.norm(self.inverse)
        return bool(product <= LARGEST_CONDITION * len(self.T))


class Dictionary:
    """C = D T, with D cut by features into pieces for the threads."""

    def __init__(self, C: NDArray[Any], mine: bool, length: int, helpers: Team) -> None:
        self._D, self._mine, self._team = C, mine, helpers
        self._factor: Factor | None = None  # T = I
        self._may_defer = C.size * C.shape[1] >= WORTH_DEFERRING
        self._pieces = list(cut(len(C), C.shape[1] * length))

    def settled(self) -> NDArray[Any]:
        """C itself."""
        if self._factor is not None:
            self._D = self._D @ self._factor.T.astype(self._D.dtype, copy=False)
            self._factor = None
        return self._D

    def gram(self) -> Matrix:
        """CᵀC."""
        G = gram(self._D)
        return G if self._factor is None else self._factor.T.T @ G @ self._factor.T

    def project(self, Y: NDArray[Any]) -> tuple[Matrix, Matrix]:
        """P = Y C and N = Y Yᵀ, the latter from its diagonal upwards alone; before any update."""
        return self._over_pieces(Y, lambda here, n: self._D[here])

    def update(self, block: Block, Y: NDArray[Any], after: NDArray[Any]) -> tuple[Matrix, Matrix]:
        """C ← C A + YᵀB with Y the rows of the block; return P and N of the rows `after` it."""
        if len(after) and self._may_defer and block.gains is not None:
            with np.errstate(all="ignore"):
                W, factor = self._deferred(block.X, block.B, block.gains)
            if factor is not None:
                self._factor = factor
                P, N = self._over_pieces(after, self._mixed(None, W, Y))
                return np.matmul(P, factor.T, out=aligned(P.shape)), N
        return self.update_at_once(block.X, block.B, Y, after)

    def update_at_once(
        self, X: Matrix, B: Matrix, Y: NDArray[Any], after: NDArray[Any]
    ) -> tuple[Matrix, Matrix]:
        """`update`, with nothing deferred afterwards."""
        if len(Y) < X.shape[1] and self._factor is None:
            return self._over_pieces(after, self._corrected(X, B, Y))
        A = complement(X, B)
        T, self._factor = A if self._factor is None else self._factor.T @ A, None
        return self._over_pieces(after, self._mixed(T, B, Y))

    def _deferred(self, X: Matrix, B: Matrix, gains: Gains) -> tuple[Matrix, Factor | None]:
        """W and T after the block; None for T if it is, or is likely to be, badly conditioned."""
        if not gains.mean_factor * LARGEST_CONDITION > 1.0:
            return B, None
        A, V = complement(X, B), gains.towards_the_start()
        if self._factor is None:
            W, factor = V, Factor(A, np.eye(len(A)) + X.T @ V)
        else:
            W = V @ self._factor.inverse
            factor = Factor(self._factor.T @ A, self._factor.inverse + X.T @ W)
        return W, factor if factor.is_well_conditioned else None

    def _mixed(self, T: Matrix | None, B: Matrix, Y: NDArray[Any]) -> Change:
        """D ← D T + YᵀB."""
        D, new = self._D, self._replaced()
        B = B.astype(D.dtype, copy=False)
        T = None if T is None else T.astype(D.dtype, copy=False)

        def change(here: slice, n: int) -> NDArray[Any]:
            mixed, added = WORKSPACE.array((2, *D[here].shape), D.dtype)
            if T is None:
                mixed = D[here]
            else:
                np.matmul(in_slices(D[here], n), T, out=in_slices(mixed, n))
            np.matmul(in_slices(Y[:, here].T, n), B, out=in_slices(added, n))
            return np.add(mixed, added, out=new[here])

        return change

    def _corrected(self, X: Matrix, B: Matrix, Y: NDArray[Any]) -> Change:
        """D ← D + (Y − X Dᵀ)ᵀB, which is cheaper for few rows."""
        D, new = self._D, self._replaced()
        X, B = X.astype(D.dtype, copy=False), B.astype(D.dtype, copy=False)

        def change(here: slice, n: int) -> NDArray[Any]:
            error = (Y[:, here] - X @ D[here].T).T
            return np.add(D[here], error @ B, out=new[here])

        return change

    def _replaced(self) -> NDArray[Any]:
        """The array for the new D: the old one, unless it belongs to the caller."""
        if not self._mine:
            self._D, self._mine = np.empty_like(self._D), True
        return self._D

    def _over_pieces(self, Y: NDArray[Any], change: Change) -> tuple[Matrix, Matrix]:
        """P and N of Y with the D that `change` computes."""
        q, r, dtype = len(Y), self._D.shape[1], self._D.dtype
        P = np.zeros((len(self._pieces), q, r), dtype)
        N = np.zeros((len(self._pieces), q, q))

        def task(at: int) -> None:
            for here, n in self._pieces[at]:
                D = change(here, n)
                if q > 0:
                    slices = in_slices(Y[:, here].T, n).transpose(0, 2, 1)
                    for part in slices @ in_slices(D, n):
                        P[at] += part
                    add_row_products(Y, here, N[at])

        self._team.run(task, len(self._pieces))
        return _sum(P), _sum(N)


def complement(X: Matrix, B: Matrix) -> Matrix:
    """A = I − XᵀB."""
    return np.eye(X.shape[1]) - X.T @ B


def cut(m: int, work: int) -> Iterator[list[tuple[slice, int]]]:
    """Pieces of m features, each a list of ranges with the number of slices in each range.

    `work` is the number of multiply-adds per feature of a product.
    """
    width, stack = SMALL_PRODUCT // work, STACK
    if width < LEAST_WIDTH:
        width, stack = WIDTH, 1
    slices = -(-m // width)
    in_piece = max(-(-slices // MOST_PIECES), 2)
    width = -(-m // (-(-slices // in_piece) * in_piece))  # equal widths, except for the last
    for first in range(0, m, in_piece * width):
        last = min(first + in_piece * width, m)
        whole = first + (last - first) // width * width
        piece = [
            (slice(start, stop), (stop - start) // width)
            for start in range(first, whole, stack * width)
            for stop in [min(start + stack * width, whole)]
        ]
        yield piece + [(slice(whole, last), 1)] * (whole < last)


def in_slices(rows: NDArray[Any], n: int) -> NDArray[Any]:
    """A view of the rows as n slices."""
    return rows.reshape(n, len(rows) // n, -1)


def _sum(parts: NDArray[Any]) -> Matrix:
    """The sum over the pieces, in their order."""
    return parts.sum(axis=0, dtype=np.float64, out=aligned(parts.shape[1:]))
