"""A fit by features on a cluster: the dictionary is sharded, no machine holds all of it.

The columns of a Dask array are cut into slices, and so is the dictionary. For each step the sums
over slices are added up, the client solves in the reduced space, and each slice is updated
(`omfb.core.broyden.sharded`): the algorithm of one machine up to rounding, with the same order of
rows.

All of it are pure functions, and the scheduler keeps the inputs of each slice: its chunks and the
client's solutions. So slices that are lost with a worker are computed again, and only those, with
the same result.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...core.blocks import too_large
from ...core.broyden.config import BroydenConfig
from ...core.broyden.engine import default_components
from ...core.broyden.init import scale_of, window_length
from ...core.broyden.precision import recompute_due
from ...core.broyden.sharded import (
    Addends,
    addends,
    atom_products,
    decide,
    first_of,
    first_slice,
    largest,
    longest_step,
    row_products,
    step_lengths,
    updated,
    without_features,
)
from ...core.broyden.state import State
from ...core.broyden.step import state_before
from ...core.info import Info
from ...core.linalg.rows import Matrix
from ...learner.learner import Learner
from ...learner.snapshot import NO_ENERGY, Learned, Snapshot
from ...streams.base import Block, Blocks, DataError, Position, find_infinity, infinity_error
from ...streams.blocks import as_rows, check_kind, float_type
from ...streams.grouped import GroupedSource
from .feature_tasks import Tasks, hosts_of
from .futures import finished, gathered
from .sharded import SHARDED, is_dask, sharded, slices_of

# Chunks, and rows of each, of the fingerprint.
FINGERPRINT_CHUNKS, FINGERPRINT_ROWS = 3, 16


def is_cut_along_columns(X: Any) -> bool:
    """Whether X is a Dask array with several chunks of columns."""
    if not is_dask(X) or hasattr(X, "to_dask_array") or X.ndim != 2:
        return False
    return sum(width != 0 for width in X.chunks[1]) > 1


class Rows(NamedTuple):
    """Some rows: their numbers, from 0, and a future for each slice of their features."""

    numbers: NDArray[np.int64]
    slices: list[Any]


class FeatureSource(GroupedSource):
    """Rows of a Dask array, cut along its columns. Its blocks hold futures.

    Parameters
    ----------
    X : dask.array.Array
    client : distributed.Client
    n_components : int or None
        Atoms of the dictionary: they decide how many rows make a step.
    """

    name = "the Dask array"
    worth_prefetching = True

    def __init__(self, X: Any, client: Any, n_components: int | None = None) -> None:
        if np.isnan(X.shape).any():
            X = X.compute_chunk_sizes()
        check_kind(X.dtype, self.name)
        X = X.rechunk({1: tuple(width for width in X.chunks[1] if width > 0)})
        self._client, self._r = client, n_components or default_components(X.shape[1])
        self._X = X  # or the scheduler might forget chunks that are in memory
        self._chunks = X.to_delayed()
        self._graph = dict(self._chunks[0, 0].dask)
        self._edges = np.array([0, *accumulate(X.chunks[0])])
        self._widths = [int(width) for width in X.chunks[1]]
        self._firsts = [0, *accumulate(self._widths)][:-1]
        self._longest = longest_step(self._r, self._widths)
        self.n_rows, self.n_features = (int(size) for size in X.shape)
        self.dtype = float_type(X.dtype)

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return len(self._edges) - 1

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`: here rows are their numbers."""
        yield np.arange(self._edges[group] + skip, self._edges[group + 1])

    def empty_rows(self, n_rows: int) -> NDArray[Any]:
        """See `GroupedSource.empty_rows`: here rows are their numbers."""
        return np.empty(n_rows, np.int64)

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """See `Source.blocks`: in the same order as on one machine.

        Where rows are so wide that blocks are short, several make one: enough for a step, and for
        the first dictionary.
        """
        chunks: dict[int, list[Any]] = {}
        pending: list[NDArray[np.int64]] = []
        after = position
        for numbers, after, _ in super().blocks(length, shuffle, rng, position):
            pending.append(numbers)
            count = sum(map(len, pending))
            if count >= window_length(self._r) and count + length > self._longest:
                yield Block(self._rows(np.concatenate(pending), chunks), after)
                pending = []
        if pending:
            yield Block(self._rows(np.concatenate(pending), chunks), after)

    def learn(self, learner: Learner, block: Block, unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Let a learner learn from rows; all features are observed by them."""
        snapshot, rows = learner.snapshot(), block.rows
        learned = snapshot.learned
        with Tasks(self._client, len(self._widths)) as tasks:
            try:
                state: Any = (
                    self._started(tasks, snapshot, rows) if learned is None else learned.state
                )
                state, info = self._learned(tasks, state, rows)
            except (ValueError, ArithmeticError) as error:
                raise self._named(tasks, error, rows) from error
        totals = NO_ENERGY if learned is None else learned.totals
        after = Learned(state, totals.plus(info))
        learner.restore(replace(snapshot, engine=SHARDED, learned=after))
        return np.zeros_like(unseen)

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`: by rows, as a chunk may take long."""
        if position is None:
            return 0.0
        (groups, skip), done = position if isinstance(position[0], list) else (position, 0)
        assert self.n_rows is not None
        return min(1.0, groups / self.n_groups() + (skip + done) / self.n_rows)

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`: by the first rows of some chunks."""
        which = np.linspace(0, self.n_groups() - 1, FINGERPRINT_CHUNKS).astype(int)
        numbers = np.concatenate([next(self.read(at, 0))[:FINGERPRINT_ROWS] for at in which])
        with Tasks(self._client, len(self._widths)) as tasks:
            rows = self._rows(np.unique(numbers), {})
            digests = gathered(self._client, tasks.each(digest_of, rows.slices))
        return {
            "n_features": self.n_features, "n_rows": self.n_rows, "dtype": str(self.dtype),
            "chunks": str((self._edges.tolist(), self._widths)), "content": " ".join(digests),
        }  # fmt: skip

    # -- rows -------------------------------------------------------------------------------

    def _rows(self, numbers: NDArray[np.int64], chunks: dict[int, list[Any]]) -> Rows:
        """The rows of these numbers; of `chunks` those that they lie in are kept for the next."""
        hosts = hosts_of(self._client, len(self._widths))
        needed = np.unique(self._group_of(numbers)).tolist()
        for group in set(chunks) - set(needed):
            del chunks[group]
        for group in needed:
            if group not in chunks:
                chunks[group] = [
                    self._client.compute(self._apart(chunk.key), **host)
                    for chunk, host in zip(self._chunks[group], hosts, strict=True)
                ]
        lie_in = np.searchsorted(needed, self._group_of(numbers))
        within = numbers - self._edges[self._group_of(numbers)]
        slices = [
            self._client.submit(
                rows_of, [chunks[group][at] for group in needed], lie_in, within, pure=False, **host
            )
            for at, host in enumerate(hosts)
        ]
        return Rows(numbers, slices)

    def _group_of(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        return np.searchsorted(self._edges, numbers, side="right") - 1

    def _apart(self, key: Any) -> Any:
        """A chunk with no more of the graph than it needs, as all of it is sent to be computed."""
        from dask.delayed import Delayed
        from dask.optimization import cull

        return Delayed(key, cull(self._graph, [key])[0] if key in self._graph else {})

    # -- learning ---------------------------------------------------------------------------

    def _started(self, tasks: "Tasks", snapshot: Snapshot, block: Rows) -> State:
        """The state before the first step; see `omfb.core.broyden.init`."""
        r, init, seed = self._r, snapshot.init, snapshot.seed
        head = tasks.each(first_rows, block.slices, window_length(r))
        most = float(np.max(gathered(self._client, tasks.each(largest, head))))
        if not math.isfinite(most):
            raise too_large()
        scale = scale_of(most, self.dtype)
        if isinstance(init, str):
            products = tasks.sum(tasks.each(row_products, head, scale))
            first = first_of(products, init, seed, r, self.n_features, scale)
            C = tasks.each(first_slice, head, self._firsts, first)
        else:
            C = tasks.sent(np.split((init.T / scale).astype(self.dtype), self._firsts[1:]))
        G = tasks.sum(tasks.each(atom_products, C))
        config = cast(BroydenConfig, snapshot.config)
        return state_before(config, self._sharded(C, len(G)), G, scale)

    def _learned(self, tasks: "Tasks", state: State, block: Rows) -> tuple[State, Info]:
        """The state after some rows, and their energies."""
        m, r = state.C.shape
        C, Y = self._slices(tasks, state.C), block.slices
        if state.scale != 1.0:
            Y = tasks.each(np.multiply, Y, self.dtype.type(1.0 / state.scale))
        small, total, at = without_features(state), NO_ENERGY, 0
        for length in step_lengths(state, len(block.numbers), self._longest):
            here = slice(at, at + length)
            due = recompute_due(small.entries_since_gram, m * r)
            sums = tasks.sum(tasks.each(addends_of, C, Y, here, due), Addends.plus)
            small, X, B, info = decide(small, sums, m)
            # It goes with its task, so that a lost slice can be computed again without the others.
            change = tasks.one(identity, (X, B))
            C = tasks.each(updated_by, C, Y, here, change)
            total, at = total.plus(info), at + length
        if small.G.diagonal().min() < 0.0:
            # Rows of very different sizes have left G wrong by rounding: recompute it.
            small = replace(small, G=tasks.sum(tasks.each(atom_products, C)), entries_since_gram=0)
        finished(self._client, C)
        return replace(small, C=self._sharded(C, r)), total.sound()

    def _named(self, tasks: "Tasks", error: Exception, block: Rows) -> Exception:
        """The error, or the one that names what is wrong with the rows if something is."""
        found = gathered(self._client, tasks.each(unusable, block.slices))
        for first_feature, where in zip(self._firsts, found, strict=True):
            if where is not None:
                row, column = int(block.numbers[where[0]]), first_feature + where[1]
                if where[2]:
                    return infinity_error(self.name, None, row, column)
                return DataError(
                    f"{self.name} has no value at row {row + 1}, column {column + 1} (the first "
                    f"is 1), and a fit by features needs complete rows. Fit to "
                    f"X.rechunk({{1: -1}}), which joins the columns."
                )
        return error

    def _slices(self, tasks: "Tasks", C: Any) -> list[Any]:
        if isinstance(C, np.ndarray):  # from a checkpoint
            return tasks.sent(np.split(C, self._firsts[1:]))
        return slices_of(C)

    def _sharded(self, C: list[Any], r: int) -> Any:
        return sharded(C, self._widths, r, self.dtype)


# -- pure functions, done by workers ----------------------------------------------------------


def rows_of(chunks: list[Any], lie_in: NDArray[np.intp], within: NDArray[np.int64]) -> NDArray[Any]:
    """A slice of some rows: which of the chunks each lies in, and which row of it that is."""
    arrays = [as_rows(chunk, FeatureSource.name) for chunk in chunks]
    if len(arrays) > 1:
        rows = np.empty((len(within), arrays[0].shape[1]), arrays[0].dtype)
        for at, array in enumerate(arrays):
            rows[lie_in == at] = array[within[lie_in == at]]
        return rows
    if (np.diff(within) == 1).all():  # as they lie: no need to copy them
        return arrays[0][within[0] : within[-1] + 1]
    return arrays[0][within]


def unusable(rows: NDArray[Any]) -> tuple[int, int, bool] | None:
    """Row and column of the first entry that is infinite, or else missing, and which it is."""
    where = find_infinity(rows)
    if where is not None:
        return *where, True
    missing = np.argwhere(np.isnan(rows))
    return (*missing[0].tolist(), False) if len(missing) else None


def digest_of(rows: NDArray[Any]) -> str:
    """A digest of some rows."""
    return hashlib.blake2b(np.ascontiguousarray(rows).tobytes(), digest_size=8).hexdigest()


def first_rows(rows: NDArray[Any], count: int) -> NDArray[Any]:
    """The first of some rows."""
    return rows[:count]


def addends_of(C: NDArray[Any], Y: NDArray[Any], here: slice, with_gram: bool) -> Addends:
    """What a slice adds to the sums of a step."""
    return addends(_aligned(C), _aligned(Y)[here], with_gram)


def updated_by(
    C: NDArray[Any], Y: NDArray[Any], here: slice, change: tuple[Matrix, Matrix]
) -> NDArray[Any]:
    """A slice of the dictionary after a step."""
    return updated(_aligned(C), _aligned(Y)[here], *map(_aligned, change))


def identity(change: tuple[Matrix, Matrix]) -> tuple[Matrix, Matrix]:
    """The solution of a step, as a task of its own."""
    return change


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array, copied if it came over the network to an odd address.

    NumPy adds up what lies there in another order: the result would depend on who has done what.
    """
    return np.require(array, requirements="A")
