"""No entry counts as farther off than its feature reaches, unless its row says the same.

A feature that was almost constant has almost no noise. When it varies after all, one entry could be
a thousand deviations off, and would turn codes and dictionary to itself alone. So an entry counts
at most as far off as its feature reaches, by its noise and what the codes explain of it. As that is
still far, the noise grows, and after some such entries they are believed.

A storm that many stations report is believed at once: an entry may be a few times as far off as the
rest of its row, also held back, says.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.entries import any_beyond
from ..linalg.rows import Rows
from .e_step import codes_of
from .state import Model, Vector
from .whiten import REACH, Forgotten, Whitened, whitened

# Beyond `REACH` deviations of its feature, an entry is believed so many times what the rest of its
# row says.
TIMES = 1.75
# Rounds in which entries that agree with each other go farther.
ROUNDS = 5
# What an entry adds to its own code is taken out of it; not more than this is believed of it.
MOST_LEVER = 0.999


def believed(
    model: Model, X: Any, forgotten: Sequence[Forgotten] = (), room: NDArray[Any] | None = None
) -> Whitened:
    """The rows of X in units of the noise (`whitened`), none of their entries beyond belief."""
    rows, m = whitened(model, X, forgotten, room), len(model.C)
    if rows.values is None:
        entries = hold_back(model, rows.entries)
        return Whitened(m, None, None, np.diff(entries.starts), entries)
    values, reach = rows.values, None if rows.all_near else reach_of(model)
    if reach is None or not any_beyond(values, reach):
        return rows
    at, features = np.nonzero(np.abs(values) > reach)
    which, owners = np.unique(at, return_inverse=True)
    some, seen = values[which], None if rows.seen is None else rows.seen[which]
    counts = np.full(len(which), m) if seen is None else seen.sum(axis=1)
    given = values[at, features].astype(np.float64)
    far = _Far(owners, features, given, reach[features])

    def with_far(now: Vector) -> Whitened:
        some[owners, features] = now
        return Whitened(m, some, seen, counts)

    values[at, features] = _believed(model, far, with_far)
    return rows


def hold_back(model: Model, rows: Rows) -> Rows:
    """The rows, none of their entries beyond belief."""
    if np.abs(rows.values).max(initial=0.0) <= REACH:
        return rows
    reach = reach_of(model)[rows.features]
    at = np.flatnonzero(np.abs(rows.values) > reach)
    if len(at) == 0:
        return rows
    lies_in = np.searchsorted(rows.starts, at, side="right") - 1
    which, owners = np.unique(lies_in, return_inverse=True)
    values = rows.values.astype(np.float64)
    held = Rows(rows.starts, rows.features, values)

    def with_far(now: Vector) -> Whitened:
        values[at] = now
        some = held.take(which)
        return Whitened(len(model.C), None, None, np.diff(some.starts), some)

    values[at] = _believed(model, _Far(owners, rows.features[at], values[at], reach[at]), with_far)
    return held


def reach_of(model: Model) -> Vector:
    """How far from its centre entries of each feature can be."""
    C = model.coding.astype(np.float64, copy=False)
    spread = 1.0 + np.einsum("ij,ij->i", C[:, :-1], C[:, :-1])
    return np.abs(model.one * C[:, -1]) + REACH * np.sqrt(spread)


class _Far(NamedTuple):
    """Entries beyond reach: the row of each, its feature, what it is, and how far that reaches."""

    owners: NDArray[np.int64]
    features: NDArray[Any]
    given: Vector
    reach: Vector


def _believed(model: Model, far: _Far, with_far: Callable[[Vector], Whitened]) -> Vector:
    """What entries beyond reach count as; `with_far` gives their rows, with those as they are said.

    Without itself the code makes w − (w − cᵀx) / (1 − cᵀ A⁻¹ c) of an entry w.
    """
    owners, features, given, reach = far
    sizes, sign = np.abs(given), np.sign(given)
    C = model.coding[features].astype(np.float64)
    limit = reach
    for _ in range(ROUNDS):
        held = sign * np.minimum(sizes, limit)
        codes = codes_of(model, with_far(held), keep_covariances=True)
        made = np.einsum("ij,ij->i", C, codes.X[owners])
        A = codes.covariances[np.minimum(owners, len(codes.covariances) - 1)]
        levers = np.einsum("ij,ijk,ik->i", C[:, :-1], A, C[:, :-1])
        others = held - (held - made) / (1.0 - np.minimum(levers, MOST_LEVER))
        before, limit = limit, np.maximum(limit, TIMES * others * sign)
        if np.all(np.minimum(limit, sizes) == np.minimum(before, sizes)):
            break
    return sign * np.minimum(sizes, limit)
