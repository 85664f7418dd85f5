"""What workers do for a fit by rows: pure functions, which can be done again elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.engine import Engine
from ...core.evidence import Evidence
from ...core.info import Info
from ...core.linalg.threads import products_in_one_thread
from ...core.linalg.workspace import Room
from ...formats.multi_file import read_group
from ...formats.opening import open_file
from ...formats.reading import Reading
from ...learner.learner import Learner
from ...learner.row_blocks import together
from ...learner.snapshot import Now, Snapshot
from ...streams.base import find_infinity, infinity_error, observed_features
from ...streams.blocks import as_rows

NAME = "the Dask collection"
ROOM = Room()  # for rows in the order they are learned from
# Of rows that are learned from at a time.
PIECE_BYTES = 1 << 23


class Chunk(NamedTuple):
    """How to take the rows of a chunk: which one it is, and in which order."""

    first_row: int
    seed: tuple[int, int] | None
    """Of their order; None is as they lie."""


class Learned(NamedTuple):
    """What a lane, or several, have learned in a round."""

    evidence: Evidence
    info: Info
    observed: NDArray[np.bool_]
    last: Any

    def plus(self, other: "Learned") -> "Learned":
        """What both have, the other one being the later."""
        return Learned(
            self.evidence.plus(other.evidence),
            self.info.plus(other.info),
            self.observed | other.observed,
            other.last,
        )


class Part(NamedTuple):
    """A lane on its way."""

    state: Any
    info: Info
    observed: NDArray[np.bool_]
    last: Any


class After(NamedTuple):
    """What a learner is after a round, and which features the round observed."""

    now: Now
    observed: NDArray[np.bool_]


def read_chunk(path: Path, reading: Reading, group: int) -> NDArray[Any]:
    """The rows of one group of a file."""
    file = open_file(path, reading)
    try:
        none = np.empty((0, file.n_features), file.dtype)
        return np.concatenate([none, *read_group(file, group)])
    finally:
        file.close()


def in_order(block: Any, chunk: Chunk) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The rows of a chunk as floats, and the order in which they are learned from."""
    rows = as_rows(block, NAME)
    if chunk.seed is None:
        return rows, np.arange(len(rows))
    return rows, np.random.default_rng(chunk.seed).permutation(len(rows))


def rows_of(block: Any, chunk: Chunk) -> NDArray[Any]:
    """A copy of the rows of a chunk, in that order."""
    rows, order = in_order(block, chunk)
    return rows[order]


def some_of(rows: NDArray[Any], order: NDArray[np.int64], dtype: Any) -> Iterator[NDArray[Any]]:
    """Rows in an order, some at a time, all in one room."""
    length = max(1, PIECE_BYTES // (rows.shape[1] * np.dtype(dtype).itemsize))
    for start in range(0, len(order), length):
        which = order[start : start + length]
        some = ROOM.array((len(which), rows.shape[1]), dtype)
        if rows.dtype == some.dtype:
            np.take(rows, which, axis=0, out=some, mode="clip")  # "raise" would make a copy
        else:
            some[:] = rows[which]
        yield some


@contextmanager
def errors_in(block: Any, chunk: Chunk) -> Iterator[None]:
    """Let what a model says of a chunk with infinity in it name the row."""
    try:
        yield
    except ValueError as error:
        where = find_infinity(as_rows(block, NAME))
        if where is None:
            raise
        raise infinity_error(NAME, None, chunk.first_row + where[0], where[1]) from error


def at_home(record: Any) -> Any:
    """A copy of a dataclass whose arrays, also in dicts, lie as those that are made here.

    What came from another process may lie at any address, and NumPy then adds it up in another
    order: the result would depend on which worker has done what.
    """

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: copied(item) for name, item in value.items()}
        return np.array(value) if isinstance(value, np.ndarray) else value

    return replace(
        record, **{field.name: copied(getattr(record, field.name)) for field in fields(record)}
    )


@products_in_one_thread()
def begin(snapshot: Snapshot, chunks: list[Chunk], *blocks: Any) -> After:
    """What a learner is after chunks of rows, one after the other."""
    learner = Learner.from_snapshot(snapshot)
    observed = np.zeros(blocks[0].shape[1], bool)
    for block, chunk in zip(blocks, chunks, strict=True):
        rows = rows_of(block, chunk)
        if len(rows):
            with errors_in(block, chunk):
                learner.learn(rows)
            observed |= observed_features(rows)
    now = learner.snapshot().now
    assert now is not None
    return After(now, observed)


@products_in_one_thread()
def learn_chunk(engine: Engine, before: After, part: Part | None, block: Any, chunk: Chunk) -> Part:
    """A lane after a chunk; it begins with what there was before the round."""
    if part is None:
        state = before.now.state
        part = Part(state, Info(0.0, 0.0), np.zeros_like(before.observed), None)
    rows, order = in_order(block, chunk)
    if len(rows) == 0:
        return part
    state, info, observed = at_home(part.state), part.info, part.observed
    with errors_in(block, chunk):
        for some in some_of(rows, order, state.C.dtype):
            state, _, learned = engine.step(state, some, reuse=True)
            info, observed = info.plus(learned), observed | observed_features(some)
    kept = engine.rows_kept(state.config, rows.shape[1])
    last = rows[order[-kept:]].astype(state.C.dtype, copy=False) if kept else None
    return Part(state, info, observed, last)


@products_in_one_thread()
def learn_last_chunk(
    engine: Engine, before: After, part: Part | None, block: Any, chunk: Chunk
) -> Learned:
    """What a lane has learned with its last chunk."""
    part = learn_chunk(engine, before, part, block, chunk)
    evidence = engine.gather(at_home(before.now.state), at_home(part.state))
    return Learned(evidence, part.info, part.observed, part.last)


def added_up(*lanes: Learned) -> Learned:
    """What several lanes have learned."""
    return reduce(Learned.plus, lanes)


@products_in_one_thread()
def merge(engine: Engine, before: After, *lanes: Learned) -> After:
    """What comes after a round."""
    now, learned = before.now, added_up(*lanes)
    state = engine.merged(at_home(now.state), at_home(learned.evidence))
    last = now.last if learned.last is None else (together((learned.last,)),)
    return After(Now(state, now.totals.plus(learned.info), last=last), learned.observed)
