"""`Learner`: what a fitted model is, and all it can do. Everything else wraps it."""

import threading
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import UnusableError, check_finite, too_large
from ..core.checks import checked_count, shown
from ..core.engine import Engine, GetRows, Init
from ..core.engines import ENGINES
from ..core.finite import is_ordinary, made_finite, quiet, within_range
from ..core.info import Info
from .double_buffer import SecondCopy, observed_features
from .row_blocks import joined, together
from .snapshot import NOTHING, Now, Snapshot

# Codes that are smaller can have made no dictionary overflow, not in float32 either.
USUAL_CODE = 1e8
_NEVER = (None, None, None)


class Learner:
    """A model that learns from rows, codes them and fills what is missing in them.

    Learning is all or nothing: whatever is raised at whatever moment, the model is the one before
    or the one after. Threads may learn (one after the other) and use the model at the same time:
    what they use is always a whole one.

    Parameters
    ----------
    algorithm : {"broyden", "factor"}
        The paper's algorithm and its extensions, or the probabilistic factor model.
    n_components : int or None, default=None
        Atoms of the dictionary; None is the algorithm's choice.
    config : BroydenConfig, FactorConfig or None, default=None
        What the algorithm is given; None is its defaults.
    init : {"data", "random"} or ndarray of shape (n_components, n_features), default="data"
        The first dictionary.
    seed : int, default=0
        Seed of what is drawn at random for it.
    feature_names : list of str or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import Learner
    >>> rows = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 3.0])
    >>> learner = Learner("broyden", n_components=1)
    >>> for _ in range(20):
    ...     codes = learner.learn(rows)
    >>> learner.fill(np.array([[2.0, np.nan, 6.0]])).round(2)
    array([[2., 4., 6.]])
    """

    def __init__(
        self,
        algorithm: str,
        n_components: int | None = None,
        config: Any = None,
        *,
        init: Init = "data",
        seed: int = 0,
        feature_names: list[str] | None = None,
    ) -> None:
        if algorithm not in ENGINES:
            names = " or ".join(map(repr, ENGINES))
            raise ValueError(f"algorithm must be {names}, got {shown(algorithm)}.")
        if n_components is not None:
            n_components = checked_count("n_components", n_components, "how many atoms to learn")
        self.n_components = n_components
        self.init, self.seed, self.feature_names = init, seed, feature_names
        self.engine: Engine = ENGINES[algorithm]
        self._config = self.engine.config_type() if config is None else config
        self._now: Now | None = None
        self._second: SecondCopy | None = None
        self._recalled: tuple[Any, Any, Any] = _NEVER
        self._lock = threading.Lock()

    # -- what it is -------------------------------------------------------------------------

    @property
    def now(self) -> Now:
        """What was learned so far. As long as it is held, its arrays stay as they are."""
        now = self._now
        if now is not None and now.state is not None:
            return now
        with self._lock:
            return self._with_state()

    def _with_state(self) -> Now:
        """`now`, for those who hold the lock."""
        now = self._now
        if now is None:
            raise ValueError("Nothing was learned yet: call `learn` first.")
        if now.state is None:
            state, _, info = self._first_learned(now.head, self._config)
            now = self._now = replace(now, state=state, totals=info)
        return now

    @property
    def state(self) -> Any:
        """The state of the engine."""
        return self.now.state

    def used(self, config: Any = None) -> Any:
        """The state that rows are coded and filled by, under a config or as before."""
        now = self.now
        state = now.state if config is None else self.engine.with_config(now.state, config)
        if not now.last:
            return state
        known, before, recalled = self._recalled
        if known is not now or before != config:
            with quiet():
                recalled = self.engine.recall(state, together(now.last))
            self._recalled = now, config, recalled
        return recalled

    @property
    def last_rows(self) -> NDArray[Any] | None:
        """The last rows that were learned from, as many as the engine keeps; None if none."""
        now = self.now
        return together(now.last) if now.last else None

    @property
    def config(self) -> Any:
        """How it learns."""
        now = self._now
        return self._config if now is None or now.state is None else now.state.config

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return int(self._anything().shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, that of the first rows."""
        return self._anything().dtype

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        return 0 if self._now is None else self._now.n_seen

    @property
    def error(self) -> float:
        """Relative error over the pass, of what each row tells before it was learned from."""
        return self.now.totals.error

    @property
    def judges(self) -> bool:
        """Whether rows to come are judged: later passes over complete rows may not be."""
        return self.engine.judges(self.state)

    @property
    def components(self) -> NDArray[Any]:
        """The dictionary, an atom in a row."""
        state = self.state
        with quiet():
            return within_range(self.engine.components(state))

    # -- what it does -----------------------------------------------------------------------

    def learn(self, rows: Any, config: Any = None) -> NDArray[Any] | None:
        """Learn from rows, in the order given; return their codes, if there are any yet.

        Parameters
        ----------
        rows : ndarray or scipy.sparse of shape (n_rows, n_features), float32 or float64
            Missing entries are NaN in an array, absent in a sparse matrix.
        config : BroydenConfig or None, default=None
            How to learn from now on; None is as before.
        """
        with self._lock:
            now = self._now
            if now is None or now.head is not None:
                return self._learn_young(now, rows, config)
            state = now.state if config is None else self.engine.with_config(now.state, config)
            if rows.shape[0] == 1 and self.engine.writes(rows):
                return self._learn_one(now, state, rows)
            state, codes, info = self._stepped(state, rows, reuse=False)
            last = self._later(now, rows, state.config)
            self._now = Now(state, now.totals.plus(info), last=last)
            return codes

    def encode(self, rows: Any, config: Any = None) -> NDArray[Any]:
        """Codes of rows, in the dictionary's type, whose range bounds them."""
        state = self.used(config)
        with quiet():
            codes = self.engine.encode(state, rows)
            return made_finite(codes.astype(state.C.dtype, copy=False), rows)

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Rows from their codes, in the dictionary's type, whose range bounds them."""
        return _decoded(self.engine, self.state, codes)

    def fill(self, rows: Any, config: Any = None) -> NDArray[Any]:
        """The rows as an array in which missing entries are filled; observed ones stay."""
        state = self.used(config)
        with quiet():
            return made_finite(self.engine.fill(state, rows), rows)

    def judge(self, rows: Any, config: Any = None) -> Info:
        """Energies of entries that were hidden from their rows' codes, and of their errors."""
        state = self.state
        with quiet():
            return self.engine.judge(
                state if config is None else self.engine.with_config(state, config), rows
            )

    def learn_and_fill(self, row: NDArray[Any]) -> NDArray[Any]:
        """Learn from one row (1, n_features); return the row that the model makes of it.

        Where a step leaves the dictionary's atoms what they are, the code that learning found for
        the row serves to fill it, too: that is half the work of learning and filling.
        """
        row = row.astype(self.dtype, copy=False)
        codes = self.learn(row)
        return self.fill(row) if self.engine.turns_atoms or codes is None else self.decode(codes)

    def begin_pass(self) -> None:
        """Begin another pass over the rows: energies are counted anew, if there will be any."""
        with self._lock:
            now = self._with_state()
            state = self.engine.begin_pass(now.state)
            self._now = Now(state, NOTHING if self.engine.judges(state) else now.totals)

    def conclude(self, sample: GetRows, last_rows: GetRows) -> None:
        """Find what is left to find at the end of a fit; see `Engine.conclude`."""
        with self._lock:
            now = self._with_state()
            rows: list[Any] = []

            def kept() -> Any:
                rows[:] = rows or [last_rows()]
                return rows[0]

            with quiet():
                state = self.engine.conclude(now.state, sample, kept)
            count = self.engine.rows_kept(state.config, len(state.C))
            last = (rows[0][-count:],) if rows else now.last
            self._now = replace(now, state=state, last=last)

    def settle(self) -> None:
        """Take the first dictionary as settled: the rows so far are all that it depends on."""
        with self._lock:
            self._now = replace(self._with_state(), head=None)

    def snapshot(self) -> Snapshot:
        """All that the learner is at this moment."""
        return Snapshot(
            self.n_components,
            self._config,
            self.init,
            self.seed,
            self.feature_names,
            self.engine,
            self._now,
        )

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """A learner that goes on from a snapshot, on its own."""
        learner = cls(snapshot.engine.name, snapshot.n_components)
        learner.restore(snapshot)
        return learner

    def restore(self, snapshot: Snapshot) -> None:
        """Become what the snapshot is of."""
        with self._lock:
            self.n_components, self._config = snapshot.n_components, snapshot.config
            self.init, self.seed, self.engine = snapshot.init, snapshot.seed, snapshot.engine
            self.feature_names = snapshot.feature_names
            self._now = snapshot.now

    def under(self, config: Any) -> Self:
        """A learner that goes on from here on its own, under a config."""
        now = self.now
        now = replace(now, state=self.engine.with_config(now.state, config))
        return self.from_snapshot(replace(self.snapshot(), config=config, now=now))

    # -- inside -----------------------------------------------------------------------------

    def _anything(self) -> Any:
        """Rows, or one atom for each feature, as the rows are: of their width and type."""
        now = self._now
        if now is not None and now.state is None:
            return now.head
        return self.state.C.T

    def _first_learned(self, rows: Any, config: Any) -> tuple[Any, NDArray[Any], Info]:
        with quiet():
            first = self.engine.start(rows, self.n_components, config, self.init, self.seed)
        return self._stepped(first, rows, reuse=True)

    def _stepped(self, state: Any, rows: Any, *, reuse: bool) -> tuple[Any, NDArray[Any], Info]:
        """A step of the engine, refused if the dictionary has overflowed.

        That takes rows whose codes are huge: of others nobody has to look at all of the dictionary.
        """
        with quiet():
            after, codes, info = self.engine.step(state, rows, reuse=reuse)
            usual = bool(np.abs(codes).max(initial=0.0) < USUAL_CODE)
        if not usual and not np.isfinite(after.C).all():
            raise too_large()
        return after, codes, info

    def _learn_young(self, now: Now | None, rows: Any, config: Any) -> NDArray[Any] | None:
        """Learn from a stream so young that every new row may still enter the first dictionary.

        The model is always what it would be had all rows so far come at once: that is what makes
        it independent of how the stream is cut. The rows are kept until there are enough; an engine
        whose start costs much makes the state when somebody asks for it.
        """
        together = rows if now is None else joined(now.head, rows)
        config = self.config if config is None else config
        needed = self.engine.rows_needed(config, self.n_components, rows.shape[1])
        young = together.shape[0] < needed
        # The rows are the caller's.
        head = None if not young else rows.copy() if together is rows else together
        values = rows.data[None] if scipy.sparse.issparse(rows) else rows
        if self.engine.starts_late:  # what is infinite would spoil the units of all rows
            check_finite(values, squares=False)
        ordinary = isinstance(self.init, str) and is_ordinary(values)
        if young and self.engine.starts_late and ordinary:
            self._config, self._now = (
                config,
                Now(None, NOTHING, head, self._later(now, rows, config)),
            )
            return None
        state, codes, info = self._first_learned(together, config)
        self._now = Now(state, info, head, self._later(now, rows, config))
        return codes[-rows.shape[0] :]

    def _later(self, now: Now | None, rows: Any, config: Any) -> tuple[Any, ...]:
        """The last rows, once these have been learned from."""
        count = self.engine.rows_kept(config, rows.shape[1])
        if count == 0:
            return ()
        blocks = (*(() if now is None else now.last), rows[-count:].copy())
        more = sum(block.shape[0] for block in blocks) - count
        while more >= blocks[0].shape[0]:
            more -= blocks[0].shape[0]
            blocks = blocks[1:]
        return (blocks[0][more:], *blocks[1:]) if more > 0 else blocks

    def _learn_one(self, now: Now, state: Any, row: Any) -> NDArray[Any]:
        """Learn from one row in a second copy of the dictionary, which then takes its place.

        To write one row's update into the dictionary itself would be the quickest, but whoever
        uses it at the moment, or sees an interrupt, would have half of it.
        """
        second, self._second = self._second, None
        C = state.C
        spare = C.copy() if second is None else second.up_to_date(C)
        state, codes, info = self._stepped(replace(state, C=spare), row, reuse=True)
        last = self._later(now, row, state.config)
        self._now = Now(state, now.totals.plus(info), last=last)
        if state.C is spare:
            self._second = SecondCopy(C, spare, observed_features(row, C))
        return codes

    def __getstate__(self) -> dict[str, Any]:
        kept = self.__dict__.copy()
        del kept["_lock"], kept["_second"], kept["_recalled"]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept, _lock=threading.Lock(), _second=None, _recalled=_NEVER)


def _decoded(engine: Engine, state: Any, codes: NDArray[Any]) -> NDArray[Any]:
    """Rows from codes; what the type cannot hold becomes the largest number that it can."""
    rows = engine.decode(state, codes)
    if not np.isfinite(rows).all() and not np.isfinite(codes).all():
        raise UnusableError("contains NaN or infinity, but codes are finite numbers.")
    return made_finite(rows, codes)
