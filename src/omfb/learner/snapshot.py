"""What a learner is at one moment: immutable records that are exchanged as a whole."""

from dataclasses import dataclass
from typing import Any

from ..core.engine import AnyState, Init, Numbers, Times
from ..core.engines import AnyConfig, AnyEngine
from ..core.info import Info
from .lineage import Lineage, digest_of, joined
from .names import Names

NO_ENERGY = Info(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Learned:
    """All that learning changes. It is replaced as a whole, never written into.

    Attributes
    ----------
    state : AnyState or None
        None while the stream is young and the state was not needed yet.
    totals : Info
        Energies of the pass so far.
    head : ndarray, sparse matrix or None
        The rows so far, while every new row may still enter the first dictionary.
    last : tuple of ndarray or sparse matrix
        The last rows, if the engine needs them, in blocks as they came.
    times : ndarray or None
        When these came, in seconds since 1970; None if rows have no times.
    numbers : ndarray or None
        Numbers of the rows of the head; None if they are counted.
    """

    state: AnyState | None
    totals: Info = NO_ENERGY
    head: Any = None
    last: tuple[Any, ...] = ()
    times: Times = None
    numbers: Numbers = None

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        if self.state is None:
            return int(self.head.shape[0])
        return self.state.n_seen


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a learner is at one moment; rows learned later do not change it.

    Taking one copies nothing.
    """

    n_components: int | None
    config: AnyConfig
    init: Init
    seed: int
    names: Names | None
    engine: AnyEngine
    learned: Learned | None
    lineage: Lineage = ()

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if they have any."""
        return None if self.names is None else self.names.listed

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        return 0 if self.learned is None else self.learned.n_seen

    def remembered(self) -> Lineage:
        """The lineage with this moment; young streams, which cannot be merged, have none."""
        learned = self.learned
        if learned is None or learned.head is not None or learned.state is None:
            return self.lineage
        digest = digest_of(learned.state)
        return self.lineage if digest is None else joined(self.lineage, (digest,))
