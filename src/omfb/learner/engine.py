"""The seam between a `Learner` and the mathematics: what an engine does with its states.

An engine is a set of pure functions on a state of its own, a frozen dataclass of numbers, strings,
None, arrays and other such dataclasses. Files and copies are made from its fields, so an engine
says nothing about them.
"""

from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.encode import encode
from ..core.kernels.shared import gram
from ..core.rule import Rule
from ..core.start import window_length
from ..core.state import Info, State, check_state
from ..core.step import init as first_state
from ..core.step import step

Matrix = NDArray[Any]
Init = str | NDArray[Any]


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

    def rows_needed(self, n_components: int) -> int:
        """How many rows at the head of a stream the first state depends on."""

    def start(self, head: Any, n_components: int, rule: Any, init: Init, seed: int) -> Any:
        """The state before the first step, from rows at the head of the stream."""

    def step(self, state: Any, rows: Any, *, reuse: bool) -> tuple[Any, Matrix, Info]:
        """Learn from rows: the next state, their codes and energies.

        With `reuse`, `state.C` may be written into, and nothing else; otherwise the state stays
        as it is.
        """

    def encode(self, state: Any, rows: Any) -> tuple[Matrix, Info]:
        """Codes of rows, with their energies."""

    def decode(self, state: Any, codes: Matrix) -> Matrix:
        """Rows from codes, in the dictionary's type; infinite where they overflow it."""

    def components(self, state: Any) -> Matrix:
        """The dictionary in the data's units, an atom in a row."""

    def begin_pass(self, state: Any) -> Any:
        """The state at the beginning of another pass: no row comes before the next."""

    def with_rule(self, state: Any, rule: Any) -> Any:
        """The state, to go on under another rule."""

    def check(self, state: Any) -> None:
        """Refuse, by a ValueError, a state that no learning can have led to."""


class Broyden:
    """The engine of the paper and its extension by a memory: `omfb.init` and `omfb.step`."""

    name: ClassVar[str] = "broyden"
    state_type: ClassVar[type] = State

    def rows_needed(self, n_components: int) -> int:
        """See `Engine.rows_needed`."""
        return window_length(n_components)

    def start(self, head: Any, n_components: int, rule: Rule, init: Init, seed: int) -> State:
        """See `Engine.start`."""
        return first_state(head, n_components, rule, init=init, seed=seed)

    def step(self, state: State, rows: Any, *, reuse: bool) -> tuple[State, Matrix, Info]:
        """See `Engine.step`."""
        state, codes, info = step(state, rows, reuse=reuse)
        if state.G.diagonal().min() < 0.0:
            # Rows of sizes so different that rounding took over: what C is counts.
            state = replace(state, G=gram(state.C), drift=0)
        return state, codes, info.sound()

    def encode(self, state: State, rows: Any) -> tuple[Matrix, Info]:
        """See `Engine.encode`."""
        codes, info = encode(state, rows)
        return codes, info.sound()

    def decode(self, state: State, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        with np.errstate(over="ignore", invalid="ignore"):
            rows = codes.astype(state.C.dtype, copy=False) @ state.C.T
            return rows if state.scale == 1.0 else rows * state.C.dtype.type(state.scale)

    def components(self, state: State) -> Matrix:
        """See `Engine.components`."""
        return np.ascontiguousarray(state.C.T) * state.C.dtype.type(state.scale)

    def begin_pass(self, state: State) -> State:
        """See `Engine.begin_pass`."""
        return replace(state, code=None)

    def with_rule(self, state: State, rule: Rule) -> State:
        """See `Engine.with_rule`."""
        return state if rule == state.rule else replace(state, rule=rule)

    def check(self, state: State) -> None:
        """See `Engine.check`."""
        check_state(state)


BROYDEN = Broyden()
ENGINES: dict[str, Engine] = {engine.name: engine for engine in (BROYDEN,)}
"""By the names that files tell."""
