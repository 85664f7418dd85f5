"""`OMFBImputer`: fill the missing values of a table, with nothing to tune."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from ..adapters.dask.lazy import LIKE, is_dask, lazily
from ..core.blocks import dense_with_holes
from ..core.factor.state import Model
from .base import Factorizer
from .frames import is_frame, like_frame, numeric_part
from .validation import Checked


class OMFBImputer(OneToOneFeatureMixin, Factorizer):  # type: ignore[misc]
    """Fill the missing values of a table; columns may have any units, and nothing needs tuning.

    The model of `OMFB`, but for its purpose: all columns are treated alike (`scale=True`), each
    with a noise of its own (`noise="feature"`). *A number that is given is obeyed; what is None is
    found from the data.* Columns of a frame that do not hold numbers (text, dates, booleans,
    categories) are passed through untouched.

    Parameters
    ----------
    n_components : int or None, default=None
        At most so many components; those that the data do not need are switched off. None is half
        the number of features, two thirds of up to 60, at least 10 and at most 100 (30 with
        `memory=0`); always fewer than features.
    lam : float or None, default=None
        How many rows the first dictionary weighs. None is a third of those it is made from.
    memory : float, default=1.0
        How long rows count: 1 for ever, 0.99 about 100 rows (for data that change), 0 not at all,
        which is the paper's rule.
    ridge : float or None, default=None
        Pull of a code towards zero. None is what noise and variances call for.
    smooth : float or None, default=None
        Pull of a code towards that of the row before. None is found, if rows are in time.
    shrink : float or None, default=None
        Pull of the dictionary towards zero, in rows. None is found for each component.
    inner_iter : int or None, default=None
        Alternations between codes and dictionary for each update. None is 1 (2 with `memory=0`).
    batch_size : int or None, default=None
        Rows that share one update. None grows from 16 to 256, of complete rows from 256 to 1024 (1
        with `memory=0`).
    center : bool or None, default=None
        Whether a mean is learned. None is True.
    scale : bool or None, default=None
        Whether each feature is measured in deviations of its own. None is True.
    noise : {"shared", "feature"} or None, default=None
        Whether features share one noise. None is "feature".
    outliers : bool, default=True
        Whether single entries that are far from what the rest of their row says count as missing.
        They do only where the data have heavy tails and leaving them out fills better.
    in_time : bool or None, default=None
        Whether neighbouring rows belong together. None is True for frames with a DatetimeIndex.
    min_value, max_value : float, array-like of shape (n_features,) or None, default=None
        Filled values, and bounds of intervals, are kept within these.
    integers : bool, default=False
        Whether filled values of columns that held only whole numbers are rounded to such.
    max_iter : int or None, default=None
        Passes over the data in `fit`. None is 1, and up to 3 over tables of less than 4000 rows;
        rows of arrays that observe less than half of the features count for less.
    tol : float, default=0.0
        Stop when a pass lowers the prequential error by less than this share; 0 runs all passes.
    shuffle : bool or "uniform", default=True
        Whether `fit` takes rows in random order, as they lie, or drawn with replacement.
    init : {"data", "random"} or array of shape (n_components, n_features), default="data"
        First dictionary: found from the first rows, uniform on [0, 1), or given.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows and of the first dictionary.
    verbose : int, default=0
        If positive, log each pass to the logger "omfb", and show a progress bar (in terminals and
        notebooks that have Rich; elsewhere the log is printed, unless logging is configured).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The dictionary in the data's units, an atom in a row, in falling order of variance.
    n_components_ : int
        Components that stand out of the noise.
    mean_ : ndarray of shape (n_features,)
        Mean of each feature.
    scale_ : ndarray of shape (n_features,)
        Unit of each feature: its deviation in the first rows; one for all if not scaled.
    noise_variance_ : float or ndarray of shape (n_features,)
        Variance of the noise; one for each feature if `noise="feature"`.
    explained_variance_ : ndarray of shape (n_components,)
        Variance that each component explains, in units of `scale_` if scaled.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a share of all variance, that of the noise included.
    outliers_ : ndarray of shape (n_features,)
        How many entries of each feature were taken for outliers.
    residuals_ : ndarray of shape (n_rows, n_features)
        What is not explained of the last row, or of the last rows if they are in time.
    prequential_error_ : float
        Relative error over the last pass (over the first, if no entry is missing), of entries
        that were hidden from their rows' codes and that the dictionary had not learned from;
        with `memory=0`, of each row before the dictionary learned from it.
    recent_error_ : float
        The same of the last rows only: it rises when the data change.
    n_samples_seen_ : int
        Rows learned from, in all passes.
    n_iter_ : int
        Passes made by `fit`.
    n_features_in_ : int
        Features of a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.
    learner_ : Learner
        Does the work: states, codes and snapshots without scikit-learn.

    See Also
    --------
    OMFB : The same model as a decomposition: `transform` gives codes.

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

    _columns: list[Any] | None
    """Those of the last frame, if some are passed through."""

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
            A frame, as from `complete`, if X is one with columns that do not hold numbers; a Dask
            collection if X is one, computed when it is asked for.
        """
        if is_dask(X):
            return lazily(self, "complete" if is_frame(X) else "transform", X, LIKE)
        filled = self._filled(X)
        if is_frame(X) and filled.shape[1] < X.shape[1]:
            self._columns = list(X.columns)
            return like_frame(X, filled, self.learner_.feature_names)
        return filled

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of what `transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of all columns, if some do not hold numbers and are passed through.

        Returns
        -------
        names : ndarray of str
        """
        names = self.learner_.feature_names
        columns = self.__dict__.get("_columns") if input_features is None else list(input_features)
        if columns is not None and names is not None and set(names) < set(columns):
            return np.array(columns, dtype=object)
        return np.asarray(super().get_feature_names_out(input_features))

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

    def _fit(self, X: Any, lanes: int | None, **how: Any) -> Self:
        super()._fit(X, lanes, **how)
        self._columns = list(X.columns) if is_frame(X) and not is_dask(X) else None
        return self

    def _numbers(self, X: Any) -> Any:
        return numeric_part(X)

    def _rows(self, learner: Any, X: Any) -> Any:
        return super()._rows(learner, numeric_part(X, learner.feature_names))

    def _bounded(self, values: NDArray[Any], rows: Any = None) -> NDArray[Any]:
        bounded = within_bounds(self, values)
        if rows is None or bounded is values:
            return bounded
        return np.where(np.isnan(dense_with_holes(rows)), bounded, values)


def within_bounds(model: OMFBImputer, values: NDArray[Any]) -> NDArray[Any]:
    """Filled values as the parameters of an imputer allow them: bounded, rounded."""
    low, high = _bound(model, "min_value"), _bound(model, "max_value")
    _check_room(-np.inf if low is None else low, np.inf if high is None else high)
    if model.integers:
        state = model.learner_.state
        whole = state.whole if isinstance(state, Model) else np.zeros(values.shape[-1], bool)
        values = np.where(whole, np.round(values), values).astype(values.dtype)
    if low is not None or high is not None:
        values = np.clip(values, low, high).astype(values.dtype)
    return values


def _check_room(low: Any, high: Any) -> None:
    """Refuse bounds between which there is no number."""
    if not np.all((low <= high) & (low < np.inf) & (high > -np.inf)):
        raise ValueError(
            "min_value must be below infinity, and not above max_value: there is no number between "
            "these bounds."
        )


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
