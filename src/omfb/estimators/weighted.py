"""Learning from rows and entries that have weights."""

import math
import os
from typing import Any, Self

from ..core.blocks import dense_with_holes
from ..core.weighted import WeightedRows
from .base import BaseFactorizer
from .columns import columns_of
from .frames import is_frame
from .known import emptied
from .times import has_times
from .weights import Weights, checked_weights

# Share of the past that a row leaves at least: rounding would lose less.
LEAST_LEFT = 1e-9


class WeightedFactorizer(BaseFactorizer):
    """`fit` and `partial_fit` with weights; the model takes them into its sums."""

    forget_factor: float | str
    temporal: bool | None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        entry_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        every: str = "30s",
        n_tasks: int | None = None,
    ) -> Self:
        """Learn the dictionary by passes over X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), path, or stream
            NaN is missing, and so are absent entries of a sparse matrix. float32 stays float32.
            A path (CSV, NDJSON, NumPy, Parquet or Arrow file), a Dask array, an iterator of rows
            or blocks, or an `omfb.streams.Source` is read block by block, in constant memory.
            If there is a `distributed.Client`, its cluster learns from a Dask collection by rows,
            if nothing is forgotten (``forget_factor=1``).
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each row counts: 2 is the same row twice, 0 leaves it out. Only for rows at
            hand: no streams, paths and Dask collections.
        entry_weight : array-like or sparse matrix of the shape of X, or None, default=None
            How precise each entry is: the noise of an entry of weight w has the variance of its
            feature's noise divided by w. 0 is missing. Only for rows at hand that are not
            consecutive in time.
        checkpoint : path or None, default=None
            File to save the model to during the fit.
        resume : bool, default=False
            Continue from the checkpoint, if it exists: the fit ends with the very same model as one
            that was never interrupted.
        every : str, default="30s"
            How often to write the checkpoint: "30s", "5m", "1h" or "10000rows".
        n_tasks : int or None, default=None
            How many tasks of a cluster learn by rows at the same time; None is 32. The result
            depends on it, on the chunks and on the seed, not on the number of workers.

        Returns
        -------
        self
        """
        X, weights = self._checked_weights(X, sample_weight, entry_weight)
        return self._fit(
            X, n_tasks, weights=weights, checkpoint=checkpoint, resume=resume, every=every
        )

    def partial_fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, entry_weight: Any = None
    ) -> Self:
        """Learn from the next rows of a stream, in the order given; one row is enough.

        The model does not depend on how a stream is cut into calls. An error leaves the model as it
        was. Several threads may call it, and use the model at the same time.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            NaN is missing, and so are absent entries of a sparse matrix. One row may be an array of
            shape (n_features,) or, by name, a dict, a pandas Series or a record; absent keys are
            missing entries. A list of dicts is several rows.
        y : ignored
        sample_weight : array-like of shape (n_samples,), number or None, default=None
            How often each row counts, as in `fit`.
        entry_weight : array-like or sparse matrix of the shape of X, or None, default=None
            How precise each entry is, as in `fit`.

        Returns
        -------
        self
        """
        X, weights = self._checked_weights(X, sample_weight, entry_weight)
        return self._learn(X, weights)

    def _checked_weights(
        self, X: Any, sample_weight: Any, entry_weight: Any
    ) -> tuple[Any, Weights | None]:
        if entry_weight is not None:
            temporal = self.temporal
            if temporal or (temporal is None and has_times(X)) or self._is_now_temporal():
                raise ValueError(
                    "entry_weight is not for rows that are consecutive in time: set temporal=False."
                )
        X, weights = checked_weights(X, sample_weight, entry_weight)
        if weights is not None:
            self._check_what_is_left(float(weights.rows.max(initial=0.0)))
        return X, weights

    def _check_what_is_left(self, weight: float) -> None:
        """Refuse a row that would leave nothing of all rows before it."""
        factor = self.forget_factor
        if not (isinstance(factor, float) and 0.0 < factor < 1.0):
            return
        most = math.log(LEAST_LEFT) / math.log(factor)
        if weight > most:
            raise ValueError(
                f"sample_weight has the weight {weight:g}: with forget_factor={factor:g} a row of "
                f"more than {most:.0f} leaves nothing of the past. Divide weights by their mean."
            )

    def _is_now_temporal(self) -> bool:
        """Whether the fitted model, if there is one, takes rows as consecutive in time."""
        return self.__sklearn_is_fitted__() and bool(self.current_config().temporal)  # type: ignore[union-attr]

    def _weighted_rows(self, X: Any, rows: Any, entry_weight: Any) -> WeightedRows:
        """Rows for a fitted model with weights of their entries."""
        X, weights = self._checked_weights(X, None, entry_weight)
        assert weights is not None
        return weights.of(rows, self.learner_.feature_names, columns_of(X))

    def _without_unused(self, X: Any, rows: Any, weighted: WeightedRows) -> Any:
        """X with what has weight zero missing, so that it is filled."""
        if not is_frame(X):
            return X
        names = self.learner_.feature_names or list(X.columns)
        given, used = dense_with_holes(rows), dense_with_holes(weighted.rows)
        unused = (used != used) & (given == given)
        return emptied(X, names, unused) if unused.any() else X
