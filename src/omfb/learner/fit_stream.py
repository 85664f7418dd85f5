"""`fit_stream`: passes over a source, with progress, checkpoints and resuming."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import UnknownCovariateError, dense_with_holes
from ..core.engine import Numbers, Rows
from ..core.weighted import values_of
from ..streams import DataError, Position, Source, errors_about, prefetched, rows_per_block
from ..streams.base import Block, Blocks, SourceLostError, observed_features
from ..streams.prefetch import AHEAD
from .checkpoints import Checkpoints, FitPosition, resumed
from .learner import Learner
from .row_sample import NO_CHANGES, Changes, RowSample
from .snapshot import Snapshot

# Rows of a pipe to wait for: enough to hide the overhead of a step, few enough to lose.
PIPE_ROWS = 256
# Size of the blocks that are read ahead, except for one.
AHEAD_BYTES = 1 << 26
# Rows of a block that suit an engine's batches, and how large such a block may be.
WHOLE_BATCHES, WHOLE_BYTES = 256, 1 << 24


class StopFitting(Exception):  # noqa: N818
    """Raised by `on_block` to end a fit; what was learned so far is kept in the checkpoint."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a fit is, for `on_block` after each block.

    Attributes
    ----------
    number, max_iter : int
        Which pass, from 1, and of how many at most.
    n_rows : int
        Rows learned from, in all passes.
    error : float
        Relative error over the pass so far.
    done : float or None
        Share of the whole fit; None if it is unknown.
    finished : bool
    """

    number: int
    max_iter: int
    n_rows: int
    error: float
    done: float | None
    finished: bool


class Passes(Protocol):
    """An observer of passes, which may ask to stop after one."""

    def begin(self) -> Any:
        """A pass begins; `end` receives what is returned."""

    def end(self, task: Any, number: int) -> bool:
        """The pass of this number, from 1, has ended; True asks to stop."""

    def finish(self) -> None:
        """The fit has ended."""


class Watch(Protocol):
    """An observer of the rows of the first pass, whose findings checkpoints keep."""

    def add(self, rows: Rows) -> None:
        """Look at rows; to look at them twice is to look at them once."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What was found so far."""

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what was found; a ValueError if it cannot be."""


Learn = Callable[[Learner, Block, NDArray[np.bool_]], NDArray[np.bool_]]
"""Lets a learner learn from a block; maps features unobserved before it to those after it."""


def learn_block(learner: Learner, block: Block, unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Learn from a block of rows: see `Learn`."""
    learner.learn(block.rows, in_fit=True, numbers=block.numbers)
    rows = values_of(block.rows)
    if absent_is_zero(learner) and scipy.sparse.issparse(rows):
        return np.zeros_like(unseen)  # zeros are observed
    return unseen & ~observed_features(rows) if unseen.any() else unseen


def absent_is_zero(learner: Learner) -> bool:
    """Whether the entries that a sparse matrix does not hold are zeros."""
    return getattr(learner.config, "absent", "missing") == "zero"


