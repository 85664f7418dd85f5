"""`OMFBImputer`: the same model for pipelines that fill missing values."""

from typing import Any

from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from .base import Factorizer


class OMFBImputer(OneToOneFeatureMixin, Factorizer):  # type: ignore[misc]
    """The model of `OMFB` as an imputer: `transform` fills what is missing in X, for pipelines.

    Parameters and attributes are those of `OMFB`.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OMFBImputer
    >>> X = np.outer(np.arange(1.0, 6.0), [1.0, 2.0, 3.0])
    >>> X[3, 1] = np.nan
    >>> OMFBImputer(n_components=1, max_iter=20, random_state=0).fit_transform(X)[3].round(2)
    array([ 4.,  8., 12.])
    """

    def transform(self, X: Any) -> NDArray[Any]:
        """X with its missing entries filled; the same as `complete`, as an array.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features)
        """
        return self._filled(X)
