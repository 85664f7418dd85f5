"""`OMFBImputer`: fill the missing values of a table, with nothing to tune."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from ..core.model.state import Model
from .base import Factorizer
from .frames import is_frame, like_frame, numeric_part
from .validation import Checked


class OMFBImputer(OneToOneFeatureMixin, Factorizer):  # type: ignore[misc]
    """Fill the missing values of a table; columns may have any units.

    The model of `OMFB`, but for its purpose: all columns are treated alike (`scale=True`), each
    with a noise of its own (`noise="feature"`). What is not given is found from the data; nothing
    needs to be given. Columns of a frame that do not hold numbers (text, dates, booleans,
    categories) are passed through untouched.

    Parameters are those of `OMFB`, and:

    Parameters
    ----------
    n_components : int or None, default=None
        At most so many components; see `OMFB`.
    min_value, max_value : float, array-like of shape (n_features,) or None, default=None
        Filled values, and bounds of intervals, are kept within these.
    integers : bool, default=False
        Whether filled values of columns that held only whole numbers are rounded to such.

    See Also
    --------
    OMFB : The decomposition, with all parameters and attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OMFBImputer
    >>> rng = np.random.default_rng(0)
    >>> level = rng.standard_normal((200, 1))
    >>> X = np.hstack([level, 1000 + 300 * level, 1e-6 * level])
    >>> truth = X[7, 1]
    >>> X[7, 1] = np.nan
    >>> filled = OMFBImputer(random_state=0).fit_transform(X)
    >>> bool(abs(filled[7, 1] - truth) < 5)
    True
    """

    wants_scale: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lam: float | None = None,
        memory: float = 1.0,
        ridge: float | None = None,
        smooth: float | None = None,
        shrink: float | None = None,
        inner_iter: int | None = None,
        batch_size: int | None = None,
        center: bool | None = None,
        scale: bool | None = None,
        noise: str | None = None,
        outliers: bool = True,
        in_time: bool | None = None,
        min_value: Any = None,
        max_value: Any = None,
        integers: bool = False,
        max_iter: int | None = None,
        tol: float = 0.0,
        shuffle: bool | str = True,
        init: str | NDArray[Any] = "data",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components, lam=lam, memory=memory, ridge=ridge, smooth=smooth, shrink=shrink,
            inner_iter=inner_iter, batch_size=batch_size, center=center, scale=scale, noise=noise,
            outliers=outliers, in_time=in_time, max_iter=max_iter, tol=tol, shuffle=shuffle,
            init=init, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.min_value = min_value
        self.max_value = max_value
        self.integers = integers

    def transform(self, X: Any) -> Any:
        """X with its missing entries filled.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features)
            A frame, as from `complete`, if X is one with columns that do not hold numbers.
        """
        filled = self._filled(X)
        if is_frame(X) and filled.shape[1] < X.shape[1]:
            return like_frame(X, filled, self.learner_.feature_names)
        return filled

    def inverse_transform(self, X: Any) -> Any:
        """The rows as they are: what was filled in is not told from what was observed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X : the same
        """
        return X

    def _first_rows(self, X: Any) -> Checked:
        return super()._first_rows(numeric_part(X))

    def _rows(self, learner: Any, X: Any) -> Any:
        return super()._rows(learner, numeric_part(X, learner.feature_names))

    def _bounded(self, values: NDArray[Any]) -> NDArray[Any]:
        return within_bounds(self, values)


def within_bounds(model: OMFBImputer, values: NDArray[Any]) -> NDArray[Any]:
    """Filled values as the parameters of an imputer allow them: bounded, rounded."""
    low, high = _bound(model, "min_value"), _bound(model, "max_value")
    if model.integers:
        state = model.learner_.state
        whole = state.whole if isinstance(state, Model) else np.zeros(values.shape[-1], bool)
        values = np.where(whole, np.round(values), values).astype(values.dtype)
    if low is not None or high is not None:
        values = np.clip(values, low, high).astype(values.dtype)
    return values


def _bound(model: OMFBImputer, name: str) -> Any:
    given = getattr(model, name)
    if given is None:
        return None
    try:
        bound = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number or an array of them, got {given!r}.") from error
    if bound.ndim > 1 or (bound.ndim == 1 and len(bound) != model.n_features_in_):
        raise ValueError(
            f"{name} has shape {bound.shape}: give one number, or one for each of the "
            f"{model.n_features_in_} features."
        )
    if np.isnan(bound).any():
        raise ValueError(f"{name} contains NaN: use -inf or inf where there is no bound.")
    return bound
