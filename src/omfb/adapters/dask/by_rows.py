"""A fit by rows on a cluster: rounds in which tasks learn in parallel, each where its rows lie.

In a round all tasks start from the same state. A task learns from one chunk of rows after the
other; the evidence of all tasks since the start is added up by a tree, and merged into the state
of the next round (`omfb.core.evidence`). All of it are pure functions: if a worker is lost, the
scheduler runs its tasks again on another one, with the same result.

A round is submitted before the previous one has ended, and begins as soon as its state is known;
the client receives that state, for checkpoints, while the workers continue.

The result depends on the number of tasks, the seed and the chunks, not on the number of workers.
"""

import hashlib
from dataclasses import replace
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.engines import AnyEngine
from ...formats.multi_file import MultiFileSource
from ...learner.learner import Learner
from ...learner.snapshot import Learned, Snapshot
from ...streams.base import Block, Blocks, DataError, Position, Source, uniform_error
from ...streams.blocks import check_kind, float_type
from ...streams.frames import with_plain_floats
from ...streams.row_times import RowTimes
from .futures import gathered
from .lazy import is_frame
from .round_schedule import Round, round_schedule, scattered
from .worker_tasks import (
    NAME,
    After,
    Chunk,
    added_up,
    begin,
    learn_chunk,
    learn_last_chunk,
    merge,
    numbers_of,
    read_chunk,
    rows_of,
)

# Enough for most clusters, and not too many for few chunks.
DEFAULT_TASKS = 32
# Results that one task adds up: at least 8, more if they are small.
BRANCHES, BRANCHES_BYTES = 8, 1 << 24
# Chunks that a sample of rows is taken from; chunks and rows of each for the fingerprint.
SAMPLED_CHUNKS, FINGERPRINT_CHUNKS, FINGERPRINT_ROWS = 32, 3, 16


