"""A fit as a sequence of blocks: after each, the place from which to go on."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..core.start import window_length
from ..core.step import step
from ..estimators.callbacks import Passes
from ..streams import DataError, Position, Source, errors_about, read_ahead, rows_per_block

# Enough to hide what a step costs beside its rows, few enough to lose.
PIPE_ROWS = 256


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fit is, after a block: with the model, all that is needed to go on.

    Attributes
    ----------
    number : int
        Which pass, from 1.
    random : dict
        State of the random generator when the pass began.
    position : Position
        Where in the pass the stream is.
    unseen : ndarray of shape (n_features,)
        Features that no row has observed yet.
    error_before : float
        Prequential error of the pass before; infinity in the first.
    finished : bool
        Whether there is nothing left to learn.
    """

    number: int
    random: dict[str, Any]
    position: Position
    unseen: NDArray[np.bool_]
    error_before: float = np.inf
    finished: bool = False


def learn_passes(
    model: Any, source: Source, place: Place | None = None, passes: Passes | None = None
) -> Iterator[Place]:
    """Let the model learn by passes over the source; yield the place after each block.

    A pipe gives one pass, in the order it comes. Given a place, the fit goes on from there, bit
    for bit as if it had not been interrupted.
    """
    if not source.rereadable and model.max_iter > 1:
        raise ValueError(f"{source.name} can be read once only: max_iter must be 1.")
    if place is None:
        rng = check_random_state(model.random_state)
        seed = int(rng.randint(2**31))
        unseen = np.ones(source.n_features, dtype=bool)
        place = Place(1, rng.get_state(legacy=False), None, unseen)
    else:
        rng, seed = np.random.RandomState(), 0
        rng.set_state(place.random)
    while not place.finished:
        task = None if passes is None else passes.begin()
        for here in _pass(model, source, place, rng, seed):
            place = here
            yield place
        model.n_iter_ = place.number
        stop = passes is not None and passes.end(task)
        place = _after_pass(model, place, stop, rng)
        yield place
    if passes is not None:
        passes.finish()


def _pass(
    model: Any, source: Source, place: Place, rng: np.random.RandomState, seed: int
) -> Iterator[Place]:
    length = rows_per_block(source.n_features, source.dtype, model.batch_size)
    if not source.rereadable:
        length = min(length, _rows_of_a_pipe(model))
    shuffle = model.shuffle if source.rereadable else False
    blocks = source.blocks(length, shuffle, rng, place.position)
    if source.read_ahead:
        blocks = read_ahead(blocks, source.idle)
    if place.position is None:
        if place.number == 1:
            blocks = _started(model, source, blocks, seed)
        else:
            model._keep(replace(model._state, code=None))
    unseen = place.unseen
    for block, position in blocks:
        with errors_about(source, block, position):
            state, _, info = step(model._state, block, reuse=True)
        model._keep(state, model._totals.plus(info))
        if unseen.any():
            unseen = unseen & ~_observed(block)
        yield replace(place, position=position, unseen=unseen)


def _rows_of_a_pipe(model: Any) -> int:
    """Rows of a pipe to wait for: those that came and are not learned yet are lost with it.

    The number does not depend on how fast they come, as a fit that is resumed must cut the pipe
    into the same blocks. It is a multiple of the batch size.
    """
    rows = max(PIPE_ROWS, window_length(model.n_components))
    return -(-rows // model.batch_size) * model.batch_size


def _after_pass(model: Any, place: Place, stop: bool, rng: np.random.RandomState) -> Place:
    """The place at the end of a pass: the beginning of the next, or the end."""
    error, before = model.prequential_error_, place.error_before
    model._log("pass %d of %d: prequential error %.4g", place.number, model.max_iter, error)
    stop = stop or (model.tol > 0.0 and before - error < model.tol * before)
    if stop or place.number >= model.max_iter:
        return replace(place, finished=True)
    random = rng.get_state(legacy=False)
    return Place(place.number + 1, random, None, place.unseen, error_before=error)


def _started(
    model: Any, source: Source, blocks: Iterator[tuple[Any, Position]], seed: int
) -> Iterator[tuple[Any, Position]]:
    """The blocks, once the first of them have given the model its first dictionary."""
    enough = window_length(model.n_components)
    held: list[tuple[Any, Position]] = []
    n_held = 0
    for block, position in blocks:
        held.append((block, position))
        n_held += block.shape[0]
        if n_held >= enough:
            break
        held[-1] = (block.copy(), position)  # what a map gives may be dropped by the next block
    if not held:
        raise DataError(f"{source.name}: no rows.")
    rows = [block for block, _ in held]
    if len(rows) > 1:
        together = scipy.sparse.vstack if scipy.sparse.issparse(rows[0]) else np.concatenate
        rows = [together(rows)]
    with errors_about(source, rows[0], held[-1][1]):
        model._keep(model._first(rows[0][:enough], seed))
    yield from held
    yield from blocks


def _observed(X: Any) -> NDArray[np.bool_]:
    """Which features some row of X observes."""
    if scipy.sparse.issparse(X):
        seen = np.zeros(X.shape[1], dtype=bool)
        seen[X.indices[~np.isnan(X.data)]] = True
        return seen
    if not np.isnan(X[0]).any():
        return np.ones(X.shape[1], dtype=bool)
    seen_anywhere: NDArray[np.bool_] = ~np.isnan(X).all(axis=0)
    return seen_anywhere


def learn_and_complete(model: Any, row: NDArray[Any]) -> NDArray[Any]:
    """Learn from one row (1, n_features); return the row that the model makes of it.

    The code that learning found for the row serves to fill it, too: that is half the work of
    completing and learning one after the other.
    """
    if model._head is not None:
        return model.partial_fit(row)._decode(model._encode(row)[0])
    state, codes, info = step(model._state, row, reuse=True)
    model._keep(state, model._totals.plus(info))
    return model._decode(codes)
