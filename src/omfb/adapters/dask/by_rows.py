"""A fit by many machines: rounds in which lanes learn side by side, each where its rows lie.

In a round all lanes start from the same state. A lane learns from one chunk of rows after the
other; what the lanes have learned since the start is added up by a tree, and merged into the state
of the next round (`omfb.core.merge`). All of it are pure functions as tasks of a scheduler: those
of a worker that is lost are done again by another, with the same result.

A round is with the scheduler before the one before it has ended, and begins as soon as there is a
state to begin with; the client is told that state, for checkpoints, while the workers go on.

What comes out depends on the lanes, the seed and the chunks, not on how many workers there are.
"""

import hashlib
from dataclasses import replace
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.engine import Engine
from ...formats.multi_file import ManyFiles
from ...learner.learner import Learner
from ...learner.snapshot import Now, Snapshot
from ...streams.base import Blocks, DataError, Position, Source, uniform_error
from ...streams.blocks import check_kind, float_type
from .futures import gathered
from .lazy import is_frame
from .round_schedule import Round, rounds_of, scattered
from .worker_tasks import (
    NAME,
    After,
    Chunk,
    added_up,
    begin,
    learn_chunk,
    learn_last_chunk,
    merge,
    read_chunk,
    rows_of,
)

# Lanes where nobody says how many: enough for most clusters, and not too many for few chunks.
USUAL_LANES = 32
# Lanes whose evidence is added up by one task: so many, or more if it is small.
BRANCHES, BRANCHES_BYTES = 8, 1 << 24
# Chunks that a sample of rows is taken from, and that tell whether data are the same.
SAMPLED_CHUNKS, TELLING_CHUNKS, TELLING_ROWS = 32, 3, 16


