"""`Learner`: what a fitted model is, and all it can do. Everything else wraps it."""

import math
import sys
import threading
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import dense_with_holes, sparse_with_holes
from ..core.rule import Rule, checked_count
from ..core.state import Info
from .engine import BROYDEN, AnyState, Engine, Init

NOTHING = Info(0.0, 0.0)
# Rows that are filled together: bounds the memory of what is decoded.
FILL_ROWS = 1024
# A dictionary smaller than this is copied faster than the features of a row are looked at.
SMALL_DICTIONARY = 1 << 14


@dataclass(frozen=True, slots=True)
class Now:
    """All that learning changes, exchanged as one thing. Nobody writes into it.

    Attributes
    ----------
    state : AnyState
    totals : Info
        Energies of the pass so far.
    head : ndarray, sparse matrix or None
        The rows so far, while every new row may still enter the first dictionary.
    """

    state: AnyState
    totals: Info = NOTHING
    head: Any = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a learner is at one moment; later rows leave it alone. Taking one costs nothing."""

    n_components: int
    rule: Any
    init: Init
    seed: int
    feature_names: list[str] | None
    engine: Engine
    now: Now | None

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        return 0 if self.now is None else self.now.state.n_seen


class Learner:
    """A model that learns from rows, codes them and fills what is missing in them.

    Learning is all or nothing: whatever is raised at whatever moment, the model is the one before
    or the one after. Threads may learn (one after the other) and use the model at the same time:
    what they use is always a whole one.

    Parameters
    ----------
    n_components : int
        Atoms of the dictionary.
    rule : Rule, default=Rule()
        How to learn.
    init : {"data", "random"} or ndarray of shape (n_components, n_features), default="data"
        The first dictionary.
    seed : int, default=0
        Seed of what is drawn at random for it.
    feature_names : list of str or None, default=None
    engine : Engine

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import Learner
    >>> rows = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 3.0])
    >>> learner = Learner(n_components=1)
    >>> for _ in range(20):
    ...     codes = learner.learn(rows)
    >>> learner.fill(np.array([[2.0, np.nan, 6.0]])).round(2)
    array([[2., 4., 6.]])
    """

    def __init__(
        self,
        n_components: int,
        rule: Any = None,
        *,
        init: Init = "data",
        seed: int = 0,
        feature_names: list[str] | None = None,
        engine: Engine = BROYDEN,
    ) -> None:
        self.n_components = checked_count("n_components", n_components, "how many atoms to learn")
        self.init, self.seed, self.feature_names, self.engine = init, seed, feature_names, engine
        self._rule = Rule() if rule is None else rule
        self._now: Now | None = None
        self._second: _SecondCopy | None = None
        self._lock = threading.Lock()

    # -- what it is -------------------------------------------------------------------------

    @property
    def now(self) -> Now:
        """What was learned so far. As long as it is held, its arrays stay as they are."""
        if self._now is None:
            raise ValueError("Nothing was learned yet: call `learn` first.")
        return self._now

    @property
    def started(self) -> bool:
        """Whether a row was learned from."""
        return self._now is not None

    @property
    def rule(self) -> Any:
        """How it learns."""
        return self._rule if self._now is None else self._now.state.rule

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return len(self.now.state.C)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, that of the first rows."""
        return self.now.state.C.dtype

    @property
    def n_seen(self) -> int:
        """Rows learned from, in all passes."""
        return self.now.state.n_seen if self.started else 0

    @property
    def error(self) -> float:
        """Relative error over the pass, of each row before the dictionary learned from it."""
        return self.now.totals.error

    @property
    def components(self) -> NDArray[Any]:
        """The dictionary, an atom in a row."""
        return self.engine.components(self.now.state)

    # -- what it does -----------------------------------------------------------------------

    def learn(self, rows: Any, rule: Any = None) -> NDArray[Any]:
        """Learn from rows, in the order given; return their codes.

        Parameters
        ----------
        rows : ndarray or scipy.sparse of shape (n_rows, n_features), float32 or float64
            Missing entries are NaN in an array, absent in a sparse matrix.
        rule : Rule or None, default=None
            How to learn from now on; None is as before.
        """
        with self._lock:
            now = self._now
            if now is None or now.head is not None:
                return self._learn_young(now, rows, rule)
            state = now.state if rule is None else self.engine.with_rule(now.state, rule)
            if rows.shape[0] == 1:
                return self._learn_one(now, state, rows)
            state, codes, info = self.engine.step(state, rows, reuse=False)
            self._now = Now(state, now.totals.plus(info))
            return codes

    def encode(self, rows: Any, rule: Any = None) -> tuple[NDArray[Any], Info]:
        """Codes of rows, and how much of the rows they explain."""
        state = self.now.state
        return self.engine.encode(
            state if rule is None else self.engine.with_rule(state, rule), rows
        )

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Rows from their codes, in the dictionary's type, whose range bounds them."""
        return _decoded(self.engine, self.now.state, codes)

    def fill(self, rows: Any, rule: Any = None) -> NDArray[Any]:
        """The rows as an array in which missing entries are filled; observed ones stay."""
        now = self.now
        state = now.state if rule is None else self.engine.with_rule(now.state, rule)
        codes = self.engine.encode(state, rows)[0]
        filled = dense_with_holes(rows).copy()
        for start in range(0, len(filled), FILL_ROWS):
            here = slice(start, start + FILL_ROWS)
            missing = np.isnan(filled[here])
            if missing.any():
                made = _decoded(self.engine, state, codes[here])
                np.copyto(filled[here], made, where=missing)
        return filled

    def learn_and_fill(self, row: NDArray[Any]) -> NDArray[Any]:
        """Learn from one row (1, n_features); return the row that the model makes of it.

        The code that learning found for the row serves to fill it, too: that is half the work of
        learning and filling one after the other.
        """
        return self.decode(self.learn(row.astype(self.dtype, copy=False)))

    def begin_pass(self) -> None:
        """Begin another pass over the rows: energies are counted anew."""
        with self._lock:
            self._now = Now(self.engine.begin_pass(self.now.state))

    def settle(self) -> None:
        """Take the first dictionary as settled: the rows so far are all that it depends on."""
        with self._lock:
            self._now = replace(self.now, head=None)

    def snapshot(self) -> Snapshot:
        """All that the learner is at this moment."""
        return Snapshot(
            self.n_components, self._rule, self.init, self.seed, self.feature_names, self.engine,
            self._now,
        )  # fmt: skip

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """A learner that goes on from a snapshot, on its own."""
        learner = cls(snapshot.n_components)
        learner.restore(snapshot)
        return learner

    def restore(self, snapshot: Snapshot) -> None:
        """Become what the snapshot is of."""
        with self._lock:
            self.n_components, self._rule = snapshot.n_components, snapshot.rule
            self.init, self.seed, self.engine = snapshot.init, snapshot.seed, snapshot.engine
            self.feature_names = snapshot.feature_names
            self._now = snapshot.now

    def under(self, rule: Any) -> Self:
        """A learner that goes on from here on its own, under a rule."""
        now = self.now
        now = replace(now, state=self.engine.with_rule(now.state, rule))
        return self.from_snapshot(replace(self.snapshot(), rule=rule, now=now))

    # -- inside -----------------------------------------------------------------------------

    def _learn_young(self, now: Now | None, rows: Any, rule: Any) -> NDArray[Any]:
        """Learn from a stream so young that every new row may still enter the first dictionary.

        The model is always what it would be had all rows so far come at once: that is what makes
        it independent of how the stream is cut. The rows are kept until there are enough.
        """
        together = rows if now is None else joined(now.head, rows)
        rule = self.rule if rule is None else rule
        first = self.engine.start(together, self.n_components, rule, self.init, self.seed)
        state, codes, info = self.engine.step(first, together, reuse=True)
        head = None
        if together.shape[0] < self.engine.rows_needed(self.n_components):
            head = rows.copy() if together is rows else together  # the rows are the caller's
        self._now = Now(state, info, head)
        return codes[-rows.shape[0] :]

    def _learn_one(self, now: Now, state: Any, row: Any) -> NDArray[Any]:
        """Learn from one row in a second copy of the dictionary, which then takes its place.

        To write one row's update into the dictionary itself would be the quickest, but whoever
        uses it at the moment, or sees an interrupt, would have half of it.
        """
        second, self._second = self._second, None
        C = now.state.C
        spare = C.copy() if second is None else second.up_to_date(C)
        state, codes, info = self.engine.step(replace(state, C=spare), row, reuse=True)
        self._now = Now(state, now.totals.plus(info))
        if state.C is spare:
            self._second = _SecondCopy(C, spare, _observed_features(row, C))
        return codes

    def __getstate__(self) -> dict[str, Any]:
        kept = self.__dict__.copy()
        del kept["_lock"], kept["_second"]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept, _lock=threading.Lock(), _second=None)


