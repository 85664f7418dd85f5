"""Hostile sparse matrices: of every kind, with indices that lead out of them."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .arrays import numbers
from .models import WIDTH
from .using import use

KINDS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
OUTSIDE = [-1, -(2**31), WIDTH, 10**6, 2**31 - 1, 2**62]


def try_sparse(rng: np.random.Generator, folder: Path) -> list[str]:
    """Use a hostile sparse matrix."""
    return use(rng, hostile_sparse(rng))


def hostile_sparse(rng: np.random.Generator) -> Any:
    """A sparse matrix or array; half of them with something wrong inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers are cast to types that cannot hold them
        matrix = _made(rng)
        return spoiled(rng, matrix) if rng.random() < 0.5 else matrix


def _made(rng: np.random.Generator) -> Any:
    n = int(rng.choice([0, 1, 2, 9, 40]))
    m = WIDTH if rng.random() < 0.85 else int(rng.choice([1, 5, 7, 10**5]))
    width = min(m, 50)
    X = np.where(rng.random((n, width)) < rng.random(), np.nan_to_num(numbers(rng, (n, width))), 0)
    rows, columns = np.nonzero(X)
    make = scipy.sparse.coo_array if rng.random() < 0.5 else scipy.sparse.coo_matrix
    matrix = make((X[rows, columns], (rows, columns)), shape=(n, m))
    if rng.random() < 0.2:
        types = ["f4", "i1", "i8", "?", "c16", "g", "u8"]
        matrix = matrix.astype(types[rng.integers(len(types))])
    kind = KINDS[rng.integers(len(KINDS) if m <= 50 else 1)]
    return matrix.asformat(kind)


def spoiled(rng: np.random.Generator, matrix: Any) -> Any:
    """The matrix with one of its parts changed."""
    parts = [name for name in ("data", "indices", "indptr", "row", "col") if hasattr(matrix, name)]
    if not parts:
        return matrix
    name = parts[rng.integers(len(parts))]
    try:
        part = np.array(getattr(matrix, name))
        kind = rng.integers(6)
        if kind == 0:
            part = part[: len(part) // 2]
        elif kind == 1:
            part = np.concatenate([part, part])
        elif kind == 2:
            part = part[::-1].copy()
        elif kind == 3:
            part = part.astype(["f8", "i8", "u1", "O", "i2"][rng.integers(5)])
        elif part.size and part.dtype != object:
            wrong = np.array(OUTSIDE[rng.integers(len(OUTSIDE))]).astype(part.dtype)
            part.flat[rng.integers(part.size)] = np.nan if name == "data" and kind == 4 else wrong
        setattr(matrix, name, part)
    except (AttributeError, ValueError, TypeError, OverflowError):
        pass  # SciPy itself does not allow it
    return matrix
