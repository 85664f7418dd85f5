"""Runs of rows that observe the same features, block by block: reduced space and dictionary."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..info import Info
from ..linalg.observed import observed_gram
from ..linalg.rows import check_finite_step
from ..linalg.threads import Team, team
from .block import Block, ReducedState, block_length, take_steps
from .dictionary import Dictionary
from .precision import Step, recompute_due, refreshed, start_weight_after
from .state import State


def learn_run(
    state: State, Y: NDArray[Any], features: NDArray[np.int32] | None, reuse: bool
) -> Step:
    """Learn from rows that observe the given features, or all; Y has only these columns.

    Stops early, after some blocks or before the first, at a block with more missing entries or at
    a row with a singular system; the number of codes is the number of rows learned. With `reuse`,
    in place.
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
        # Short enough that G need not be recomputed on the way, which would take all features.
        learned, codes, info = run.learn(Y, 8 * r)
        C = state.C if reuse else state.C.copy()
        C[features] = learned.C
        return replace(learned, C=C, G=state.G + (learned.G - G)), codes, info


class Run:
    """Consecutive blocks of rows, with the C of the features they observe and its G."""

    def __init__(
        self, state: State, C: NDArray[Any], mine: bool, length: int, helpers: Team
    ) -> None:
        self._state, self._reduced, self._length = state, ReducedState.of(state), length
        self._dictionary = Dictionary(C, mine, length, helpers)
        self._all_features, self._share = len(C) == len(state.C), len(C) / len(state.C)
        self._entries_since_gram = state.entries_since_gram

    def learn(self, Y: NDArray[Any], most: int) -> Step:
        """Learn block by block, until `most` rows or more are learned."""
        codes = [np.empty((0, self._reduced.G.shape[1]))]
        residual = energy = 0.0
        at, here = 0, Y[: self._length]
        P, N = self._dictionary.project(here)
        while math.isfinite(squares := float(N.trace())):
            block = take_steps(self._reduced, P, N, self._share)
            if block is None:
                break
            done = len(block.X)
            residual += block.residual
            energy += squares if done == len(N) else float(N[:done, :done].trace())
            codes.append(block.X)
            at += done
            goes_on = done == self._length and at < most
            after = Y[at : at + self._length] if goes_on else Y[:0]
            P, N = self._dictionary.update(block, here[:done], after)
            self._advance(block, here[:done].size)
            if not len(after):
                break
            here = after
        return self._learned(at), np.concatenate(codes), Info(residual, energy)

    def _advance(self, block: Block, entries: int) -> None:
        self._reduced = self._reduced.after(block)
        self._entries_since_gram += entries
        if self._all_features and recompute_due(self._entries_since_gram, self._state.C.size):
            self._reduced = self._reduced._replace(G=self._dictionary.gram())
            self._entries_since_gram = 0

    def _learned(self, rows: int) -> State:
        """The state after these rows, with the C of the features that they observe."""
        reduced, C = self._reduced, self._dictionary.settled()
        if C.dtype == np.float32:  # float32 overflows long before G does
            check_finite_step(C)
        return replace(
            self._state, C=C, G=reduced.G, S=reduced.S, code=reduced.code,
            n_seen=self._state.n_seen + rows, entries_since_gram=self._entries_since_gram,
            start_weight=start_weight_after(self._state, rows, self._share),
        )  # fmt: skip
