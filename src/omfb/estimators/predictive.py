"""Estimators of the factor model: standard deviations, intervals, draws and forecasts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..adapters.dask.lazy import EACH, LIKE, Columns, is_dask, lazily
from ..core.blocks import dense_with_holes
from ..core.checks import checked_count, checked_level
from ..core.engines import AnyConfig
from ..core.factor.config import FactorConfig
from ..core.factor.engine import FACTOR, FactorEngine
from ..core.prediction import Prediction
from ..core.weighted import values_of
from ..streams import Source
from .changing import ChangingFeaturesFactorizer
from .covariates import checked_covariates, positions_of
from .forecasts import ForecastingFactorizer
from .frames import is_frame
from .known import Limits, emptied, with_all_rows
from .parameters import checked_drop_after, checked_flag, checked_new_features, checked_seasons
from .rows import has_names, is_row, values_like
from .times import (
    DATES_AS_TEXT,
    Stamps,
    Times,
    has_dates_as_text,
    has_index,
    is_out_of_order,
    ordered_times,
    out_of_order,
    times_of,
)
from .warn import warn
from .weighted import WeightedFactorizer

# Without `max_iter`, a fit makes at most 2 passes to learn from at least 4000 rows.
ENOUGH_ROWS, MAX_PASSES = 4000, 2


class PredictiveFactorizer(WeightedFactorizer, ChangingFeaturesFactorizer, ForecastingFactorizer):
    """The factor model: its predictions come with their uncertainty."""

    _engine: ClassVar[FactorEngine] = FACTOR

    forget_factor: float | str
    center: bool
    scale: bool
    noise: str
    robust: bool
    temporal: bool | None
    seasons: Any
    covariates: Any = None
    new_features: str | None = None

    # -- parameters -------------------------------------------------------------------------

    def _config(self, temporal: bool) -> FactorConfig:
        checked_new_features(self.new_features)
        checked_covariates(self.covariates)
        if self.temporal is not None:
            temporal = checked_flag("temporal", self.temporal)
        return FactorConfig(
            n_components=self.n_components,
            forget_factor=self.forget_factor,
            center=checked_flag("center", self.center),
            scale=checked_flag("scale", self.scale),
            noise=self.noise,
            robust=checked_flag("robust", self.robust),
            temporal=temporal,
            seasons=checked_seasons(self.seasons),
            drop_after=checked_drop_after(self.drop_after),
        )

    def _for_rows(
        self, config: AnyConfig, index: Any, names: Sequence[str] | None, n_features: int
    ) -> FactorConfig:
        assert isinstance(config, FactorConfig)
        positions = positions_of(checked_covariates(self.covariates), names, n_features)
        if not config.temporal:
            if positions is not None:
                raise ValueError(
                    "covariates are for rows in time: fit a frame with times as its index, or set "
                    "temporal=True. In other tables each column helps to fill the others anyway."
                )
            return config
        return replace(config, index=index, covariates=positions)

    def _continued(self, config: AnyConfig, fitted: AnyConfig) -> FactorConfig:
        assert isinstance(config, FactorConfig)
        assert isinstance(fitted, FactorConfig)
        return replace(
            fitted,
            forget_factor=config.forget_factor,
            robust=config.robust,
            drop_after=config.drop_after,
            temporal=fitted.temporal if self.temporal is None else config.temporal,
            seasons=config.seasons,
        )

    def n_passes(self, source: Source) -> int:
        """How many passes `fit` makes over a source: more over short tables.

        Rows of which less than half is observed count for less.
        """
        if self.max_iter is not None or not source.n_rows:
            return super().n_passes(source)
        n_rows = source.n_rows * min(1.0, max(2.0 * source.share, 1.0 / ENOUGH_ROWS))
        return max(1, min(MAX_PASSES, math.ceil(ENOUGH_ROWS / n_rows)))

    # -- times ------------------------------------------------------------------------------

    def _check_order(self, X: Any, *, first: bool = False) -> None:
        if not has_index(X):
            return
        if self.temporal is None and is_out_of_order(X):
            warn(out_of_order(X))
        elif self.temporal is None and has_dates_as_text(X):
            warn(DATES_AS_TEXT)
        elif first and self.temporal is not False:
            self._warn_of_times(Stamps(), X, learning=True)
        elif not first and self._is_temporal():
            self._warn_of_times(self._known_stamps, X, learning=True)

    def _warn_of_times(self, stamps: Stamps, X: Any, *, learning: bool) -> None:
        for message in stamps.problems(times_of(X), learning=learning):
            warn(message)

    def _is_temporal(self) -> bool:
        config = self.current_config()
        assert isinstance(config, FactorConfig)
        return config.temporal

    @property
    def _known_stamps(self) -> Stamps:
        return self.__dict__.get("_stamps") or Stamps()

    def _after_learning(self, X: Any, rows: Any) -> None:
        if has_index(X) or self._known_stamps.last is not None:
            self._stamps = self._known_stamps.after(times_of(X))

    def _facts(self, columns: Sequence[Any] | None, times: Times) -> dict[str, Any]:
        return {**super()._facts(columns, times), "_stamps": Stamps().after(times)}

    def facts_header(self, facts: dict[str, Any]) -> dict[str, Any]:
        """See `BaseFactorizer.facts_header`."""
        return {"stamps": facts.get("_stamps", self._known_stamps).header()}

    @classmethod
    def read_facts(
        cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]], n_features: int
    ) -> dict[str, Any]:
        """See `BaseFactorizer.read_facts`."""
        return {"_stamps": Stamps.of_header(header["stamps"]) if "stamps" in header else Stamps()}

    # -- predictions ------------------------------------------------------------------------

    def complete(
        self, X: Any, return_std: bool = False, *, max_gap: Any = None, max_std: Any = None,
        freq: Any = None, entry_weight: Any = None,
    ) -> Any:  # fmt: skip
        """Fill what is missing in X; observed entries stay as they are, bit for bit.

        A temporal model takes the rows as consecutive.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            One row as `partial_fit` takes it.
        return_std : bool, default=False
            Whether to return the predictive standard deviation of each entry as well, 0 where it
            is observed.
        max_gap : int, duration or None, default=None
            Gaps of more consecutive rows of a column stay empty; as a duration ("6h", a timedelta),
            gaps between known values that are farther apart.
        max_std : float or None, default=None
            Entries whose predictive standard deviation is larger stay empty, in units of the
            column's own (`scale_`): 0.5 fills what is known to half a standard deviation.
        freq : str or None, default=None
            As in pandas: also return a row for each time at which there was none, such as "h".
        entry_weight : array-like or sparse matrix of the shape of X, or None, default=None
            How precise each entry is, as in `fit`; what has weight 0 is filled.

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features), or a frame or row if X is one
        std : ndarray of shape (n_samples, n_features), or a row if X is one
            If `return_std`.

        Of a Dask collection both are Dask collections, computed when they are needed.
        """
        limits = Limits(max_gap, max_std)
        if entry_weight is not None:
            if limits.any or freq is not None:
                raise ValueError("entry_weight cannot be used with max_gap, max_std and freq.")
            return self._complete_weighted(X, entry_weight, return_std)
        if is_dask(X) and (limits.any or freq is not None):
            raise ValueError("max_gap, max_std and freq need the whole table: compute X first.")
        if freq is not None:
            X = with_all_rows(X, freq)
        if limits.any:
            return self._complete_known(X, limits, return_std)
        if not return_std:
            return super().complete(X)
        if is_dask(X):
            learner = self.learner_
            names = learner.feature_names or [f"x{i}" for i in range(learner.n_features)]
            return lazily(self, "complete", X, LIKE, Columns(names, np.float64), return_std=True)
        prediction = self._predicted(X)
        std = values_like(X, prediction.std, self.learner_.feature_names)
        return self._like(X, prediction.mean), std

    def _complete_weighted(self, X: Any, entry_weight: Any, return_std: bool) -> Any:
        """`complete` of entries that have weights."""
        rows = self._given(X)
        weighted = self._weighted_rows(X, rows, entry_weight)
        prediction = self._predicted(X, weighted)
        filled = self._like(self._without_unused(X, rows, weighted), prediction.mean)
        if not return_std:
            return filled
        return filled, values_like(X, prediction.std, self.learner_.feature_names)

    def _complete_known(self, X: Any, limits: Limits, return_std: bool) -> Any:
        """`complete`, with entries beyond the limits as they were."""
        prediction, rows = self._predicted(X), dense_with_holes(self._given(X))
        missing = np.isnan(rows)
        left = limits.left(missing, prediction.std, self.scale_, ordered_times(X))
        if is_frame(X):
            names = self.learner_.feature_names or list(X.columns)
            filled = emptied(self._like(X, prediction.mean), names, left)
        else:
            filled = self._like(X, np.where(left, np.nan, prediction.mean))
        if not return_std:
            return filled
        return filled, values_like(X, prediction.std, self.learner_.feature_names)

    def interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Bounds that contain each missing entry with about the given probability.

        The widths are conformal: they are the quantile of the errors of held-out entries, in units
        of their predictive standard deviation. Observed entries are their own bounds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            One row as `partial_fit` takes it.
        level : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (n_samples, n_features), or frames or rows if X is one
        """
        if is_dask(X):
            return lazily(self, "interval", X, LIKE, LIKE, level=level)
        level = checked_level("level", level)
        rows = self._given(X)
        low, high = (self._bounded(side, rows) for side in self._predicted(X).interval(level))
        return self._like(X, low, keep_types=False), self._like(X, high, keep_types=False)

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw the missing entries of X jointly, for multiple imputation.

        Each row is drawn given its own entries only, also by a temporal model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        n : int, default=1
            How many draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        draws : ndarray of shape (n, n_samples, n_features)
        """
        count = checked_count("n", n, "how many draws")
        rows, seed = self._given(X), check_random_state(random_state).randint(2**31)
        rng = np.random.default_rng(seed)
        return self._bounded(self.learner_.sample(rows, count, rng, self.current_config()), rows)

    def score_samples(self, X: Any) -> NDArray[np.float64] | float:
        """Log-likelihood of the observed entries of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            One row as `partial_fit` takes it.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,), or float if X is one row
        """
        if is_dask(X):
            return lazily(self, "score_samples", X, EACH)
        scores = self.learner_.log_likelihood(self._given(X), self.current_config())
        return float(scores[0]) if is_row(X) else scores

    # -- unusual rows -----------------------------------------------------------------------

    def predict(self, X: Any, contamination: float = 0.01) -> NDArray[np.int64]:
        """Which rows are unusual, as scikit-learn's outlier detectors say it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows by name
        contamination : float, default=0.01
            Rows are unusual whose `p_values` are below this: about so large a share of usual rows
            is called unusual by mistake.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 for unusual rows, 1 for others.
        """
        level = checked_level("contamination", contamination)
        rows = self._given(X) if has_names(X) else self._rows(self.learner_, X)
        return np.where(self._engine.p_values(self.current_state(), rows) < level, -1, 1)

    def p_values(self, X: Any) -> NDArray[np.float64] | float:
        """How probable it is for a usual row to be as far off as each row is.

        Entries are compared with what the rest of their row predicts; rows that were learned
        lately say what is usual. Small values are unusual.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            One row as `partial_fit` takes it.

        Returns
        -------
        p_values : ndarray of shape (n_samples,), or float if X is one row
        """
        found = self._engine.p_values(self.current_state(), self._given(X))
        return float(found[0]) if is_row(X) else found

    def entry_scores(self, X: Any) -> Any:
        """Which entries make a row unusual.

        Each entry is predicted from the rest of its row: the score is its error in units of its
        predictive standard deviation, 0 where the entry is missing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            One row as `partial_fit` takes it.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_features), or a row if X is one
        """
        found = self._engine.entry_scores(self.current_state(), self._given(X))
        return values_like(X, found, self.learner_.feature_names)

    # -- estimates --------------------------------------------------------------------------

    @property
    def mean_(self) -> NDArray[np.float64]:
        """Mean of each feature."""
        return self._engine.mean(self.learner_.state)

    @property
    def scale_(self) -> NDArray[np.float64]:
        """Unit of each feature: its standard deviation in the first rows, or one for all."""
        return self._engine.scale(self.learner_.state)

    @property
    def noise_variance_(self) -> NDArray[np.float64] | float:
        """Variance of the noise of each feature; one number if it is isotropic."""
        return self._engine.noise_variance(self.learner_.state)

    @property
    def explained_variance_(self) -> NDArray[np.float64]:
        """Variance that each component explains, descending; in units of `scale_` if scaled."""
        return self._engine.explained_variance(self.learner_.state)

    @property
    def explained_variance_ratio_(self) -> NDArray[np.float64]:
        """The same as a share of the total variance, noise included."""
        return self._engine.explained_variance_ratio(self.learner_.state)

    @property
    def outliers_(self) -> NDArray[np.int64]:
        """How many entries of each feature counted as outliers in the last pass."""
        return self._engine.outlier_counts(self.learner_.state)

    @property
    def recent_error_(self) -> float:
        """Relative error of the last 50 or so rows, each entry predicted from the rest of its row.

        It is known before a row is learned, and follows every row: it rises when the data change,
        and comes down when the model has learned the change.
        """
        return self._engine.recent_error(self.learner_.state)

    @property
    def drift_(self) -> NDArray[np.int64]:
        """Rows, counted from 1, at which a change was noticed: the last 32 of them."""
        return self._engine.alarms(self.learner_.state)

    @property
    def residuals_(self) -> NDArray[np.float64]:
        """Residuals of the last row that was learned, or of up to 2048 rows of a temporal model.

        NaN where entries are missing.
        """
        learner, config = self.learner_, self.current_config()
        rows = learner.last_rows
        if rows is None:
            raise AttributeError("This model does not hold its last rows.")
        return rows.astype(np.float64) - learner.decode(learner.encode(rows, config))

    # -- inside -----------------------------------------------------------------------------

    def _given(self, X: Any) -> Any:
        return self._any_rows(self.learner_, X)

    def _filled(self, X: Any, rows: Any = None) -> NDArray[Any]:
        rows = self._given(X) if rows is None else rows
        filled = self.learner_.fill(rows, self._config_for(X), ordered_times(X))
        return self._bounded(filled, rows)

    def _predicted(self, X: Any, rows: Any = None) -> Prediction:
        rows = self._given(X) if rows is None else rows
        prediction = self.learner_.predict(
            rows, self._config_for(X), std=True, times=ordered_times(X)
        )
        spread, unobserved = prediction.spread, self._unobserved
        if spread is not None and unobserved.any():
            spread = np.where((spread > 0.0) & unobserved, np.inf, spread)
        return replace(prediction, mean=self._bounded(prediction.mean, rows), spread=spread)

    @property
    def _unobserved(self) -> NDArray[np.bool_]:
        """Which features were never observed."""
        return self._engine.unobserved_features(self.learner_.state)

    def _config_for(self, X: Any) -> AnyConfig:
        """The config by which rows are filled: not from neighbours if an index is not in order."""
        config = self.current_config()
        assert isinstance(config, FactorConfig)
        if config.temporal and is_out_of_order(X):
            warn(out_of_order(X))
            return replace(config, temporal=False)
        if config.temporal:
            self._warn_of_times(self._known_stamps, X, learning=False)
        return config

    def _bounded(self, values: NDArray[Any], rows: Any = None) -> NDArray[Any]:
        """Predicted values within what the user allows, except those that the rows observe."""
        bounded = self.allowed(values)
        if rows is None or bounded is values:
            return bounded
        return np.where(np.isnan(dense_with_holes(values_of(rows))), bounded, values)

    def allowed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Predicted values as the parameters allow them."""
        return values
