"""The first dictionary: rows of the data, uniform noise, or an array from the caller."""

import math
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import canonical, check_finite, dense_with_holes
from .state import MOSTLY_OBSERVED

# Where most entries are missing, start from noise of this many times the data's scale: a start at
# full scale predicts ratings worse.
SPARSE_INIT_SCALE = 0.01
# A row counts as independent of the previous ones if this share of its energy is new.
NEW_ENERGY = 1e-7
# Outside these powers of two, squares of the data come near the ends of the type's range.
SAFE_EXPONENT = {"float64": 200, "float32": 40}


def window_length(n_components: int) -> int:
    """Number of rows at the head of the stream from which the first atoms are drawn."""
    return 2 * n_components


def first_dictionary(
    X: Any, n_components: int, init: str | NDArray[Any], seed: int | None, absent_zero: bool = False
) -> tuple[NDArray[Any], float]:
    """C of shape (n_features, n_components), in units of a power of two, and that power.

    Absent entries of a sparse X are missing or, with `absent_zero`, zeros.
    """
    rng = np.random.default_rng(seed)
    head = X[: window_length(n_components)]
    observed = canonical(head).data if scipy.sparse.issparse(head) else head.ravel()
    largest = float(np.max(np.abs(observed), initial=0.0))
    holes = not math.isfinite(largest)
    if holes:
        observed = observed[~np.isnan(observed)]
        check_finite(observed[None], squares=False)
        largest = float(np.max(np.abs(observed), initial=0.0))
    scale = scale_of(largest, observed.dtype)
    shape = (X.shape[1], n_components)
    if not isinstance(init, str):
        C = np.asarray(init, dtype=np.float64).T / scale
    elif init == "random":
        C = rng.random(shape)
    elif absent_zero and scipy.sparse.issparse(head):
        C = _atoms_of_zero_rows(head, scale, n_components, rng)
    elif observed.size < MOSTLY_OBSERVED * head.shape[0] * head.shape[1]:
        C = SPARSE_INIT_SCALE * _size(observed, scale) * rng.standard_normal(shape)
    else:
        head = dense_with_holes(head)
        rows = _filled(head, scale)
        atoms = rows[independent_rows(rows @ rows.T, n_components, rng)]
        # Atoms 1/√r the size of a row give codes of unit variance. Then λ is in observations: the
        # first dictionary weighs as much as λ of them.
        if len(atoms) < n_components:
            noise = rng.standard_normal((n_components - len(atoms), X.shape[1]))
            atoms = np.concatenate([atoms, _size(observed, scale) * noise])
        C = np.ascontiguousarray((atoms / np.sqrt(n_components)).astype(X.dtype).T)
        if holes:
            C[np.isnan(head).all(axis=0)] = 0.0  # features not observed yet
    return np.ascontiguousarray(C, dtype=X.dtype), scale


def _atoms_of_zero_rows(
    head: Any, scale: float, n_components: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Atoms as of complete rows, with few sparse rows made dense: C of shape (m, r)."""
    rows = canonical(head).astype(np.float64) / scale
    atoms = rows[independent_rows((rows @ rows.T).toarray(), n_components, rng)].toarray()
    if len(atoms) < n_components:
        size = np.sqrt(rows.power(2).sum() / (rows.shape[0] * rows.shape[1])) or 1.0
        noise = rng.standard_normal((n_components - len(atoms), rows.shape[1]))
        atoms = np.concatenate([atoms, size * noise])
    made: NDArray[Any] = (atoms / np.sqrt(n_components)).T
    return made


def _size(observed: NDArray[Any], scale: float) -> float:
    """Root mean square of the observed entries, in units of the scale; 1 if all are zero."""
    if not observed.any():
        return 1.0
    return float(np.sqrt(np.mean((observed.astype(np.float64) / scale) ** 2)))


def scale_of(largest: float, dtype: np.dtype[Any]) -> float:
    """The power of two to divide by, 1 unless the data are extremely large or small."""
    exponent = math.frexp(largest)[1]
    if abs(exponent) <= SAFE_EXPONENT[str(dtype)]:
        return 1.0
    most = np.finfo(dtype).maxexp - 2  # so that its inverse is a normal number, too
    return math.ldexp(1.0, max(-most, min(exponent, most)))


def _filled(head: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """The rows as float64, each missing entry replaced by its feature's mean."""
    rows = head.astype(np.float64)
    if scale != 1.0:
        rows /= scale
    holes = np.isnan(rows)
    if not holes.any():
        return rows
    counts = np.maximum(np.count_nonzero(~holes, axis=0), 1)
    means = np.where(holes, 0.0, rows).sum(axis=0) / counts
    return np.where(holes, means, rows)


# Squares below this have lost digits: such a row counts as zero.
LEAST_SQUARE = 1e-290


def independent_rows(
    products: NDArray[np.float64], most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Up to `most` rows, drawn at random, none of which is (nearly) a combination of the others.

    `products` holds the inner products of all rows.
    """
    order = rng.permutation(len(products))
    order = order[np.diagonal(products)[order] > LEAST_SQUARE]
    norms = np.sqrt(np.diagonal(products)[order])
    cosines = products[np.ix_(order, order)] / np.outer(norms, norms)
    # Cholesky's diagonal is the new part of a row; the jitter carries it past dependent rows.
    jitter = 1e-2 * NEW_ENERGY * np.eye(len(order))
    new = np.diagonal(np.linalg.cholesky(cosines + jitter)) ** 2
    chosen: NDArray[np.intp] = order[new > NEW_ENERGY][:most]
    return chosen
