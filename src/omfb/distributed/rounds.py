"""A fit by many machines: rounds in which lanes learn side by side, each where its rows lie.

In a round all lanes start from the same state. A lane learns from one chunk of rows after the
other; what the lanes have learned since the start is added up by a tree, and merged into the state
of the next round (`omfb.core.merge`). All of it are pure functions as tasks of a scheduler: those
of a worker that is lost are done again by another, with the same result. The state itself comes
back to the client after each round, so no more than a round is ever lost.

What comes out depends on the lanes, the seed and the chunks, not on how many workers there are.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..formats.many import ManyFiles
from ..learner.learner import Learner, Snapshot
from ..streams.base import Position, Source, uniform_error
from ..streams.blocks import check_kind, float_type
from .lanes import (
    NAME,
    Chunk,
    added_up,
    begin,
    learn_chunk,
    learn_last_chunk,
    merge,
    read_chunk,
    rows_of,
)
from .lazy import is_frame
from .waiting import gathered

# Lanes where nobody says how many: enough for most clusters, and not too many for few chunks.
USUAL_LANES = 32
# Rows of a round, at most: as many as were learned from before it, and this share of a pass.
ROUND_SHARE = 0.25
# Lanes whose evidence is added up by one task.
BRANCHES = 8
GOLDEN = (5.0**0.5 - 1.0) / 2.0
# Chunks that a sample of rows is taken from, and that tell whether data are the same.
SAMPLED_CHUNKS, TELLING_CHUNKS, TELLING_ROWS = 32, 3, 16


class Round(NamedTuple):
    """What is learned from at once: lanes, each with numbers of chunks, and their seed."""

    lanes: list[list[int]]
    seed: int | None


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
        self._chunks, self._lengths, self._client = chunks, lengths, client
        self._firsts = [0, *accumulate(lengths)]
        self._lanes, self._n_rounds = lanes or USUAL_LANES, 1
        self.n_rows, self.n_features, self.dtype = sum(lengths), n_features, dtype

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
        return rounds

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Iterator[tuple[Any, Position]]:
        """See `Source.blocks`: here the blocks are rounds, whatever length is asked for."""
        if shuffle == "uniform":
            raise uniform_error(self.name, "shuffle=True")
        order, seed = np.arange(len(self._chunks)), None
        if shuffle:
            order, seed = scattered(len(order), rng), int(rng.randint(2**31))
        rounds = rounds_of([self._lengths[at] for at in order], self._lanes)
        self._n_rounds = len(rounds)
        for number in range(position or 0, len(rounds)):
            lanes = [[int(order[at]) for at in lane] for lane in rounds[number]]
            yield Round(lanes, seed), number + 1

    def learn(self, learner: Learner, work: Any, unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Let a learner learn from a round; return the features that are still unseen."""
        snapshot = learner.snapshot()
        now, observed = self._computed(
            self._beginning(snapshot, work)
            if snapshot.now is None or snapshot.now.head is not None
            else self._merging(snapshot, work)
        )
        learner.restore(replace(snapshot, now=now))
        return unseen & ~observed

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
        count, each = len(self._chunks), n_rows
        if self.n_rows > n_rows:
            count = min(SAMPLED_CHUNKS, count)
            each = -(-n_rows // count)
        which = np.linspace(0, len(self._chunks) - 1, count).astype(int)
        chunks = [self._rows(at, 0)[:each] for at in which]
        return self._computed(delayed(np.concatenate)(chunks))[:n_rows]

    def last_rows(self, n_rows: int) -> Any:
        """See `Source.last_rows`."""
        from dask import delayed

        first = len(self._chunks)
        while first > 0 and sum(self._lengths[first:]) < n_rows:
            first -= 1
        chunks = [self._rows(at) for at in range(first, len(self._chunks))]
        return self._computed(delayed(np.concatenate)(chunks))[-n_rows:]

    # -- tasks ------------------------------------------------------------------------------

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
        return delayed(begin)(delayed(snapshot, traverse=False), blocks, chunks)

    def _merging(self, snapshot: Snapshot, work: Round) -> Any:
        """The task by which lanes learn from a round."""
        from dask import delayed

        assert snapshot.now is not None
        now, engine = delayed(snapshot.now, traverse=False), snapshot.engine
        lanes = []
        for lane in work.lanes:
            part = None
            for at in lane[:-1]:
                chunk = self._chunk(at, work.seed)
                part = delayed(learn_chunk)(engine, now, part, self._chunks[at], chunk)
            last = self._chunks[lane[-1]], self._chunk(lane[-1], work.seed)
            lanes.append(delayed(learn_last_chunk)(engine, now, part, *last))
        while len(lanes) > BRANCHES:
            parts = range(0, len(lanes), BRANCHES)
            lanes = [delayed(added_up)(lanes[at : at + BRANCHES]) for at in parts]
        return delayed(merge)(engine, now, lanes)

    def _computed(self, task: Any) -> Any:
        """The result of a task, which is taken back if nobody waits for it any more."""
        import dask

        # The state goes with the tasks: what is sent ahead would be lost with its worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            future = self._client.compute(task)
        try:
            return gathered(self._client, future)
        except BaseException:
            future.cancel()
            raise


def scattered(n: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """An order of n chunks in which those of any round lie all over the table, evenly.

    So a round sees all of it, and workers that have neighbouring chunks have as much to do. Steps
    of the golden ratio around a circle, from anywhere on it, never leave a wide gap.
    """
    places = (rng.random_sample() + GOLDEN * np.arange(n)) % 1.0
    return places.argsort().argsort()


def rounds_of(lengths: Sequence[int], lanes: int) -> list[list[list[int]]]:
    """Cut a pass over chunks of so many rows into rounds of lanes of numbers of chunks.

    A round has as many rows as came before it, so that its lanes cannot go far apart: the first
    ones are short, and their number is the logarithm of that of the chunks.
    """
    most = ROUND_SHARE * sum(lengths)
    rounds: list[list[list[int]]] = []
    at = done = 0
    while at < len(lengths):
        room, first = min(done, most), at
        rows = lengths[at]
        at += 1
        while at < len(lengths) and rows + lengths[at] <= room:
            rows += lengths[at]
            at += 1
        done += rows
        count = min(lanes, at - first)
        rounds.append([part.tolist() for part in np.array_split(np.arange(first, at), count)])
    return rounds
