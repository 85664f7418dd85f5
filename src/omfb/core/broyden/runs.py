"""Runs of rows that observe the same features: small space and dictionary, block after block."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..info import Info
from ..linalg.observed import observed_gram
from ..linalg.rows import check_finite_step
from ..linalg.threads import Team, team
from .block import Block, Small, block_length, small_space
from .dictionary import Dictionary
from .precision import Step, kept_after, recompute_due, refreshed
from .state import State


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
            P, N = self._dictionary.update(block, here[:done], after)
            self._advance(block, here[:done].size)
            if not len(after):
                break
            here = after
        return self._learned(at), np.concatenate(codes), Info(residual, energy)

    def _advance(self, block: Block, entries: int) -> None:
        self._small = self._small.after(block)
        self._drift += entries
        if self._whole and recompute_due(self._drift, self._state.C.size):
            self._small = self._small._replace(G=self._dictionary.gram())
            self._drift = 0

    def _learned(self, rows: int) -> State:
        """The state after so many rows, with the C of the features that they observe."""
        small, C = self._small, self._dictionary.settled()
        if C.dtype == np.float32:  # it overflows long before G does
            check_finite_step(C)
        return replace(
            self._state, C=C, G=small.G, S=small.S, code=small.code,
            n_seen=self._state.n_seen + rows, drift=self._drift,
            kept=kept_after(self._state, rows, self._share),
        )  # fmt: skip
