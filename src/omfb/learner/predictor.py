"""`Predictor`: what a learner tells of rows, by the state that it has."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import UnusableError, check_known
from ..core.checks import checked_level
from ..core.engine import Rows, Times
from ..core.engines import AnyConfig, AnyEngine
from ..core.finite import find_infinity, infinity_problem, made_finite, quiet, within_range
from ..core.info import Info
from ..core.prediction import Prediction
from ..core.weighted import values_of

Method = TypeVar("Method", bound=Callable[..., Any])


def locates_infinity(method: Method) -> Method:
    """Let a method of rows say where infinity is: kernels know only the piece that they work on."""

    @wraps(method)
    def located(self: Any, rows: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(self, rows, *arguments, **options)
        except UnusableError as error:
            rows = values_of(rows)
            is_rows = isinstance(rows, np.ndarray) or scipy.sparse.issparse(rows)
            where = find_infinity(rows) if is_rows else None
            if where is None:
                raise
            raise UnusableError(infinity_problem(*where, self.feature_names)) from error

    return cast(Method, located)


def known_features(config: Any) -> tuple[int, ...]:
    """Features that must always be known, under a config."""
    known: tuple[int, ...] = getattr(config, "known", ())
    return known


class Predictor(ABC):
    """Codes, predictions and facts of a state; nothing is learned."""

    engine: AnyEngine

    @property
    @abstractmethod
    def feature_names(self) -> list[str] | None:
        """Names of the features, if they have any."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """The state of the engine."""

    @abstractmethod
    def state_for(self, config: AnyConfig | None = None, *, ahead: bool = False) -> Any:
        """The state by which rows are coded and filled, under a config or as before.

        With `ahead` also by which the rows to come are forecast.
        """

    @property
    def components(self) -> NDArray[Any]:
        """The dictionary, an atom in a row."""
        state = self.state
        with quiet():
            return within_range(self.engine.components(state))

    @locates_infinity
    def encode(self, rows: Rows, config: AnyConfig | None = None) -> NDArray[Any]:
        """Codes of rows, in the dictionary's type, whose range bounds them."""
        state = self.state_for(config)
        with quiet():
            codes = self.engine.encode(state, rows)
            return made_finite(codes.astype(state.C.dtype, copy=False), values_of(rows))

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Rows from their codes, in the dictionary's type, whose range bounds them."""
        rows = self.engine.decode(self.state, codes)
        if not np.isfinite(rows).all() and not np.isfinite(codes).all():
            raise UnusableError("contains NaN or infinity, but codes are finite numbers.")
        return made_finite(rows, codes)

    def fill(
        self, rows: Rows, config: AnyConfig | None = None, times: Times = None
    ) -> NDArray[Any]:
        """The rows as an array in which missing entries are filled; observed ones stay."""
        return self.predict(rows, config, times=times).mean

    @locates_infinity
    def predict(
        self, rows: Rows, config: AnyConfig | None = None, *, std: bool = False,
        times: Times = None,
    ) -> Prediction:  # fmt: skip
        """The filled rows and, with `std`, the standard deviation of each entry.

        Raises
        ------
        UnsupportedError
            With `std`, if the algorithm estimates no noise.
        """
        state = self.state_for(config)
        check_known(values_of(rows), known_features(state.config), self.feature_names)
        with quiet():
            prediction = self.engine.predict(state, rows, std=std, times=times)
        spread, rows = prediction.spread, values_of(rows)
        return replace(
            prediction,
            mean=made_finite(prediction.mean, rows),
            spread=None if spread is None else made_finite(spread, rows),
        )

    def interval(
        self, rows: Rows, level: float, config: AnyConfig | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Bounds that contain each missing entry with a probability of about `level`."""
        return self.predict(rows, config, std=True).interval(checked_level("level", level))

    @locates_infinity
    def sample(
        self, rows: Rows, n: int, rng: np.random.Generator, config: AnyConfig | None = None
    ) -> NDArray[Any]:
        """n joint draws of the missing entries of rows: (n, n_rows, n_features)."""
        state = self.state_for(config)
        with quiet():
            return made_finite(self.engine.sample(state, rows, n, rng), rows)

    @locates_infinity
    def log_likelihood(self, rows: Rows, config: AnyConfig | None = None) -> NDArray[np.float64]:
        """Log-likelihood of the observed entries of each row."""
        state = self.state_for(config)
        with quiet():
            return made_finite(self.engine.log_likelihood(state, rows), rows)

    def forecast(
        self, steps: int, config: AnyConfig | None = None, times: Times = None,
        known: NDArray[np.float64] | None = None,
    ) -> Prediction:  # fmt: skip
        """The rows that follow the last one that was learned from, or come at given times.

        `known` are the values (steps, n_covariates) that covariates will have, if there are any.
        """
        return self.engine.forecast(self.state_for(config, ahead=True), steps, times, known)

    def outlier_entries(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row and feature of each entry of rows that counts as an outlier."""
        return self.engine.outlier_entries(self.state, rows)

    @locates_infinity
    def score_held_out(self, rows: Rows, config: AnyConfig | None = None) -> Info:
        """Energies of held-out entries and of their errors, each row predicted from its rest."""
        state = self.state
        if config is not None:
            state = self.engine.with_config(state, config)
        with quiet():
            return self.engine.score_held_out(state, rows)

    @property
    def is_temporal(self) -> bool:
        """Whether rows are filled from their neighbours in time."""
        return self.engine.is_temporal(self.state_for())

    def describe(self) -> dict[str, Any]:
        """Facts about the model, by name."""
        return self.engine.describe(self.state_for())
