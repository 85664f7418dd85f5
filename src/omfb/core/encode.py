"""Codes of rows for a dictionary that stays as it is, and how much of the rows they explain."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .blocks import Complete, pieces
from .kernels.chain import Systems, chain
from .kernels.codes import Quadratic, penalty_of
from .kernels.missing_batch import missing_codes, residual_info, row_systems
from .kernels.shared import Matrix, Rows, check_finite_step
from .state import Info, State
from .step import in_units

# Entries of the rows that are coded together, and the fewest rows: enough to hide the calls.
ENTRIES = 1 << 20
FEWEST_ROWS = 256
# Rows of a smooth sequence that are coded together: bounds their systems (rows, r, r).
SMOOTH_ROWS = 256


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
    smooth = isinstance(penalty, Quadratic) and penalty.smooth > 0.0
    chained = iter(_chained(state, penalty, X) if smooth and len(codes) else [])
    length = SMOOTH_ROWS if smooth else max(FEWEST_ROWS, ENTRIES // X.shape[1])
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


def _systems(state: State, piece: Complete | Rows) -> tuple[Matrix, Matrix, Matrix]:
    """G_Ω (one for all complete rows), C_Ωᵀy and yᵀy of a piece."""
    if isinstance(piece, Complete):
        P = (piece.Y @ state.C).astype(np.float64, copy=False)
        return state.G[None], P, piece.squares
    return row_systems(state.C, state.G, piece)


def _chained(state: State, penalty: Quadratic, X: Any) -> list[Matrix]:
    def part(start: int) -> Systems:
        (piece,) = pieces(X[start : start + SMOOTH_ROWS], SMOOTH_ROWS)
        return _systems(state, piece)[:2]

    starts = range(0, X.shape[0], SMOOTH_ROWS)
    parts: list[Callable[[], Systems]] = [partial(part, at) for at in starts]
    return chain(penalty, parts, None)
