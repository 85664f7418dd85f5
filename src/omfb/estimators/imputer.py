"""`OMFBImputer`: fill the missing values of a table, with nothing to tune."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from ..adapters.dask.lazy import LIKE, is_dask, lazily
from ..core.engines import AnyConfig
from ..core.factor.config import FactorConfig
from ..learner.learner import Learner
from ..streams import Source
from .columns import (
    checked_remainder,
    columns_of,
    feature_positions,
    features_of,
    first_features,
    in_fitted_order,
    without_others,
)
from .frames import is_frame, like_frame
from .parameters import checked_bounds, checked_flag
from .predictive import PredictiveFactorizer
from .rows import entry
from .table import Table
from .times import Times
from .validation import Checked


class OMFBImputer(OneToOneFeatureMixin, PredictiveFactorizer):  # type: ignore[misc]
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
    forget_factor : float, default=1.0
        Weight that the past keeps with each new row: with 1 nothing is forgotten, 0.99 remembers
        about 100 rows (for data that change).
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
        for frames with a DatetimeIndex in ascending order.
    min_value, max_value : float, array-like of shape (n_features,) or None, default=None
        Filled values, and bounds of intervals, are kept within these.
    integers : bool, default=False
        Whether filled values of columns that held only integers are rounded.
    remainder : {"passthrough", "drop"}, default="passthrough"
        What becomes of the columns of a frame that hold no numbers. Those that are passed through
        must have been there in `fit`.
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
        The same of the last rows only: it rises when the data change.
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

    _skips_text: ClassVar[bool] = True
    _table: Table

    def __init__(
        self,
        n_components: int | None = None,
        *,
        forget_factor: float = 1.0,
        center: bool = True,
        scale: bool = True,
        noise: str = "diagonal",
        robust: bool = True,
        temporal: bool | None = None,
        min_value: Any = None,
        max_value: Any = None,
        integers: bool = False,
        remainder: str = "passthrough",
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
        self.min_value = min_value
        self.max_value = max_value
        self.integers = integers
        self.remainder = remainder
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _config(self, temporal: bool) -> FactorConfig:
        checked_flag("integers", self.integers)
        checked_remainder(self.remainder)
        checked_bounds(self.min_value, self.max_value)
        return super()._config(temporal)

    def transform(self, X: Any) -> Any:
        """X with its missing entries filled.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features)
            A frame, with its columns in the order of `fit`, if some of them are passed through; a
            Dask collection if X is one, computed when it is needed.
        """
        if is_dask(X):
            return lazily(self, "complete" if is_frame(X) else "transform", X, LIKE)
        columns = self._known_table.columns
        if is_frame(X) and self._passes_through(X.columns if columns is None else columns):
            return self.complete(in_fitted_order(X, columns))
        return self._filled(X, self._rows(self.learner_, X))  # tables only, as in scikit-learn

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
        if input_features is None and columns is not None and self._passes_through(columns):
            return np.array(columns, dtype=object)
        return np.asarray(super().get_feature_names_out(input_features))

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

    # -- columns ----------------------------------------------------------------------------

    @property
    def _known_table(self) -> Table:
        """What is known of the table that the model was fitted to."""
        return self.__dict__.get("_table") or Table()

    def _passes_through(self, columns: Sequence[Any]) -> bool:
        """Whether `transform` returns further columns besides the features."""
        return self.remainder == "passthrough" and len(columns) > self.n_features_in_

    def _facts(self, columns: Sequence[Any] | None, times: Times) -> dict[str, Any]:
        table = Table(tuple(columns) if columns else None)
        return {**super()._facts(columns, times), "_table": table}

    def facts_header(self, facts: dict[str, Any]) -> dict[str, Any]:
        """See `BaseFactorizer.facts_header`."""
        table = facts.get("_table", self._known_table)
        return {**super().facts_header(facts), "table": table.header()}

    @classmethod
    def read_facts(cls, header: dict[str, Any]) -> dict[str, Any]:
        """See `BaseFactorizer.read_facts`."""
        table = Table.of_header(header["table"]) if "table" in header else Table()
        return {**super().read_facts(header), "_table": table}

    def _first_rows(self, X: Any) -> Checked:
        return super()._first_rows(first_features(X))

    def _numeric(self, X: Any) -> Any:
        return first_features(X)

    def _source(self, X: Any) -> Source:
        source = super()._source(first_features(X) if is_dask(X) else X)
        if is_frame(X):
            source.column_names = columns_of(X) or ()
        return source

    def _distributed(
        self, X: Any, config: AnyConfig, client: Any, n_tasks: int | None
    ) -> Source | None:
        source = super()._distributed(X, config, client, n_tasks)
        if source is not None and is_frame(X):
            source.column_names = columns_of(X) or ()
        return source

    def _check_unknown(self, unknown: dict[Any, Any], names: list[str]) -> None:
        numbers = {name: value for name, value in unknown.items() if entry(value) is not None}
        if numbers:
            super()._check_unknown(numbers, names)

    def _rows(self, learner: Learner, X: Any) -> Any:
        drop = checked_remainder(self.remainder)
        names, columns = learner.feature_names, self._known_table.columns
        return super()._rows(learner, features_of(X, names, columns, drop=drop))

    def _like_frame(self, X: Any, filled: NDArray[Any], keep_types: bool) -> Any:
        names, drop = self.learner_.feature_names, self.remainder == "drop"
        positions = feature_positions(X, names, self._known_table.columns, drop=drop)
        frame = like_frame(X, filled, positions, keep_types=keep_types)
        return without_others(frame, positions) if drop else frame

    def allowed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Predicted values within `min_value` and `max_value`, rounded if `integers`.

        Parameters
        ----------
        values : ndarray of shape (..., n_features)
        """
        low, high = checked_bounds(self.min_value, self.max_value, self.n_features_in_)
        if self.integers:
            integer = self._engine.integer_features(self.learner_.state)
            values = np.where(integer, np.round(values), values).astype(values.dtype)
        if low is not None or high is not None:
            values = np.clip(values, low, high).astype(values.dtype)
        return values
