"""What the competitors share: validation, `fit`, `inverse_transform` and `complete`."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data


class Competitor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A factorisation ``X ≈ codes_ @ components_`` that keeps a code for every row of X.

    Such a method learns by visiting the same rows again, so there is no `partial_fit`: with
    ``warm_start=True`` another `fit` of the same rows continues where the last one ended.
    """

    components_: NDArray[Any]
    codes_: NDArray[Any]
    _rng: np.random.RandomState

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the dictionary by `max_iter` passes over X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is missing.
        y : ignored

        Returns
        -------
        self
        """
        continuing = self.warm_start and hasattr(self, "components_")
        rows = self._validated(X, reset=not continuing)
        if continuing and len(rows) != len(self.codes_):
            raise ValueError(
                f"X has {len(rows)} rows, but warm_start continues with the {len(self.codes_)} of "
                f"the last fit. Give the same rows, or set warm_start=False."
            )
        observed = ~np.isnan(rows)
        if not continuing:
            self._rng = check_random_state(self.random_state)
            self._begin(rows, observed)
            self.n_iter_ = 0
        rows = np.where(observed, rows, rows.dtype.type(0))
        for _ in range(self.max_iter):
            self._pass(rows, observed)
            self.n_iter_ += 1
        return self

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows from their codes: ``X @ components_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        codes = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        return codes @ self.components_

    def complete(self, X: Any) -> NDArray[Any]:
        """Fill what is missing in X; observed entries stay as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features)
        """
        rows = self._validated(X)
        return np.where(np.isnan(rows), self.transform(rows) @ self.components_, rows)

    @abstractmethod
    def _begin(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> None:
        """Make the first dictionary and the first codes."""

    @abstractmethod
    def _pass(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> None:
        """Learn once from all rows; what is missing in them is zero."""

    def _validated(self, X: Any, reset: bool = False) -> NDArray[Any]:
        if not reset:
            check_is_fitted(self)
        return validate_data(
            self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