@dataclass(frozen=True, slots=True)
class _Point:
    """A model, its position in the fit and the last changes of the sample, replaced as a whole."""

    position: FitPosition
    snapshot: Snapshot
    changes: Changes = NO_CHANGES


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
    watch: Watch | None = None,
    block_rows: int | None = None,
) -> FitPosition:
    """Let a learner learn by passes over a source.

    A pipe gives one pass, in the order it comes; a file that is piped ends with the same model as
    one pass over the file with ``shuffle=False``: up to rounding, as blocks of pipes are shorter,
    or bit for bit with the same `block_rows`. A fit that is resumed ends with the same model, bit
    for bit, as one that was not interrupted.

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
        File to save the model to.
    every : str, default="30s"
        How often: "30s", "5m", "1h" or "10000rows".
    resume : bool, default=False
        Continue from the checkpoint, if there is one.
    header : dict or None, default=None
        What else the checkpoint holds; its "parameters" must be the same to resume.
    on_block : callable or None, default=None
        Called with a `Progress` after each block; may raise `StopFitting`.
    passes : Passes or None, default=None
        Notified of each pass.
    learn : Learn, default=learn_block
        How to learn from blocks that are not rows.
    watch : Watch or None, default=None
        Called with each block of rows of the first pass, once it was learned from.
    block_rows : int or None, default=None
        Rows of a block, rounded up to a multiple of the batch size. None is some 4 MB; of a pipe
        it is fewer, so that few rows are lost with it.

    Returns
    -------
    position : FitPosition
        Where the fit has ended: the number of passes, and features never observed.
    """
    if not source.rereadable and max_iter > 1:
        raise ValueError(f"{source.name} can be read once only: max_iter must be 1.")
    with Checkpoints(checkpoint, every, header or {}, source, resume=resume) as saver:
        rng = np.random.RandomState(0) if rng is None else rng
        point = _Point(FitPosition.first(rng, source.n_features), learner.snapshot())
        sample = RowSample(learner.engine.n_finalize_rows(source.n_features))
        if saver.exists:
            rng = np.random.RandomState(0)  # the caller's stays as it is
            position, sample, tensors = resumed(learner, saver, source, max_iter)
            if watch is not None:
                watch.restore(tensors)
            point = _Point(position, learner.snapshot())
        fit = _Fit(
            learner,
            source,
            max_iter,
            tol,
            shuffle,
            rng,
            saver,
            on_block,
            learn,
            point,
            sample,
            block_rows,
            watch,
        )
        idle_before = source.on_idle
        try:
            fit.run(passes)
        except (StopFitting, KeyboardInterrupt, SourceLostError):
            if fit.point.snapshot.n_seen:
                with suppress(SourceLostError):  # a sharded model may be lost with its cluster
                    fit.save()
            raise
        finally:
            source.on_idle = idle_before
        return fit.point.position


