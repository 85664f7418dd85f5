"""The seam between a `Learner` and the mathematics: what an engine does with its states.

An engine is a set of pure functions on a state of its own, a frozen dataclass of numbers, strings,
None, arrays and other such dataclasses. Files and copies are made from its fields, so an engine
says nothing about them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core import merge as merging
from ..core.encode import encode, fill
from ..core.judge import Predict, judge_hidden_parts
from ..core.kernels.shared import gram
from ..core.merge import Evidence
from ..core.rule import Rule
from ..core.start import window_length
from ..core.state import Info, State, check_state
from ..core.step import init as first_state
from ..core.step import step

# Components of the paper's rule where nobody says how many, and features are more.
USUAL_COMPONENTS = 30
LARGEST = float(np.finfo(np.float64).max)

Matrix = NDArray[Any]
Init = str | NDArray[Any]
GetRows = Callable[[], Any]


class AnyState(Protocol):
    """What a learner needs to know of a state."""

    @property
    def rule(self) -> Any:
        """How to learn."""

    @property
    def C(self) -> Matrix:  # noqa: N802
        """The dictionary, (n_features, n_components): the only array that a step writes into."""

    @property
    def n_seen(self) -> int:
        """Rows learned from."""


class Engine(Protocol):
    """One way to learn: `start`, `step`, `encode`, `decode`, and what goes with them."""

    name: ClassVar[str]
    """As files tell it."""
    state_type: ClassVar[type]
    rule_type: ClassVar[type]

    starts_late: ClassVar[bool]
    """Whether a state is made when it is needed only, while the stream is young: it costs more."""

    turns_atoms: ClassVar[bool]
    """Whether a step may exchange the atoms: the codes it returns may be of the old ones."""

    def rows_needed(self, rule: Any, n_components: int | None, n_features: int) -> int:
        """How many rows at the head of a stream the first state depends on."""

    def start(self, head: Any, n_components: int | None, rule: Any, init: Init, seed: int) -> Any:
        """The state before the first step, from rows at the head of the stream."""

    def step(self, state: Any, rows: Any, *, reuse: bool) -> tuple[Any, Matrix, Info]:
        """Learn from rows: the next state, their codes and energies.

        With `reuse`, `state.C` may be written into, and nothing else; otherwise the state stays
        as it is.
        """

    def writes(self, row: Any) -> bool:
        """Whether a step from one such row writes into `state.C` rather than make a new one."""

    def encode(self, state: Any, rows: Any) -> Matrix:
        """Codes of rows."""

    def decode(self, state: Any, codes: Matrix) -> Matrix:
        """Rows from codes, in the dictionary's type; infinite where they overflow it."""

    def fill(self, state: Any, rows: Any) -> Matrix:
        """Rows as an array in which missing entries are filled; observed ones stay."""

    def judge(self, state: Any, rows: Any) -> Info:
        """Energies of what is predicted of entries that did not make their row's code."""

    def components(self, state: Any) -> Matrix:
        """The dictionary in the data's units, an atom in a row."""

    def n_components(self, state: Any) -> int:
        """How many entries a code has."""

    def begin_pass(self, state: Any) -> Any:
        """The state at the beginning of another pass: no row comes before the next."""

    def judges(self, state: Any) -> bool:
        """Whether the next rows tell how large the error is."""

    def sample_rows(self, n_features: int) -> int:
        """How many rows `conclude` is to be shown."""

    def conclude(self, state: Any, sample: GetRows, last_rows: GetRows) -> Any:
        """The state at the end of a fit.

        Parameters
        ----------
        state : Any
        sample : callable
            Gives all rows that were learned from in their order, or some of them in any.
        last_rows : callable
            Gives the last rows, in their order.
        """

    def rows_kept(self, rule: Any, n_features: int) -> int:
        """How many of the last rows `recall` is to be shown."""

    def recall(self, state: Any, last_rows: Matrix) -> Any:
        """The state as it is used after the last rows, which were learned from."""

    def adds_up(self, rule: Any) -> bool:
        """Whether what parts of a start learn by a rule can be merged, in any order of rows."""

    def gather(self, start: Any, part: Any) -> Evidence:
        """What a state has learned since its start; a MergeError if it is none of that start."""

    def merged(self, start: Any, evidence: Evidence) -> Any:
        """The start with what states that went on from it have learned."""

    def with_rule(self, state: Any, rule: Any) -> Any:
        """The state, to go on under another rule."""

    def at_hand(self, state: Any) -> Any:
        """The state with all its arrays in this process."""

    def check(self, state: Any) -> None:
        """Refuse, by a ValueError, a state that no learning can have led to."""


class Broyden:
    """The engine of the paper and its extension by a memory: `omfb.init` and `omfb.step`."""

    name: ClassVar[str] = "broyden"
    state_type: ClassVar[type] = State
    rule_type: ClassVar[type] = Rule
    starts_late: ClassVar[bool] = False
    turns_atoms: ClassVar[bool] = False

    def rows_needed(self, rule: Rule, n_components: int | None, n_features: int) -> int:
        """See `Engine.rows_needed`."""
        return window_length(n_components or usual_components(n_features))

    def start(
        self, head: Any, n_components: int | None, rule: Rule, init: Init, seed: int
    ) -> State:
        """See `Engine.start`."""
        n_components = n_components or usual_components(head.shape[1])
        return first_state(head, n_components, rule, init=init, seed=seed)

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

    def rows_kept(self, rule: Rule, n_features: int) -> int:
        """See `Engine.rows_kept`."""
        return 0

    def recall(self, state: State, last_rows: Matrix) -> State:
        """See `Engine.recall`: what has been learned is all there is."""
        return state

    def adds_up(self, rule: Rule) -> bool:
        """See `Engine.adds_up`."""
        return rule.memory == 1.0 and rule.shrink == rule.smooth == 0.0

    def gather(self, start: State, part: State) -> Evidence:
        """See `Engine.gather`."""
        return merging.gather(start, part)

    def merged(self, start: State, evidence: Evidence) -> State:
        """See `Engine.merged`."""
        return merging.merged(start, evidence)

    def with_rule(self, state: State, rule: Rule) -> State:
        """See `Engine.with_rule`."""
        return state if rule == state.rule else replace(state, rule=rule)

    def at_hand(self, state: State) -> State:
        """See `Engine.at_hand`."""
        return state

    def check(self, state: State) -> None:
        """See `Engine.check`."""
        check_state(state)


def usual_components(n_features: int) -> int:
    """Components of the paper's rule where nobody says how many: fewer than features.

    With as many, every row would be explained in full, and an error of 0 would tell nothing.
    """
    return max(1, min(USUAL_COMPONENTS, n_features - 1))


BROYDEN = Broyden()
