"""Features that never vary: they leave no residual, and their errors say nothing of others'.

Counted among the degrees of freedom, they would make the noise of the others seem smaller, and with
it more of that noise worth a component, until all is explained and no noise is left.

Which they are is settled for a whole batch, however that is cut: `Model.varied` keeps what has
varied within it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .e_step import Codes
from .state import Matrix, Model, Vector
from .whiten import Whitened

# Beside its size, a difference as small as this is rounding.
SAME = 1e-13
# Entries that a feature must have had to count as constant.
ENOUGH = 10
# Of its varying entries, degrees of freedom of a row at least.
LEAST_FREEDOM = 0.02


def constant_features(rows: Matrix, seen: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Vector]:
    """Which features do not vary as far as they are seen, if others do, and what they are."""
    known = rows if seen.all() else np.where(seen, rows, np.nan)
    lowest, highest = np.fmin.reduce(known, axis=0), np.fmax.reduce(known, axis=0)
    varies = _differs(lowest, highest)
    constant = ~varies & (seen.sum(axis=0) >= ENOUGH) & varies.any()
    return constant, np.where(constant, highest, 0.0)


def with_varied(model: Model, X: Any) -> tuple[Model, NDArray[np.int64]]:
    """The model that knows which features these rows vary; what each row has of constant ones."""
    if not model.constant.any():
        return model, np.zeros(X.shape[0], np.int64)
    if scipy.sparse.issparse(X):
        at, features = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices
        chosen = model.constant[features] & ~np.isnan(X.data)
        at, features, values = at[chosen], features[chosen], X.data[chosen]
    else:
        which = np.flatnonzero(model.constant)
        at, columns = np.nonzero(~np.isnan(X[:, which]))
        features = which[columns]
        values = X[at, features]
    varied = model.varied.copy()
    varied[features[_differs(values, model.level[features])]] = True
    return replace(model, varied=varied), np.bincount(at, minlength=X.shape[0])


def still_constant(model: Model) -> NDArray[np.bool_]:
    """Features that have not varied so far."""
    return model.constant & ~model.varied


def freedom_of(rows: Whitened, codes: Codes, constant: NDArray[np.int64]) -> Vector:
    """Degrees of freedom of each row's residuals, without what it has of constant features."""
    return np.maximum(codes.freedom - constant, LEAST_FREEDOM * (rows.counts - constant))


def _differs(a: Any, b: Any) -> NDArray[np.bool_]:
    """Whether values are apart by more than rounding; NaN never is."""
    with np.errstate(over="ignore", invalid="ignore"):
        apart: NDArray[np.bool_] = np.abs(a - b) > SAME * np.abs(b)
    return apart