class Rounds(Source):
    """Chunks of rows, in rounds.

    Parameters
    ----------
    chunks : list of dask.delayed.Delayed
    lengths : list of int
        How many rows each has.
    n_features : int
    dtype : numpy.dtype
    client : distributed.Client
    lanes : int or None
        How many learn side by side; None is 32.
    """

    name = NAME
    time_column: str | None = None

    def __init__(
        self, chunks: list[Any], lengths: list[int], n_features: int, dtype: np.dtype[Any],
        client: Any, lanes: int | None = None,
    ) -> None:  # fmt: skip
        firsts = [0, *accumulate(lengths)]
        filled = [at for at, length in enumerate(lengths) if length > 0]
        if not filled:
            raise DataError(f"{self.name}: no rows.")
        self._chunks, self._lengths, self._firsts = (
            [each[at] for at in filled] for each in (chunks, lengths, firsts)
        )
        self._client = client
        self._lanes, self._n_rounds = lanes or USUAL_LANES, 1
        self.n_rows, self.n_features, self.dtype = sum(lengths), n_features, dtype
        self._coming: list[Any] = []
        self._coming_after: Now | None = None

    @classmethod
    def of_collection(cls, X: Any, client: Any, lanes: int | None = None) -> Self:
        """The rows of a Dask array or dataframe; chunks along its columns are joined."""
        names = [str(name) for name in X.columns] if is_frame(X) else None
        if is_frame(X):
            X = X.to_dask_array(lengths=True)
        elif np.isnan(X.shape[0]):
            X = X.compute_chunk_sizes()
        check_kind(X.dtype, cls.name)
        chunks = list(X.rechunk({1: -1}).to_delayed()[:, 0])
        lengths = [int(length) for length in X.chunks[0]]
        rounds = cls(chunks, lengths, int(X.shape[1]), float_type(X.dtype), client, lanes)
        rounds.feature_names = names
        return rounds

    @classmethod
    def of_files(cls, files: ManyFiles, client: Any, lanes: int | None = None) -> Self:
        """The rows of files that every worker can read, a group of their rows in a chunk."""
        from dask import delayed

        read = delayed(read_chunk, pure=False)
        chunks = [read(files.paths[at], files.reading, group) for at, group in files.groups]
        lengths = gathered(client, client.compute([delayed(len)(chunk) for chunk in chunks]))
        rounds = cls(chunks, lengths, files.n_features, files.dtype, client, lanes)
        rounds.name, rounds.feature_names = files.name, files.feature_names
        rounds.time_column = files.time_column
        return rounds

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """See `Source.blocks`: here the blocks are rounds, whatever length is asked for."""
        if shuffle == "uniform":
            raise uniform_error(self.name, "shuffle=True")
        order, seed = np.arange(len(self._chunks)), None
        if shuffle:
            order, seed = scattered(len(order), rng), int(rng.randint(2**31))
        rounds = rounds_of([self._lengths[at] for at in order], self._lanes)
        self._n_rounds = len(rounds)
        number, work = position or 0, None
        for lanes in reversed(rounds[number:]):
            work = Round([[int(order[at]) for at in lane] for lane in lanes], seed, work)
        try:
            while work is not None:
                number += 1
                yield work, number
                work = work.then
        finally:
            self._take_back()

    def learn(self, learner: Learner, work: Any, unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Let a learner learn from a round; return the features that are still unseen."""
        snapshot = learner.snapshot()
        if snapshot.now is None or snapshot.now.head is not None:
            after = self._computed(self._beginning(snapshot, work))
        else:
            after = self._merged(snapshot.engine, snapshot.now, work)
        learner.restore(replace(snapshot, now=after.now))
        return unseen & ~after.observed

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`."""
        return (position or 0) / self._n_rounds

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`: by the first rows of some chunks."""
        from dask import delayed

        which = np.linspace(0, len(self._chunks) - 1, TELLING_CHUNKS).astype(int)
        chunks = [self._rows(at)[:TELLING_ROWS] for at in which]
        digest = hashlib.blake2b(str(self._lengths).encode(), digest_size=16)
        for rows in self._computed(delayed(list)(chunks)):
            digest.update(np.ascontiguousarray(rows).tobytes())
        return {
            "n_features": self.n_features, "n_rows": self.n_rows, "dtype": str(self.dtype),
            "lanes": self._lanes, "content": digest.hexdigest(),
        }  # fmt: skip

    def some_rows(self, n_rows: int) -> Any:
        """See `Source.some_rows`."""
        from dask import delayed

        assert self.n_rows is not None
        count, each, seed = len(self._chunks), n_rows, None
        if self.n_rows > n_rows:
            count, seed = min(SAMPLED_CHUNKS, count), 0
            each = -(-n_rows // count)
        which = np.linspace(0, len(self._chunks) - 1, count).astype(int)
        chunks = [self._rows(at, seed)[:each] for at in which]
        return self._computed(delayed(np.concatenate)(chunks))[:n_rows]

    def last_rows(self, n_rows: int) -> Any:
        """See `Source.last_rows`."""
        from dask import delayed

        first = len(self._chunks)
        while first > 0 and sum(self._lengths[first:]) < n_rows:
            first -= 1
        chunks = [self._rows(at) for at in range(first, len(self._chunks))]
        return self._computed(delayed(np.concatenate)(chunks))[-n_rows:]

    # -- tasks: what others come to are arguments one by one, as Dask goes through lists slowly --

    def _chunk(self, at: int, seed: int | None) -> Chunk:
        return Chunk(self._firsts[at], None if seed is None else (seed, at))

    def _rows(self, at: int, seed: int | None = None) -> Any:
        from dask import delayed

        return delayed(rows_of)(self._chunks[at], self._chunk(at, seed))

    def _beginning(self, snapshot: Snapshot, work: Round) -> Any:
        """The task by which a young learner learns from a round, one chunk after the other."""
        from dask import delayed

        which = [at for lane in work.lanes for at in lane]
        blocks = [self._chunks[at] for at in which]
        chunks = [self._chunk(at, work.seed) for at in which]
        return delayed(begin)(delayed(snapshot, traverse=False), chunks, *blocks)

    def _merged(self, engine: Engine, now: Now, work: Round) -> After:
        """What comes after a round; the next one, which needs no more than this, is sent ahead."""
        from dask import delayed

        assert now.state is not None  # it is no longer young
        branches = max(BRANCHES, BRANCHES_BYTES // (8 * now.state.C.size))
        if self._coming_after is not now:
            self._take_back()
            before = delayed(After(now, np.zeros(self.n_features, bool)), traverse=False)
            self._coming.append(self._submitted(self._merging(engine, before, work, branches)))
        if work.then is not None:
            then = self._merging(engine, self._coming[0], work.then, branches)
            self._coming.append(self._submitted(then))
        try:
            after: After = gathered(self._client, self._coming[0])
        except BaseException:
            self._take_back()
            raise
        del self._coming[0]
        self._coming_after = after.now
        return after

    def _take_back(self) -> None:
        """Let the cluster forget the rounds that it was sent.

        Not by cancelling them: where one has failed already, Dask's scheduler would drop the
        client, and with it all that this client holds.
        """
        for future in self._coming:
            future.release()
        self._coming, self._coming_after = [], None

    def _merging(self, engine: Engine, before: Any, work: Round, branches: int) -> Any:
        """The task by which lanes learn from a round, after what comes before it."""
        from dask import delayed

        lanes = []
        for lane in work.lanes:
            part = None
            for at in lane[:-1]:
                chunk = self._chunk(at, work.seed)
                part = delayed(learn_chunk)(engine, before, part, self._chunks[at], chunk)
            last = self._chunks[lane[-1]], self._chunk(lane[-1], work.seed)
            lanes.append(delayed(learn_last_chunk)(engine, before, part, *last))
        while len(lanes) > branches:
            parts = range(0, len(lanes), branches)
            lanes = [delayed(added_up)(*lanes[at : at + branches]) for at in parts]
        return delayed(merge)(engine, before, *lanes)

    def _submitted(self, task: Any) -> Any:
        """The future of a task."""
        import dask

        # The state goes with the tasks: what is sent ahead would be lost with its worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            return self._client.compute(task)

    def _computed(self, task: Any) -> Any:
        """The result of a task, which is taken back if nobody waits for it any more."""
        future = self._submitted(task)
        try:
            return gathered(self._client, future)
        finally:
            future.release()
