"""The dictionary while blocks of rows go by: the products around `sequence.py`, in threads.

P = Y C and N = Y Yᵀ are sums over features, and the update of C is independent by feature. So the
features are cut into pieces (`threads.py`), and a piece of C is updated with one block while it
meets the next one, whose part of P and N is made while both are in the cache.

A block makes C A + YᵀB of C, with A = I − XᵀB. The product C A is put off: with C = D T,

    T ← T A,   D ← D + YᵀW,   W = B T⁻¹,   P = (Y D) T

where V = B A⁻¹ comes from the gains by a triangular system (`sequence.py`), so that W = V T₋⁻¹ and
T⁻¹ = T₋⁻¹ + XᵀW need no other inverse. Rounding errors of D come into C multiplied by T: before T
is badly conditioned, D becomes D T.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.row_products import add_row_products
from ..linalg.rows import Matrix, gram
from ..linalg.threads import Team
from ..linalg.workspace import Room, aligned
from .block import Block, Gains

# ‖T‖ ‖T⁻¹‖ / r, by Frobenius norms, up to which D T may stand for C. Over the benchmarks' stream,
# the faces and generated rows, float32 ends up to 3.5 times as far from the exact C as without T,
# mostly just as far; up to a condition of 4, 8 times.
LARGEST_CONDITION = 2.0
# Multiply-adds of C A that pay for what it takes in small space to put them off.
WORTH_PUTTING_OFF = 6_000_000
# Multiply-adds of a product that OpenBLAS does at once, without arranging its inputs first.
SMALL_PRODUCT = 1_000_000
# Features of a slice at least, for that; and where r is so large that no product is small.
LEAST_WIDTH, WIDTH = 256, 1024
# Small slices that a call of NumPy goes through: more leave the cache, fewer have threads wait for
# the interpreter's lock.
STACK = 4
# Into so many pieces features are cut at most: enough for the threads to even out what they do.
MOST_PIECES = 16
ROOM = Room()  # for the two products of which the new dictionary is the sum

# Makes D of some features, which are so many slices, anew.
Change = Callable[[slice, int], NDArray[Any]]


class Factor(NamedTuple):
    """T of C = D T, and its inverse."""

    T: Matrix
    inverse: Matrix

    @property
    def is_well_conditioned(self) -> bool:
        """Whether D T may stand for C; not where either is not finite."""
        product = np.linalg.norm(self.T) * np.linalg.norm(self.inverse)
        return bool(product <= LARGEST_CONDITION * len(self.T))


class Dictionary:
    """C = D T, D cut by features into the pieces that threads take."""

    def __init__(self, C: NDArray[Any], mine: bool, length: int, helpers: Team) -> None:
        self._D, self._mine, self._team = C, mine, helpers
        self._factor: Factor | None = None  # T = I
        self._may_put_off = C.size * C.shape[1] >= WORTH_PUTTING_OFF
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
        """C ← C A + YᵀB, where Y are the rows of the block; return P and N of those after it."""
        if len(after) and self._may_put_off and block.gains is not None:
            with np.errstate(all="ignore"):
                W, factor = self._put_off(block.X, block.B, block.gains)
            if factor is not None:
                self._factor = factor
                P, N = self._over_pieces(after, self._mixed(None, W, Y))
                return np.matmul(P, factor.T, out=aligned(P.shape)), N
        return self.update_at_once(block.X, block.B, Y, after)

    def update_at_once(
        self, X: Matrix, B: Matrix, Y: NDArray[Any], after: NDArray[Any]
    ) -> tuple[Matrix, Matrix]:
        """`update`, after which nothing is put off."""
        if len(Y) < X.shape[1] and self._factor is None:
            return self._over_pieces(after, self._corrected(X, B, Y))
        A = complement(X, B)
        T, self._factor = A if self._factor is None else self._factor.T @ A, None
        return self._over_pieces(after, self._mixed(T, B, Y))

    def _put_off(self, X: Matrix, B: Matrix, gains: Gains) -> tuple[Matrix, Factor | None]:
        """W and T after the block; no T if it is badly conditioned, or likely to be."""
        if not gains.kept * LARGEST_CONDITION > 1.0:
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
            kept, added = ROOM.array((2, *D[here].shape), D.dtype)
            if T is None:
                kept = D[here]
            else:
                np.matmul(in_slices(D[here], n), T, out=in_slices(kept, n))
            np.matmul(in_slices(Y[:, here].T, n), B, out=in_slices(added, n))
            return np.add(kept, added, out=new[here])

        return change

    def _corrected(self, X: Matrix, B: Matrix, Y: NDArray[Any]) -> Change:
        """D ← D + (Y − X Dᵀ)ᵀB: cheaper for few rows."""
        D, new = self._D, self._replaced()
        X, B = X.astype(D.dtype, copy=False), B.astype(D.dtype, copy=False)

        def change(here: slice, n: int) -> NDArray[Any]:
            error = (Y[:, here] - X @ D[here].T).T
            return np.add(D[here], error @ B, out=new[here])

        return change

    def _replaced(self) -> NDArray[Any]:
        """Where the new D goes: into the one before, unless that is the caller's."""
        if not self._mine:
            self._D, self._mine = np.empty_like(self._D), True
        return self._D

    def _over_pieces(self, Y: NDArray[Any], change: Change) -> tuple[Matrix, Matrix]:
        """P and N of Y with the D that `change` makes."""
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
    """Pieces of m features, each as ranges of them with the number of slices in a range.

    A feature takes part in a product with so much work.
    """
    width, stack = SMALL_PRODUCT // work, STACK
    if width < LEAST_WIDTH:
        width, stack = WIDTH, 1
    slices = -(-m // width)
    in_piece = max(-(-slices // MOST_PIECES), 2)
    width = -(-m // (-(-slices // in_piece) * in_piece))  # all as wide, but for the last
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
    """A view of rows in n slices of them."""
    return rows.reshape(n, len(rows) // n, -1)


def _sum(parts: NDArray[Any]) -> Matrix:
    """Over the pieces, in their order."""
    return parts.sum(axis=0, dtype=np.float64, out=aligned(parts.shape[1:]))
