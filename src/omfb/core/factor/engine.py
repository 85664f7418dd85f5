"""The engine with nothing to tune (`omfb.core.factor`), as a `Learner` wants it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ..blocks import too_large
from ..engine import GetRows, Init, Matrix
from ..evidence import Evidence
from ..info import Info
from ..linalg.threads import products_in_one_thread
from . import merge as merging
from . import predict as predictions
from .check import check_state
from .config import FactorConfig
from .finalize import finalize, sample_rows
from .holdout import will_score
from .init import head_rows
from .init import init as first_state
from .smoother import predict_in_time
from .state import State, evolve
from .step import mostly_observed, step
from .temporal import fit_temporal, update_temporal

# Rows that are consecutive in time: at most so much of them is kept.
KEPT_BYTES = 1 << 23


class FactorEngine:
    """Mean, units, noise and components found from the stream."""

    name: ClassVar[str] = "factor"
    state_type: ClassVar[type] = State
    config_type: ClassVar[type] = FactorConfig
    starts_late: ClassVar[bool] = True
    turns_atoms: ClassVar[bool] = True

    def rows_needed(self, config: FactorConfig, n_components: int | None, n_features: int) -> int:
        """See `Engine.rows_needed`."""
        return head_rows(n_features, config)

    def start(
        self, head: Any, n_components: int | None, config: FactorConfig, init: Init, seed: int
    ) -> State:
        """See `Engine.start`."""
        with _overflow_refused():
            return first_state(head, config, seed=seed)

    def step(self, state: State, rows: Any, *, reuse: bool) -> tuple[State, Matrix, Info]:
        """See `Engine.step`."""
        one_thread = state.schedule.has_missing and rows.shape[0] > 1
        with _overflow_refused(), products_in_one_thread(one_thread):
            after, codes, info = step(state, rows, reuse=reuse)
        if after.temporal is not None and after.params.v is not state.params.v:
            # A revision has turned the codes: what they keep is found again, on demand.
            after = evolve(after, temporal=None)
        return after, codes, info

    def writes(self, row: Any) -> bool:
        """See `Engine.writes`."""
        return not mostly_observed(row)

    def encode(self, state: State, rows: Any) -> Matrix:
        """See `Engine.encode`."""
        return predictions.encode(state, rows)[:, _order(state)]

    def decode(self, state: State, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        back = np.empty_like(codes)
        back[:, _order(state)] = codes
        return predictions.decode(state, back)

    def fill(self, state: State, rows: Any) -> Matrix:
        """See `Engine.fill`."""
        if state.temporal is not None:
            return predict_in_time(state, rows, std=False).mean
        return predictions.predict(state, rows, std=False).mean

    def judge(self, state: State, rows: Any) -> Info:
        """See `Engine.judge`."""
        return predictions.score_held_out(state, rows)

    def components(self, state: State) -> Matrix:
        """See `Engine.components`."""
        C = state.params.C[:, :-1] * state.params.noise_std[:, None]
        return np.ascontiguousarray(C.T[_order(state)], dtype=state.params.C.dtype)

    def n_components(self, state: State) -> int:
        """See `Engine.n_components`."""
        return state.n_components

    def begin_pass(self, state: State) -> State:
        """See `Engine.begin_pass`."""
        outliers = np.zeros_like(state.outliers.n_dropped)  # as many as in one pass, not in all
        return evolve(
            state, pass_rows=state.schedule.pass_rows or state.schedule.n_seen, n_dropped=outliers
        )

    def judges(self, state: State) -> bool:
        """See `Engine.judges`."""
        return will_score(state)

    def sample_rows(self, n_features: int) -> int:
        """See `Engine.sample_rows`."""
        return sample_rows(n_features)

    def conclude(self, state: State, sample: GetRows, last_rows: GetRows) -> State:
        """See `Engine.conclude`."""
        with products_in_one_thread(state.schedule.has_missing):
            return finalize(state, sample, last_rows)

    def rows_kept(self, config: FactorConfig, n_features: int) -> int:
        """See `Engine.rows_kept`: the last for its residuals, many if rows are in time."""
        return (
            min(config.hyper.window, max(1, KEPT_BYTES // (8 * n_features)))
            if config.temporal
            else 1
        )

    def recall(self, state: State, last_rows: Matrix) -> State:
        """See `Engine.recall`."""
        if not state.config.temporal:
            return state
        if state.temporal is None:
            return fit_temporal(state, last_rows)
        return state if state.temporal.n_seen == state.n_seen else update_temporal(state, last_rows)

    def adds_up(self, config: FactorConfig) -> bool:
        """See `Engine.adds_up`."""
        return config.forget_factor == 1.0

    def gather(self, start: State, part: State) -> Evidence:
        """See `Engine.gather`."""
        return merging.gather(start, part)

    def merged(self, start: State, evidence: Evidence) -> State:
        """See `Engine.merged`."""
        return merging.merged(start, evidence)

    def with_config(self, state: State, config: FactorConfig) -> State:
        """See `Engine.with_config`."""
        if config == state.config:
            return state
        return evolve(
            state, config=config, temporal=state.temporal if config.temporal else None,
            detect=state.outliers.detect and config.robust, drop=state.outliers.drop and config.robust,
        )  # fmt: skip

    def at_hand(self, state: State) -> State:
        """See `Engine.at_hand`."""
        return state

    def check(self, state: State) -> None:
        """See `Engine.check`."""
        check_state(state)


@contextmanager
def _overflow_refused() -> Iterator[None]:
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        raise too_large() from error


def explained(state: State) -> Matrix:
    """Variances of the components in the (scaled) data's units, in the order they are shown."""
    scaled = _scaled(state)
    with np.errstate(over="ignore"):
        return np.sum(scaled**2, axis=0)[_order(state)]


def _scaled(state: State) -> Matrix:
    unit = state.params.scale if state.config.scale else np.ones_like(state.params.scale)
    return state.params.C[:, :-1].astype(np.float64) * (state.params.noise_std / unit)[:, None]


def _order(state: State) -> Any:
    """Components in falling order of their variance."""
    scaled = _scaled(state)
    scaled /= max(float(np.abs(scaled).max()), 1e-300)  # squares of huge data would overflow
    return np.argsort(-np.sum(scaled**2, axis=0), kind="stable")


FACTOR = FactorEngine()
