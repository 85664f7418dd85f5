"""The seam between a `Learner` and the mathematics: what an engine does with its states.

An engine is a set of pure functions on a state of its own, a frozen dataclass of numbers, strings,
None, arrays and other such dataclasses. Files and copies are made from its fields, so an engine
says nothing about them.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from numpy.typing import NDArray

from .evidence import Evidence
from .info import Info

Matrix = NDArray[Any]
Init = str | NDArray[Any]
GetRows = Callable[[], Any]


class AnyState(Protocol):
    """What a learner needs to know of a state."""

    @property
    def config(self) -> Any:
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
    config_type: ClassVar[type]

    starts_late: ClassVar[bool]
    """Whether a state is made when it is needed only, while the stream is young: it costs more."""

    turns_atoms: ClassVar[bool]
    """Whether a step may exchange the atoms: the codes it returns may be of the old ones."""

    def rows_needed(self, config: Any, n_components: int | None, n_features: int) -> int:
        """How many rows at the head of a stream the first state depends on."""

    def start(self, head: Any, n_components: int | None, config: Any, init: Init, seed: int) -> Any:
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

    def rows_kept(self, config: Any, n_features: int) -> int:
        """How many of the last rows `recall` is to be shown."""

    def recall(self, state: Any, last_rows: Matrix) -> Any:
        """The state as it is used after the last rows, which were learned from."""

    def adds_up(self, config: Any) -> bool:
        """Whether what parts of a start learn by a config can be merged, in any order of rows."""

    def gather(self, start: Any, part: Any) -> Evidence:
        """What a state has learned since its start; a MergeError if it is none of that start."""

    def merged(self, start: Any, evidence: Evidence) -> Any:
        """The start with what states that went on from it have learned."""

    def with_config(self, state: Any, config: Any) -> Any:
        """The state, to go on under another config."""

    def at_hand(self, state: Any) -> Any:
        """The state with all its arrays in this process."""

    def check(self, state: Any) -> None:
        """Refuse, by a ValueError, a state that no learning can have led to."""
