"""The engine of the paper and its extension by a memory: a config that is given in full."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..engine import GetRows, Init, Matrix
from ..evidence import Evidence
from ..info import Info
from ..linalg.rows import gram
from ..scoring import Predict, judge_hidden_parts
from . import merge as merging
from .config import BroydenConfig
from .encode import encode, fill
from .init import window_length
from .state import State, check_state
from .step import init as first_state
from .step import step

# Components of the paper's config where nobody says how many, and features are more.
USUAL_COMPONENTS = 30
LARGEST = float(np.finfo(np.float64).max)


class BroydenEngine:
    """The engine of the paper and its extension by a memory: `omfb.init` and `omfb.step`."""

    name: ClassVar[str] = "broyden"
    state_type: ClassVar[type] = State
    config_type: ClassVar[type] = BroydenConfig
    starts_late: ClassVar[bool] = False
    turns_atoms: ClassVar[bool] = False

    def rows_needed(self, config: BroydenConfig, n_components: int | None, n_features: int) -> int:
        """See `Engine.rows_needed`."""
        return window_length(n_components or usual_components(n_features))

    def start(
        self, head: Any, n_components: int | None, config: BroydenConfig, init: Init, seed: int
    ) -> State:
        """See `Engine.start`."""
        n_components = n_components or usual_components(head.shape[1])
        return first_state(head, n_components, config, init=init, seed=seed)

    def step(self, state: State, rows: Any, *, reuse: bool) -> tuple[State, Matrix, Info]:
        """See `Engine.step`."""
        state, codes, info = step(state, rows, reuse=reuse)
        if state.G.diagonal().min() < 0.0:
            # Rows of sizes so different that rounding took over: what C is counts.
            state = replace(state, G=gram(state.C), drift=0)
        return state, codes, info.sound()

    def writes(self, row: Any) -> bool:
        """See `Engine.writes`."""
        return True

    def encode(self, state: State, rows: Any) -> Matrix:
        """See `Engine.encode`."""
        return encode(state, rows)

    def decode(self, state: State, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        with np.errstate(over="ignore", invalid="ignore"):
            rows = codes.astype(state.C.dtype, copy=False) @ state.C.T
            return rows if state.scale == 1.0 else rows * state.C.dtype.type(state.scale)

    def components(self, state: State) -> Matrix:
        """See `Engine.components`."""
        return np.ascontiguousarray(state.C.T) * state.C.dtype.type(state.scale)

    def fill(self, state: State, rows: Any) -> Matrix:
        """See `Engine.fill`."""
        return fill(state, rows)

    def judge(self, state: State, rows: Any) -> Info:
        """See `Engine.judge`."""
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

        return judge_hidden_parts(rows, zero, unit, predicting)

    def n_components(self, state: State) -> int:
        """See `Engine.n_components`."""
        return state.C.shape[1]

    def begin_pass(self, state: State) -> State:
        """See `Engine.begin_pass`."""
        return replace(state, code=None)

    def judges(self, state: State) -> bool:
        """See `Engine.judges`."""
        return True

    def sample_rows(self, n_features: int) -> int:
        """See `Engine.sample_rows`."""
        return 0

    def conclude(self, state: State, sample: GetRows, last_rows: GetRows) -> State:
        """See `Engine.conclude`: nothing is left to find."""
        return state

    def rows_kept(self, config: BroydenConfig, n_features: int) -> int:
        """See `Engine.rows_kept`."""
        return 0

    def recall(self, state: State, last_rows: Matrix) -> State:
        """See `Engine.recall`: what has been learned is all there is."""
        return state

    def adds_up(self, config: BroydenConfig) -> bool:
        """See `Engine.adds_up`."""
        return config.forget_factor == 1.0 and config.shrink == config.smooth == 0.0

    def gather(self, start: State, part: State) -> Evidence:
        """See `Engine.gather`."""
        return merging.gather(start, part)

    def merged(self, start: State, evidence: Evidence) -> State:
        """See `Engine.merged`."""
        return merging.merged(start, evidence)

    def with_config(self, state: State, config: BroydenConfig) -> State:
        """See `Engine.with_config`."""
        return state if config == state.config else replace(state, config=config)

    def at_hand(self, state: State) -> State:
        """See `Engine.at_hand`."""
        return state

    def check(self, state: State) -> None:
        """See `Engine.check`."""
        check_state(state)


def usual_components(n_features: int) -> int:
    """Components of the paper's config where nobody says how many: fewer than features.

    With as many, every row would be explained in full, and an error of 0 would tell nothing.
    """
    return max(1, min(USUAL_COMPONENTS, n_features - 1))


BROYDEN = BroydenEngine()
