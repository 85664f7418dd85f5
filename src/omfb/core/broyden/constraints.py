"""Constraints on the dictionary: nonnegative entries, and atoms of bounded norm.

Every 4r rows the dictionary C* that the rows have led to becomes the nearest one that satisfies
them, in the metric in which it is learned,

    C = argmin tr((C − C*) S (C − C*)ᵀ),

by a few sweeps over the atoms, c_j ← c_j − (C − C*) s_j / s_jj, made nonnegative and cut to the
norm allowed. In between, single entries may be negative; what users see never is (`feasible`).

An atom's norm is bounded where codes are penalised: a smaller code with a larger atom would
otherwise fit as well and cost less.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.compiling import jit
from ..linalg.rows import Matrix, check_finite_step, gram
from ..linalg.small import dot
from ..linalg.threads import in_threads
from .state import State

# Sweeps each time. They start from where the constraints cut C*, which has changed little since the
# last time: on the faces, ten sweeps end with the same error as three.
SWEEPS = 3


@jit
def nonnegative_rows(C, S, sweeps, first, last):
    """Make rows first to last of C nonnegative: without bounds, features are independent."""
    r = C.shape[1]
    c, off = np.empty(r), np.empty(r)  # a row, and how far it is from C*
    for i in range(first, last):
        negative = 0
        for j in range(r):
            value = np.float64(C[i, j])
            if value < 0.0:
                negative += 1
            c[j] = max(value, 0.0)
            off[j] = c[j] - value
        if negative == 0:
            continue
        for _ in range(sweeps):
            for j in range(r):
                if S[j, j] > 0.0:
                    new = max(c[j] - dot(off, S[j]) / S[j, j], 0.0)
                    off[j] += new - c[j]
                    c[j] = new
        for j in range(r):
            C[i, j] = c[j]


@jit
def bounded_atoms(C, off, S, positive, largest, sweeps):
    """Bound the norms of the atoms of C, nonnegative if `positive`; `off` is C − C*, float64."""
    m, r = C.shape
    column = np.empty(m)
    for sweep in range(sweeps + 1):
        for j in range(r):
            if not S[j, j] > 0.0:
                continue
            square = 0.0
            for i in range(m):
                # First of all the cut itself, which the sweeps start from.
                move = dot(off[i], S[j]) / S[j, j] if sweep > 0 else 0.0
                column[i] = C[i, j] - move
                if positive:
                    column[i] = max(column[i], 0.0)
                square += column[i] * column[i]
            factor = largest / np.sqrt(square) if square > largest * largest else 1.0
            for i in range(m):
                new = factor * column[i]
                off[i, j] += new - C[i, j]
                C[i, j] = new


def feasible(state: State) -> State:
    """The state with a dictionary that satisfies its constraints, if any are due."""
    due = state.config.constrains_dictionary and state.rows_since_shrink > 0
    return constrained(state) if due else state


def constrained(state: State) -> State:
    """The state with the nearest dictionary that satisfies its constraints."""
    C = nearest(state.C, state.S, state.config.positive_dict, largest_norm(state))
    G = gram(C)
    check_finite_step(G)
    return replace(
        state, C=C, G=G, entries_since_gram=0, rows_since_shrink=0, entries_since_shrink=0,
        residual_since_shrink=0.0,
    )  # fmt: skip


def largest_norm(state: State) -> float:
    """Largest norm of an atom, in units of the state's scale."""
    return 1.0 / state.scale if state.config.alpha > 0.0 else np.inf


def nearest(C: NDArray[Any], S: Matrix, positive: bool, largest: float) -> NDArray[Any]:
    """The nearest dictionary that satisfies the constraints; C is unchanged."""
    if np.isfinite(largest):
        near = C.astype(np.float64)
        bounded_atoms(near, np.zeros(C.shape), S, positive, largest, SWEEPS)
        return near.astype(C.dtype, copy=False)
    near = C.copy()
    if positive:
        in_threads(
            lambda first, last: nonnegative_rows(near, S, SWEEPS, first, last),
            len(C), SWEEPS * C.size * C.shape[1],
        )  # fmt: skip
    return near


def first_atoms(C: NDArray[Any], scale: float, positive: bool, unit_norm: bool) -> NDArray[Any]:
    """Atoms drawn from data or noise, made to satisfy the constraints."""
    atoms = C.astype(np.float64)
    if positive:
        atoms = np.where((atoms > 0.0).any(axis=0), np.maximum(atoms, 0.0), np.abs(atoms))
    if unit_norm:
        norms = np.linalg.norm(atoms, axis=0) * scale
        atoms /= np.where(norms > 0.0, norms, 1.0)
    return np.ascontiguousarray(atoms, dtype=C.dtype)
