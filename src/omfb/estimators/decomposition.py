"""Estimators whose `transform` gives codes."""

from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from ..adapters.dask.lazy import Columns, is_dask, lazily
from .base import BaseFactorizer
from .validation import codes_array


class Decomposition(ClassNamePrefixFeaturesOutMixin, BaseFactorizer):  # type: ignore[misc]
    """`transform` to codes and back."""

    def transform(self, X: Any) -> NDArray[Any]:
        """Codes of the rows of X, which may have missing entries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            A Dask collection if X is one, computed when it is needed.
        """
        learner = self.learner_
        if is_dask(X):
            names = self.get_feature_names_out().tolist()
            return lazily(self, "transform", X, Columns(names, learner.dtype))
        return learner.encode(self._rows(learner, X), self.current_config())

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows from their codes: ``X @ components_``, plus the mean if there is one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes, as from `transform`.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            A Dask collection if X is one, computed when it is needed.
        """
        learner = self.learner_
        if is_dask(X):
            names = learner.feature_names or [f"x{i}" for i in range(learner.n_features)]
            return lazily(self, "inverse_transform", X, Columns(names, learner.dtype))
        codes = codes_array(X)
        if codes.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {codes.shape[1]} columns, but codes have n_components = "
                f"{self._n_features_out}. Give what `transform` returns."
            )
        return learner.decode(codes)

    @property
    def _n_features_out(self) -> int:
        learner = self.learner_
        return learner.engine.n_components(learner.state)
