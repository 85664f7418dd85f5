"""The engine with nothing to tune (`omfb.core.factor`), as a `Learner` wants it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..blocks import too_large
from ..conformal import N_BINS
from ..engine import GetRows, Init, Matrix
from ..evidence import Evidence
from ..info import Info
from ..linalg.threads import products_in_one_thread
from . import merge as merging
from . import predict as coding
from .calibrate import calibrated, calibrated_by_moving
from .config import FactorConfig
from .holdout import tells_an_error
from .init import head_rows, start
from .new_features import unacquainted
from .prune import sparing
from .refine import polished
from .small_sample import doubted
from .state import Model, check_model
from .step import learn, mostly_observed
from .temporal import WINDOW, fill_in_time, remembering, up_to_date
from .univariate import DISTANCES

# Entries of rows that intervals are calibrated by: one row in eight hides something.
SAMPLE_ENTRIES = 1 << 21
# Of rows in time, at most so much is kept.
KEPT_BYTES = 1 << 23


class FactorEngine:
    """Mean, units, noise and components found from the stream."""

    name: ClassVar[str] = "factor"
    state_type: ClassVar[type] = Model
    config_type: ClassVar[type] = FactorConfig
    starts_late: ClassVar[bool] = True
    turns_atoms: ClassVar[bool] = True

    def rows_needed(self, config: FactorConfig, n_components: int | None, n_features: int) -> int:
        """See `Engine.rows_needed`."""
        return head_rows(n_features, config.components_for(n_features))

    def start(
        self, head: Any, n_components: int | None, config: FactorConfig, init: Init, seed: int
    ) -> Model:
        """See `Engine.start`."""
        with _overflow_refused():
            return start(head, config, seed)

    def step(self, state: Model, rows: Any, *, reuse: bool) -> tuple[Model, Matrix, Info]:
        """See `Engine.step`."""
        with _overflow_refused(), products_in_one_thread(state.gappy and rows.shape[0] > 1):
            after, codes, info = learn(state, rows, reuse=reuse)
        if after.memory is not None and after.v is not state.v:
            # A revision has turned the codes: what they keep is found again, on demand.
            after = replace(after, memory=None)
        return after, codes, info

    def writes(self, row: Any) -> bool:
        """See `Engine.writes`."""
        return not mostly_observed(row)

    def encode(self, state: Model, rows: Any) -> Matrix:
        """See `Engine.encode`."""
        return coding.encode(state, rows)[:, _order(state)]

    def decode(self, state: Model, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        back = np.empty_like(codes)
        back[:, _order(state)] = codes
        return coding.decode(state, back)

    def fill(self, state: Model, rows: Any) -> Matrix:
        """See `Engine.fill`."""
        if state.memory is not None:
            return fill_in_time(state, rows).rows
        return coding.fill(state, rows).rows

    def judge(self, state: Model, rows: Any) -> Info:
        """See `Engine.judge`."""
        return coding.judge(state, rows)

    def components(self, state: Model) -> Matrix:
        """See `Engine.components`."""
        C = state.C[:, :-1] * state.noise[:, None]
        return np.ascontiguousarray(C.T[_order(state)], dtype=state.C.dtype)

    def n_components(self, state: Model) -> int:
        """See `Engine.n_components`."""
        return state.n_components

    def begin_pass(self, state: Model) -> Model:
        """See `Engine.begin_pass`."""
        outliers = np.zeros_like(state.outliers)  # as many as in one pass, not in all
        return replace(state, pass_rows=state.pass_rows or state.n_seen, outliers=outliers)

    def judges(self, state: Model) -> bool:
        """See `Engine.judges`."""
        return tells_an_error(state)

    def sample_rows(self, n_features: int) -> int:
        """See `Engine.sample_rows`."""
        return max(256, min(4096, SAMPLE_ENTRIES // n_features))

    def conclude(self, state: Model, sample: GetRows, last_rows: GetRows) -> Model:
        """See `Engine.conclude`."""
        with products_in_one_thread(state.gappy):
            return self._concluded(state, sample, last_rows)

    def _concluded(self, state: Model, sample: GetRows, last_rows: GetRows) -> Model:
        state = coding.settled(state)
        n_rows = state.pass_rows or state.n_seen
        short = n_rows <= self.sample_rows(len(state.C))  # the sample is the whole table
        if state.gappy or short:
            rows = sample()
            state = sparing(state, rows)
            state = polished(state, rows) if short else state
            moved = calibrated_by_moving(state, rows) if short else None
            state = calibrated(state, rows) if moved is None else moved
            state = doubted(state, rows) if short else state
        state = replace(state, pass_rows=0)  # rows that come from now on are new ones
        return remembering(state, last_rows()) if state.config.temporal else state

    def rows_kept(self, config: FactorConfig, n_features: int) -> int:
        """See `Engine.rows_kept`: the last for its residuals, many if rows are in time."""
        return min(WINDOW, max(1, KEPT_BYTES // (8 * n_features))) if config.temporal else 1

    def recall(self, state: Model, last_rows: Matrix) -> Model:
        """See `Engine.recall`."""
        if not state.config.temporal:
            return state
        if state.memory is None:
            return remembering(state, last_rows)
        return state if state.memory.n_seen == state.n_seen else up_to_date(state, last_rows)

    def adds_up(self, config: FactorConfig) -> bool:
        """See `Engine.adds_up`."""
        return config.forget_factor == 1.0

    def gather(self, start: Model, part: Model) -> Evidence:
        """See `Engine.gather`."""
        return merging.gather(start, unacquainted(part, start))

    def merged(self, start: Model, evidence: Evidence) -> Model:
        """See `Engine.merged`."""
        return merging.merged(start, evidence)

    def with_config(self, state: Model, config: FactorConfig) -> Model:
        """See `Engine.with_config`."""
        if config == state.config:
            return state
        return replace(
            state, config=config, memory=state.memory if config.temporal else None,
            looks=state.looks and config.robust, drops=state.drops and config.robust,
        )  # fmt: skip

    def at_hand(self, state: Model) -> Model:
        """See `Engine.at_hand`."""
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


@contextmanager
def _overflow_refused() -> Iterator[None]:
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        raise too_large() from error


def explained(state: Model) -> Matrix:
    """Variances of the components in the (scaled) data's units, in the order they are shown."""
    scaled = _scaled(state)
    with np.errstate(over="ignore"):
        return np.sum(scaled**2, axis=0)[_order(state)]


def _scaled(state: Model) -> Matrix:
    unit = state.unit if state.config.scale else np.ones_like(state.unit)
    return state.C[:, :-1].astype(np.float64) * (state.noise / unit)[:, None]


def _order(state: Model) -> Any:
    """Components in falling order of their variance."""
    scaled = _scaled(state)
    scaled /= max(float(np.abs(scaled).max()), 1e-300)  # squares of huge data would overflow
    return np.argsort(-np.sum(scaled**2, axis=0), kind="stable")


FACTOR = FactorEngine()
