"""Rows in the model's units: the noise is 1, and what is missing stays missing."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import canonical, check_finite, sparse_rows
from ..kernels.entries import whiten
from ..kernels.missing import compress
from ..kernels.shared import Rows
from .state import Model


class Whitened(NamedTuple):
    """Rows in units of the noise: all of them as an array where none misses an entry."""

    full: NDArray[Any] | None
    rows: Rows | None
    shares: NDArray[np.float64]
    """Of the features, how many each row observes."""

    def __len__(self) -> int:
        return len(self.shares)

    def as_rows(self) -> Rows:
        """The observed entries, row by row."""
        if self.rows is not None:
            return self.rows
        assert self.full is not None
        return Rows(*compress(self.full))


def whitened(model: Model, X: Any) -> Whitened:
    """The rows of an array or sparse matrix in units of the model's noise."""
    m, dtype = len(model.C), model.C.dtype
    inverse = 1.0 / model.noise
    if scipy.sparse.issparse(X):
        starts, features, values = sparse_rows(canonical(X))
        values = (values.astype(np.float64) - model.center[features]) * inverse[features]
        check_finite(values[None])
        values = values.astype(dtype, copy=False)
        return Whitened(None, Rows(starts, features, values), np.diff(starts) / m)
    Y = np.ascontiguousarray(X)
    Y = Y if Y.flags.writeable else Y.copy()  # read-only is a type of its own, compiled again
    out, counts = np.empty(Y.shape, dtype), np.empty(len(Y), np.int64)
    if not whiten(Y, model.center, inverse, out, counts):
        check_finite(Y)
        raise ValueError(
            "X contains values too large beside what the model has learned. Rescale X, or fit a "
            "new model to data of this size."
        )
    if len(counts) == 0 or counts.min() == m:
        return Whitened(out, None, counts / m)
    return Whitened(None, Rows(*compress(out)), counts / m)


def by_feature(rows: Rows, n_features: int) -> Rows:
    """The same entries feature by feature: which rows observe each, and what."""
    matrix = scipy.sparse.csr_array(
        (rows.values, rows.features, rows.starts), shape=(len(rows), n_features)
    ).tocsc()
    starts = matrix.indptr.astype(np.int64)
    return Rows(starts, matrix.indices.astype(np.int32, copy=False), matrix.data)
