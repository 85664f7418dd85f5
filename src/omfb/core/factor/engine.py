"""The engine of the factor model, and the facts that its states hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes, too_large
from ..conformal import calibration
from ..engine import NEVER, GetRows, GetSample, Init, Matrix, Numbers, Rows, Times, UnsupportedError
from ..evidence import Evidence
from ..info import Info
from ..linalg.threads import products_in_one_thread
from ..prediction import Prediction
from ..weighted import WeightedRows, values_of
from . import anomalies, regressors
from . import merge as merging
from . import predict as predictions
from .check import check_state
from .config import FactorConfig
from .e_step import encode_rows
from .features import silent_features
from .finalize import finalize, sample_rows
from .grow import add_features
from .holdout import will_score
from .init import head_rows
from .init import init as init_state
from .rank import active_components
from .restrict import WRITTEN, by_feature_of, has_few_entries, without_features
from .robust import clip_rows, outlier_limit
from .state import State, evolve
from .step import end_batch, mostly_observed, step
from .temporal import on_time

# Size of the last rows that a temporal model keeps, at most.
LAST_ROWS_BYTES = 1 << 23


class FactorEngine:
    """Mean, scales, noise and components are estimated from the stream: see `omfb.factor`."""

    name: ClassVar[str] = "factor"
    state_type: ClassVar[type] = State
    config_type: ClassVar[type] = FactorConfig
    defers_start: ClassVar[bool] = True
    rotates_atoms: ClassVar[bool] = True
    has_uncertainty: ClassVar[bool] = True

    def n_start_rows(self, config: FactorConfig, n_components: int | None, n_features: int) -> int:
        """See `Engine.n_start_rows`."""
        return head_rows(n_features, _bounded(config, n_components))

    def start(
        self, head: Rows, n_components: int | None, config: FactorConfig, init: Init, seed: int,
        numbers: Numbers = None,
    ) -> State:  # fmt: skip
        """See `Engine.start`."""
        with _overflow_refused():
            return init_state(head, _bounded(config, n_components), seed=seed, numbers=numbers)

    def step(
        self, state: State, rows: Rows, *, reuse: bool, numbers: Numbers = None
    ) -> tuple[State, Matrix, Info]:
        """See `Engine.step`."""
        one_thread = state.schedule.has_missing and rows.shape[0] > 1
        with _overflow_refused(), products_in_one_thread(one_thread):
            after, codes, info = step(state, rows, reuse=reuse, numbers=numbers)
        if after.temporal is not None and after.params.v is not state.params.v:
            # An M-step has changed the basis: autoregressions are estimated again, on demand.
            after = evolve(after, temporal=None)
        return after, codes, info

    def arrays_of_step(self, state: State, row: Rows | None) -> dict[str, Matrix]:
        """See `Engine.arrays_of_step`."""
        if row is None or has_few_entries(state, row):
            found = by_feature_of(state)
            return {name: found[name] for name in WRITTEN if name in found}
        return {"C": state.params.C}

    def with_arrays(self, state: State, arrays: dict[str, Matrix]) -> State:
        """See `Engine.with_arrays`."""
        return evolve(state, **arrays)

    def updates_in_place(self, row: Rows) -> bool:
        """See `Engine.updates_in_place`."""
        return not isinstance(row, WeightedRows) and not mostly_observed(row)

    def encode(self, state: State, rows: Rows) -> Matrix:
        """See `Engine.encode`."""
        return predictions.encode(state, rows)[:, _order(state)]

    def decode(self, state: State, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        back = np.empty_like(codes)
        back[:, _order(state)] = codes
        return predictions.decode(state, back)

    def predict(self, state: State, rows: Rows, *, std: bool, times: Times = None) -> Prediction:
        """See `Engine.predict`."""
        if self.is_temporal(state):
            rows = values_of(rows)
            mean, deviation = regressors.predict(state, rows, std=std, times=times)
        else:
            mean, deviation = predictions.predict(state, rows, std=std)
        if not std:
            return Prediction(mean)
        errors, dof = predictions.error_histogram(state), predictions.noise_dof(state)
        return Prediction(mean, deviation, errors, dof)

    def sample(self, state: State, rows: Rows, n: int, rng: np.random.Generator) -> Matrix:
        """See `Engine.sample`: each row by itself, without its neighbours in time."""
        drawn = np.array(list(predictions.sample(state, rows, n, rng)))
        mean = predictions.predict(state, rows, std=False).mean
        missing = np.isnan(dense_with_holes(rows))
        calibrated_draws = mean + calibration(state.holdout.histogram) * (drawn - mean)
        return np.where(missing, calibrated_draws, drawn)

    def forecast(
        self, state: State, steps: int, times: Times = None, known: Matrix | None = None
    ) -> Prediction:
        """See `Engine.forecast`."""
        if state.temporal is None:
            raise UnsupportedError(
                "A forecast needs rows that are consecutive in time: fit a frame with a "
                "DatetimeIndex, or set temporal=True."
            )
        return Prediction(*regressors.forecast(state, steps, times, known))

    def log_likelihood(self, state: State, rows: Rows) -> NDArray[np.float64]:
        """See `Engine.log_likelihood`."""
        return predictions.log_likelihood(state, rows)

    def p_values(self, state: State, rows: Rows) -> NDArray[np.float64]:
        """How probable residuals as large as those of each row are."""
        return anomalies.p_values(state, rows)

    def entry_scores(self, state: State, rows: Rows) -> NDArray[np.float64]:
        """How far each entry is from what the rest of its row predicts, in its deviations."""
        return anomalies.entry_scores(state, rows)

    def outlier_entries(
        self, state: State, rows: Rows
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """See `Engine.outlier_entries`."""
        state = end_batch(state)
        if not state.outliers.drop:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        given = clip_rows(state, np.ascontiguousarray(rows, dtype=state.C.dtype))
        dropped = encode_rows(state, given, limit=outlier_limit(state)).dropped
        starts, features, _ = given.entries
        entries = np.flatnonzero(dropped)
        which = np.searchsorted(starts, entries, side="right") - 1
        return which.astype(np.int64), features[entries].astype(np.int64)

    def score_held_out(self, state: State, rows: Rows) -> Info:
        """See `Engine.score_held_out`."""
        return predictions.score_held_out(state, rows)

    def is_temporal(self, state: State) -> bool:
        """See `Engine.is_temporal`."""
        return state.temporal is not None

    def lacks_temporal(self, state: State) -> bool:
        """See `Engine.lacks_temporal`."""
        return bool(state.config.temporal) and state.temporal is None

    def rows_until_update(self, state: State) -> int:
        """See `Engine.rows_until_update`: M-steps change the basis of the codes."""
        return state.schedule.update_left if state.config.temporal else NEVER

    def components(self, state: State) -> Matrix:
        """See `Engine.components`."""
        C = state.C[:, :-1] * state.params.noise_std[:, None]
        return np.ascontiguousarray(C.T[_order(state)], dtype=state.C.dtype)

    def n_components(self, state: State) -> int:
        """See `Engine.n_components`."""
        return state.n_components

    def n_active_components(self, state: State) -> int:
        """See `Engine.n_active_components`."""
        return int(active_components(state).sum())

    def batch_size(self, config: FactorConfig) -> int:
        """See `Engine.batch_size`: batches are the engine's own, wherever blocks are cut."""
        return 1

    def begin_pass(self, state: State) -> State:
        """See `Engine.begin_pass`."""
        none = np.zeros_like(state.outliers.n_dropped)  # as many as in one pass, not in all
        return evolve(state, pass_rows=state.schedule.pass_rows or state.n_seen, n_dropped=none)

    def scores_next_rows(self, state: State) -> bool:
        """See `Engine.scores_next_rows`."""
        return will_score(state)

    def n_finalize_rows(self, n_features: int) -> int:
        """See `Engine.n_finalize_rows`."""
        return sample_rows(n_features)

    def finalize(
        self, state: State, sample: GetSample, last_rows: GetRows, times: Times = None
    ) -> State:
        """See `Engine.finalize`."""
        with products_in_one_thread(state.schedule.has_missing):
            return finalize(state, sample, last_rows, times)

    def n_last_rows(self, config: FactorConfig, n_features: int) -> int:
        """See `Engine.n_last_rows`: the last for its residuals, many if rows are temporal."""
        most = max(1, LAST_ROWS_BYTES // (8 * n_features))
        return min(config.hyper.window, most) if config.temporal else 1

    def resume_temporal(
        self, state: State, last_rows: GetRows, times: Times = None, *, ahead: bool = True
    ) -> State:
        """See `Engine.resume_temporal`."""
        if not state.config.temporal:
            return state
        if state.temporal is None:
            return regressors.fit_in_time(state, last_rows(), times)
        if state.temporal.n_seen == state.n_seen:
            return state
        if not ahead:
            return on_time(state, times)
        return regressors.update_in_time(state, last_rows(), times)

    def is_mergeable(self, config: FactorConfig) -> bool:
        """See `Engine.is_mergeable`."""
        return config.forget_factor == 1.0

    def evidence(self, start: State, part: State) -> Evidence:
        """See `Engine.evidence`."""
        return merging.gather(start, part)

    def merge(self, start: State, evidence: Evidence) -> State:
        """See `Engine.merge`."""
        return merging.merged(start, evidence)

    def with_config(self, state: State, config: FactorConfig) -> State:
        """See `Engine.with_config`."""
        if config == state.config:
            return state
        outliers = state.outliers
        keeps = config.temporal and config.seasons == state.config.seasons
        return evolve(
            state, config=config, temporal=state.temporal if keeps else None,
            detect=outliers.detect and config.robust, drop=outliers.drop and config.robust,
        )  # fmt: skip

    def add_features(self, state: State, count: int) -> State:
        """See `Engine.add_features`."""
        return add_features(state, count)

    def without_features(self, state: State, kept: NDArray[np.int64]) -> State:
        """See `Engine.without_features`."""
        return without_features(state, kept)

    def silent_features(self, state: State) -> NDArray[np.bool_]:
        """Which features are to be dropped."""
        return silent_features(state)

    def to_local(self, state: State) -> State:
        """See `Engine.to_local`."""
        return state

    def check(self, state: State) -> None:
        """See `Engine.check`."""
        check_state(state)

    # -- what the model has estimated -------------------------------------------------------

    def mean(self, state: State) -> NDArray[np.float64]:
        """Mean of each feature."""
        params = state.params
        shift = state.one * params.C[:, -1].astype(np.float64)
        return params.center + params.noise_std * shift

    def scale(self, state: State) -> NDArray[np.float64]:
        """Unit of each feature: its standard deviation in the first rows, or one for all."""
        return state.params.scale.copy()

    def noise_variance(self, state: State) -> NDArray[np.float64] | float:
        """Variance of the noise of each feature; one number if it is isotropic."""
        variance = state.params.noise_std**2 * state.params.precision
        return variance if state.config.noise == "diagonal" else float(variance.mean())

    def explained_variance(self, state: State) -> NDArray[np.float64]:
        """Variance that each component explains, in descending order, in units of the scale."""
        with np.errstate(over="ignore"):
            return np.sum(_scaled(state) ** 2, axis=0)[_order(state)]

    def explained_variance_ratio(self, state: State) -> NDArray[np.float64]:
        """The same as a share of the total variance, noise included."""
        each = self.explained_variance(state)
        scale = state.params.scale if state.config.scale else 1.0
        return each / (each.sum() + np.sum((state.params.noise_std / scale) ** 2))

    def outlier_counts(self, state: State) -> NDArray[np.int64]:
        """How many entries of each feature counted as outliers."""
        return state.outliers.n_dropped.copy()

    def alarms(self, state: State) -> NDArray[np.int64]:
        """Numbers of the rows, from 1, at which a change was noticed."""
        return state.drift.alarms.copy()

    def recent_error(self, state: State) -> float:
        """Relative leave-one-out error of the last rows; NaN before there are any."""
        residual, energy = state.holdout.sse[1]
        return float(np.sqrt(residual / energy)) if energy > 0.0 else float("nan")

    def integer_features(self, state: State) -> NDArray[np.bool_]:
        """Which features held only integers."""
        return state.features.integer

    def unobserved_features(self, state: State) -> NDArray[np.bool_]:
        """Which features were never observed."""
        return ~state.features.known & (state.features.pending_moments[0] == 0.0)

    def describe(self, state: State) -> dict[str, Any]:
        """See `Engine.describe`."""
        error, temporal = self.recent_error(state), state.temporal
        noise = "noise" if state.config.noise == "isotropic" else "noise (median of the features)"
        return {
            "components": state.n_components,
            "features": len(state.C),
            "dtype": str(state.C.dtype),
            "rows seen": state.n_seen,
            "recent error": None if np.isnan(error) else error,
            "active components": self.n_active_components(state),
            noise: float(np.median(state.params.noise_std)),
            "outliers": int(state.outliers.n_dropped.sum()),
            "outliers count as missing": state.outliers.drop,
            "temporal": bool(state.config.temporal),
            "filled from neighbours": temporal is not None
            and bool(temporal.code_ar.any() or temporal.residual_ar.any()),
        }


def _bounded(config: FactorConfig, n_components: int | None) -> FactorConfig:
    """The config with the learner's bound on the number of components, if it has one."""
    if n_components is None or config.n_components == n_components:
        return config
    return replace(config, n_components=n_components)


@contextmanager
def _overflow_refused() -> Iterator[None]:
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        raise too_large() from error


def _scaled(state: State) -> Matrix:
    params = state.params
    scale = params.scale if state.config.scale else np.ones_like(params.scale)
    return params.C[:, :-1].astype(np.float64) * (params.noise_std / scale)[:, None]


def _order(state: State) -> Any:
    """Components in descending order of their variance."""
    scaled = _scaled(state)
    scaled /= max(float(np.abs(scaled).max()), 1e-300)  # squares of huge data would overflow
    return np.argsort(-np.sum(scaled**2, axis=0), kind="stable")


FACTOR = FactorEngine()
