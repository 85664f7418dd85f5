"""Which rows with missing entries observe the same features."""

import numpy as np
from numpy.typing import NDArray

from .compiling import jit
from .rows import Rows

# Operations that pay for the calls around one product.
WORTH_A_PRODUCT = 200_000


@jit
def compare_with_before(starts, features, same):
    """Say of each row but the first whether it observes what the row before it does."""
    for t in range(1, same.shape[0]):
        count = starts[t + 1] - starts[t]
        at = 0 if count == starts[t] - starts[t - 1] else count + 1
        while at < count and features[starts[t] + at] == features[starts[t - 1] + at]:
            at += 1
        same[t] = at == count


@jit
def hash_each(starts, features, out):
    """A number for each row that depends on which features it observes."""
    for t in range(out.shape[0]):
        total = np.uint64(0)
        for at in range(starts[t], starts[t + 1]):  # a sum of well mixed numbers
            z = np.uint64(features[at] + 1) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            total += z ^ (z >> np.uint64(27))
        out[t] = total


def runs(rows: Rows) -> list[tuple[int, int]]:
    """First and last (exclusive) of consecutive rows that observe the same features."""
    same = np.zeros(len(rows), np.bool_)
    compare_with_before(rows.starts, rows.features, same)
    first = np.flatnonzero(~same).tolist()
    return list(zip(first, [*first[1:], len(rows)], strict=True))


def by_pattern(rows: Rows, m: int, r: int) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Groups of rows that observe the same features, where that saves work, and all other rows."""
    hashes = np.empty(len(rows), np.uint64)
    hash_each(rows.starts, rows.features, hashes)
    _, pattern, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    pattern = pattern.ravel()
    order = np.argsort(pattern, kind="stable")
    ends = np.cumsum(counts)
    observed = np.diff(rows.starts)[order[ends - counts]]
    saved = (counts - 1) * (np.minimum(observed, m - observed) + r / 3) * r * r
    chosen = np.flatnonzero(saved > WORTH_A_PRODUCT)
    groups = [order[ends[at] - counts[at] : ends[at]] for at in chosen.tolist()]
    # Two patterns of one hash are beyond all odds, but would be a wrong result.
    groups = [group for group in groups if _really_same(rows, group)]
    single = np.ones(len(rows), np.bool_)
    for group in groups:
        single[group] = False
    return groups, np.flatnonzero(single)


def _really_same(rows: Rows, group: NDArray[np.int64]) -> bool:
    counts = np.diff(rows.starts)[group]
    if not (counts == counts[0]).all():
        return False
    first = rows.features[rows.starts[group[0]] : rows.starts[group[0] + 1]]
    return all(
        np.array_equal(first, rows.features[rows.starts[t] : rows.starts[t + 1]]) for t in group[1:]
    )
