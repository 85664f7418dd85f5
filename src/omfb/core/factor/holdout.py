"""Held-out entries: which rows hold entries out, and which entries.

One row in `holdout_every` holds out part of what it observes: the entries that some row of the head
misses, or a quarter at random. They are predicted from the rest of the row, and neither its code
nor the dictionary ever sees them, in no pass: a hash of the row's number decides, which is its
index in a table, or how many rows of a stream came before it.

A stream without missing entries withholds nothing from the dictionary, which would cost it the
products of complete rows. There only a first pass is honest, and only that is scored.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import sparse_rows
from ..linalg.rows import Rows
from ..splitmix import hashed
from ..weighted import WeightedRows, entry_precisions, values_of
from .config import FactorConfig
from .state import Flags, State
from .stats import Vector
from .whiten import HeldOut, pattern_of, select

# Of the first rows all that hold out are scored, of later ones one in so many: that costs less.
SCORE_ALL, SCORE_EVERY = 800, 16
# Scored rows of a pass that make its error worth reporting.
ENOUGH_ROWS = 30
# Patterns to choose from; of complete rows few, as rows with the same pattern share a system.
N_MASKS, N_COMPLETE_MASKS = 16, 2
# Held-out entries of a row that are scored.
SCORED_ENTRIES = 256


class HoldoutRows(NamedTuple):
    """What some rows show and what they hold out, in units of the noise.

    Rows that show the same features follow each other: they share a system.
    """

    shown: Rows
    held_out: Rows
    position: NDArray[np.int64]
    """Where each row comes in time, of those that are scored."""
    which: NDArray[np.int64]
    """The same of all rows; not of complete rows."""
    weights: Vector | None = None
    """Weights of the rows; None if all are 1."""
    shown_precisions: Vector | None = None
    """Weights of the entries that are shown; None if all are 1."""
    held_out_precisions: Vector | None = None
    """The same of those that are held out."""


def sample_masks(seen: Flags, config: FactorConfig, rng: np.random.Generator) -> Flags:
    """Masks (n, m), True where a scored row may show its entries."""
    shares = seen.mean(axis=1)
    partial = np.flatnonzero((shares >= 0.5) & (shares < 1.0))
    if len(partial) and seen.mean() >= 0.5:
        return seen[rng.choice(partial, N_MASKS)]
    n_masks = N_COMPLETE_MASKS if seen.all() else N_MASKS
    return rng.random((n_masks, seen.shape[1])) < 1.0 - config.hyper.holdout_share


def _choices(
    numbers: NDArray[np.int64], seed: int, n_masks: int, every: int
) -> tuple[Flags, NDArray[np.uint64], NDArray[np.uint64]]:
    """Which rows hold out, the number of each one's mask, and what is left of its hash."""
    rest, remainder = np.divmod(hashed(numbers, seed), np.uint64(every))
    rest, mask = np.divmod(rest, np.uint64(n_masks))
    return remainder == 0, mask, rest


def held_out_of_head(
    numbers: NDArray[np.int64], seed: int, seen: Flags, masks: Flags, config: FactorConfig
) -> Flags:
    """What `hold_out` will hold out of the head, so that the first state knows none of it."""
    chosen, mask, _ = _choices(numbers, seed, len(masks), config.hyper.holdout_every)
    visible = masks[mask.astype(int)]
    shown, hidden = seen & visible, seen & ~visible
    scored = chosen & shown.any(axis=1) & hidden.any(axis=1)
    return hidden & scored[:, None]


def will_score(state: State) -> bool:
    """Whether another pass will score enough rows to report an error."""
    first = min(state.schedule.pass_rows, max(SCORE_ALL - state.n_seen, 0))
    later = state.schedule.pass_rows - first
    scored = (first + later / SCORE_EVERY) / state.config.hyper.holdout_every
    return state.holds_out and scored >= ENOUGH_ROWS


def hold_out(
    state: State, X: Any, numbers: NDArray[np.int64], *, score_all: bool = False
) -> tuple[list[HeldOut], HoldoutRows | None]:
    """Entries that rows must not learn from, and the rows to be scored by theirs."""
    if not state.holds_out:
        return [], None
    given, X = X, values_of(X)
    has_missing, n_masks = state.schedule.has_missing, len(state.holdout.masks)
    every = state.config.hyper.holdout_every
    chosen, mask, rest = _choices(numbers, state.seed, n_masks, every)
    if not chosen.any():
        return [], None
    early = state.n_seen + np.arange(X.shape[0]) < SCORE_ALL
    scored = score_all | early | (rest % np.uint64(SCORE_EVERY) == 0)
    which = np.flatnonzero(chosen & (scored | has_missing))
    if len(which) == 0:
        return [], None
    weighted = isinstance(given, WeightedRows)
    if (
        not has_missing
        and isinstance(X, np.ndarray)
        and state.features.known.all()
        and not weighted
    ):
        Y = X[which]
        if not np.isnan(Y).any():
            return [], _of_complete(state, Y, mask[which].astype(np.intp))
    held_out, rows = _of_any(state, X, which, mask[which], scored[which])
    return held_out, _weighted(state, rows, given) if weighted and rows is not None else rows


