"""What the estimators say beyond a filled value: how sure they are, and what comes next."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from ..adapters.dask.lazy import EACH, LIKE, Columns, is_dask, lazily
from ..core import conformal as histogram
from ..core.blocks import dense_with_holes
from ..core.checks import checked_count, checked_number
from ..core.factor import predict as encode
from ..core.factor.engine import BAYES, explained
from ..core.factor.state import Model, Vector
from ..core.factor.temporal import fill_in_time, forecast
from ..core.finite import made_finite, quiet, within_range
from .frames import like_frame
from .parameters import plan_of


def _knows_noise(model: Any) -> bool:
    """Whether the parameters are of a model that has likelihoods; scikit-learn asks."""
    return plan_of(model).engine is BAYES


def _width(errors: NDArray[np.float64], level: float) -> float:
    """How many deviations hold this share of errors."""
    level = checked_number("level", level, "between 0 and 1", "try 0.9", 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1 (try 0.9), got {level}.")
    return histogram.quantile(errors, level)


class BeliefMixin:
    """Deviations, intervals, draws, likelihoods and forecasts of the model that was found."""

    def complete(self, X: Any, return_std: bool = False) -> Any:
        """Fill what is missing in X; what is observed stays as it is, bit for bit.

        Rows of a model that is in time are taken as consecutive.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the predictive standard deviation of each entry as well, 0 where it
            is observed.

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features), or a frame if X is one
        std : ndarray of shape (n_samples, n_features)
            If `return_std`.

        Of a Dask collection both are Dask collections, computed when they are asked for.
        """
        if is_dask(X):
            learner = self.learner_  # type: ignore[attr-defined]
            names = learner.feature_names or [f"x{i}" for i in range(learner.n_features)]
            also = [Columns(names, np.float64)] if return_std else []
            return lazily(self, "complete", X, LIKE, *also, return_std=return_std)
        if not return_std:
            return self._like(X, self._filled(X))  # type: ignore[attr-defined]
        filled, deviations, errors = self._with_deviations(X)
        with quiet():
            deviations = within_range(histogram.calibration(errors) * deviations)
        return self._like(X, filled), deviations

    def interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Bounds that hold each missing entry with about the given probability.

        The widths are conformal: entries that were hidden while the model learned say how many
        predictive deviations hold that share of the errors. Observed entries are their own bounds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        level : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (n_samples, n_features), or frames if X is one
        """
        if is_dask(X):
            return lazily(self, "interval", X, LIKE, LIKE, level=level)
        filled, deviations, errors = self._with_deviations(X)
        rows = self._given(X)
        with quiet():
            half = _width(errors, level) * deviations
            sides = (within_range(filled + side * half) for side in (-1.0, 1.0))
            low, high = (self._bounded(side, rows) for side in sides)
        return self._like(X, low), self._like(X, high)

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw the missing entries of X jointly, for multiple imputation.

        Each row by itself: what neighbouring rows tell where rows are in time is left out.

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
        model, rows = self._belief(), self._given(X)
        seed = check_random_state(random_state).randint(2**31)
        with quiet():
            drawn = np.array(list(encode.draw(model, rows, count, np.random.default_rng(seed))))
            middle, missing = encode.fill(model, rows).rows, np.isnan(dense_with_holes(rows))
            spread = histogram.calibration(model.histogram) * (drawn - middle)
            drawn = np.where(missing, middle + spread, drawn)
        return self._bounded(made_finite(drawn, rows), rows)

    @available_if(_knows_noise)  # type: ignore[untyped-decorator, unused-ignore]
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-likelihood of what is observed of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
        """
        if is_dask(X):
            return lazily(self, "score_samples", X, EACH)
        model, rows = self._belief(), self._given(X)
        with quiet():
            return made_finite(encode.log_likelihood(model, rows), rows)

    def forecast(self, steps: int = 1, level: float | None = None) -> Any:
        """The rows that follow the last one; needs rows in time.

        Parameters
        ----------
        steps : int, default=1
        level : float or None, default=None
            If given, bounds that hold each value with about this probability are returned as well.

        Returns
        -------
        rows : ndarray of shape (steps, n_features)
        low, high : ndarray of shape (steps, n_features)
            If `level` is given.
        """
        count = checked_count("steps", steps, "how many rows ahead")
        model = self._belief()
        if model.memory is None:
            raise ValueError(
                "A forecast needs rows in time: fit a frame with a DatetimeIndex, or set "
                "in_time=True."
            )
        means, deviations = forecast(model, count)
        if level is None:
            return self._bounded(means)
        half = _width(model.memory.ahead, level) * deviations
        return self._bounded(means), self._bounded(means - half), self._bounded(means + half)

    # -- what was found ---------------------------------------------------------------------

    @property
    def n_components_(self) -> int:
        """Components that stand out of the noise; at most `n_components`."""
        state = self.learner_.state  # type: ignore[attr-defined]
        if isinstance(state, Model):
            return int(state.used.sum())
        return int(state.C.shape[1])

    @property
    def mean_(self) -> NDArray[np.float64]:
        """Mean of each feature."""
        model = self._found()
        return model.center + model.one * model.noise * model.C[:, -1].astype(np.float64)

    @property
    def scale_(self) -> NDArray[np.float64]:
        """Unit of each feature: its deviation at the head of the stream, or one for all."""
        return self._found().unit.copy()

    @property
    def noise_variance_(self) -> Any:
        """Variance of the noise of each feature; one number if they share it."""
        model = self._found()
        variance = model.noise**2
        return variance if model.settings.noise == "feature" else float(variance.mean())

    @property
    def explained_variance_(self) -> NDArray[np.float64]:
        """Variance that each component explains, falling; in units of `scale_` if scaled."""
        return explained(self._found())

    @property
    def explained_variance_ratio_(self) -> NDArray[np.float64]:
        """The same as a share of all variance, that of the noise included."""
        model = self._found()
        each = explained(model)
        unit = model.unit if model.settings.scale else 1.0
        return each / (each.sum() + np.sum((model.noise / unit) ** 2))

    @property
    def outliers_(self) -> NDArray[np.int64]:
        """Of each feature, how many entries were taken for outliers."""
        return self._found().outliers.copy()

    @property
    def recent_error_(self) -> float:
        """As `prequential_error_`, of the last rows only: it rises when the data change."""
        residual, energy = self._found().judged[1]
        return float(np.sqrt(residual / energy)) if energy > 0.0 else float("nan")

    @property
    def residuals_(self) -> NDArray[np.float64]:
        """What the model does not explain of the last rows that it has learned from.

        Of the last row; of up to 2048 rows if they are in time. NaN where entries are missing.
        """
        self._found()
        rows = self.learner_.last_rows  # type: ignore[attr-defined]
        if rows is None:
            raise AttributeError("A model of an older file does not hold its last rows.")
        model = self._belief()
        return rows.astype(np.float64) - encode.decode(model, encode.encode(model, rows))

    # -- inside -----------------------------------------------------------------------------

    def _found(self) -> Model:
        state = self.learner_.state  # type: ignore[attr-defined]
        if not isinstance(state, Model):
            raise AttributeError(
                "A model whose rule is given in full, as memory=0 is, finds neither mean nor noise."
            )
        return state

    def _belief(self, rule: Any = None) -> Model:
        learner = self.learner_  # type: ignore[attr-defined]
        state = learner.used(rule or self._plan(learner).rule)  # type: ignore[attr-defined]
        if not isinstance(state, Model):
            raise ValueError(
                "A rule that is given in full, as memory=0 is, knows nothing of noise: leave "
                "memory out to be told how sure the model is."
            )
        return state

    def _given(self, X: Any) -> Any:
        return self._rows(self.learner_, X)  # type: ignore[attr-defined]

    def _with_deviations(self, X: Any) -> tuple[NDArray[Any], NDArray[np.float64], Vector]:
        """Filled rows, the deviation of each entry, and the histogram of errors in these units."""
        model, rows = self._belief(self._rule_for(X)), self._given(X)  # type: ignore[attr-defined]
        fill = fill_in_time if model.memory is not None else encode.fill
        with quiet():
            filled, deviations = fill(model, rows, deviations=True)
        assert deviations is not None
        filled = self._bounded(made_finite(filled, rows), rows)
        return filled, made_finite(deviations, rows), encode.errors_of(model)

    def _like(self, X: Any, filled: NDArray[Any]) -> Any:
        return like_frame(X, filled, self.learner_.feature_names)  # type: ignore[attr-defined]

    def _bounded(self, values: NDArray[Any], rows: Any = None) -> NDArray[Any]:
        """Values within what the user allows, but for those that the rows observe."""
        return values
