"""Codes of rows for a dictionary that stays as it is, and how much of the rows they explain."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .blocks import Complete, Piece, pieces
from .kernels.batch import shared_codes
from .kernels.chain import Systems, chain
from .kernels.missing_batch import missing_codes, row_systems, residual_info
from .kernels.shared import Matrix, check_finite_step, smallest_pivot
from .state import Info, State
from .step import in_units

# Rows that are coded together; also bounds the (rows, r, r) systems of a smooth sequence.
ROWS = 256


@np.errstate(over="ignore", invalid="ignore")  # found, and refused, on the way
def encode(state: State, X: Any) -> tuple[Matrix, Info]:
    """Codes (n_samples, n_components) of the rows of X, and their residual and total energy.

    Where ``smooth > 0`` the rows are consecutive in time and their codes jointly optimal;
    otherwise each row is coded on its own.
    """
    X = in_units(X, state)
    codes = np.empty((X.shape[0], state.C.shape[1]))
    residual = energy = 0.0
    at = 0
    smooth = state.smooth > 0.0
    chained = iter(_chained(state, X) if smooth and len(codes) else [])
    smallest = smallest_pivot(state.C)
    for piece in pieces(X, ROWS, whole=smooth):
        if smooth or isinstance(piece, Complete):
            grams, P, energies = _systems(state, piece)
            part = next(chained) if smooth else shared_codes(grams[0], P, state.ridge, smallest)
            info = residual_info(grams, P, energies, part)
        else:
            part, info = missing_codes(state.C, state.G, piece, state.ridge, 0.0, None, smallest)
        residual += info.residual
        energy += info.energy
        codes[at : at + len(piece)] = part
        at += len(piece)
    check_finite_step(codes)
    return codes, Info(residual, energy)


def _systems(state: State, piece: Piece) -> tuple[Matrix, Matrix, Matrix]:
    """G_Ω (one for all complete rows), C_Ωᵀy and yᵀy of a piece."""
    if isinstance(piece, Complete):
        P = (piece.Y @ state.C).astype(np.float64, copy=False)
        return state.G[None], P, np.diagonal(piece.N).astype(np.float64)
    return row_systems(state.C, state.G, piece)


def _chained(state: State, X: Any) -> list[Matrix]:
    def part(start: int) -> Systems:
        (piece,) = pieces(X[start : start + ROWS], ROWS, whole=True)
        return _systems(state, piece)[:2]

    parts: list[Callable[[], Systems]] = [partial(part, at) for at in range(0, X.shape[0], ROWS)]
    return chain(parts, state.ridge, state.smooth, None, smallest_pivot(state.C))