class RoundSource(Source):
    """Chunks of rows, learned in rounds.

    Parameters
    ----------
    chunks : list of dask.delayed.Delayed
    lengths : list of int
        How many rows each has.
    n_features : int
    dtype : numpy.dtype
    client : distributed.Client
    n_tasks : int or None
        How many tasks learn in parallel; None is 32.
    """

    name = NAME
    _files: MultiFileSource | None = None

    def __init__(
        self, chunks: list[Any], lengths: list[int], n_features: int, dtype: np.dtype[Any],
        client: Any, n_tasks: int | None = None,
    ) -> None:  # fmt: skip
        firsts = [0, *accumulate(lengths)]
        filled = [at for at, length in enumerate(lengths) if length > 0]
        if not filled:
            raise DataError(f"{self.name}: no rows.")
        self._chunks, self._lengths, self._firsts = (
            [each[at] for at in filled] for each in (chunks, lengths, firsts)
        )
        self._client = client
        self._n_tasks, self._n_rounds = n_tasks or DEFAULT_TASKS, 1
        self.n_rows, self.n_features, self.dtype = sum(lengths), n_features, dtype
        self._futures: list[Any] = []
        self._submitted_after: Learned | None = None

    @classmethod
    def of_collection(cls, X: Any, client: Any, n_tasks: int | None = None) -> Self:
        """The rows of a Dask array or dataframe; chunks along its columns are joined."""
        names = [str(name) for name in X.columns] if is_frame(X) else None
        if is_frame(X):
            X = with_plain_floats(X).to_dask_array(lengths=True)
        elif np.isnan(X.shape[0]):
            X = X.compute_chunk_sizes()
        check_kind(X.dtype, cls.name)
        chunks = list(X.rechunk({1: -1}).to_delayed()[:, 0])
        lengths = [int(length) for length in X.chunks[0]]
        rounds = cls(chunks, lengths, int(X.shape[1]), float_type(X.dtype), client, n_tasks)
        rounds.feature_names = names
        return rounds

    @classmethod
    def of_files(cls, files: MultiFileSource, client: Any, n_tasks: int | None = None) -> Self:
        """The rows of files that every worker can read, one group of rows per chunk."""
        from dask import delayed

        read = delayed(read_chunk, pure=False)
        chunks = [read(files.paths[at], files.reading, group) for at, group in files.groups]
        lengths = gathered(client, client.compute([delayed(len)(chunk) for chunk in chunks]))
        rounds = cls(chunks, lengths, files.n_features, files.dtype, client, n_tasks)
        rounds.name, rounds.feature_names = files.name, files.feature_names
        rounds.time_column, rounds.zoned = files.time_column, files.zoned
        rounds._files = files
        return rounds

    def row_times(self) -> RowTimes | None:
        """See `Source.row_times`."""
        return super().row_times() if self._files is None else self._files.row_times()

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
        rounds = round_schedule([self._lengths[at] for at in order], self._n_tasks)
        self._n_rounds = len(rounds)
        number, work = position or 0, None
        for tasks in reversed(rounds[number:]):
            work = Round([[int(order[at]) for at in task] for task in tasks], seed, work)
        try:
            while work is not None:
                number += 1
                yield Block(work, number)
                work = work.then
        finally:
            self._release()

    def learn(self, learner: Learner, block: Block, unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Let a learner learn from a round; return the features that are still unobserved."""
        work, snapshot = block.rows, learner.snapshot()
        if snapshot.learned is None or snapshot.learned.head is not None:
            after = self._computed(self._beginning(snapshot, work))
        else:
            after = self._merged(snapshot.engine, snapshot.learned, work)
        learner.restore(replace(snapshot, learned=after.learned))
        return unseen & ~after.observed

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`."""
        return (position or 0) / self._n_rounds

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`: by the first rows of some chunks."""
        from dask import delayed

        which = np.linspace(0, len(self._chunks) - 1, FINGERPRINT_CHUNKS).astype(int)
        chunks = [self._rows(at)[:FINGERPRINT_ROWS] for at in which]
        digest = hashlib.blake2b(str(self._lengths).encode(), digest_size=16)
        for rows in self._computed(delayed(list)(chunks)):
            digest.update(np.ascontiguousarray(rows).tobytes())
        return {
            "n_features": self.n_features, "n_rows": self.n_rows, "dtype": str(self.dtype),
            "n_tasks": self._n_tasks, "content": digest.hexdigest(),
        }  # fmt: skip

    def some_rows(self, n_rows: int) -> tuple[Any, NDArray[np.int64]]:
        """See `Source.some_rows`."""
        from dask import delayed

        assert self.n_rows is not None
        count, each, seed = len(self._chunks), n_rows, None
        if self.n_rows > n_rows:
            count, seed = min(SAMPLED_CHUNKS, count), 0
            each = -(-n_rows // count)
        which = np.linspace(0, len(self._chunks) - 1, count).astype(int)
        chunks = [self._rows(at, seed)[:each] for at in which]
        numbers = [numbers_of(self._chunk(at, seed), self._lengths[at])[:each] for at in which]
        rows = self._computed(delayed(np.concatenate)(chunks))
        return rows[:n_rows], np.concatenate(numbers)[:n_rows]

    def last_rows(self, n_rows: int) -> Any:
        """See `Source.last_rows`."""
        from dask import delayed

        first = len(self._chunks)
        while first > 0 and sum(self._lengths[first:]) < n_rows:
            first -= 1
        chunks = [self._rows(at) for at in range(first, len(self._chunks))]
        return self._computed(delayed(np.concatenate)(chunks))[-n_rows:]

    # -- tasks: results of others are separate arguments, as Dask traverses lists slowly --------

    def _chunk(self, at: int, seed: int | None) -> Chunk:
        return Chunk(self._firsts[at], None if seed is None else (seed, at))

    def _rows(self, at: int, seed: int | None = None) -> Any:
        from dask import delayed

        return delayed(rows_of)(self._chunks[at], self._chunk(at, seed))

    def _beginning(self, snapshot: Snapshot, work: Round) -> Any:
        """The task in which a young learner learns from a round, one chunk after the other."""
        from dask import delayed

        which = [at for task in work.tasks for at in task]
        blocks = [self._chunks[at] for at in which]
        chunks = [self._chunk(at, work.seed) for at in which]
        return delayed(begin)(delayed(snapshot, traverse=False), chunks, *blocks)

    def _merged(self, engine: AnyEngine, learned: Learned, work: Round) -> After:
        """The result of a round; the next one is submitted before it is there."""
        from dask import delayed

        assert learned.state is not None  # it is no longer young
        branches = max(BRANCHES, BRANCHES_BYTES // (8 * learned.state.C.size))
        if self._submitted_after is not learned:
            self._release()
            before = delayed(After(learned, np.zeros(self.n_features, bool)), traverse=False)
            self._futures.append(self._submitted(self._merging(engine, before, work, branches)))
        if work.then is not None:
            then = self._merging(engine, self._futures[0], work.then, branches)
            self._futures.append(self._submitted(then))
        try:
            after: After = gathered(self._client, self._futures[0])
        except BaseException:
            self._release()
            raise
        del self._futures[0]
        self._submitted_after = after.learned
        return after

    def _release(self) -> None:
        """Release the rounds that were submitted.

        They are not cancelled: if one has failed already, Dask's scheduler would drop the client,
        and with it all of its futures.
        """
        for future in self._futures:
            future.release()
        self._futures, self._submitted_after = [], None

    def _merging(self, engine: AnyEngine, before: Any, work: Round, branches: int) -> Any:
        """The task graph of a round, which starts from the result of the previous one."""
        from dask import delayed

        results = []
        for chunks in work.tasks:
            part = None
            for at in chunks[:-1]:
                chunk = self._chunk(at, work.seed)
                part = delayed(learn_chunk)(engine, before, part, self._chunks[at], chunk)
            last = self._chunks[chunks[-1]], self._chunk(chunks[-1], work.seed)
            results.append(delayed(learn_last_chunk)(engine, before, part, *last))
        while len(results) > branches:
            starts = range(0, len(results), branches)
            results = [delayed(added_up)(*results[at : at + branches]) for at in starts]
        return delayed(merge)(engine, before, *results)

    def _submitted(self, task: Any) -> Any:
        """The future of a task."""
        import dask

        # The state goes with the tasks: scattered data would be lost with their worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            return self._client.compute(task)

    def _computed(self, task: Any) -> Any:
        """The result of a task, which is released in any case."""
        future = self._submitted(task)
        try:
            return gathered(self._client, future)
        finally:
            future.release()
