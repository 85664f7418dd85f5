"""The tasks of a fit by rows: pure functions, which another worker can run again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.engines import AnyEngine
from ...core.evidence import Evidence
from ...core.info import Info
from ...core.linalg.threads import products_in_one_thread
from ...core.linalg.workspace import Workspace
from ...formats.multi_file import read_group
from ...formats.opening import open_file
from ...formats.reading import Reading
from ...learner.learner import Learner
from ...learner.row_blocks import together
from ...learner.snapshot import Learned, Snapshot
from ...streams.base import find_infinity, infinity_error, observed_features
from ...streams.blocks import as_rows

NAME = "the Dask collection"
WORKSPACE = Workspace()  # for rows in the order they are learned from
# Size of the rows that are learned at a time.
PIECE_BYTES = 1 << 23


class Chunk(NamedTuple):
    """Where the rows of a chunk lie in the table, and the order in which they are learned."""

    first_row: int
    seed: tuple[int, int] | None
    """Of a random order; None is the order of the table."""


class TaskResult(NamedTuple):
    """What one task, or several, have learned in a round."""

    evidence: Evidence
    info: Info
    observed: NDArray[np.bool_]
    last: Any

    def plus(self, other: "TaskResult") -> "TaskResult":
        """What both have learned, the other one being the later."""
        return TaskResult(
            self.evidence.plus(other.evidence),
            self.info.plus(other.info),
            self.observed | other.observed,
            other.last,
        )


class Part(NamedTuple):
    """A task between two chunks."""

    state: Any
    info: Info
    observed: NDArray[np.bool_]
    last: Any


class After(NamedTuple):
    """What was learned after a round, and which features the round observed."""

    learned: Learned
    observed: NDArray[np.bool_]


def read_chunk(path: Path, reading: Reading, group: int) -> NDArray[Any]:
    """The rows of one group of a file."""
    file = open_file(path, reading)
    try:
        none = np.empty((0, file.n_features), file.dtype)
        return np.concatenate([none, *read_group(file, group)])
    finally:
        file.close()


def order_of(chunk: Chunk, n_rows: int) -> NDArray[np.int64]:
    """The order in which the rows of a chunk are learned from."""
    if chunk.seed is None:
        return np.arange(n_rows)
    return np.random.default_rng(chunk.seed).permutation(n_rows)


def numbers_of(chunk: Chunk, n_rows: int) -> NDArray[np.int64]:
    """The numbers in the table of the rows of a chunk, in that order."""
    return chunk.first_row + order_of(chunk, n_rows)


def rows_of(block: Any, chunk: Chunk) -> NDArray[Any]:
    """A copy of the rows of a chunk, in that order."""
    rows = as_rows(block, NAME)
    return rows[order_of(chunk, len(rows))]


def some_of(
    rows: NDArray[Any], order: NDArray[np.int64], dtype: Any
) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
    """Rows in an order, some at a time, all in one workspace; and which rows they are."""
    length = max(1, PIECE_BYTES // (rows.shape[1] * np.dtype(dtype).itemsize))
    for start in range(0, len(order), length):
        which = order[start : start + length]
        some = WORKSPACE.array((len(which), rows.shape[1]), dtype)
        if rows.dtype == some.dtype:
            np.take(rows, which, axis=0, out=some, mode="clip")  # "raise" would make a copy
        else:
            some[:] = rows[which]
        yield some, which


@contextmanager
def errors_in(block: Any, chunk: Chunk) -> Iterator[None]:
    """If an error is due to infinity in a chunk, name its row."""
    try:
        yield
    except ValueError as error:
        where = find_infinity(as_rows(block, NAME))
        if where is None:
            raise
        raise infinity_error(NAME, None, chunk.first_row + where[0], where[1]) from error


def realigned(record: Any) -> Any:
    """A copy of a dataclass whose arrays, also in dicts and nested ones, are aligned in memory.

    Arrays from another process may lie at any address, and NumPy then adds them up in another
    order: the result would depend on which worker ran which task.
    """

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: copied(item) for name, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return realigned(value)
        return np.array(value) if isinstance(value, np.ndarray) else value

    return replace(
        record, **{field.name: copied(getattr(record, field.name)) for field in fields(record)}
    )


@products_in_one_thread()
def begin(snapshot: Snapshot, chunks: list[Chunk], *blocks: Any) -> After:
    """A young learner after chunks of rows, one after the other."""
    learner = Learner.from_snapshot(snapshot)
    observed = np.zeros(blocks[0].shape[1], bool)
    for block, chunk in zip(blocks, chunks, strict=True):
        rows = rows_of(block, chunk)
        if len(rows):
            with errors_in(block, chunk):
                learner.learn(rows, in_fit=True, numbers=numbers_of(chunk, len(rows)))
            observed |= observed_features(rows)
    learned = learner.snapshot().learned
    assert learned is not None
    return After(learned, observed)


@products_in_one_thread()
def learn_chunk(
    engine: AnyEngine, before: After, part: Part | None, block: Any, chunk: Chunk
) -> Part:
    """A task after a chunk; its first chunk starts from the state before the round."""
    if part is None:
        state = before.learned.state
        part = Part(state, Info(0.0, 0.0), np.zeros_like(before.observed), None)
    rows = as_rows(block, NAME)
    if len(rows) == 0:
        return part
    order = order_of(chunk, len(rows))
    state, info, observed = realigned(part.state), part.info, part.observed
    with errors_in(block, chunk):
        for some, which in some_of(rows, order, state.C.dtype):
            numbers = chunk.first_row + which
            state, _, learned = engine.step(state, some, reuse=True, numbers=numbers)
            info, observed = info.plus(learned), observed | observed_features(some)
    kept = engine.n_last_rows(state.config, rows.shape[1])
    last = rows[order[-kept:]].astype(state.C.dtype, copy=False) if kept else None
    return Part(state, info, observed, last)


@products_in_one_thread()
def learn_last_chunk(
    engine: AnyEngine, before: After, part: Part | None, block: Any, chunk: Chunk
) -> TaskResult:
    """What a task has learned, its last chunk included."""
    part = learn_chunk(engine, before, part, block, chunk)
    evidence = engine.evidence(realigned(before.learned.state), realigned(part.state))
    return TaskResult(evidence, part.info, part.observed, part.last)


def added_up(*results: TaskResult) -> TaskResult:
    """What several tasks have learned."""
    return reduce(TaskResult.plus, results)


@products_in_one_thread()
def merge(engine: AnyEngine, before: After, *results: TaskResult) -> After:
    """The state before a round, and the results of its tasks, as the state after it."""
    start, result = before.learned, added_up(*results)
    state = engine.merge(realigned(start.state), realigned(result.evidence))
    last = start.last if result.last is None else (together((result.last,)),)
    return After(Learned(state, start.totals.plus(result.info), last=last), result.observed)
