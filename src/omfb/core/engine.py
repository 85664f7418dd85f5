"""`Engine`: what an algorithm offers to a `Learner`, and through it to estimators, CLI and Dask.

An engine is a set of pure functions on a state of its own, a frozen dataclass of numbers, strings,
None, arrays and other such dataclasses. Model files and copies are made from its fields, so an
engine need not describe them. The type of a state is known to its engine only.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .evidence import Evidence
from .info import Info
from .prediction import Prediction

Matrix = NDArray[Any]
Rows = Any
"""ndarray or scipy.sparse matrix of shape (n_rows, n_features), float32 or float64."""
Init = str | NDArray[Any]
GetRows = Callable[[], Rows]
Numbers = NDArray[np.int64] | None
"""Numbers of rows, the same in every pass; None if rows are counted as they come."""
GetSample = Callable[[], tuple[Rows, Numbers]]
Times = NDArray[np.float64] | None
"""When each row came, in seconds since 1970, ascending; None if rows have no times."""


class UnsupportedError(ValueError):
    """An algorithm was asked for something that it does not estimate."""


class AnyState(Protocol):
    """What a learner needs to know of a state."""

    @property
    def config(self) -> Any:
        """The config that the algorithm was given."""

    @property
    def C(self) -> Matrix:  # noqa: N802
        """The dictionary, (n_features, n_components): an array that a step may write into."""

    @property
    def n_seen(self) -> int:
        """Rows learned from."""


S = TypeVar("S")
K = TypeVar("K", contravariant=True)


class Engine(Protocol[S, K]):
    """An algorithm with states of type S and configs of type K."""

    name: ClassVar[str]
    """As model files hold it."""
    state_type: ClassVar[type]
    config_type: ClassVar[type]

    defers_start: ClassVar[bool]
    """Whether the first state is costly, so that a young stream makes it only when it is used."""

    rotates_atoms: ClassVar[bool]
    """Whether a step may change the basis: the codes it returns may belong to the old atoms."""

    has_uncertainty: ClassVar[bool]
    """Whether `predict(std=True)`, `sample` and `log_likelihood` are available."""

    # -- learning ---------------------------------------------------------------------------

    def n_start_rows(self, config: K, n_components: int | None, n_features: int) -> int:
        """How many rows at the head of a stream the first state depends on."""

    def start(
        self, head: Rows, n_components: int | None, config: K, init: Init, seed: int,
        numbers: Numbers = None,
    ) -> S:  # fmt: skip
        """The state before the first step, from rows at the head of the stream."""

    def step(
        self, state: S, rows: Rows, *, reuse: bool, numbers: Numbers = None
    ) -> tuple[S, Matrix, Info]:
        """Learn from rows: the next state, their codes and energies.

        With `reuse`, the arrays of `arrays_of_step` may be written into, and nothing else;
        otherwise the state stays as it is. The rows' numbers say which of them hold entries out.
        """

    def arrays_of_step(self, state: S, row: Rows | None) -> dict[str, Matrix]:
        """The arrays that a step from one such row, or from any, may write into, by their names.

        Features are along the first axis of the dictionary "C", and the last of all others.
        """

    def with_arrays(self, state: S, arrays: dict[str, Matrix]) -> S:
        """The state with equal arrays in the place of some of `arrays_of_step`."""

    def updates_in_place(self, row: Rows) -> bool:
        """Whether a step from one such row writes into `state.C` rather than make a new one."""

    def batch_size(self, config: K) -> int:
        """Rows that share one update: blocks of a stream are cut at multiples of it."""

    def begin_pass(self, state: S) -> S:
        """The state at the beginning of another pass: no row comes before the next."""

    def scores_next_rows(self, state: S) -> bool:
        """Whether the next steps return energies of held-out entries."""

    def n_finalize_rows(self, n_features: int) -> int:
        """How many rows `finalize` may ask for; a shorter table is given in full."""

    def finalize(self, state: S, sample: GetSample, last_rows: GetRows, times: Times = None) -> S:
        """The state at the end of a fit.

        Parameters
        ----------
        state : S
        sample : callable
            Returns all rows in their order, or a sample of them, and their numbers.
        last_rows : callable
            Returns the last rows, in their order.
        times : ndarray or None
            When the last rows came.
        """

    def n_last_rows(self, config: K, n_features: int) -> int:
        """How many of the last rows a learner keeps for `resume_temporal`."""

    def resume_temporal(
        self, state: S, last_rows: GetRows, times: Times = None, *, ahead: bool = True
    ) -> S:
        """The state with its temporal part brought up to the last rows, which it has learned.

        Without `ahead`, as far as rows are filled by it, but not the rows to come forecast.
        """

    def add_features(self, state: S, count: int) -> S:
        """The state with more features, of which nothing was observed yet."""

    def without_features(self, state: S, kept: NDArray[np.int64]) -> S:
        """The state without all features but these."""

    def with_config(self, state: S, config: K) -> S:
        """The state, to continue under another config."""

    # -- using ------------------------------------------------------------------------------

    def encode(self, state: S, rows: Rows) -> Matrix:
        """Codes of rows."""

    def decode(self, state: S, codes: Matrix) -> Matrix:
        """Rows from codes, in the dictionary's type; infinite where they overflow it."""

    def predict(self, state: S, rows: Rows, *, std: bool, times: Times = None) -> Prediction:
        """Rows with their missing entries filled, and standard deviations if `std`."""

    def sample(self, state: S, rows: Rows, n: int, rng: np.random.Generator) -> Matrix:
        """Joint draws of the missing entries, (n, n_rows, n_features)."""

    def forecast(
        self, state: S, steps: int, times: Times = None, known: Matrix | None = None
    ) -> Prediction:
        """The rows that follow the last one, or come at given times, with standard deviations.

        `known` are the values that covariates will have.
        """

    def log_likelihood(self, state: S, rows: Rows) -> NDArray[np.float64]:
        """Log-likelihood of the observed entries of each row."""

    def outlier_entries(self, state: S, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row and feature of each entry that counts as an outlier, and hence as missing."""

    def score_held_out(self, state: S, rows: Rows) -> Info:
        """Energies of entries, and of their errors when predicted from the rest of their row."""

    # -- facts ------------------------------------------------------------------------------

    def components(self, state: S) -> Matrix:
        """The dictionary in the data's units, an atom in a row."""

    def n_components(self, state: S) -> int:
        """How many entries a code has."""

    def n_active_components(self, state: S) -> int:
        """How many components stand out of the noise."""

    def is_temporal(self, state: S) -> bool:
        """Whether rows are filled from their neighbours in time."""

    def lacks_temporal(self, state: S) -> bool:
        """Whether they are to be, but how is not estimated: see `resume_temporal`."""

    def rows_until_update(self, state: S) -> int:
        """Rows after which what `resume_temporal` has estimated is void; at least 1."""

    def describe(self, state: S) -> dict[str, Any]:
        """Facts for people, by name: numbers, strings, booleans or None."""

    def check(self, state: S) -> None:
        """Refuse, by a ValueError, a state that no sequence of steps can have led to."""

    # -- many machines ----------------------------------------------------------------------

    def is_mergeable(self, config: K) -> bool:
        """Whether states that continued from one start under this config can be merged."""

    def evidence(self, start: S, part: S) -> Evidence:
        """What a state has learned since its start; a MergeError if that was not its start."""

    def merge(self, start: S, evidence: Evidence) -> S:
        """The start with what states that continued from it have learned."""

    def to_local(self, state: S) -> S:
        """The state with all its arrays in this process."""


class PointPredictions:
    """For engines that predict values without uncertainty: the rest of `Engine` is refused."""

    has_uncertainty: ClassVar[bool] = False

    def sample(self, state: Any, rows: Rows, n: int, rng: np.random.Generator) -> NoReturn:
        """See `Engine.sample`."""
        raise no_uncertainty("draws")

    def add_features(self, state: Any, count: int) -> NoReturn:
        """See `Engine.add_features`."""
        raise UnsupportedError("OMFB has a fixed number of features.")

    def without_features(self, state: Any, kept: NDArray[np.int64]) -> NoReturn:
        """See `Engine.without_features`."""
        raise UnsupportedError("OMFB has a fixed number of features.")

    def forecast(
        self, state: Any, steps: int, times: Times = None, known: Matrix | None = None
    ) -> NoReturn:
        """See `Engine.forecast`."""
        raise no_uncertainty("forecasts")

    def log_likelihood(self, state: Any, rows: Rows) -> NoReturn:
        """See `Engine.log_likelihood`."""
        raise no_uncertainty("likelihoods")

    def outlier_entries(self, state: Any, rows: Rows) -> NoReturn:
        """See `Engine.outlier_entries`."""
        raise no_uncertainty("outliers")

    def is_temporal(self, state: Any) -> bool:
        """See `Engine.is_temporal`."""
        return False

    def lacks_temporal(self, state: Any) -> bool:
        """See `Engine.lacks_temporal`."""
        return False

    def rows_until_update(self, state: Any) -> int:
        """See `Engine.rows_until_update`."""
        return NEVER


NEVER = 2**62
"""More rows than any stream has."""


def no_uncertainty(what: str) -> UnsupportedError:
    """The error of an algorithm that estimates no noise."""
    return UnsupportedError(
        f"OMFB estimates no noise, so it has no {what}: fit OnlineFactorAnalysis or OMFBImputer."
    )
