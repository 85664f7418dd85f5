"""Codes of rows for a dictionary that stays as it is, what they explain, and what they fill in."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .blocks import Complete, check_finite, dense_with_holes, pieces
from .kernels.chain import Systems, chain
from .kernels.codes import Quadratic, penalty_of
from .kernels.missing_batch import missing_codes, residual_info, row_systems
from .kernels.shared import Matrix, Rows, check_finite_step, row_squares
from .state import Info, State
from .step import in_units

# Rows that are coded together; also bounds the (rows, r, r) systems of a smooth sequence.
ROWS = 256
# Of narrow rows more, up to so many entries: enough to hide the calls.
ENTRIES = 1 << 20


@np.errstate(over="ignore", invalid="ignore")  # found, and refused, on the way
def encode(state: State, X: Any) -> tuple[Matrix, Info]:
    """Codes (n_samples, n_components) of the rows of X, and their residual and total energy.

    Where ``smooth > 0`` the rows are consecutive in time and their codes jointly optimal;
    otherwise each row is coded on its own.
    """
    X = in_units(X, state)
    codes = np.empty((X.shape[0], state.C.shape[1]))
    penalty = penalty_of(state)
    total = Info(0.0, 0.0)
    at = 0
    chained: Iterator[Matrix] = iter([])
    smooth = isinstance(penalty, Quadratic) and penalty.smooth > 0.0
    if isinstance(penalty, Quadratic) and penalty.smooth > 0.0 and len(codes) > 0:
        chained = iter(_chained(state, penalty, X))
    length = ROWS if smooth else max(ROWS, ENTRIES // X.shape[1])
    for piece in pieces(X, length):
        if smooth or isinstance(piece, Complete):
            grams, P, energies = _systems(state, piece)
            part = next(chained) if smooth else penalty.codes(grams[0], P)
            info = residual_info(grams, P, energies, part)
        else:
            part, info = missing_codes(penalty, state.C, state.G, piece)
        total = total.plus(info)
        codes[at : at + len(piece)] = part
        at += len(piece)
    check_finite_step(codes)
    return codes, total


@np.errstate(over="ignore", invalid="ignore")
def fill(state: State, X: Any) -> NDArray[Any]:
    """The rows of X with their missing entries filled; what is observed stays bit for bit.

    Complete rows are copied and no more: nobody asks for their codes.
    """
    if scipy.sparse.issparse(X):
        filled = dense_with_holes(X)
        incomplete = np.arange(len(filled))
    else:
        filled = np.array(X)
        length = max(ROWS, ENTRIES // X.shape[1])
        squares = [row_squares(filled[at : at + length]) for at in range(0, len(filled), length)]
        incomplete = np.flatnonzero(~np.isfinite(np.concatenate([np.empty(0), *squares])))
    if state.smooth > 0.0 and len(incomplete) > 0:
        codes = encode(state, X)[0][incomplete]
    elif len(incomplete) == len(filled):
        codes = encode(state, X)[0]
    else:
        check_finite(filled[incomplete], squares=False)
        codes = encode(state, filled[incomplete])[0]
    C = state.C * state.C.dtype.type(state.scale)
    for at in range(0, len(incomplete), ROWS):
        here = incomplete[at : at + ROWS]
        rows = filled[here]
        known = codes[at : at + ROWS].astype(C.dtype, copy=False) @ C.T
        filled[here] = np.where(np.isnan(rows), known, rows)
    return filled


def _systems(state: State, piece: Complete | Rows) -> tuple[Matrix, Matrix, Matrix]:
    """G_Ω (one for all complete rows), C_Ωᵀy and yᵀy of a piece."""
    if isinstance(piece, Complete):
        P = (piece.Y @ state.C).astype(np.float64, copy=False)
        return state.G[None], P, piece.squares
    return row_systems(state.C, state.G, piece)


def _chained(state: State, penalty: Quadratic, X: Any) -> list[Matrix]:
    def part(start: int) -> Systems:
        (piece,) = pieces(X[start : start + ROWS], ROWS)
        return _systems(state, piece)[:2]

    starts = range(0, X.shape[0], ROWS)
    parts: list[Callable[[], Systems]] = [partial(part, at) for at in starts]
    return chain(penalty, parts, None)