class _SecondCopy:
    """The dictionary before the last row, to be written into for the next one.

    Parameters
    ----------
    array : ndarray of shape (n_features, n_components)
    after : ndarray of the same shape
        The dictionary after the last row.
    stale : ndarray of int, or None
        Features that the last row changed; None is all.
    """

    def __init__(
        self, array: NDArray[Any], after: NDArray[Any], stale: NDArray[Any] | None
    ) -> None:
        self._array, self._after, self._stale = array, after, stale

    def up_to_date(self, C: NDArray[Any]) -> NDArray[Any]:
        """An array equal to C that nobody uses."""
        # Held here and by the call itself; by anybody else who has kept an older state, too.
        if sys.getrefcount(self._array) > 2 or not self._array.flags.writeable:
            return C.copy()
        if self._stale is None or C is not self._after:
            np.copyto(self._array, C)
        else:
            self._array[self._stale] = C[self._stale]
        return self._array


def _observed_features(row: Any, C: NDArray[Any]) -> NDArray[Any] | None:
    """Features of which a row observes something; None if it may be all."""
    if scipy.sparse.issparse(row):
        return row.tocsr().indices.copy()
    if C.size < SMALL_DICTIONARY or math.isfinite(row.sum()):
        return None
    observed = np.flatnonzero(~np.isnan(row[0]))
    return observed if 2 * len(observed) < len(C) else None


def _decoded(engine: Engine, state: Any, codes: NDArray[Any]) -> NDArray[Any]:
    """Rows from codes; what the type cannot hold becomes the largest number that it can."""
    rows = engine.decode(state, codes)
    if not np.isfinite(rows).all():
        if not np.isfinite(codes).all():
            raise ValueError("X contains NaN or infinity, but codes are finite numbers.")
        if np.isnan(rows).any():
            raise ValueError("X holds codes so large that their rows overflow. Rescale them.")
        largest = np.finfo(rows.dtype).max
        np.clip(rows, -largest, largest, out=rows)
    return rows


def joined(head: Any, rows: Any) -> Any:
    """The rows after those of the head, in the head's type; sparse if the rows are."""
    if scipy.sparse.issparse(rows):
        head = sparse_with_holes(head)
        return scipy.sparse.vstack([head, rows.astype(head.dtype, copy=False)], format="csr")
    head = dense_with_holes(head)
    return np.concatenate([head, rows.astype(head.dtype, copy=False)])
