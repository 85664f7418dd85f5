"""Codes of rows for a fixed dictionary, and missing entries filled from them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import Complete, check_finite, dense_with_holes, pieces
from ..linalg.rows import Matrix, check_finite_step, row_squares
from .constraints import feasible
from .missing_batch import missing_codes, row_systems
from .penalties import Quadratic, penalty_of
from .smooth_codes import Systems, chain
from .state import State
from .step import in_units
from .zero_rows import checked_zero_rows

# Rows encoded together; also bounds the (rows, r, r) systems of a smooth sequence.
ROWS = 256
# More of narrow rows, up to this many entries: enough to hide the overhead of a call.
ENTRIES = 1 << 20


@np.errstate(over="ignore", invalid="ignore")  # found, and refused, on the way
def encode(state: State, X: Any) -> Matrix:
    """Codes (n_samples, n_components) of the rows of X.

    With ``smooth > 0`` the rows are consecutive in time and their codes jointly optimal; otherwise
    each row is encoded on its own.
    """
    state, X = feasible(state), in_units(X, state)
    penalty = penalty_of(state)
    zeros = scipy.sparse.issparse(X) and state.config.absent == "zero"
    if isinstance(penalty, Quadratic) and penalty.smooth > 0.0 and X.shape[0] > 0:
        codes = np.concatenate(_chained(state, penalty, X))
        check_finite_step(codes)
        return codes
    codes = np.empty((X.shape[0], state.C.shape[1]))
    if zeros:
        P = (checked_zero_rows(X) @ state.C).astype(np.float64, copy=False)
        codes[:] = penalty.codes(state.G, P)
        check_finite_step(codes)
        return codes
    at = 0
    for piece in pieces(X, max(ROWS, ENTRIES // X.shape[1])):
        if isinstance(piece, Complete):
            part = penalty.codes(state.G, _projected(state, piece))
        else:
            part, _ = missing_codes(penalty, state.C, state.G, piece)
        codes[at : at + len(piece)] = part
        at += len(piece)
    check_finite_step(codes)
    return codes


@np.errstate(over="ignore", invalid="ignore")
def fill(state: State, X: Any) -> NDArray[Any]:
    """The rows of X with missing entries filled; observed entries stay bit for bit.

    Complete rows are only copied: their codes are not needed.
    """
    state = feasible(state)
    if scipy.sparse.issparse(X) and state.config.absent == "zero":
        return np.asarray(checked_zero_rows(X).toarray())
    if scipy.sparse.issparse(X):
        filled = dense_with_holes(X)
        incomplete = np.arange(len(filled))
    else:
        filled = np.array(X)
        length = max(ROWS, ENTRIES // X.shape[1])
        squares = [row_squares(filled[at : at + length]) for at in range(0, len(filled), length)]
        incomplete = np.flatnonzero(~np.isfinite(np.concatenate([np.empty(0), *squares])))
    if state.smooth > 0.0 and len(incomplete) > 0:
        codes = encode(state, X)[incomplete]
    elif len(incomplete) == len(filled):
        codes = encode(state, X)
    else:
        check_finite(filled[incomplete], squares=False)
        codes = encode(state, filled[incomplete])
    C = state.C * state.C.dtype.type(state.scale)
    for at in range(0, len(incomplete), ROWS):
        here = incomplete[at : at + ROWS]
        rows = filled[here]
        known = codes[at : at + ROWS].astype(C.dtype, copy=False) @ C.T
        filled[here] = np.where(np.isnan(rows), known, rows)
    return filled


def _projected(state: State, piece: Complete) -> Matrix:
    """Cᵀy of each row."""
    return (piece.Y @ state.C).astype(np.float64, copy=False)


def _chained(state: State, penalty: Quadratic, X: Any) -> list[Matrix]:
    def part(start: int) -> Systems:
        if scipy.sparse.issparse(X) and state.config.absent == "zero":
            rows = checked_zero_rows(X[start : start + ROWS])
            return state.G[None], (rows @ state.C).astype(np.float64, copy=False)
        (piece,) = pieces(X[start : start + ROWS], ROWS)
        if isinstance(piece, Complete):
            return state.G[None], _projected(state, piece)
        return row_systems(state.C, state.G, piece)[:2]

    starts = range(0, X.shape[0], ROWS)
    parts: list[Callable[[], Systems]] = [partial(part, at) for at in starts]
    return chain(penalty, parts, None)
