"""Forecasts of estimators: what follows the last row, and how good that was in the past."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.blocks import dense_with_holes
from ..core.checks import checked_count, checked_level
from ..core.factor.config import FactorConfig
from ..core.factor.state import State
from ..learner.predictor import known_features
from .base import BaseFactorizer
from .covariates import future_values
from .time_index import future_index, seconds_of

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Backtest:
    """What forecasts from several origins would have been worth.

    Attributes
    ----------
    origins : ndarray of shape (n_origins,)
        How many rows each forecast knew.
    errors : ndarray of shape (n_origins, horizon, n_features)
        Forecast minus value, in the columns' units; NaN where nothing was observed.
    rmse, mae : ndarray of shape (horizon, n_features)
        Root mean squared and mean absolute error, in the columns' units.
    rmse_last_value : ndarray of shape (horizon, n_features)
        The root mean squared error of the last known value as a forecast.
    coverage : ndarray of shape (horizon,)
        Share of the values that lay within the intervals.
    level : float
        The share that should have.
    """

    origins: NDArray[np.int64]
    errors: Array
    rmse: Array
    mae: Array
    rmse_last_value: Array
    coverage: Array
    level: float


class ForecastingFactorizer(BaseFactorizer):
    """`forecast`, `backtest` and `seasons_` of the factor model."""

    @abstractmethod
    def allowed(self, values: Array) -> Array:
        """Predicted values as the parameters allow them."""

    def checked_rows(self, X: Any) -> Any:
        """X as the model takes rows."""
        return self._rows(self.learner_, X)

    def forecast(
        self, steps: int = 1, level: float | None = None, *, covariates: Any = None
    ) -> Any:
        """The rows that follow the last one; needs a temporal model.

        Seasons go on, and the rest fades to its mean, or stays at the last known value where
        backtests at the end of the fit found that better. Intervals have a width of their own for
        each horizon and column, from the errors of the same backtests.

        Parameters
        ----------
        steps : int, default=1
        level : float or None, default=None
            If given, bounds that contain each value with about this probability are returned, too.
        covariates : frame, dict or array-like of shape (steps, n_covariates), or None, default=None
            The values that the model's covariates will have, by name, or in the order of the
            parameter. Of a frame with times as its index, the rows to come are taken.

        Returns
        -------
        rows : ndarray of shape (steps, n_features)
            A pandas frame with the columns and the times to come, if the model was fitted to one
            with times as its index.
        low, high : the same
            If `level` is given.
        """
        count = checked_count("steps", steps, "how many rows ahead")
        level = None if level is None else checked_level("level", level)
        index = self._future(count)
        times = None if index is None else seconds_of(index)
        known = future_values(covariates, self._covariate_names(), count, times)
        ahead = self.learner_.forecast(count, self.current_config(), times, known)
        sides = (ahead.mean,) if level is None else (ahead.mean, *ahead.interval(level))
        made = tuple(self._framed(self.allowed(side), index) for side in sides)
        return made[0] if level is None else made

    def backtest(
        self, X: Any, horizon: int = 1, n_origins: int = 5, level: float = 0.9
    ) -> Backtest:
        """Errors and coverage of forecasts, had they been made at several times in the past.

        For each origin a model with the same parameters is fitted to the rows before it, and its
        forecast compared with the rows after it. This model itself need not be fitted, and does not
        change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in their order. Covariates are given to forecasts, and have no errors.
        horizon : int, default=1
            How many rows ahead.
        n_origins : int, default=5
            How many forecasts: from origins spread over the second half of the rows.
        level : float, default=0.9
            The share of values that intervals are to hold.

        Returns
        -------
        result : Backtest
        """
        ahead = checked_count("horizon", horizon, "how many rows ahead")
        count = checked_count("n_origins", n_origins, "how many forecasts")
        level = checked_level("level", level)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if n < 2 * ahead + 2:
            raise ValueError(
                f"X has {n} rows: a backtest {ahead} rows ahead needs at least {2 * ahead + 2}. "
                f"Give more rows, or a shorter horizon."
            )
        take = getattr(X, "iloc", X if hasattr(X, "shape") else np.asarray(X))
        origins = np.unique(np.linspace(max(n // 2, ahead), n - ahead, count).astype(np.int64))
        errors, naive, inside = [], [], []
        for origin in origins.tolist():
            model = clone(self).fit(take[:origin])
            known = _numbers(model, take[:origin])
            truth = _numbers(model, take[origin : origin + ahead])
            covariates = list(known_features(model.learner_.config))
            given = truth[:, covariates] if covariates else None
            forecasts = model.forecast(ahead, level=level, covariates=given)
            mean, low, high = (np.asarray(side) for side in forecasts)
            truth[:, covariates] = np.nan  # what is given is no forecast
            seen = ~np.isnan(truth)
            errors.append(mean - truth)
            naive.append(_last_known(known) - truth)
            inside.append(np.where(seen, (low <= truth) & (truth <= high), np.nan))
        error, last = np.array(errors), np.array(naive)
        return Backtest(
            origins,
            error,
            np.sqrt(_mean(error**2)),
            _mean(np.abs(error)),
            np.sqrt(_mean(last**2)),
            _mean(np.array(inside).swapaxes(1, 2).reshape(-1, ahead)),
            level,
        )

    def _covariate_names(self) -> list[Any]:
        """Names of the covariates, or their numbers."""
        learner = self.learner_
        names = learner.feature_names or range(learner.n_features)
        return [names[at] for at in known_features(learner.config)]

    @property
    def seasons_(self) -> list[Any]:
        """Lengths of the cycles in time: timedeltas if rows have times, otherwise rows."""
        state: State = self.current_state()
        if state.temporal is None or state.temporal.seasons is None:
            return []
        periods = state.temporal.seasons.periods.tolist()
        if not state.temporal.stamped:
            return periods
        return [np.timedelta64(round(1e3 * period), "ms").astype(object) for period in periods]

    def forecast_times(self, steps: int) -> Array | None:
        """When the rows to come will, in seconds since 1970 (of durations, since zero).

        Parameters
        ----------
        steps : int

        Returns
        -------
        times : ndarray of shape (steps,) or None
            None if the model was fitted to rows without times.
        """
        index = self._future(steps)
        if index is not None:
            return seconds_of(index)
        state: State = self.learner_.state_for(self.current_config())
        if state.temporal is None or not state.temporal.stamped:
            return None
        return state.temporal.last_time + state.temporal.step * np.arange(1.0, steps + 1.0)

    def _future(self, steps: int) -> Any:
        """The index of the rows to come; None if rows have none."""
        config = self.current_config()
        assert isinstance(config, FactorConfig)
        state: State = self.learner_.state_for(config)
        if config.index is None or state.temporal is None or not state.temporal.stamped:
            return None
        return future_index(config.index, state.temporal.last_time, state.temporal.step, steps)

    def _framed(self, values: Array, index: Any) -> Any:
        if index is None:
            return values
        import pandas as pd

        return pd.DataFrame(values, index=index, columns=self.learner_.feature_names)


def _numbers(model: Any, X: Any) -> Array:
    """Rows as a model takes them, NaN where entries are missing."""
    return dense_with_holes(model.checked_rows(X)).astype(np.float64)


def _last_known(rows: Array) -> Array:
    """The last known value of each column; NaN if there is none."""
    seen = ~np.isnan(rows)
    last = len(rows) - 1 - np.argmax(seen[::-1], axis=0)
    return np.where(seen.any(axis=0), rows[last, np.arange(rows.shape[1])], np.nan)


def _mean(values: Array) -> Array:
    """Mean over the first axis of what is known; NaN where nothing is."""
    seen = ~np.isnan(values)
    total = np.sum(values, axis=0, where=seen)
    count = seen.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
