"""`Learner`: a model that learns from rows, and all it can do. Everything else wraps it."""

import os
import threading
import weakref
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import check_finite, check_known, too_large
from ..core.checks import checked_count, shown
from ..core.engine import GetRows, GetSample, Init, Numbers, Rows, Times
from ..core.engines import ENGINES, AnyConfig, AnyEngine
from ..core.finite import is_ordinary, quiet
from ..core.info import Info
from ..core.weighted import values_of
from .double_buffer import DoubleBuffer, observed_features
from .lineage import Lineage
from .names import Names
from .predictor import Predictor, known_features, locates_infinity
from .row_blocks import joined, narrowed, together, widened
from .snapshot import NO_ENERGY, Learned, Snapshot

# Codes that are smaller cannot have made a dictionary overflow, not in float32 either.
ORDINARY_CODE = 1e8
_NEVER = (None, None, False, None)
_LEARNERS: "weakref.WeakSet[Learner]" = weakref.WeakSet()


class Learner(Predictor):
    """A model that learns from rows, codes them and fills what is missing in them.

    Learning is all or nothing: whatever is raised at whatever moment, the model is the one before
    or the one after. Threads may learn (one after the other) and use the model at the same time:
    they always see a consistent one.

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
        Seed of the first dictionary.
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
        config: AnyConfig | None = None,
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
        self.init, self.seed = init, seed
        self.names = None if feature_names is None else Names(feature_names)
        self.engine: AnyEngine = ENGINES[algorithm]
        self._config: AnyConfig = self.engine.config_type() if config is None else config
        self._learned: Learned | None = None
        self._buffers: dict[str, DoubleBuffer] = {}
        self._lineage: Lineage = ()
        self._resumed: tuple[Any, Any, bool, Any] = _NEVER
        self._lock = threading.Lock()
        # Caches of whoever holds the learner; they are no part of it.
        self.cache: dict[str, Any] = {}
        _LEARNERS.add(self)

    # -- what it is -------------------------------------------------------------------------

    @property
    def learned(self) -> Learned:
        """What was learned so far. As long as it is held, its arrays do not change."""
        learned = self._learned
        if learned is not None and learned.state is not None:
            return learned
        with self._lock:
            return self._with_state()

    def _with_state(self) -> Learned:
        """`learned`, for callers that hold the lock."""
        learned = self._learned
        if learned is None:
            raise ValueError("Nothing was learned yet: call `learn` first.")
        if learned.state is None:
            state, _, info = self._first_learned(learned.head, self._config, learned.numbers)
            learned = self._learned = replace(learned, state=state, totals=info)
        return learned

    @property
    def state(self) -> Any:
        """The state of the engine."""
        return self.learned.state

    def state_for(self, config: AnyConfig | None = None, *, ahead: bool = False) -> Any:
        """See `Predictor.state_for`."""
        learned = self.learned
        state = learned.state
        if config is not None:
            state = self.engine.with_config(state, config)
        if not learned.last:
            return state
        known, before, whole, resumed = self._resumed
        if known is not learned or before != config or ahead > whole:
            with quiet():
                resumed = self.engine.resume_temporal(
                    state, lambda: together(learned.last), learned.times, ahead=ahead
                )
            self._resumed = learned, config, ahead, resumed
        return resumed

    @property
    def last_rows(self) -> NDArray[Any] | None:
        """The last rows that were learned from, as many as the engine keeps; None if none."""
        learned = self.learned
        return together(learned.last) if learned.last else None

    @property
    def last_times(self) -> Times:
        """When the last rows came; None if rows have no times."""
        return None if self._learned is None else self._learned.times

    @property
    def config(self) -> AnyConfig:
        """What the algorithm is given."""
        learned = self._learned
        if learned is None or learned.state is None:
            return self._config
        config: AnyConfig = learned.state.config
        return config

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if they have any."""
        return None if self.names is None else self.names.listed

    @property
    def is_young(self) -> bool:
        """Whether new rows may still enter the first dictionary."""
        return self._learned is None or self._learned.head is not None

    @property
    def takes_sparse_rows(self) -> bool:
        """Whether single rows of few entries are learned faster as sparse matrices."""
        return not self.is_young and not self.engine.n_last_rows(self.config, 1) > 1

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return int(self._some_rows().shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, that of the first rows."""
        return self._some_rows().dtype

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        return 0 if self._learned is None else self._learned.n_seen

    @property
    def error(self) -> float:
        """Relative error over the pass, of entries that were predicted before they were learned."""
        return self.learned.totals.error

    @property
    def scores_next_rows(self) -> bool:
        """Whether the next rows contribute to `error`; later passes over complete rows may not."""
        return self.engine.scores_next_rows(self.state)

    # -- learning ---------------------------------------------------------------------------

    @locates_infinity
    def learn(
        self, rows: Rows, config: AnyConfig | None = None, times: Times = None, *,
        in_fit: bool = False, numbers: Numbers = None,
    ) -> NDArray[Any] | None:  # fmt: skip
        """Learn from rows, in the order given; return their codes, if there are any yet.

        Parameters
        ----------
        rows : ndarray, scipy.sparse or WeightedRows of shape (n_rows, n_features)
            float32 or float64. Missing entries are NaN in an array, absent in a sparse matrix.
        config : BroydenConfig, FactorConfig or None, default=None
            What the algorithm is given from now on; None is as before.
        times : ndarray of shape (n_rows,) or None, default=None
            When the rows came, in seconds since 1970, ascending; None if they have no times.
        in_fit : bool, default=False
            Whether `finalize` will be called at the end: until then nothing is estimated of how
            rows depend on those before them.
        numbers : ndarray of shape (n_rows,) or None, default=None
            Of the rows, the same in every pass: they decide on what is held out. None counts them.
        """
        known = known_features(self.config if config is None else config)
        check_known(values_of(rows), known, self.feature_names)
        with self._lock:
            learned = self._learned
            if learned is None or learned.head is not None:
                return self._learn_young(learned, rows, config, times, in_fit, numbers)
            state: Any = learned.state
            if config is not None:
                state = self.engine.with_config(state, config)
            if rows.shape[0] == 1 and self.engine.updates_in_place(rows):
                return self._learn_one(learned, state, rows, times, in_fit, numbers)
            after, codes = self._steps(
                replace(learned, state=state), rows, times, numbers, in_fit=in_fit
            )
            self._learned = after
            return codes

    def add_features(self, names: list[str]) -> None:
        """Add features by name, of which nothing was observed yet."""
        with self._lock:
            learned, known = self._learned, self.names
            assert learned is not None
            assert known is not None
            head = None if learned.head is None else widened(learned.head, len(names))
            last = tuple(widened(block, len(names)) for block in learned.last)
            state: Any = learned.state
            if head is not None and self.engine.defers_start:
                state = None  # it is made of the first rows, when it is needed
            elif state is not None:
                state = self._widened(state, len(names))
            self._resumed = _NEVER
            self._learned = replace(learned, state=state, head=head, last=last)
            self.names = known.with_more(names)

    def drop_features(self, kept: NDArray[np.int64]) -> None:
        """Drop all features but these, in their order; the first dictionary must be final."""
        with self._lock:
            learned, known = self._learned, self.names
            assert learned is not None
            assert learned.head is None
            assert known is not None
            state = self.engine.without_features(learned.state, kept)
            last = tuple(narrowed(block, kept) for block in learned.last)
            self._buffers, self._resumed = {}, _NEVER
            self._learned = replace(learned, state=state, last=last)
            self.names = Names([known.listed[at] for at in kept.tolist()])

    def _widened(self, state: Any, count: int) -> Any:
        """The state with more features; the buffers for the next row get them, too."""
        wider = self.engine.add_features(state, count)
        before = self.engine.arrays_of_step(state, None)
        after = self.engine.arrays_of_step(wider, None)
        found = {
            name: buffer.widened(count, before[name], after[name])
            for name, buffer in self._buffers.items()
        }
        self._buffers = {name: buffer for name, buffer in found.items() if buffer is not None}
        return wider

    def learn_and_fill(self, row: NDArray[Any]) -> NDArray[Any]:
        """Learn from one row (1, n_features); return the row as the model then predicts it.

        If steps do not rotate the atoms, the code that learning found for the row serves to fill
        it, too: that is half the work of learning and filling.
        """
        row = row.astype(self.dtype, copy=False)
        codes = self.learn(row)
        if self.engine.rotates_atoms or codes is None:
            return self.fill(row)
        return self.decode(codes)

    def begin_pass(self) -> None:
        """Begin another pass over the rows: energies start from zero, if there will be any."""
        with self._lock:
            learned = self._with_state()
            state = self.engine.begin_pass(learned.state)
            scores = self.engine.scores_next_rows(state)
            self._learned = Learned(state, NO_ENERGY if scores else learned.totals)

    def close_head(self) -> None:
        """Make the first dictionary final: rows to come do not enter it any more."""
        with self._lock:
            self._learned = replace(self._with_state(), head=None, numbers=None)

    def finalize(self, sample: GetSample, last_rows: GetRows, times: Times = None) -> None:
        """Do what only the end of a fit can do; see `Engine.finalize`."""
        with self._lock:
            learned = self._with_state()
            rows: list[Any] = []

            def cached_last_rows() -> Any:
                rows[:] = rows or [last_rows()]
                return rows[0]

            with quiet():
                state = self.engine.finalize(learned.state, sample, cached_last_rows, times)
            count = self.engine.n_last_rows(state.config, len(state.C))
            last, last_times = learned.last, learned.times
            if rows:
                last = (rows[0][-count:],)
                last_times = None if times is None else times[-count:]
            self._learned = replace(learned, state=state, last=last, times=last_times)

    # -- copies -----------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """All that the learner is at this moment."""
        return Snapshot(
            self.n_components,
            self._config,
            self.init,
            self.seed,
            self.names,
            self.engine,
            self._learned,
            self._lineage,
        )

    def snapshot_to_share(self) -> Snapshot:
        """A snapshot that other learners may go on from: this one remembers it, too."""
        snapshot = self.snapshot()
        self._lineage = snapshot.remembered()
        return replace(snapshot, lineage=self._lineage)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """An independent learner that continues from a snapshot."""
        learner = cls(snapshot.engine.name, snapshot.n_components)
        learner.restore(replace(snapshot, lineage=snapshot.remembered()))
        return learner

    def restore(self, snapshot: Snapshot) -> None:
        """Become what the snapshot holds."""
        with self._lock:
            self.n_components, self._config = snapshot.n_components, snapshot.config
            self.init, self.seed, self.engine = snapshot.init, snapshot.seed, snapshot.engine
            self.names = snapshot.names
            self._learned, self._lineage = snapshot.learned, snapshot.lineage

    def with_config(self, config: AnyConfig) -> Self:
        """An independent learner that continues from here under a config."""
        learned = self.learned
        learned = replace(learned, state=self.engine.with_config(learned.state, config))
        return self.from_snapshot(replace(self.snapshot(), config=config, learned=learned))

    # -- inside -----------------------------------------------------------------------------

    def _some_rows(self) -> Any:
        """Some rows, or the atoms: of the width and type of all rows."""
        learned = self._learned
        if learned is not None and learned.state is None:
            return learned.head
        return self.state.C.T

    def _first_state(self, rows: Rows, config: AnyConfig, numbers: Numbers) -> Any:
        with quiet():
            return self.engine.start(rows, self.n_components, config, self.init, self.seed, numbers)

    def _first_learned(
        self, rows: Rows, config: AnyConfig, numbers: Numbers
    ) -> tuple[Any, NDArray[Any], Info]:
        first = self._first_state(rows, config, numbers)
        return self._stepped(first, rows, numbers, reuse=True)

    def _stepped(
        self, state: Any, rows: Rows, numbers: Numbers, *, reuse: bool
    ) -> tuple[Any, NDArray[Any], Info]:
        """A step of the engine, refused if the dictionary has overflowed.

        That takes huge codes: with others, the dictionary need not be examined.
        """
        with quiet():
            after, codes, info = self.engine.step(state, rows, reuse=reuse, numbers=numbers)
            ordinary = bool(np.abs(codes).max(initial=0.0) < ORDINARY_CODE)
        if not ordinary and not np.isfinite(after.C).all():
            raise too_large()
        return after, codes, info

    def _learn_young(
        self, learned: Learned | None, rows: Rows, config: AnyConfig | None, times: Times,
        in_fit: bool, numbers: Numbers,
    ) -> NDArray[Any] | None:  # fmt: skip
        """Learn from a stream so young that every new row may still enter the first dictionary.

        The model is always what it would be had all rows so far come at once: that is what makes
        it independent of how the stream is cut. The rows are kept until there are enough; an engine
        whose start is costly makes the state when it is needed.
        """
        all_rows = rows if learned is None else joined(learned.head, rows)
        numbers = _joined_numbers(learned, rows.shape[0], numbers)
        config = self.config if config is None else config
        needed = self.engine.n_start_rows(config, self.n_components, rows.shape[1])
        young = all_rows.shape[0] < needed
        # The caller may write into its rows later.
        head = None if not young else rows.copy() if all_rows is rows else all_rows
        values = values_of(rows)
        values = values.data[None] if scipy.sparse.issparse(values) else values
        if self.engine.defers_start:  # infinity would spoil the scales of all rows
            check_finite(values, squares=False)
        ordinary = isinstance(self.init, str) and is_ordinary(values)
        last, times = self._last_after(learned, rows, config, times)
        if young and self.engine.defers_start and ordinary:
            self._config, self._learned = (
                config,
                Learned(None, NO_ENERGY, head, last, times, numbers),
            )
            return None
        if young or in_fit or not self.engine.n_last_rows(config, rows.shape[1]) > 1:
            state, codes, info = self._first_learned(all_rows, config, numbers)
            self._learned = Learned(state, info, head, last, times, numbers if young else None)
            return codes[-rows.shape[0] :]
        first = self._first_state(all_rows, config, numbers)
        all_times = None if times is None or len(times) < all_rows.shape[0] else times
        before = Learned(first, NO_ENERGY)
        after, codes = self._steps(before, all_rows, all_times, numbers, in_fit=False)
        self._learned = replace(after, last=last, times=times)
        return codes[-rows.shape[0] :]

    def _last_after(
        self, learned: Learned | None, rows: Rows, config: AnyConfig, times: Times
    ) -> tuple[tuple[Any, ...], Times]:
        """The last rows, once these have been learned from, and when they came."""
        rows, count = values_of(rows), self.engine.n_last_rows(config, rows.shape[1])
        if count == 0:
            return (), None
        new = rows.copy() if rows.shape[0] <= count else rows[-count:].copy()
        blocks = (*(() if learned is None else learned.last), new)
        if times is not None and learned is not None and learned.last:
            # Rows before these that have no times leave them without: they would not fit.
            before = learned.times
            # Times that go back are warned of by the caller: the rows come after the last one.
            times = None if before is None else np.append(before, np.maximum(times, before[-1]))
        times = None if times is None else np.asarray(times[-count:], np.float64)
        surplus = sum(block.shape[0] for block in blocks) - count
        while surplus >= blocks[0].shape[0]:
            surplus -= blocks[0].shape[0]
            blocks = blocks[1:]
        return ((blocks[0][surplus:], *blocks[1:]) if surplus > 0 else blocks), times

    def _steps(
        self, learned: Learned, rows: Rows, times: Times, numbers: Numbers, *, in_fit: bool
    ) -> tuple[Learned, NDArray[Any]]:
        """What is learned after rows, and their codes.

        An M-step changes the basis of the codes, so how rows depend on those before them is
        estimated anew, by the state and the last rows at that moment: it does not matter how the
        stream is cut, nor when the model is read. Of several M-steps, only the last one counts.
        """
        now, at, codes = learned, 0, []
        updated: Learned | None = None
        while at < rows.shape[0]:
            count = rows.shape[0] if in_fit else self.engine.rows_until_update(now.state)
            here = slice(at, at + count)
            state, made, info = self._stepped(
                now.state, rows[here], None if numbers is None else numbers[here], reuse=False
            )
            then = None if times is None else times[here]
            last, then = self._last_after(now, rows[here], state.config, then)
            now = Learned(state, now.totals.plus(info), last=last, times=then)
            codes.append(made)
            at += count
            if at <= rows.shape[0]:
                updated = now
        if not in_fit:
            now = self._with_temporal(now, updated)
        return now, codes[0] if len(codes) == 1 else np.concatenate(codes)

    def _with_temporal(self, now: Learned, updated: Learned | None) -> Learned:
        """What is learned, with autoregressions estimated after the last M-step, if there was one.

        `updated` is what was learned at that moment.
        """
        if updated is None or not updated.last or not self.engine.lacks_temporal(now.state):
            return now
        with quiet():
            found = self.engine.resume_temporal(
                updated.state, lambda: together(updated.last), updated.times
            )
        state: Any = now.state
        return replace(now, state=replace(state, temporal=found.temporal))

    def _learn_one(
        self, learned: Learned, state: Any, row: Rows, times: Times, in_fit: bool,
        numbers: Numbers,
    ) -> NDArray[Any]:  # fmt: skip
        """Learn from one row in second copies of what it changes, which then take its place.

        To write the update into the dictionary itself would be the quickest, but other threads, or
        an interrupt, would see half of it.
        """
        buffers, self._buffers = self._buffers, {}
        before, given = state, self.engine.arrays_of_step(state, row)
        spares = {
            name: buffers[name].up_to_date(array) if name in buffers else array.copy()
            for name, array in given.items()
        }
        state, codes, info = self._stepped(
            self.engine.with_arrays(state, spares), row, numbers, reuse=True
        )
        last, times = self._last_after(learned, row, state.config, times)
        now = Learned(state, learned.totals.plus(info), last=last, times=times)
        if not in_fit and self.engine.rows_until_update(before) == 1:
            now = self._with_temporal(now, now)
        self._learned = now
        self._keep_buffers(given, spares, self.engine.arrays_of_step(state, row), row)
        return codes

    def _keep_buffers(
        self, before: dict[str, Any], spares: dict[str, Any], after: dict[str, Any], row: Rows
    ) -> None:
        """Keep the arrays before a row for the next one, where the spare ones took their place."""
        stale = observed_features(row, spares["C"])
        self._buffers = {
            name: DoubleBuffer(before[name], spare, stale, 0 if name == "C" else -1)
            for name, spare in spares.items()
            if after[name] is spare
        }

    def __getstate__(self) -> dict[str, Any]:
        self.snapshot_to_share()
        kept = self.__dict__.copy()
        del kept["_lock"], kept["_buffers"], kept["_resumed"], kept["cache"]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        kept = {"_lineage": (), **kept}
        self.__dict__.update(kept, _lock=threading.Lock(), _buffers={}, _resumed=_NEVER, cache={})
        _LEARNERS.add(self)


def _joined_numbers(learned: Learned | None, count: int, numbers: Numbers) -> Numbers:
    """Numbers of the rows of the head and of more rows; None if all of them are counted."""
    if learned is None or (learned.numbers is None and numbers is None):
        return numbers
    before = learned.n_seen
    first = np.arange(before) if learned.numbers is None else learned.numbers
    more = np.arange(before, before + count) if numbers is None else numbers
    return np.concatenate([first, more])


def _unlock_all() -> None:
    """In a forked process no other thread is left that could release a lock.

    What was learned is replaced as a whole, so every learner is a consistent one.
    """
    for learner in list(_LEARNERS):
        learner._lock, learner._buffers = threading.Lock(), {}  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)
