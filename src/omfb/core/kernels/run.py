"""Runs of rows that observe the same features: the products around `sequence.py`, in threads.

P = Y C and N = Y Yᵀ are sums over features, and the update C (I − XᵀB) + YᵀB is independent by
feature. So the features are cut into pieces (`threads.py`), and a piece of C is updated with one
block while it meets the next one, whose part of P and N is made while both are in the cache.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..state import Info, State
from .observed import observed_gram
from .room import Room, aligned
from .row_products import add_row_products
from .sequence import Block, Small, block_length, small_space
from .shared import Matrix, Step, check_finite_step, gram, kept_after, recompute_due, refreshed
from .threads import Team, team

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


def learn_run(
    state: State, Y: NDArray[Any], features: NDArray[np.int32] | None, reuse: bool
) -> Step:
    """Learn from rows that observe the given features, or all; Y has no others.

    Stops early, after some blocks or before the first, at a block that misses further entries or
    at a row with a singular system: the caller sees from the number of codes how many rows were
    learned from. In place if C may be reused.
    """
    m, r = Y.shape[1], state.C.shape[1]
    length = block_length(m, r)
    with team(min(length, len(Y)) * m * r) as helpers:
        state = refreshed(state)
        if features is None:
            return Run(state, state.C, reuse, length, helpers).learn(Y, 2**62)
        G = np.empty_like(state.G)
        observed_gram(state.C, state.G, features, G)
        run = Run(replace(state, G=G), state.C[features], True, length, helpers)
        # The Gram matrix of all features is not at hand to be computed anew on the way.
        learned, codes, info = run.learn(Y, 8 * r)
        C = state.C if reuse else state.C.copy()
        C[features] = learned.C
        return replace(learned, C=C, G=state.G + (learned.G - G)), codes, info


class Run:
    """Blocks of rows that go by: C of the features they observe, whose G the state has."""

    def __init__(
        self, state: State, C: NDArray[Any], mine: bool, length: int, helpers: Team
    ) -> None:
        self._state, self._small, self._length = state, Small.of(state), length
        self._dictionary = Dictionary(C, mine, length, helpers)
        self._whole, self._share = len(C) == len(state.C), len(C) / len(state.C)
        self._drift = state.drift

    def learn(self, Y: NDArray[Any], most: int) -> Step:
        """Learn from block after block, of `most` rows at least."""
        codes = [np.empty((0, self._small.G.shape[1]))]
        residual = energy = 0.0
        at, here = 0, Y[: self._length]
        P, N = self._dictionary.project(here)
        while math.isfinite(squares := float(N.trace())):
            block = small_space(self._small, P, N, self._share)
            if block is None:
                break
            done = len(block.X)
            residual += block.residual
            energy += squares if done == len(N) else float(N[:done, :done].trace())
            codes.append(block.X)
            at += done
            goes_on = done == self._length and at < most
            after = Y[at : at + self._length] if goes_on else Y[:0]
            P, N = self._dictionary.update(block.X, block.B, here[:done], after)
            self._advance(block, here[:done].size)
            if not len(after):
                break
            here = after
        return self._learned(at), np.concatenate(codes), Info(residual, energy)

    def _advance(self, block: Block, entries: int) -> None:
        self._small = self._small.after(block)
        self._drift += entries
        if self._whole and recompute_due(self._drift, self._state.C.size):
            self._small = self._small._replace(G=gram(self._dictionary.C))
            self._drift = 0

    def _learned(self, rows: int) -> State:
        """The state after so many rows, with the C of the features that they observe."""
        small, C = self._small, self._dictionary.C
        if C.dtype == np.float32:  # it overflows long before G does
            check_finite_step(C)
        return replace(
            self._state, C=C, G=small.G, S=small.S, code=small.code,
            n_seen=self._state.n_seen + rows, drift=self._drift,
            kept=kept_after(self._state, rows, self._share),
        )  # fmt: skip


class Dictionary:
    """C while blocks of rows go by, cut by features into the pieces that threads take."""

    def __init__(self, C: NDArray[Any], mine: bool, length: int, helpers: Team) -> None:
        self.C, self._mine, self._team = C, mine, helpers
        self._pieces = list(cut(len(C), C.shape[1] * length))

    def project(self, Y: NDArray[Any]) -> tuple[Matrix, Matrix]:
        """P = Y C and N = Y Yᵀ, the latter from its diagonal upwards alone."""
        return self._over_pieces(Y, lambda here, n: self.C[here])

    def update(
        self, X: Matrix, B: Matrix, Y: NDArray[Any], after: NDArray[Any]
    ) -> tuple[Matrix, Matrix]:
        """C ← C (I − XᵀB) + YᵀB; return P and N of the block after it, as `project` does."""
        C = self.C
        new = C if self._mine else np.empty_like(C)
        X, B = X.astype(C.dtype, copy=False), B.astype(C.dtype, copy=False)
        A = np.eye(C.shape[1], dtype=C.dtype) - X.T @ B

        def updated(here: slice, n: int) -> NDArray[Any]:
            if len(Y) < len(A):  # cheaper for so few rows
                error = (Y[:, here] - X @ C[here].T).T
                return np.add(C[here], error @ B, out=new[here])
            kept, change = ROOM.array((2, *C[here].shape), C.dtype)
            np.matmul(in_slices(C[here], n), A, out=in_slices(kept, n))
            np.matmul(in_slices(Y[:, here].T, n), B, out=in_slices(change, n))
            return np.add(kept, change, out=new[here])

        sums = self._over_pieces(after, updated)
        self.C, self._mine = new, True
        return sums

    def _over_pieces(
        self, Y: NDArray[Any], dictionary: Callable[[slice, int], NDArray[Any]]
    ) -> tuple[Matrix, Matrix]:
        """P and N of Y, where `dictionary` makes C of some features that are so many slices."""
        q, r, dtype = len(Y), self.C.shape[1], self.C.dtype
        P = np.zeros((len(self._pieces), q, r), dtype)
        N = np.zeros((len(self._pieces), q, q))

        def task(at: int) -> None:
            for here, n in self._pieces[at]:
                C = dictionary(here, n)
                if q > 0:
                    slices = in_slices(Y[:, here].T, n).transpose(0, 2, 1)
                    P[at] += (slices @ in_slices(C, n)).sum(axis=0)
                    add_row_products(Y, here, N[at])

        self._team.run(task, len(self._pieces))
        return _sum(P), _sum(N)


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