def _weighted(state: State, rows: HoldoutRows, given: WeightedRows) -> HoldoutRows:
    """Rows that hold out with the weights of the rows that they were chosen from."""
    rows = rows._replace(weights=given.weights[rows.which])
    if given.precisions is None:
        return rows
    shown, held_out = (
        entry_precisions(given.precisions, rows.which[owners(part)], part.features)
        / state.params.precision
        for part in (rows.shown, rows.held_out)
    )
    return rows._replace(shown_precisions=shown, held_out_precisions=held_out)


def _of_any(
    state: State, X: Any, which: NDArray[np.int64], mask: NDArray[np.uint64], scored: Flags
) -> tuple[list[HeldOut], HoldoutRows | None]:
    """`hold_out` of rows that may miss entries."""
    rows = _entries(state, X, which)
    owner = owners(rows)
    visible = _masks(state)[mask[owner], rows.features]
    n_shown = np.bincount(owner, visible, len(which))
    n_hidden = np.diff(rows.starts) - n_shown
    usable = (n_shown > 0) & (n_hidden > 0)
    held_out: list[HeldOut] = []
    if state.schedule.has_missing:
        hidden = select(rows, ~visible)
        for at in np.flatnonzero(usable).tolist():
            held_out.append((int(which[at]), hidden.part(at, at + 1).features))
    chosen = np.flatnonzero(usable & scored)
    if len(chosen) == 0:
        return held_out, None
    position = np.argsort(mask[chosen], kind="stable")
    total = np.concatenate([[0], np.cumsum(~visible)])
    number = total[1:] - total[rows.starts[owner]] - 1  # of a hidden entry in its row, from 0 on
    every = np.maximum(1, n_hidden // SCORED_ENTRIES).astype(int)
    some = ~visible & (number % every[owner] == 0)
    shown, hidden = (select(rows, kept).take(chosen[position]) for kept in (visible, some))
    return held_out, HoldoutRows(shown, hidden, position, which[chosen[position]])


def _masks(state: State) -> Flags:
    """What rows show: also constant features, whose errors of zero say nothing of the others."""
    return state.holdout.masks | state.features.constant


def _of_complete(state: State, Y: NDArray[Any], mask: NDArray[np.intp]) -> HoldoutRows | None:
    """What complete rows show and hold out: the same features if they share a mask."""
    masks = _masks(state)
    visible = masks.sum(axis=1)[mask]
    usable = (visible > 0) & (visible < len(state.params.C))
    Y, mask = Y[usable], mask[usable]
    if len(Y) == 0:
        return None
    shown, held_out = [], []
    for number in np.unique(mask).tolist():
        some = Y[mask == number]
        hidden = np.flatnonzero(~masks[number])
        shown.append(_columns(state, some, np.flatnonzero(masks[number])))
        held_out.append(_columns(state, some, hidden[:: max(1, len(hidden) // SCORED_ENTRIES)]))
    position = np.argsort(mask, kind="stable")
    return HoldoutRows(_stacked(shown), _stacked(held_out), position, position)


def _columns(state: State, Y: NDArray[Any], features: NDArray[np.intp]) -> Rows:
    """Some columns of complete rows, in units of the noise."""
    values = (Y[:, features] - state.params.center[features]) / state.params.noise_std[features]
    starts = len(features) * np.arange(len(Y) + 1)
    return Rows(starts, np.tile(features.astype(np.int32), len(Y)), values.ravel())


def _stacked(parts: list[Rows]) -> Rows:
    """Rows of several lists as one."""
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    return Rows(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _entries(state: State, X: Any, which: NDArray[np.int64]) -> Rows:
    """What rows observe of features with a unit, in units of the noise."""
    if scipy.sparse.issparse(X):
        rows = sparse_rows(X[which])
    else:
        Y = X[which]
        seen = ~np.isnan(Y)
        rows = Rows(*pattern_of(seen), Y[seen])
    if not state.features.known.all():
        rows = select(rows, state.features.known[rows.features])
    starts, features, values = rows
    center, noise = state.params.center, state.params.noise_std
    return Rows(starts, features, (values - center[features]) / noise[features])


def owners(rows: Rows) -> NDArray[np.int64]:
    """The row of each entry."""
    return np.repeat(np.arange(len(rows)), np.diff(rows.starts))
