"""Hidden entries: what rows must not know of themselves, so that they can be judged by it.

One row in eight hides part of what it observes: what a row of the head misses, or a quarter drawn
at random. It is filled from the rest, and neither its code nor the dictionary ever sees what was
hidden, in no pass: which rows these are, and what they hide, follows from their own values.

A stream without missing entries hides nothing from the dictionary, which would cost it the products
of complete rows; there only a first pass is honest, and only a first pass is looked at.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import sparse_rows
from ..linalg.entries import draws_of
from ..linalg.rows import Rows
from .state import Model
from .whiten import Forgotten, pattern_of, picked

# One row in so many hides something; all of the first are looked at, later one in so many.
ONE_IN, OFTEN, SELDOM = 8, 100, 16
# Rows of a pass that tell an error, more or less.
ENOUGH = 30
# Masks that are lent, and what they show where no row of the head misses anything or most do.
N_MASKS, N_RANDOM_MASKS, VISIBLE = 16, 2, 0.75
# Entries that a row is known by, and that it is judged by: enough of both.
KNOWN_BY, MOST_ENTRIES = 64, 256


class Hidden(NamedTuple):
    """What some rows show and what they hide, in units of the noise.

    Rows that show the same features follow each other: they share a system.
    """

    shown: Rows
    away: Rows
    turn: NDArray[np.int64]
    """Where each row comes in time."""


def lent_masks(seen: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Masks (n, m), True where a checked row may show its entries."""
    shares = seen.mean(axis=1)
    partial = np.flatnonzero((shares >= 0.5) & (shares < 1.0))
    if len(partial) and seen.mean() >= 0.5:
        return seen[rng.choice(partial, N_MASKS)]
    n_masks = N_RANDOM_MASKS if seen.all() else N_MASKS
    return rng.random((n_masks, seen.shape[1])) < VISIBLE


