"""The engine of the paper's algorithm and its extensions: everything is given."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..engine import (
    GetRows,
    GetSample,
    Init,
    Matrix,
    Numbers,
    PointPredictions,
    Rows,
    Times,
    no_uncertainty,
)
from ..evidence import Evidence
from ..info import Info
from ..linalg.rows import gram
from ..prediction import Prediction
from ..scoring import Predict, score_held_out_features
from . import merge as merging
from .config import BroydenConfig
from .constraints import constrained, feasible
from .encode import encode, fill
from .init import window_length
from .state import State, check_state
from .step import init as first_state
from .step import step

# Components if their number is not given, and features are more.
DEFAULT_COMPONENTS = 30
LARGEST = float(np.finfo(np.float64).max)


class BroydenEngine(PointPredictions):
    """The engine of the paper's algorithm and its extensions: see `omfb.broyden`."""

    name: ClassVar[str] = "broyden"
    state_type: ClassVar[type] = State
    config_type: ClassVar[type] = BroydenConfig
    defers_start: ClassVar[bool] = False
    rotates_atoms: ClassVar[bool] = False

    def n_start_rows(self, config: BroydenConfig, n_components: int | None, n_features: int) -> int:
        """See `Engine.n_start_rows`."""
        return window_length(n_components or default_components(n_features))

    def start(
        self, head: Rows, n_components: int | None, config: BroydenConfig, init: Init, seed: int,
        numbers: Numbers = None,
    ) -> State:  # fmt: skip
        """See `Engine.start`."""
        n_components = n_components or default_components(head.shape[1])
        return first_state(head, n_components, config, init=init, seed=seed)

    def step(
        self, state: State, rows: Rows, *, reuse: bool, numbers: Numbers = None
    ) -> tuple[State, Matrix, Info]:
        """See `Engine.step`: rows hold nothing out, whatever their numbers."""
        state, codes, info = step(state, rows, reuse=reuse)
        if state.G.diagonal().min() < 0.0:
            # Rows of sizes so different that rounding took over: what C is counts.
            state = replace(state, G=gram(state.C), entries_since_gram=0)
        return state, codes, info.sound()

    def arrays_of_step(self, state: State, row: Rows | None) -> dict[str, Matrix]:
        """See `Engine.arrays_of_step`."""
        return {"C": state.C}

    def with_arrays(self, state: State, arrays: dict[str, Matrix]) -> State:
        """See `Engine.with_arrays`."""
        return replace(state, C=arrays["C"])

    def updates_in_place(self, row: Rows) -> bool:
        """See `Engine.updates_in_place`."""
        return True

    def encode(self, state: State, rows: Rows) -> Matrix:
        """See `Engine.encode`."""
        return encode(state, rows)

    def decode(self, state: State, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        state = feasible(state)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = codes.astype(state.C.dtype, copy=False) @ state.C.T
            return rows if state.scale == 1.0 else rows * state.C.dtype.type(state.scale)

    def components(self, state: State) -> Matrix:
        """See `Engine.components`."""
        state = feasible(state)
        return np.ascontiguousarray(state.C.T) * state.C.dtype.type(state.scale)

    def predict(self, state: State, rows: Rows, *, std: bool, times: Times = None) -> Prediction:
        """See `Engine.predict`."""
        if std:
            raise no_uncertainty("standard deviations")
        return Prediction(fill(state, rows))

    def score_held_out(self, state: State, rows: Rows) -> Info:
        """See `Engine.score_held_out`."""
        state = feasible(state)
        zero, unit = np.zeros(len(state.C)), np.full(len(state.C), state.scale)

        def predicting(visible: NDArray[np.bool_]) -> Predict:
            C = state.C * visible[:, None]  # zeros for the others: they make no difference
            coding, hidden = replace(state, C=C, G=gram(C)), state.C[~visible].T

            def predict(shown: Matrix) -> Matrix:
                # Wider than the data's type, whose range it may exceed.
                with np.errstate(over="ignore"):
                    made = (encode(coding, shown) @ hidden.astype(np.float64)) * state.scale
                return np.clip(made, -LARGEST, LARGEST, out=made)

            return predict

        absent = 0.0 if state.config.absent == "zero" else np.nan
        return score_held_out_features(rows, zero, unit, predicting, absent)

    def n_components(self, state: State) -> int:
        """See `Engine.n_components`."""
        return state.C.shape[1]

    def n_active_components(self, state: State) -> int:
        """See `Engine.n_active_components`."""
        return state.C.shape[1]

    def describe(self, state: State) -> dict[str, Any]:
        """See `Engine.describe`."""
        n_features, n_components = state.C.shape
        return {
            "components": n_components,
            "features": n_features,
            "dtype": str(state.C.dtype),
            "rows seen": state.n_seen,
        }

    def batch_size(self, config: BroydenConfig) -> int:
        """See `Engine.batch_size`."""
        return config.batch_size

    def begin_pass(self, state: State) -> State:
        """See `Engine.begin_pass`."""
        return replace(state, code=None)

    def scores_next_rows(self, state: State) -> bool:
        """See `Engine.scores_next_rows`."""
        return True

    def n_finalize_rows(self, n_features: int) -> int:
        """See `Engine.n_finalize_rows`."""
        return 0

    def finalize(
        self, state: State, sample: GetSample, last_rows: GetRows, times: Times = None
    ) -> State:
        """See `Engine.finalize`: nothing is estimated."""
        return feasible(state)

    def n_last_rows(self, config: BroydenConfig, n_features: int) -> int:
        """See `Engine.n_last_rows`."""
        return 0

    def resume_temporal(
        self, state: State, last_rows: GetRows, times: Times = None, *, ahead: bool = True
    ) -> State:
        """See `Engine.resume_temporal`: there is no such part."""
        return state

    def is_mergeable(self, config: BroydenConfig) -> bool:
        """See `Engine.is_mergeable`."""
        adds_up = config.forget_factor == 1.0 and config.shrink == config.smooth == 0.0
        return adds_up and not config.constrains_dictionary

    def evidence(self, start: State, part: State) -> Evidence:
        """See `Engine.evidence`."""
        return merging.gather(start, part)

    def merge(self, start: State, evidence: Evidence) -> State:
        """See `Engine.merge`."""
        return merging.merged(start, evidence)

    def with_config(self, state: State, config: BroydenConfig) -> State:
        """See `Engine.with_config`."""
        if config == state.config:
            return state
        before, state = state.config, replace(state, config=config)
        new = (config.positive_dict and not before.positive_dict) or config.alpha > before.alpha
        return constrained(state) if new else state

    def to_local(self, state: State) -> State:
        """See `Engine.to_local`."""
        return state

    def check(self, state: State) -> None:
        """See `Engine.check`."""
        check_state(state)


def default_components(n_features: int) -> int:
    """Components if their number is not given: fewer than features.

    With as many, every row would be reproduced exactly, and the error would always be 0.
    """
    return max(1, min(DEFAULT_COMPONENTS, n_features - 1))


BROYDEN = BroydenEngine()
