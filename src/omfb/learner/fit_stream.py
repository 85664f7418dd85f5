"""`fit_stream`: passes over a source, with progress, checkpoints and resuming."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..streams import DataError, Position, Source, errors_about, prefetched, rows_per_block
from ..streams.base import Blocks, SourceLostError, observed_features
from ..streams.prefetch import AHEAD
from .checkpoints import Checkpoints, Place, resumed
from .learner import Learner
from .snapshot import Snapshot

# Enough to hide what a step costs beside its rows, few enough to lose.
PIPE_ROWS = 256
# What is read ahead stays within this, but for one block.
AHEAD_BYTES = 1 << 26
# Rows of a block that an engine takes best, and how large such a block may be.
WHOLE_BATCHES, WHOLE_BYTES = 256, 1 << 24
# Rows in time that the engine is shown at the end.
LAST_ROWS = 2048


class StopFitting(Exception):  # noqa: N818
    """Raised by `on_block` to end a fit; what was learned so far is kept in the checkpoint."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a fit is, as `on_block` is told after each block.

    Attributes
    ----------
    number, max_iter : int
        Which pass, from 1, and of how many at most.
    n_rows : int
        Rows learned from, in all passes.
    error : float
        Relative error over the pass so far.
    done : float or None
        Share of the whole fit; None where nobody knows.
    finished : bool
    """

    number: int
    max_iter: int
    n_rows: int
    error: float
    done: float | None
    finished: bool


class Passes(Protocol):
    """Who is told of passes, and may ask to stop after one."""

    def begin(self) -> Any:
        """A pass begins; what is returned is given back when it ends."""

    def end(self, task: Any, number: int) -> bool:
        """The pass of this number, from 1, has ended: True is to stop."""

    def finish(self) -> None:
        """There are no more."""


Learn = Callable[[Learner, Any, NDArray[np.bool_]], NDArray[np.bool_]]
"""Lets a learner learn from a block; from features unseen before it, gives those unseen still."""


def learn_block(learner: Learner, block: Any, unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Learn from a block of rows: see `Learn`."""
    learner.learn(block)
    return unseen & ~observed_features(block) if unseen.any() else unseen


@dataclass(frozen=True, slots=True)
class _At:
    """A model and its place, which belong together, exchanged as one thing."""

    place: Place
    snapshot: Snapshot


def fit_stream(
    learner: Learner,
    source: Source,
    *,
    max_iter: int = 1,
    tol: float = 0.0,
    shuffle: bool | str = True,
    rng: np.random.RandomState | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: str = "30s",
    resume: bool = False,
    header: dict[str, Any] | None = None,
    on_block: Callable[[Progress], object] | None = None,
    passes: Passes | None = None,
    learn: Learn = learn_block,
) -> Place:
    """Let a learner learn by passes over a source.

    A pipe gives one pass, in the order it comes. A fit that is resumed ends with the very same
    model, bit for bit, as one that was not interrupted.

    Parameters
    ----------
    learner : Learner
        A new one; with `resume`, it becomes what the checkpoint holds.
    source : Source
    max_iter : int, default=1
        Passes over the source.
    tol : float, default=0.0
        Stop when a pass lowers the error by less than this share; 0 runs all passes.
    shuffle : bool or "uniform", default=True
        Whether rows come in random order, as they lie, or drawn with replacement.
    rng : RandomState, default=RandomState(0)
        Draws the order.
    checkpoint : path or None, default=None
        File to keep what is learned in.
    every : str, default="30s"
        How often: "30s", "5m", "1h" or "10000rows".
    resume : bool, default=False
        Go on from the checkpoint, if there is one.
    header : dict or None, default=None
        What the checkpoint says besides; "parameters" in it must be the same to resume.
    on_block : callable or None, default=None
        Called with a `Progress` after each block; may raise `StopFitting`.
    passes : Passes or None, default=None
        Told of each pass.
    learn : Learn, default=learn_block
        How blocks are learned from, if they are no rows.

    Returns
    -------
    place : Place
        Where the fit has ended: the number of passes, and features never observed.
    """
    if not source.rereadable and max_iter > 1:
        raise ValueError(f"{source.name} can be read once only: max_iter must be 1.")
    with Checkpoints(checkpoint, every, header or {}, source, resume=resume) as saver:
        rng = np.random.RandomState(0) if rng is None else rng
        at = _At(Place.first(rng, source.n_features), learner.snapshot())
        if saver.exists:
            rng = np.random.RandomState(0)  # the caller's is left alone
            at = _At(resumed(learner, saver, source, max_iter), learner.snapshot())
        fit = _Fit(learner, source, max_iter, tol, shuffle, rng, saver, on_block, learn, at)
        idle_before = source.on_idle
        try:
            fit.run(passes)
        except (StopFitting, KeyboardInterrupt, SourceLostError):
            if fit.at.snapshot.n_seen:
                with suppress(SourceLostError):  # what is learned may be lost with it
                    saver.save(fit.at.snapshot, fit.at.place)
            raise
        finally:
            source.on_idle = idle_before
        return fit.at.place


