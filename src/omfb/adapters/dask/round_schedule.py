"""In which order chunks of rows are learned from, and in which rounds."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Rows of a round, at most: so many times those learned from before it, and this share of a pass.
# Between rounds workers wait for each other, but lanes that go further learn less: with 4 times the
# rows, tables with outliers and random walks had 3 % more error, some 10 %; with 1 to 3 the same.
ROUND_GROWTH, ROUND_SHARE = 3, 1 / 3
# Neighbouring chunks that come one after the other.
NEIGHBOURS = 4
GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Round(NamedTuple):
    """What is learned from at once: lanes, each with numbers of chunks, and their seed."""

    lanes: list[list[int]]
    seed: int | None
    then: "Round | None"
    """The next one of the pass."""


def scattered(n: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """An order of n chunks in which those of any round lie all over the table, some side by side.

    So a round sees all of it, and workers have as much to do in each: those that were given chunks
    in turn, as Dask does, by the neighbours, and those that were given a part of the table each, as
    these few lie evenly. Steps of the golden ratio around a circle never leave a wide gap.
    """
    firsts = NEIGHBOURS * np.arange(-(-n // NEIGHBOURS))
    places = (rng.random_sample() + GOLDEN * np.arange(len(firsts))) % 1.0
    chunks = firsts[places.argsort().argsort(), None] + np.arange(NEIGHBOURS)
    return chunks[chunks < n]


def rounds_of(lengths: Sequence[int], lanes: int) -> list[list[list[int]]]:
    """Cut a pass over chunks of so many rows into rounds of lanes of numbers of chunks.

    A round has at most a few times the rows that came before it, so that its lanes cannot go far
    apart: the first ones are short, and their number is the logarithm of that of the chunks.
    """
    total = sum(lengths)
    most = ROUND_SHARE * total
    rounds: list[list[list[int]]] = []
    at = done = 0
    while at < len(lengths):
        room, first = float(ROUND_GROWTH * done), at
        if room > most:  # the last ones are as long as each other
            left = total - done
            room = left / max(1, math.ceil(left / most))
        rows = lengths[at]
        at += 1
        while at < len(lengths) and rows + lengths[at] <= room:
            rows += lengths[at]
            at += 1
        done += rows
        count = min(lanes, at - first)
        rounds.append([part.tolist() for part in np.array_split(np.arange(first, at), count)])
    return rounds
