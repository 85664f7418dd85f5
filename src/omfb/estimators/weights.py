"""Weights of rows and entries, as users give them.

A row of weight w counts as w rows that are the same (`sample_weight`). The objective of the paper's
rule is homogeneous: with y' = √w y and x' = √w x it is w times that of y and x. So there, weighted
rows are rows multiplied by √w. The factor model has them in its sums (`WeightedRows`), and weights
of entries as well (`entry_weight`): the noise of an entry of weight w has the variance σ² / w.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from ..core.blocks import canonical
from ..core.broyden.config import BroydenConfig
from ..core.weighted import ALLOWED, WeightedRows, aligned, are_weights
from .frames import is_frame
from .rows import are_named_rows, has_names, is_row

NO_ROWS = "sample_weight is zero for all rows: there is nothing to learn from."


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
    _check_at_hand(X, "sample_weight", by_name=False)
    X = X if hasattr(X, "ndim") else np.asarray(X)
    if X.ndim != 2 or getattr(X.dtype if hasattr(X, "dtype") else None, "kind", "f") not in "fiub":
        return X  # refused by name where rows are checked
    weights = _row_weights(sample_weight, X)
    kept = np.flatnonzero(weights)
    kind = X.dtype if getattr(X, "dtype", None) == np.float32 else np.float64
    roots = np.sqrt(weights[kept]).astype(kind)
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(roots) @ X.tocsr()[kept])
    if hasattr(X, "iloc"):
        return X.iloc[kept].mul(roots, axis=0)
    return np.asarray(X)[kept] * roots[:, None]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the rows that are learned from or used, and of their entries.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Above zero.
    entries : array-like, frame or sparse matrix of shape (n, n_columns), or None
        As the user gave them.
    """

    rows: NDArray[np.float64]
    entries: Any = None

    def of(self, rows: Any, names: list[str] | None, columns: list[Any] | None) -> WeightedRows:
        """Rows as a learner takes them, with these weights; entries of weight zero are missing.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, n_features)
        names : list of str or None
            The features.
        columns : list or None
            All columns of the frame that the rows come from.
        """
        if scipy.sparse.issparse(rows):
            rows = canonical(rows)
        if self.entries is None:
            return WeightedRows(rows, self.rows)
        entries = aligned(self._of_features(rows, names, columns), rows)
        sparse = scipy.sparse.issparse(rows)
        weights, values = (entries.data, rows.data) if sparse else (entries, rows)
        observed = ~np.isnan(values)
        _check_range("entry_weight", weights[observed])
        used = observed & (weights > 0.0)
        if sparse:
            entries = entries.copy()
            entries.data = np.where(used, weights, 1.0)
            rows = rows.copy()
            rows.data = np.where(used, values, np.nan).astype(values.dtype)
        else:
            entries = np.where(used, weights, 1.0)
            rows = np.where(used, values, np.nan).astype(values.dtype)
        return WeightedRows(rows, self.rows, entries)

    def _of_features(self, rows: Any, names: list[str] | None, columns: list[Any] | None) -> Any:
        """The weights of the features' entries: an array or a sparse matrix."""
        given, wanted = self.entries, rows.shape
        if is_frame(given) and names is not None and set(names) <= set(given.columns):
            given = given[names]
        elif columns is not None and names is not None and len(columns) == given.shape[1]:
            at = [columns.index(name) for name in names]
            given = given.iloc[:, at] if hasattr(given, "iloc") else given[:, at]
        if given.shape != wanted:
            raise ValueError(
                f"entry_weight has the shape {self.entries.shape}, but X has {wanted}: give a "
                f"weight for each entry of X."
            )
        if scipy.sparse.issparse(given):
            return canonical(given)
        return np.asarray(given, np.float64)


def checked_weights(
    X: Any, sample_weight: Any, entry_weight: Any = None
) -> tuple[Any, Weights | None]:
    """X without rows of weight zero, and the weights of the others; None if all are 1.

    Raises
    ------
    TypeError, ValueError
        If X is a stream, or the weights are not those of its rows and entries.
    """
    if sample_weight is None and entry_weight is None:
        return X, None
    _check_at_hand(X, "entry_weight" if sample_weight is None else "sample_weight")
    if not (hasattr(X, "shape") or isinstance(X, list | tuple) or has_names(X)):
        X = np.asarray(X)
    if getattr(X, "ndim", 2) == 0:
        return X, None  # refused where rows are checked
    if entry_weight is not None:
        entry_weight = _entry_table(X, entry_weight)
    n = 1 if is_row(X) else len(X) if are_named_rows(X) or not hasattr(X, "shape") else X.shape[0]
    if sample_weight is None:
        return X, Weights(np.ones(n), entry_weight)
    like = np.empty((n, 1))
    weights = _row_weights(sample_weight, like)
    kept = np.flatnonzero(weights)
    if len(kept) < n:
        X, weights = _taken(X, kept), weights[kept]
        entry_weight = None if entry_weight is None else _taken(entry_weight, kept)
    return X, Weights(weights, entry_weight)


def _row_weights(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """Weights of the rows of X, checked."""
    try:
        with np.errstate(all="ignore"):
            weights: NDArray[np.float64] = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
            )
    except OverflowError as error:  # a whole number beyond all floats
        raise ValueError(f"sample_weight is too large: weights are {ALLOWED}.") from error
    _check_range("sample_weight", weights)
    if not weights.any():
        raise ValueError(NO_ROWS)
    return weights


def _check_range(name: str, weights: NDArray[np.float64]) -> None:
    fine = are_weights(weights)
    if not fine.all():
        value = weights[~fine].ravel()[0]
        raise ValueError(f"{name} has the weight {value:g}: weights are {ALLOWED}.")


def _entry_table(X: Any, entry_weight: Any) -> Any:
    """Weights of entries as a table."""
    if has_names(X):
        raise TypeError(
            "entry_weight is for tables, but X is a row by name: give an array or a frame."
        )
    if not (scipy.sparse.issparse(entry_weight) or is_frame(entry_weight)):
        try:
            table = np.asarray(entry_weight)
            if table.dtype.kind == "c":
                raise TypeError("complex numbers")
            entry_weight = table.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError("entry_weight must be a table of numbers, as X.") from error
    given = entry_weight[None] if is_row(X) and entry_weight.ndim == 1 else entry_weight
    shape = (1, *X.shape) if is_row(X) else np.shape(X) if isinstance(X, list | tuple) else X.shape
    n = shape[0]
    if len(given.shape) != 2 or given.shape[0] != n:
        raise ValueError(
            f"entry_weight has the shape {tuple(given.shape)}, but X has {tuple(shape)}: give a "
            f"weight for each entry of X."
        )
    return given


def _taken(X: Any, kept: NDArray[np.int64]) -> Any:
    """Some rows of a table."""
    if isinstance(X, list | tuple):
        return [X[at] for at in kept.tolist()]
    if scipy.sparse.issparse(X):
        return X.tocsr()[kept]
    return X.iloc[kept] if hasattr(X, "iloc") else X[kept]


def _check_at_hand(X: Any, name: str, *, by_name: bool = True) -> None:
    """Refuse weights of rows that are read while they are learned from."""
    table = scipy.sparse.issparse(X) or hasattr(X, "__array__") or is_frame(X)
    table = table or (by_name and has_names(X))
    if (not table or hasattr(X, "__dask_graph__")) and not isinstance(X, list | tuple):
        raise TypeError(
            f"{name} needs rows at hand, but X is {type(X).__name__}: give an array, a pandas "
            f"frame or a sparse matrix."
        )
