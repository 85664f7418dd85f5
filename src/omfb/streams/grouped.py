"""Streams of groups of rows, and their shuffling."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Block, Blocks, Position, Source, uniform_error

# Size of the buffer in which rows are shuffled if they cannot be read in any order.
SHUFFLE_BYTES = 1 << 25


class GroupedSource(Source):
    """Groups of rows that can be read in any order, each from its beginning.

    A shuffled pass takes the groups in random order and fills a buffer of about 32 MB with their
    rows; the rows of a full buffer are permuted and yielded, and the buffer is filled again. Rows
    of the same group stay within about one buffer of each other: a sorted file with groups larger
    than the buffer should be shuffled beforehand.
    """

    @abstractmethod
    def n_groups(self) -> int:
        """Number of groups."""

    @abstractmethod
    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """Yield the rows of a group after the first `skip`, in pieces of any length."""

    def empty_rows(self, n_rows: int) -> NDArray[Any]:
        """An uninitialised array of `n_rows` rows."""
        return np.empty((n_rows, self.n_features), self.dtype)

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """See `Source.blocks`."""
        if shuffle == "uniform":
            raise uniform_error(self.name, "shuffle=True, or a .npy file")
        if not shuffle:
            for rows, after, _ in self._cut(range(self.n_groups()), length, position or [0, 0]):
                yield Block(rows, after)
            return
        order = rng.permutation(self.n_groups()).tolist()
        seed = int(rng.randint(2**31))
        row_bytes = max(self.n_features, 1) * self.dtype.itemsize
        window = length * max(1, SHUFFLE_BYTES // (row_bytes * length))
        start, done = position or [[0, 0], 0]
        for rows, after, numbers in self._cut(order, window, start):
            shuffled = np.random.default_rng([seed, *start]).permutation(len(rows))
            for at in range(done, len(rows), length):
                end = at + length
                here = [after, 0] if end >= len(rows) else [start, end]
                yield Block(rows[shuffled[at:end]], here, numbers[shuffled[at:end]])
            start, done = after, 0
            del rows  # free it before the next one is filled

    def starts(self, count: int) -> list[Position]:
        """See `Source.starts`."""
        groups = self.n_groups()
        return [[groups * part // count, 0] for part in range(min(count, groups))] or [None]

    def check_position(self, position: Position) -> None:
        """See `Source.check_position`."""
        if position is None:
            return
        start, done = position if isinstance(position[0], list) else (position, 0)
        numbers = [*start, done]
        fits = len(start) == 2 and all(type(number) is int and number >= 0 for number in numbers)
        if not fits or start[0] > self.n_groups() or max(numbers) >= 2**62:
            raise ValueError("its position is outside the data")

    def _cut(
        self, order: Any, length: int, start: list[int]
    ) -> Iterator[tuple[NDArray[Any], list[int], NDArray[np.int64]]]:
        """Yield `length` rows at a time, with [groups done, rows done of the next one].

        Also numbers them in the order of the table: by their group, and their place in it.
        """
        rows, numbers, filled = self.empty_rows(length), np.empty(length, np.int64), 0
        first, skip = start
        for number in range(first, len(order)):
            taken = skip
            for piece in self.read(order[number], skip):
                at = 0
                while at < len(piece):
                    count = min(length - filled, len(piece) - at)
                    rows[filled : filled + count] = piece[at : at + count]
                    numbers[filled : filled + count] = (order[number] << 32) + np.arange(
                        taken, taken + count
                    )
                    at += count
                    taken += count
                    filled += count
                    if filled == length:
                        yield rows, [number, taken], numbers
                        rows, numbers = self.empty_rows(length), np.empty(length, np.int64)
                        filled = 0
                del piece  # free it before the next one, which may be as large
            skip = 0
        if filled:
            yield rows[:filled], [len(order), 0], numbers[:filled]

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`."""
        if position is None:
            return 0.0
        groups = position[0] if isinstance(position[0], int) else position[0][0]
        return groups / max(self.n_groups(), 1)
