"""Features that the head of the stream did not observe: their units are found when they begin.

What is first observed of such a feature only tells its mean and deviation, at the end of a period;
from then on it is learned as the others are. In units of nothing its values could be anything, and
would spoil the codes of their rows.
"""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from ..linalg.rows import gram
from .constant_features import SAME
from .state import Model

# Entries of a feature from which its units are found.
ENOUGH = 5


def set_aside(model: Model, X: Any) -> tuple[Model, Any]:
    """The model with what X tells of features to come, and X without them."""
    if model.known.all():
        return model, X
    unknown = np.flatnonzero(~model.known)
    values = dense_with_holes(X[:, unknown]).astype(np.float64)
    seen = ~np.isnan(values)
    if not seen.any():
        return model, X
    first = model.first.copy()
    first[:, unknown] = _with(first[:, unknown], values, seen)
    return replace(model, first=first), _without(X, unknown)


def acquainted(model: Model) -> Model:
    """The model to which features of which enough is known by now are known."""
    new = ~model.known & (model.first[0] >= ENOUGH)
    if not new.any():
        return model
    counts, means, squares = model.first[:, new]
    deviations = np.sqrt(squares / (counts - 1.0))
    deviations = np.where(deviations > SAME * np.abs(means), deviations, np.abs(means))
    center, unit, noise = model.center.copy(), model.unit.copy(), model.noise.copy()
    C, errors, seen = model.C.copy(), model.errors.copy(), model.counts.copy()
    center[new] = means if model.config.center else 0.0
    if model.config.scale:
        unit[new] = noise[new] = np.where(deviations > 0.0, deviations, unit[new])
    C[new], errors[:, new], seen[new] = 0.0, 0.0, 0.0
    return replace(
        model, center=center, unit=unit, noise=noise, C=C, G=gram(C), errors=errors, counts=seen,
        known=model.known | new,
    )  # fmt: skip


def unacquainted(part: Model, start: Model) -> Model:
    """A part of what follows a start, without what it has learned of features new to it.

    Parts find units of their own for such a feature, in which nothing adds up. What they observed
    of it first does, and tells units when they are merged.
    """
    new = part.known & ~start.known
    if not new.any():
        return part
    center, unit, noise = part.center.copy(), part.unit.copy(), part.noise.copy()
    C, errors, counts = part.C.copy(), part.errors.copy(), part.counts.copy()
    kept = part.kept / start.kept
    center[new], unit[new], noise[new] = start.center[new], start.unit[new], start.noise[new]
    C[new] = start.C[new] @ np.linalg.solve(start.turn, part.turn)
    errors[:, new], counts[new] = kept * start.errors[:, new], kept * start.counts[new]
    return replace(
        part, center=center, unit=unit, noise=noise, C=C, G=gram(C), errors=errors, counts=counts,
        known=start.known,
    )  # fmt: skip


def _with(first: NDArray[Any], values: NDArray[Any], seen: NDArray[np.bool_]) -> NDArray[Any]:
    """Counts, means and sums of squares about them, with more values."""
    count, mean, squares = first
    more = seen.sum(axis=0)
    total = count + more
    own = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(more, 1)
    spread = np.where(seen, values - own, 0.0)
    apart = np.where(more > 0, own - mean, 0.0)
    share = more / np.maximum(total, 1)
    with np.errstate(over="ignore"):  # squares of huge values count as the largest number
        squares = squares + np.sum(spread**2, axis=0) + (apart * np.sqrt(count * share)) ** 2
    return np.array([total, mean + apart * share, np.minimum(squares, sys.float_info.max)])


def _without(X: Any, unknown: NDArray[np.int64]) -> Any:
    if scipy.sparse.issparse(X):
        X = X.tocsr(copy=True)
        X.data[np.isin(X.indices, unknown)] = np.nan
        return X
    X = np.array(X)
    X[:, unknown] = np.nan
    return X
