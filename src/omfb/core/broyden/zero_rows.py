"""Sparse rows whose absent entries are zeros: text and counts, in the time that their entries take.

Such rows are complete, so blocks of them are steps in reduced space (`block.py`), with

    P = Y C,   N = Y Yᵀ,   C ← C A + YᵀB,   A = I − XᵀB.

With C = D T, where T is r × r, all rows of C change by T ← T A, and D only where some row of the
block has an entry: D ← D + Yᵀ (B T⁻¹). A block of q rows with z entries then costs O(z r + q r²)
instead of O(q m r), and D becomes D T when T is badly conditioned, and at the end of a call.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import UnusableError, canonical, sparse_rows
from ..info import Info
from ..linalg.rows import Matrix, check_finite_step, gram
from .block import Block, ReducedState, after_block, block_length, take_steps
from .mini_batch import batch_space
from .precision import Step, recompute_due
from .state import State

# Largest ‖T‖ ‖T⁻¹‖ / r (Frobenius norms) for which C is stored as D T: rounding of D enters C
# multiplied by it.
LARGEST_CONDITION = {"float64": 1e5, "float32": 1e2}


class SparseDictionary:
    """C = D T, of which a block of sparse rows changes few rows of D."""

    def __init__(self, C: NDArray[Any], mine: bool) -> None:
        self._D, self._mine = C, mine
        self._T, self._is_settled = np.eye(C.shape[1]), True  # T = I

    def project(self, Y: Any) -> tuple[Matrix, Matrix]:
        """P = Y C and N = Y Yᵀ."""
        P = (Y @ self._D).astype(np.float64, copy=False) @ self._T
        wide = Y.astype(np.float64, copy=False)
        return P, (wide @ wide.T).toarray()

    def update(self, block: Block, Y: Any) -> bool:
        """C ← C A + YᵀB; return whether D T was multiplied out."""
        T = self._T - (self._T @ block.X.T) @ block.B
        with np.errstate(all="ignore"):
            try:
                inverse = np.linalg.inv(T)
            except np.linalg.LinAlgError:
                inverse = np.full_like(T, np.inf)
            condition = np.linalg.norm(T) * np.linalg.norm(inverse) / len(T)
        if folds := not condition <= LARGEST_CONDITION[str(self._D.dtype)]:
            self._D, self._mine = self._D @ T.astype(self._D.dtype, copy=False), True
            T = inverse = np.eye(len(T))
        self._T, self._is_settled = T, folds
        self._add(Y, block.B @ inverse)
        return folds

    def update_at_once(self, block: Block, Y: Any) -> None:
        """`update` by a few rows, with T = I: C ← C − (C Xᵀ) B + YᵀB."""
        X, B = (part.astype(self._D.dtype, copy=False) for part in (block.X, block.B))
        self._D, self._mine = self._D - (self._D @ X.T) @ B, True
        self._add(Y, block.B)

    def settled(self) -> NDArray[Any]:
        """C itself."""
        if not self._is_settled:
            self._D = self._D @ self._T.astype(self._D.dtype, copy=False)
            self._T, self._is_settled = np.eye(len(self._T)), True
        return self._D

    def gram(self) -> Matrix:
        """CᵀC."""
        return self._T.T @ gram(self._D) @ self._T

    def _add(self, Y: Any, W: Matrix) -> None:
        """D ← D + YᵀW, where Y has entries."""
        if not self._mine:
            self._D, self._mine = self._D.copy(), True
        touched, column = np.unique(Y.indices, return_inverse=True)
        few = scipy.sparse.csr_array((Y.data, column, Y.indptr), shape=(Y.shape[0], len(touched)))
        self._D[touched] += few.T @ W.astype(self._D.dtype, copy=False)


def checked_zero_rows(X: Any) -> Any:
    """A sparse matrix in canonical form; NaN and infinity are refused."""
    X = canonical(X)
    if np.isnan(X.data).any():
        raise UnusableError(
            "has NaN among the entries of a sparse matrix, of which absent='zero' says that all "
            "entries are known. Give rows with missing entries as an array."
        )
    sparse_rows(X)  # refuses infinity, and squares that overflow
    return X


def learn_zero_rows(state: State, X: Any, reuse: bool) -> Step:
    """Learn from sparse rows whose absent entries are zeros."""
    X = checked_zero_rows(X)
    size, (m, r) = state.config.batch_size, state.C.shape
    length = size if size > 1 else block_length(m, r)
    dictionary = SparseDictionary(state.C, reuse)
    codes, info = np.empty((X.shape[0], r)), Info(0.0, 0.0)
    at = 0
    while at < len(codes):
        free = state.code is None and state.config.smooth > 0.0 and size == 1
        Y = X[at : at + (1 if free else length)]
        P, N = dictionary.project(Y)
        block = _block(state, P, N, free)
        done = len(block.X)
        if done < Y.shape[0]:
            Y, N = Y[:done], N[:done, :done]
        folded = False
        if len(codes) < r:
            dictionary.update_at_once(block, Y)
        elif dictionary.update(block, Y):
            folded = True
        state = after_block(state, block, Y.nnz, 1.0)
        if folded or recompute_due(state.entries_since_gram, m * r):
            state = replace(state, G=dictionary.gram(), entries_since_gram=0)
        codes[at : at + done] = block.X
        info = info.plus(Info(block.residual, float(N.trace())))
        at += done
    C = dictionary.settled()
    check_finite_step(C)
    return replace(state, C=C), codes, info


def _block(state: State, P: Matrix, N: Matrix, free: bool) -> Block:
    if state.config.batch_size > 1:
        return batch_space(state, P, N)
    if free:  # no code comes before the first row
        state = replace(state, config=replace(state.config, smooth=0.0))
    reduced = ReducedState.of(state)
    block = take_steps(reduced, P.copy(), N, 1.0)
    if block is None:
        block = take_steps(reduced, P, N, 1.0, singular=True)
    assert block is not None  # all systems are solved
    return block
