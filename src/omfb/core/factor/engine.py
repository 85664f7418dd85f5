"""The engine of the factor model, and the facts that its states hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes, too_large
from ..conformal import N_BINS, calibration
from ..engine import GetRows, Init, Matrix, Rows, UnsupportedError
from ..evidence import Evidence
from ..info import Info
from ..linalg.threads import products_in_one_thread
from ..prediction import Prediction
from . import merge as merging
from . import predict as coding
from .calibrate import calibrated, calibrated_by_moving
from .config import FactorConfig
from .e_step import codes_of
from .holdout import tells_an_error
from .holdout_scores import outlier_limit
from .init import head_rows, start
from .new_features import unacquainted
from .prune import sparing
from .refine import polished
from .small_sample import doubted
from .state import Model, check_model
from .step import learn, mostly_observed
from .temporal import WINDOW, fill_in_time, forecast, remembering, up_to_date
from .univariate import DISTANCES
from .winsorize import believed

# Entries of the rows that intervals are calibrated by: one row in eight holds some out.
SAMPLE_ENTRIES = 1 << 21
# Size of the last rows that a temporal model keeps, at most.
LAST_ROWS_BYTES = 1 << 23


class FactorEngine:
    """Mean, scales, noise and components are estimated from the stream: see `omfb.factor`."""

    name: ClassVar[str] = "factor"
    state_type: ClassVar[type] = Model
    config_type: ClassVar[type] = FactorConfig
    defers_start: ClassVar[bool] = True
    rotates_atoms: ClassVar[bool] = True
    has_uncertainty: ClassVar[bool] = True

    def n_start_rows(self, config: FactorConfig, n_components: int | None, n_features: int) -> int:
        """See `Engine.n_start_rows`."""
        return head_rows(n_features, config.components_for(n_features))

    def start(
        self, head: Rows, n_components: int | None, config: FactorConfig, init: Init, seed: int
    ) -> Model:
        """See `Engine.start`."""
        with _overflow_refused():
            return start(head, config, seed)

    def step(self, state: Model, rows: Rows, *, reuse: bool) -> tuple[Model, Matrix, Info]:
        """See `Engine.step`."""
        with _overflow_refused(), products_in_one_thread(state.gappy and rows.shape[0] > 1):
            after, codes, info = learn(state, rows, reuse=reuse)
        if after.memory is not None and after.v is not state.v:
            # A revision has turned the codes: what they keep is found again, on demand.
            after = replace(after, memory=None)
        return after, codes, info

    def updates_in_place(self, row: Rows) -> bool:
        """See `Engine.updates_in_place`."""
        return not mostly_observed(row)

    def encode(self, state: Model, rows: Rows) -> Matrix:
        """See `Engine.encode`."""
        return coding.encode(state, rows)[:, _order(state)]

    def decode(self, state: Model, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        back = np.empty_like(codes)
        back[:, _order(state)] = codes
        return coding.decode(state, back)

    def predict(self, state: Model, rows: Rows, *, std: bool) -> Prediction:
        """See `Engine.predict`."""
        fill = fill_in_time if self.is_temporal(state) else coding.fill
        filled, spread = fill(state, rows, deviations=std)
        return Prediction(filled, spread, coding.errors_of(state) if std else None)

    def sample(self, state: Model, rows: Rows, n: int, rng: np.random.Generator) -> Matrix:
        """See `Engine.sample`: each row by itself, without its neighbours in time."""
        drawn = np.array(list(coding.draw(state, rows, n, rng)))
        mean, missing = coding.fill(state, rows).rows, np.isnan(dense_with_holes(rows))
        calibrated_draws = mean + calibration(state.histogram) * (drawn - mean)
        return np.where(missing, calibrated_draws, drawn)

    def forecast(self, state: Model, steps: int) -> Prediction:
        """See `Engine.forecast`."""
        if state.memory is None:
            raise UnsupportedError(
                "A forecast needs rows that are consecutive in time: fit a frame with a "
                "DatetimeIndex, or set temporal=True."
            )
        return Prediction(*forecast(state, steps), state.memory.ahead)

    def log_likelihood(self, state: Model, rows: Rows) -> NDArray[np.float64]:
        """See `Engine.log_likelihood`."""
        return coding.log_likelihood(state, rows)

    def outlier_entries(
        self, state: Model, rows: Rows
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """See `Engine.outlier_entries`."""
        state = coding.settled(state)
        if not state.drops:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        given = believed(state, np.ascontiguousarray(rows, dtype=state.C.dtype))
        dropped = codes_of(state, given, limit=outlier_limit(state)).dropped
        starts, features, _ = given.entries
        entries = np.flatnonzero(dropped)
        which = np.searchsorted(starts, entries, side="right") - 1
        return which.astype(np.int64), features[entries].astype(np.int64)

    def score_held_out(self, state: Model, rows: Rows) -> Info:
        """See `Engine.score_held_out`."""
        return coding.judge(state, rows)

    def is_temporal(self, state: Model) -> bool:
        """See `Engine.is_temporal`."""
        return state.memory is not None

    def components(self, state: Model) -> Matrix:
        """See `Engine.components`."""
        C = state.C[:, :-1] * state.noise[:, None]
        return np.ascontiguousarray(C.T[_order(state)], dtype=state.C.dtype)

    def n_components(self, state: Model) -> int:
        """See `Engine.n_components`."""
        return state.n_components

    def n_active_components(self, state: Model) -> int:
        """See `Engine.n_active_components`."""
        return int(state.used.sum())

    def batch_size(self, config: FactorConfig) -> int:
        """See `Engine.batch_size`: batches are the engine's own, wherever blocks are cut."""
        return 1

    def begin_pass(self, state: Model) -> Model:
        """See `Engine.begin_pass`."""
        outliers = np.zeros_like(state.outliers)  # as many as in one pass, not in all
        return replace(state, pass_rows=state.pass_rows or state.n_seen, outliers=outliers)

    def scores_next_rows(self, state: Model) -> bool:
        """See `Engine.scores_next_rows`."""
        return tells_an_error(state)

    def n_finalize_rows(self, n_features: int) -> int:
        """See `Engine.n_finalize_rows`."""
        return max(256, min(4096, SAMPLE_ENTRIES // n_features))

    def finalize(self, state: Model, sample: GetRows, last_rows: GetRows) -> Model:
        """See `Engine.finalize`."""
        with products_in_one_thread(state.gappy):
            return self._finalized(state, sample, last_rows)

    def _finalized(self, state: Model, sample: GetRows, last_rows: GetRows) -> Model:
        state = coding.settled(state)
        n_rows = state.pass_rows or state.n_seen
        short = n_rows <= self.n_finalize_rows(len(state.C))  # the sample is the whole table
        if state.gappy or short:
            rows = sample()
            state = sparing(state, rows)
            state = polished(state, rows) if short else state
            moved = calibrated_by_moving(state, rows) if short else None
            state = calibrated(state, rows) if moved is None else moved
            state = doubted(state, rows) if short else state
        state = replace(state, pass_rows=0)  # rows that come from now on are new ones
        return remembering(state, last_rows()) if state.config.temporal else state

    def n_last_rows(self, config: FactorConfig, n_features: int) -> int:
        """See `Engine.n_last_rows`: the last for its residuals, many if rows are temporal."""
        return min(WINDOW, max(1, LAST_ROWS_BYTES // (8 * n_features))) if config.temporal else 1

    def resume_temporal(self, state: Model, last_rows: Matrix) -> Model:
        """See `Engine.resume_temporal`."""
        if not state.config.temporal:
            return state
        if state.memory is None:
            return remembering(state, last_rows)
        return state if state.memory.n_seen == state.n_seen else up_to_date(state, last_rows)

    def is_mergeable(self, config: FactorConfig) -> bool:
        """See `Engine.is_mergeable`."""
        return config.forget_factor == 1.0

    def evidence(self, start: Model, part: Model) -> Evidence:
        """See `Engine.evidence`."""
        return merging.gather(start, unacquainted(part, start))

    def merge(self, start: Model, evidence: Evidence) -> Model:
        """See `Engine.merge`."""
        return merging.merged(start, evidence)

    def with_config(self, state: Model, config: FactorConfig) -> Model:
        """See `Engine.with_config`."""
        if config == state.config:
            return state
        return replace(
            state, config=config, memory=state.memory if config.temporal else None,
            looks=state.looks and config.robust, drops=state.drops and config.robust,
        )  # fmt: skip

    def to_local(self, state: Model) -> Model:
        """See `Engine.to_local`."""
        return state

    def check(self, state: Model) -> None:
        """See `Engine.check`."""
        check_model(state)
        kept = state.memory
        histograms = [state.histogram, *([kept.histogram, kept.ahead] if kept else [])]
        if any(histogram.shape != (N_BINS,) for histogram in histograms):
            raise ValueError("a histogram does not fit")
        if kept is not None and len(kept.trust) != len(DISTANCES):
            raise ValueError("memory.trust does not fit")

    # -- what the model has estimated -------------------------------------------------------

    def mean(self, state: Model) -> NDArray[np.float64]:
        """Mean of each feature."""
        return state.center + state.one * state.noise * state.C[:, -1].astype(np.float64)

    def scale(self, state: Model) -> NDArray[np.float64]:
        """Unit of each feature: its standard deviation in the first rows, or one for all."""
        return state.unit.copy()

    def noise_variance(self, state: Model) -> NDArray[np.float64] | float:
        """Variance of the noise of each feature; one number if it is isotropic."""
        variance = state.noise**2
        return variance if state.config.noise == "diagonal" else float(variance.mean())

    def explained_variance(self, state: Model) -> NDArray[np.float64]:
        """Variance that each component explains, in descending order, in units of the scale."""
        with np.errstate(over="ignore"):
            return np.sum(_scaled(state) ** 2, axis=0)[_order(state)]

    def explained_variance_ratio(self, state: Model) -> NDArray[np.float64]:
        """The same as a share of the total variance, noise included."""
        each = self.explained_variance(state)
        unit = state.unit if state.config.scale else 1.0
        return each / (each.sum() + np.sum((state.noise / unit) ** 2))

    def outlier_counts(self, state: Model) -> NDArray[np.int64]:
        """How many entries of each feature counted as outliers."""
        return state.outliers.copy()

    def recent_error(self, state: Model) -> float:
        """Relative error of held-out entries of the last rows; NaN before there are any."""
        residual, energy = state.judged[1]
        return float(np.sqrt(residual / energy)) if energy > 0.0 else float("nan")

    def integer_features(self, state: Model) -> NDArray[np.bool_]:
        """Which features held only integers."""
        return state.whole

    def describe(self, state: Model) -> dict[str, Any]:
        """See `Engine.describe`."""
        error, memory = self.recent_error(state), state.memory
        noise = "noise" if state.config.noise == "isotropic" else "noise (median of the features)"
        return {
            "components": state.n_components,
            "features": len(state.C),
            "dtype": str(state.C.dtype),
            "rows seen": state.n_seen,
            "recent error": None if np.isnan(error) else error,
            "active components": self.n_active_components(state),
            noise: float(np.median(state.noise)),
            "outliers": int(state.outliers.sum()),
            "outliers count as missing": bool(state.drops),
            "temporal": bool(state.config.temporal),
            "filled from neighbours": memory is not None
            and bool(memory.codes.any() or memory.residuals.any()),
        }


@contextmanager
def _overflow_refused() -> Iterator[None]:
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        raise too_large() from error


def _scaled(state: Model) -> Matrix:
    unit = state.unit if state.config.scale else np.ones_like(state.unit)
    return state.C[:, :-1].astype(np.float64) * (state.noise / unit)[:, None]


def _order(state: Model) -> Any:
    """Components in descending order of their variance."""
    scaled = _scaled(state)
    scaled /= max(float(np.abs(scaled).max()), 1e-300)  # squares of huge data would overflow
    return np.argsort(-np.sum(scaled**2, axis=0), kind="stable")


FACTOR = FactorEngine()
