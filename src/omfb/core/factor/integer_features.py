"""Features that hold whole numbers only, as far as they were observed."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .state import Matrix, Model


def whole_features(rows: Matrix, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which features are integers as far as they are seen."""
    whole = ~_have_fractions(rows[:8], seen[:8])  # most that are not show it at once
    whole[whole] = ~_have_fractions(rows[:, whole], seen[:, whole])
    return whole


def with_fractions(model: Model, X: Any) -> Model:
    """The model that knows which features hold fractions in these rows."""
    which = np.flatnonzero(model.whole)
    if len(which) == 0:
        return model
    whole = model.whole.copy()
    if scipy.sparse.issparse(X):
        whole[X.indices[_is_fraction(X.data)]] = False
    else:
        rows = X[:, which]
        whole[which] = ~_have_fractions(rows, ~np.isnan(rows))
    return replace(model, whole=whole)


def _have_fractions(rows: Matrix, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray((seen & _is_fraction(rows)).any(axis=0))


def _is_fraction(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are between whole numbers; what is missing is not."""
    fractions: NDArray[np.bool_] = ~((np.round(values) == values) | np.isnan(values))
    return fractions
