"""What a learner is at one moment: whole things that are exchanged, and that nobody writes into."""

from dataclasses import dataclass
from typing import Any

from ..core.engine import AnyState, Engine, Init
from ..core.info import Info

NOTHING = Info(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Now:
    """All that learning changes, exchanged as one thing. Nobody writes into it.

    Attributes
    ----------
    state : AnyState or None
        None while the stream is young and nobody has asked for it.
    totals : Info
        Energies of the pass so far.
    head : ndarray, sparse matrix or None
        The rows so far, while every new row may still enter the first dictionary.
    last : tuple of ndarray or sparse matrix
        The last rows, if the engine wants them, in blocks as they came.
    """

    state: AnyState | None
    totals: Info = NOTHING
    head: Any = None
    last: tuple[Any, ...] = ()

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        if self.state is None:
            return int(self.head.shape[0])
        return self.state.n_seen


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a learner is at one moment; later rows leave it alone. Taking one costs nothing."""

    n_components: int | None
    config: Any
    init: Init
    seed: int
    feature_names: list[str] | None
    engine: Engine
    now: Now | None

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        return 0 if self.now is None else self.now.n_seen
