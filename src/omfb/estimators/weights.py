"""Sample weights: a row of weight w counts as w rows that are the same.

The objective of the paper's rule is homogeneous: with y' = √w y and x' = √w x it is w times that of
y and x. So weighted rows are rows multiplied by √w.
"""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_sample_weight

from ..core.broyden.config import BroydenConfig


def weighted_rows(X: Any, sample_weight: Any, config: BroydenConfig) -> Any:
    """The rows of X multiplied by the roots of their weights, without rows of weight zero.

    Parameters
    ----------
    X : array-like, sparse matrix or pandas frame of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,) or number
    config : BroydenConfig
        What is not homogeneous is refused.
    """
    if config.alpha * config.l1_ratio > 0.0 or config.smooth > 0.0:
        name = "smooth" if config.smooth > 0.0 else "alpha"
        raise ValueError(
            f"sample_weight cannot be used with {name}={getattr(config, name)!r}: drop one of them."
        )
    at_hand = scipy.sparse.issparse(X) or hasattr(X, "__array__")
    if (not at_hand or hasattr(X, "__dask_graph__")) and not isinstance(X, list | tuple):
        raise TypeError(
            f"sample_weight needs rows at hand, but X is {type(X).__name__}: give an array, a "
            f"pandas frame or a sparse matrix."
        )
    X = X if hasattr(X, "ndim") else np.asarray(X)
    if X.ndim != 2:
        return X  # refused by name where rows are checked
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    kept = np.flatnonzero(weights)
    if len(kept) == 0:
        raise ValueError("sample_weight is zero for all rows: there is nothing to learn from.")
    kind = X.dtype if getattr(X, "dtype", None) == np.float32 else np.float64
    roots = np.sqrt(weights[kept]).astype(kind)
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(roots) @ X.tocsr()[kept])
    if hasattr(X, "iloc"):
        return X.iloc[kept].mul(roots, axis=0)
    return np.asarray(X)[kept] * roots[:, None]
