"""The order in which chunks of rows are learned, and the rounds they are learned in."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Rows of a round, at most: 3 times those learned before it, and a third of a pass.
# Between rounds workers wait for each other, but tasks that learn for longer drift apart: with 4
# times the rows, tables with outliers and random walks had 3 % more error, some 10 %; with 1 to 3
# times, none.
ROUND_GROWTH, ROUND_SHARE = 3, 1 / 3
# Neighbouring chunks that are learned one after the other.
NEIGHBOURS = 4
GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Round(NamedTuple):
    """A round: the chunks of each task, and the seed of the order of their rows."""

    tasks: list[list[int]]
    seed: int | None
    then: "Round | None"
    """The next round of the pass."""


def scattered(n: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """An order of n chunks in which those of any round lie all over the table, some adjacent.

    So each round sees all of the table, and all workers have work in each round, whether Dask gave
    them chunks in turn or a part of the table each. Steps of the golden ratio around a circle never
    leave a wide gap.
    """
    firsts = NEIGHBOURS * np.arange(-(-n // NEIGHBOURS))
    places = (rng.random_sample() + GOLDEN * np.arange(len(firsts))) % 1.0
    chunks = firsts[places.argsort().argsort(), None] + np.arange(NEIGHBOURS)
    return chunks[chunks < n]


def round_schedule(lengths: Sequence[int], n_tasks: int) -> list[list[list[int]]]:
    """Cut a pass over chunks into rounds, and each round into tasks.

    A round has at most a few times the rows that came before it, so that its tasks cannot drift far
    apart: the first rounds are short, and their number is the logarithm of that of the chunks.

    Parameters
    ----------
    lengths : sequence of int
        Rows of each chunk, in the order in which they are learned.
    n_tasks : int

    Returns
    -------
    rounds : list of list of list of int
        Positions of chunks, by round and task.
    """
    total = sum(lengths)
    most = ROUND_SHARE * total
    rounds: list[list[list[int]]] = []
    at = done = 0
    while at < len(lengths):
        most_rows, first = float(ROUND_GROWTH * done), at
        if most_rows > most:  # the last ones are as long as each other
            left = total - done
            most_rows = left / max(1, math.ceil(left / most))
        rows = lengths[at]
        at += 1
        while at < len(lengths) and rows + lengths[at] <= most_rows:
            rows += lengths[at]
            at += 1
        done += rows
        count = min(n_tasks, at - first)
        rounds.append([part.tolist() for part in np.array_split(np.arange(first, at), count)])
    return rounds
