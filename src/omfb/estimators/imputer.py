"""`OMFBImputer`: fill the missing values of a table, with nothing to tune."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from ..adapters.dask.lazy import LIKE, is_dask, lazily
from ..core.engines import AnyConfig
from ..core.factor.config import FactorConfig
from ..learner.learner import Learner
from .columns import checked_remainder, in_fitted_order, indicator_name
from .frames import is_frame
from .parameters import checked_bounds, checked_flag
from .sentinels import MissingValues
from .tables import TableFactorizer


class OMFBImputer(OneToOneFeatureMixin, TableFactorizer):  # type: ignore[misc]
    """Fill the missing values of a table; columns may have any units, and nothing needs tuning.

    The model of `OnlineFactorAnalysis` for tables: each column is measured in standard deviations
    of its own and has its own noise variance. Booleans are 0 and 1. Columns of a frame that hold no
    numbers (text, dates, categories) are passed through untouched, or dropped.

    Parameters
    ----------
    n_components : int or None, default=None
        Upper bound on the number of components; those that the data do not need are switched off.
        None is half the number of features, two thirds of up to 60, at least 10 and at most 100;
        always fewer than features.
    forget_factor : float or "auto", default=1.0
        Weight that the past keeps with each new row: with 1 nothing is forgotten, 0.99 remembers
        about 100 rows (for data that change). "auto" forgets nothing until a change is noticed
        (`drift_`), and most of the past then.
    center : bool, default=True
        Whether a mean is learned.
    scale : bool, default=True
        Whether each feature is measured in standard deviations of its own.
    noise : {"isotropic", "diagonal"}, default="diagonal"
        Whether the features share one noise variance, or have one each.
    robust : bool, default=True
        Whether single entries that are far from what the rest of their row predicts count as
        missing. They do only where the data have heavy tails and this improves the predictions.
    temporal : bool or None, default=None
        Whether rows are consecutive in time, so that neighbours help to fill them. None is True
        for frames with an index of times in ascending order: a DatetimeIndex, PeriodIndex or
        TimedeltaIndex. Rows may be unevenly spaced.
    seasons : "auto", None or list, default="auto"
        Cycles in time that columns follow, in forecasts and in gaps: their lengths, as numbers of
        rows or durations such as "24h". "auto" looks for them, and keeps those that help to predict
        parts of the table that were left out. Only temporal models use it.
    covariates : list of str or int, or None, default=None
        Columns that are always known, such as holidays or the weather, also for the rows of a
        forecast: names, or numbers from 0. What they explain is learned beside the seasons, and
        what they do not explain costs nothing. Only for rows in time.
    min_value, max_value : float, array-like of shape (n_features,) or None, default=None
        Filled values, and bounds of intervals, are kept within these.
    integers : bool, default=False
        Whether filled values of columns that held only integers are rounded.
    remainder : {"passthrough", "drop"}, default="passthrough"
        What becomes of the columns of a frame that hold no numbers. Those that are passed through
        must have been there in `fit`.
    missing_values : number, list of numbers or dict, default=nan
        Numbers that stand for a missing value besides NaN, such as -999; with a dict from columns
        (names, or numbers from 0) to numbers, only there.
    add_indicator : bool, default=False
        Whether `transform` appends, for each feature that had missing entries in `fit` (or in the
        first `partial_fit`), whether they are missing: 0 or 1, as scikit-learn's imputers do.
    keep_empty_features : bool, default=True
        Whether `transform` returns features that were never observed, filled with 0 (or the bound
        nearest to it). scikit-learn's imputers drop them by default.
    new_features : {"add", "error", "ignore"} or None, default=None
        What `partial_fit` does with a key of a row by name that is no feature of the model yet: add
        a feature, refuse the row, or leave the entry out. None adds it, and warns once.
    drop_after : int or None, default=None
        `partial_fit` drops features, and forgets their names, that no row has observed for so many
        rows (up to an eighth more). If one comes again, it is a new one. None drops nothing.
    max_iter : int or None, default=None
        Passes over the data in `fit`. None is 1, and 2 over tables of less than 4000 rows;
        rows of which less than half is observed count for less.
    tol : float, default=0.0
        Stop when a pass lowers the prequential error by less than this share; 0 runs all passes.
    shuffle : bool or "uniform", default=True
        Whether `fit` takes rows in random order, as they lie, or drawn with replacement.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows and of the entries that are held out.
    verbose : int, default=0
        If positive, log each pass to the logger "omfb", and show a progress bar (in terminals and
        notebooks that have Rich; elsewhere the log is printed, unless logging is configured).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The dictionary in the data's units, an atom in a row, in descending order of variance.
    n_components_ : int
        Components that stand out of the noise.
    mean_ : ndarray of shape (n_features,)
        Mean of each feature.
    scale_ : ndarray of shape (n_features,)
        Unit of each feature: its standard deviation in the first rows; one for all if not scaled.
    noise_variance_ : float or ndarray of shape (n_features,)
        Variance of the noise; one for each feature if `noise="diagonal"`.
    explained_variance_ : ndarray of shape (n_components,)
        Variance that each component explains, in units of `scale_` if scaled.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a share of the total variance, noise included.
    outliers_ : ndarray of shape (n_features,)
        How many entries of each feature counted as outliers.
    residuals_ : ndarray of shape (n_rows, n_features)
        Residuals of the last row, or of the last rows of a temporal model.
    prequential_error_ : float
        Relative error over the last pass (over the first, if no entry is missing) of entries that
        were held out: predicted from the rest of their row before the dictionary learned them.
    recent_error_ : float
        Relative error of the last 50 or so rows, each entry predicted from the rest of its row
        before the row was learned: it rises when the data change, and comes down again.
    drift_ : ndarray of int
        Rows, counted from 1, at which a change was noticed; the last 32 of them. On stationary
        rows, a false alarm comes about once in 50,000 rows.
    seasons_ : list
        Lengths of the cycles in time that were found: timedeltas if rows have times, otherwise
        numbers of rows.
    error_history_ : ndarray of shape (n_points, 2)
        Rows learned, and the error of the rows since the point before; see `omfb.plots`.
    n_samples_seen_ : int
        Rows learned from, in all passes.
    n_iter_ : int
        Passes made by `fit`.
    n_features_in_ : int
        Features of a row.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had any.
    learner_ : Learner
        Does the work: states, codes and snapshots without scikit-learn.

    See Also
    --------
    OnlineFactorAnalysis : The same model as a decomposition: `transform` gives codes.

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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        forget_factor: float | str = 1.0,
        center: bool = True,
        scale: bool = True,
        noise: str = "diagonal",
        robust: bool = True,
        temporal: bool | None = None,
        seasons: Any = "auto",
        covariates: Any = None,
        min_value: Any = None,
        max_value: Any = None,
        integers: bool = False,
        remainder: str = "passthrough",
        missing_values: Any = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        new_features: str | None = None,
        drop_after: int | None = None,
        max_iter: int | None = None,
        tol: float = 0.0,
        shuffle: bool | str = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.forget_factor = forget_factor
        self.center = center
        self.scale = scale
        self.noise = noise
        self.robust = robust
        self.temporal = temporal
        self.seasons = seasons
        self.covariates = covariates
        self.min_value = min_value
        self.max_value = max_value
        self.integers = integers
        self.remainder = remainder
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.new_features = new_features
        self.drop_after = drop_after
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _config(self, temporal: bool) -> FactorConfig:
        checked_flag("integers", self.integers)
        checked_remainder(self.remainder)
        MissingValues.of(self.missing_values)
        checked_flag("add_indicator", self.add_indicator)
        checked_flag("keep_empty_features", self.keep_empty_features)
        checked_bounds(self.min_value, self.max_value)
        return super()._config(temporal)

    def _new_learner(
        self, config: AnyConfig, n_features: int, rng: np.random.RandomState,
        names: list[str] | None,
    ) -> Learner:  # fmt: skip
        checked_bounds(self.min_value, self.max_value, n_features)
        return super()._new_learner(config, n_features, rng, names)

    def transform(self, X: Any, *, entry_weight: Any = None) -> Any:
        """X with its missing entries filled.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        entry_weight : array-like or sparse matrix of the shape of X, or None, default=None
            How precise each entry is, as in `fit`; what has weight 0 is filled.

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features)
            A frame, with its columns in the order of `fit`, if some of them are passed through; a
            Dask collection if X is one, computed when it is needed.
        """
        if is_dask(X) and entry_weight is None:
            self._check_lazy()
            return lazily(self, "complete" if is_frame(X) else "transform", X, LIKE)
        columns = self._known_table.columns
        if is_frame(X) and self._passes_through(X.columns if columns is None else columns):
            if entry_weight is not None:
                raise ValueError(
                    "entry_weight cannot be used where columns are passed through: call complete, "
                    "or set remainder='drop'."
                )
            return self._extended_frame(in_fitted_order(X, columns, self.learner_.feature_names))
        rows = self._rows(self.learner_, X)  # tables only, as in scikit-learn
        weighted = rows
        if entry_weight is not None:
            weighted = self._weighted_rows(X, rows, entry_weight)
        filled = self._filled(X, weighted)
        parts = [filled if self.keep_empty_features else filled[:, ~self._unobserved]]
        if self.add_indicator:
            parts.append(self._indicator(rows).astype(filled.dtype))
        return np.hstack(parts) if len(parts) > 1 else parts[0]

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
        columns = self._known_table.columns
        if columns is not None and input_features is not None:
            input_features = None if list(input_features) == list(columns) else input_features
        features = np.asarray(super().get_feature_names_out(input_features))
        names = features
        if input_features is None and columns is not None and self._passes_through(columns):
            names = np.array(columns, dtype=object)
        if not self.keep_empty_features:
            names = names[~np.isin(names, features[self._unobserved])]
        if self.add_indicator:
            flags = [indicator_name(features[at]) for at in self._known_table.incomplete]
            names = np.array([*names, *flags], dtype=object)
        return names

    def inverse_transform(self, X: Any) -> Any:
        """The rows as they are: filled entries cannot be told from observed ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X : the same
        """
        return X

    def allowed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Predicted values within `min_value` and `max_value`, rounded if `integers`.

        Of integers that were only 0 and 1 (or other neighbours), bounds are no further apart.

        Parameters
        ----------
        values : ndarray of shape (..., n_features)
        """
        low, high = checked_bounds(self.min_value, self.max_value, self.n_features_in_)
        if self.integers:
            integer = self._engine.integer_features(self.learner_.state)
            # Adding 0 makes 0 of -0.
            values = np.where(integer, np.round(values) + 0.0, values).astype(values.dtype)
            values = self._known_table.within_binary(values, integer)
        if low is not None or high is not None:
            values = np.clip(values, low, high).astype(values.dtype)
        return values