def draws(X: Any) -> NDArray[np.uint64]:
    """A number for each row that follows from its values."""
    out = np.empty(X.shape[0], np.uint64)
    if scipy.sparse.issparse(X):
        for t in range(X.shape[0]):
            values = X.data[X.indptr[t] : X.indptr[t + 1]]
            draws_of(values[None].copy(), max(1, len(values) // KNOWN_BY), out[t : t + 1])
    else:
        rows = np.ascontiguousarray(X)
        rows = rows if rows.flags.writeable else rows.copy()
        draws_of(rows, max(1, X.shape[1] // KNOWN_BY), out)
    return out


def _drawn(
    X: Any, n_masks: int
) -> tuple[NDArray[np.bool_], NDArray[np.uint64], NDArray[np.uint64]]:
    """Which rows are checked, the number of each one's mask, and what is left of its draw."""
    rest, one_in = np.divmod(draws(X), np.uint64(ONE_IN))
    rest, mask = np.divmod(rest, np.uint64(n_masks))
    return one_in == 0, mask, rest


def kept_back(X: Any, seen: NDArray[np.bool_], masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What `hide` will hide of the head of a stream, so that the first model knows none of it."""
    checked, mask, _ = _drawn(X, len(masks))
    visible = masks[mask.astype(int)]
    shown, hidden = seen & visible, seen & ~visible
    judges = checked & shown.any(axis=1) & hidden.any(axis=1)
    return hidden & judges[:, None]


def tells_an_error(model: Model) -> bool:
    """Whether another pass will judge so many rows that they tell an error."""
    hides = model.pass_rows / ONE_IN
    first = min(hides, max(OFTEN - model.checked, 0))
    return model.judges and first + (hides - first) / SELDOM >= ENOUGH


def hide(
    model: Model, X: Any, *, look_at_all: bool = False
) -> tuple[list[Forgotten], Hidden | None]:
    """What rows must not learn of themselves, and what some of them hide for `judge_hidden`."""
    if not model.judges:
        return [], None
    seldom = 1 if model.checked < OFTEN or look_at_all else SELDOM
    checked, mask, rest = _drawn(X, len(model.masks))
    if not checked.any():
        return [], None
    looked_at = rest % np.uint64(seldom) == 0
    which = np.flatnonzero(checked & (looked_at | model.gappy))
    if len(which) == 0:
        return [], None
    if not model.gappy and isinstance(X, np.ndarray) and model.known.all():
        Y = X[which]
        if not np.isnan(Y).any():
            return [], _of_complete(model, Y, mask[which].astype(np.intp))
    rows = _entries(model, X, which)
    owner = owners(rows)
    visible = _masks(model)[mask[which][owner], rows.features]
    shown = np.bincount(owner, visible, len(which))
    away = np.diff(rows.starts) - shown
    judges = (shown > 0) & (away > 0)
    forgotten: list[Forgotten] = []
    if model.gappy:
        gone = picked(rows, ~visible)
        for at in np.flatnonzero(judges).tolist():
            forgotten.append((int(which[at]), gone.part(at, at + 1).features))
    chosen = np.flatnonzero(judges & looked_at[which])
    if len(chosen) == 0:
        return forgotten, None
    turn = np.argsort(mask[which][chosen], kind="stable")
    total = np.concatenate([[0], np.cumsum(~visible)])
    number = total[1:] - total[rows.starts[owner]] - 1  # of a hidden entry in its row, from 0 on
    some = ~visible & (number % np.maximum(1, away // MOST_ENTRIES).astype(int)[owner] == 0)
    shows, hides = (picked(rows, kept).take(chosen[turn]) for kept in (visible, some))
    return forgotten, Hidden(shows, hides, turn)


def _masks(model: Model) -> NDArray[np.bool_]:
    """What rows show: also constant features, whose errors of zero say nothing of the others'."""
    return model.masks | model.constant


def _of_complete(model: Model, Y: NDArray[Any], mask: NDArray[np.intp]) -> Hidden | None:
    """What rows that miss nothing show and hide: the same features, if they share a mask."""
    masks = _masks(model)
    visible = masks.sum(axis=1)[mask]
    judges = (visible > 0) & (visible < len(model.C))
    Y, mask = Y[judges], mask[judges]
    if len(Y) == 0:
        return None
    shown, away = [], []
    for number in np.unique(mask).tolist():
        some = Y[mask == number]
        hidden = np.flatnonzero(~masks[number])
        shown.append(_columns(model, some, np.flatnonzero(masks[number])))
        away.append(_columns(model, some, hidden[:: max(1, len(hidden) // MOST_ENTRIES)]))
    return Hidden(_stacked(shown), _stacked(away), np.argsort(mask, kind="stable"))


def _columns(model: Model, Y: NDArray[Any], features: NDArray[np.intp]) -> Rows:
    """Some columns of complete rows, in units of the noise."""
    values = (Y[:, features] - model.center[features]) / model.noise[features]
    starts = len(features) * np.arange(len(Y) + 1)
    return Rows(starts, np.tile(features.astype(np.int32), len(Y)), values.ravel())


def _stacked(parts: list[Rows]) -> Rows:
    """All rows of several, one after the other."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    return Rows(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _entries(model: Model, X: Any, which: NDArray[np.int64]) -> Rows:
    """What rows observe of features that have units, in units of the noise."""
    if scipy.sparse.issparse(X):
        rows = sparse_rows(X[which])
    else:
        Y = X[which]
        seen = ~np.isnan(Y)
        rows = Rows(*pattern_of(seen), Y[seen])
    if not model.known.all():
        rows = picked(rows, model.known[rows.features])
    starts, features, values = rows
    return Rows(starts, features, (values - model.center[features]) / model.noise[features])


def owners(rows: Rows) -> NDArray[np.int64]:
    """The row of each entry."""
    return np.repeat(np.arange(len(rows)), np.diff(rows.starts))