class _Fit:
    """A fit that is running."""

    def __init__(
        self, learner: Learner, source: Source, max_iter: int, tol: float, shuffle: bool | str,
        rng: np.random.RandomState, saver: Checkpoints,
        on_block: Callable[[Progress], object] | None, learn: Learn, point: _Point,
        sample: RowSample, block_rows: int | None, watch: Watch | None,
    ) -> None:  # fmt: skip
        self._learner, self._source, self._saver = learner, source, saver
        self._max_iter, self._tol, self._shuffle = max_iter, tol, shuffle
        self._rng, self._on_block, self._learn = rng, on_block, learn
        self.point, self._sample, self._block_rows = point, sample, block_rows
        self._watch = watch

    def run(self, passes: Passes | None) -> None:
        self._rng.set_state(self.point.position.random)
        self._source.on_idle = self._between_blocks
        while not self.point.position.finished:
            task = None if passes is None else passes.begin()
            self._pass()
            stop = passes is not None and passes.end(task, self.point.position.number)
            self._end_pass(stop)
        if passes is not None:
            passes.finish()
        self.save()

    def save(self) -> None:
        """Write a checkpoint of the last point."""
        point = self.point
        self._sample.apply(point.changes)
        sampled = self._learn is learn_block and not point.position.finished
        found = {} if self._watch is None else self._watch.tensors()
        self._saver.save(point.snapshot, point.position, self._sample if sampled else None, found)

    def _finalize(self) -> None:
        """Let the learner do what only the end of a fit can do."""
        learner, source = self._learner, self._source
        config, n_features = learner.config, source.n_features
        size = learner.engine.n_finalize_rows(n_features)
        n_last = max(1, learner.engine.n_last_rows(config, n_features))
        self._sample.apply(self.point.changes)

        def sample() -> tuple[Rows, Numbers]:
            seen = self._sample
            if not source.rereadable or seen.n_seen > size:
                return seen.rows(), seen.numbers()
            # All rows of a short table are needed in their order, which passes may shuffle.
            rows, numbers = source.some_rows(size)
            if len(seen) and self._shuffle is True:
                numbers = np.sort(seen.numbers())
            return rows, numbers

        def last_rows() -> Rows:
            rows = source.last_rows(n_last) if source.rereadable else learner.last_rows
            return values_of(rows)

        times = source.row_times() if n_last > 1 else None
        if times is not None and times.fault is not None:
            times = None  # in no order, or not all of them are known
        learner.finalize(sample, last_rows, None if times is None else times.last[-n_last:])

    def _pass(self) -> None:
        place = self.point.position
        blocks = self._blocks(place.position)
        if place.position is None:
            self._sample = RowSample(self._learner.engine.n_finalize_rows(self._source.n_features))
            if place.number > 1:
                self._learner.begin_pass()
        unseen = place.unseen
        with closing(blocks):  # whatever happens, reading ahead ends
            for block in blocks:
                rows = block.rows if self._learn is learn_block else None
                position = block.after
                try:
                    with errors_about(self._source, values_of(rows), position):
                        unseen = self._learn(self._learner, block, unseen)
                except DataError as error:
                    raise self._at_its_row(error) from error
                if self._watch is not None and rows is not None and place.number == 1:
                    self._watch.add(values_of(rows))
                place = replace(place, position=position, unseen=unseen)
                self._sample.apply(self.point.changes)
                changes = NO_CHANGES
                if rows is not None:
                    changes = self._sample.changes(rows, block.numbers)
                self.point = _Point(place, self._learner.snapshot(), changes)
                self._between_blocks()
        if self._learner.n_seen == 0:
            raise DataError(f"{self._source.name}: no rows.")
        self._learner.close_head()

    def _at_its_row(self, error: DataError) -> DataError:
        """An error about a covariate, with the number of its row in the source."""
        cause, source = error.__cause__, self._source
        if not isinstance(cause, UnknownCovariateError):
            return error
        row: int | None = None
        if source.rereadable:
            row, length = 0, rows_per_block(source.n_features, source.dtype, 1)
            for block in source.blocks(length, False, np.random.RandomState(0)):
                column = values_of(block.rows)[:, [cause.feature]]
                missing = np.isnan(dense_with_holes(column))
                if missing.any():
                    row += int(np.argmax(missing))
                    break
                row += column.shape[0]
        elif cause.row is not None:
            row = self._learner.n_seen + cause.row
        where = UnknownCovariateError(row, cause.feature, cause.names)
        return DataError(f"{source.name} {where.problem}")

    def _blocks(self, position: Position) -> Blocks:
        source, length = self._source, self._block_length()
        shuffle = self._shuffle if source.rereadable else False
        blocks = source.blocks(length, shuffle, self._rng, position)
        if not source.worth_prefetching:
            return blocks
        block_bytes = length * max(source.n_features, 1) * source.dtype.itemsize
        most = max(1, min(AHEAD, AHEAD_BYTES // block_bytes))
        return prefetched(blocks, source.idle, most)

    def _block_length(self) -> int:
        source, learner = self._source, self._learner
        batch_size = learner.engine.batch_size(learner.config)
        if self._block_rows is not None:
            return -(-self._block_rows // batch_size) * batch_size
        width = source.n_features
        if absent_is_zero(learner):  # each block costs passes over the dictionary: make them long
            width = max(round(source.share * width), 1)
        length = rows_per_block(width, source.dtype, batch_size)
        if WHOLE_BATCHES % batch_size == 0 and (
            WHOLE_BATCHES * source.n_features * source.dtype.itemsize <= WHOLE_BYTES
        ):
            length = max(length, WHOLE_BATCHES)
        return length if source.rereadable else min(length, self._rows_of_a_pipe(batch_size))

    def _rows_of_a_pipe(self, batch_size: int) -> int:
        """Rows of a pipe to wait for: those that have come but are not learned are lost with it.

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
        place, error = self.point.position, self._learner.error
        gained = place.error_before - error
        if self._learner.scores_next_rows or gained != 0.0:  # else this pass held nothing out
            stop = stop or (self._tol > 0.0 and gained < self._tol * place.error_before)
        if stop or place.number >= self._max_iter:
            self._finalize()
            place = replace(place, finished=True)
        else:
            random = self._rng.get_state(legacy=False)
            place = FitPosition(place.number + 1, random, None, place.unseen, error_before=error)
        self.point = _Point(place, self._learner.snapshot())
        self._between_blocks()

    def _between_blocks(self) -> None:
        place, snapshot = self.point.position, self.point.snapshot
        if not place.finished and self._saver.is_due(snapshot.n_seen):
            self.save()
        if self._on_block is not None:
            self._on_block(self._progress(place, snapshot))

    def _progress(self, place: FitPosition, snapshot: Snapshot) -> Progress:
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
