"""Runs of rows that observe the same features: the products around `sequence.py`, in threads.

P = Y C and N = Y Yᵀ are sums over features, and the update C (I − XᵀB) + YᵀB is independent by
feature. So the features are cut into pieces (`threads.py`), and a piece of C is updated with one
block and multiplied with the next one while it is in the cache; the N of the next block is made
while this one is in small space.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..state import Info, State
from .missing import observed_gram
from .sequence import Block, after_block, block_length, small_space
from .shared import Matrix, Step, gram, recompute_due, refreshed
from .threads import Team, Work, team

# Of the dictionary that is changed at a time: what the second cache holds beside its inputs.
SLICE_BYTES = 1 << 18
# Into so many pieces features are cut at most: enough for the threads to even out what they do.
MOST_PIECES = 16


def learn_run(
    state: State, Y: NDArray[Any], features: NDArray[np.int32] | None, reuse: bool
) -> Step:
    """Learn from rows that observe the given features, or all; Y has no others.

    Stops early, after some blocks or before the first, at a block that misses further entries or
    at a row with a singular system: the caller sees from the number of codes how many rows were
    learned from. In place if C may be reused.
    """
    state = refreshed(state)
    length = block_length(state.C.shape[1])
    with team(min(length, len(Y)) * Y.shape[1] * state.C.shape[1]) as helpers:
        if features is None:
            run = Run(state, Dictionary(state.C, reuse, helpers), state.G)
            codes, info = run.learn(Y, length, 2**62)
            return replace(run.state, C=run.dictionary.C, G=run.G), codes, info
        G = np.empty_like(state.G)
        observed_gram(state.C, state.G, features, G)
        run = Run(state, Dictionary(state.C[features], True, helpers), G)
        # The Gram matrix of all features is not at hand to be computed anew on the way.
        codes, info = run.learn(Y, length, 8 * state.C.shape[1])
        C = state.C if reuse else state.C.copy()
        C[features] = run.dictionary.C
        return replace(run.state, C=C, G=state.G + (run.G - G)), codes, info


class Run:
    """C and G of the observed features while blocks of rows go by, and the rest of the state."""

    def __init__(self, state: State, dictionary: "Dictionary", G: Matrix) -> None:
        self.state, self.dictionary, self.G = state, dictionary, G
        self._m = len(dictionary.C)
        self._share = self._m / len(state.C)

    def learn(self, Y: NDArray[Any], length: int, most: int) -> tuple[Matrix, Info]:
        """Learn from block after block, of `most` rows at least; return the rows' codes."""
        codes = [np.empty((0, self.G.shape[1]))]
        residual = energy = 0.0
        at, here = 0, Y[:length]
        N = self.dictionary.squares(here)()
        P = self.dictionary.project(here) if np.isfinite(np.trace(N)) else None
        while P is not None:
            after = Y[at + length : at + 2 * length]
            making = self.dictionary.squares(after)
            try:
                block = small_space(self.state, self.G, P, N, self._share)
            finally:
                N_after = making()
            if block is None:
                break
            done = len(block.X)
            more = done == length and at + done < min(len(Y), most)
            more = more and bool(np.isfinite(np.trace(N_after)))
            P = self.dictionary.update(block.X, block.B, here[:done], after if more else None)
            self._advance(block, done)
            codes.append(block.X)
            residual += block.residual
            energy += float(np.trace(N[:done, :done]))
            at, here, N = at + done, after, N_after
        return np.concatenate(codes), Info(residual, energy)

    def _advance(self, block: Block, done: int) -> None:
        self.G = block.G
        self.state = after_block(self.state, block, done * self._m, self._share)
        due = recompute_due(self.state.drift, self.state.C.size)
        if due and self._m == len(self.state.C):
            self.G = gram(self.dictionary.C)
            self.state = replace(self.state, drift=0)


class Dictionary:
    """C while blocks of rows go by, cut by features into the pieces that threads take."""

    def __init__(self, C: NDArray[Any], mine: bool, helpers: Team) -> None:
        self.C, self._mine, self._team = C, mine, helpers
        self._free: list[NDArray[Any]] = []  # room to work in: to make it anew costs page faults
        m, r = C.shape
        self._width = max(256, SLICE_BYTES // (r * C.itemsize))
        count = min(MOST_PIECES, -(-m // self._width))
        edges = [m * at // count for at in range(count + 1)]
        self._pieces = [slice(*edge) for edge in pairwise(edges)]

    def squares(self, Y: NDArray[Any]) -> Callable[[], Matrix]:
        """Begin to make Y Yᵀ; call what is returned to have it."""
        parts = np.empty((len(self._pieces), len(Y), len(Y)), Y.dtype)

        def task(at: int) -> None:
            part = Y[:, self._pieces[at]]
            np.matmul(part, part.T, out=parts[at])

        return self._summed(self._team.start(task, len(parts) if len(Y) else 0), parts)

    def project(self, Y: NDArray[Any]) -> Matrix:
        """P = Y C."""
        parts = np.empty((len(self._pieces), len(Y), self.C.shape[1]), Y.dtype)

        def task(at: int) -> None:
            piece = self._pieces[at]
            np.matmul(Y[:, piece], self.C[piece], out=parts[at])

        return self._summed(self._team.start(task, len(parts)), parts)()

    def update(
        self, X: Matrix, B: Matrix, Y: NDArray[Any], after: NDArray[Any] | None = None
    ) -> Matrix | None:
        """C ← C (I − XᵀB) + YᵀB, and the P of the block after it."""
        C, r = self.C, self.C.shape[1]
        new = C if self._mine else np.empty_like(C)
        X, B = X.astype(C.dtype, copy=False), B.astype(C.dtype, copy=False)
        A = np.eye(r, dtype=C.dtype) - X.T @ B
        rows = 0 if after is None else len(after)
        parts = np.zeros((len(self._pieces), rows, r), C.dtype)

        def task(at: int) -> None:
            piece = self._pieces[at]
            scratch = self._free.pop() if self._free else np.empty((2, self._width, r), C.dtype)
            kept, change = scratch
            for start in range(piece.start, piece.stop, self._width):
                here = slice(start, min(start + self._width, piece.stop))
                size = here.stop - start
                if len(Y) < r:  # cheaper for so few rows
                    error = (Y[:, here] - X @ C[here].T).T
                    np.add(C[here], np.matmul(error, B, out=change[:size]), out=new[here])
                else:
                    np.matmul(C[here], A, out=kept[:size])
                    np.matmul(Y[:, here].T, B, out=change[:size])
                    np.add(kept[:size], change[:size], out=new[here])
                if after is not None:
                    parts[at] += after[:, here] @ new[here]
            self._free.append(scratch)

        summed = self._summed(self._team.start(task, len(parts)), parts)()
        self.C, self._mine = new, True
        return None if after is None else summed

    @staticmethod
    def _summed(work: Work, parts: NDArray[Any]) -> Callable[[], Matrix]:
        def finish() -> Matrix:
            work.finish()
            if len(parts) == 1:
                return parts[0].astype(np.float64, copy=False)
            return parts.sum(axis=0, dtype=np.float64)  # in the pieces' order

        return finish