class _Fit:
    """A fit on its way."""

    def __init__(
        self, learner: Learner, source: Source, max_iter: int, tol: float, shuffle: bool | str,
        rng: np.random.RandomState, saver: Checkpoints,
        on_block: Callable[[Progress], object] | None, learn: Learn, at: _At,
    ) -> None:  # fmt: skip
        self._learner, self._source, self._saver = learner, source, saver
        self._max_iter, self._tol, self._shuffle = max_iter, tol, shuffle
        self._rng, self._on_block, self._learn, self.at = rng, on_block, learn, at

    def run(self, passes: Passes | None) -> None:
        self._rng.set_state(self.at.place.random)
        self._source.on_idle = self._between_blocks
        while not self.at.place.finished:
            task = None if passes is None else passes.begin()
            self._pass()
            stop = passes is not None and passes.end(task, self.at.place.number)
            self._end_pass(stop)
        if passes is not None:
            passes.finish()
        self._saver.save(self.at.snapshot, self.at.place)

    def _finalize(self) -> None:
        """Let the learner find what only the end of a fit can tell."""
        learner, source = self._learner, self._source
        if not source.rereadable:
            return
        learner.finalize(
            lambda: source.some_rows(learner.engine.n_finalize_rows(source.n_features)),
            lambda: source.last_rows(LAST_ROWS),
        )

    def _pass(self) -> None:
        place = self.at.place
        blocks = self._blocks(place.position)
        if place.position is None and place.number > 1:
            self._learner.begin_pass()
        unseen = place.unseen
        with closing(blocks):  # what was begun for the next block ends, whatever happens in this
            for block, position in blocks:
                rows = block if self._learn is learn_block else None
                with errors_about(self._source, rows, position):
                    unseen = self._learn(self._learner, block, unseen)
                place = replace(place, position=position, unseen=unseen)
                self.at = _At(place, self._learner.snapshot())
                self._between_blocks()
        if self._learner.n_seen == 0:
            raise DataError(f"{self._source.name}: no rows.")
        self._learner.close_head()

    def _blocks(self, position: Position) -> Blocks:
        source, learner = self._source, self._learner
        batch_size = learner.engine.batch_size(learner.config)
        length = rows_per_block(source.n_features, source.dtype, batch_size)
        if WHOLE_BATCHES % batch_size == 0 and (
            WHOLE_BATCHES * source.n_features * source.dtype.itemsize <= WHOLE_BYTES
        ):
            length = max(length, WHOLE_BATCHES)
        if not source.rereadable:
            length = min(length, self._rows_of_a_pipe(batch_size))
        shuffle = self._shuffle if source.rereadable else False
        blocks = source.blocks(length, shuffle, self._rng, position)
        if not source.worth_prefetching:
            return blocks
        block_bytes = length * max(source.n_features, 1) * source.dtype.itemsize
        most = max(1, min(AHEAD, AHEAD_BYTES // block_bytes))
        return prefetched(blocks, source.idle, most)

    def _rows_of_a_pipe(self, batch_size: int) -> int:
        """Rows of a pipe to wait for: those that came and are not learned yet are lost with it.

        The number does not depend on how fast they come, as a fit that is resumed must cut the
        pipe into the same blocks. It is a multiple of the batch size.
        """
        learner = self._learner
        rows = max(
            PIPE_ROWS,
            learner.engine.n_start_rows(
                learner.config, learner.n_components, self._source.n_features
            ),
        )
        return -(-rows // batch_size) * batch_size

    def _end_pass(self, stop: bool) -> None:
        """Go to the beginning of the next pass, or to the end."""
        place, error = self.at.place, self._learner.error
        gained = place.error_before - error
        if self._learner.scores_next_rows or gained != 0.0:  # else nothing was judged in this pass
            stop = stop or (self._tol > 0.0 and gained < self._tol * place.error_before)
        if stop or place.number >= self._max_iter:
            self._finalize()
            place = replace(place, finished=True)
        else:
            random = self._rng.get_state(legacy=False)
            place = Place(place.number + 1, random, None, place.unseen, error_before=error)
        self.at = _At(place, self._learner.snapshot())
        self._between_blocks()

    def _between_blocks(self) -> None:
        place, snapshot = self.at.place, self.at.snapshot
        if not place.finished and self._saver.is_due(snapshot.n_seen):
            self._saver.save(snapshot, place)
        if self._on_block is not None:
            self._on_block(self._progress(place, snapshot))

    def _progress(self, place: Place, snapshot: Snapshot) -> Progress:
        within = self._source.fraction(place.position)
        done = None if within is None else (place.number - 1 + within) / self._max_iter
        return Progress(
            number=place.number,
            max_iter=self._max_iter,
            n_rows=snapshot.n_seen,
            error=0.0 if snapshot.learned is None else snapshot.learned.totals.error,
            done=1.0 if place.finished else done,
            finished=place.finished,
        )
