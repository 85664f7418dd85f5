"""Hidden entries: what rows would have been filled with, had they missed what other rows miss.

One row in eight hides part of what it observes: what a row of the head misses, or a quarter drawn
at random. It is filled from the rest, and neither its code nor the dictionary ever sees what was
hidden, in no pass: which rows these are, and what they hide, follows from their own values. So
these errors are honest. They tell how wide intervals must be (the histogram of |error| over
predicted deviation is a *conformal* one), how large the error is, whether tails are heavy and
whether it helps to drop outliers.

A stream without missing entries hides nothing from the dictionary, which would cost it the products
of complete rows; there only a first pass is honest, and only a first pass is looked at.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import sparse_rows
from ..kernels.entries import draws_of
from ..kernels.posterior import spread
from ..kernels.shared import Rows, gram
from .codes import codes_of
from .histogram import BINS_PER_OCTAVE, LOWEST, N_BINS, binned
from .reach import hold_back
from .rows import Forgotten, Whitened, picked
from .state import Matrix, Model, Vector

# One row in so many hides something; all of the first are looked at, later one in so many.
ONE_IN, OFTEN, SELDOM = 8, 100, 16
# Masks that are lent, and what they show where no row of the head misses anything or most do.
N_MASKS, N_RANDOM_MASKS, VISIBLE = 16, 2, 0.75
# Entries that a row is known by, and that it is judged by: enough of both.
KNOWN_BY, MOST_ENTRIES = 64, 256
# Checked rows after which an error has lost most of its weight in what is said of the last rows.
RECENT_ROWS = 50
# Entries beyond so many deviations, and which share of them makes tails heavy (normal: 0.006 %).
FAR, HEAVY_SHARE, FIRST_CHECKS = 4.0, 0.002, 50
# Rows that are judged together where that is done anew.
TOGETHER = 256
# Errors beyond this cannot be squared.
SQUARED = -1e150, 1e150
# Deviations from what the rest of its row says that make an entry an outlier; what dropping them
# must be worth on average, from −1 to 1, and how many standard errors that must be above zero.
OUTLIER, WORTH, SURE = 6.0, 0.03, 2.0


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
    owner = _owners(rows)
    visible = model.masks[mask[which][owner], rows.features]
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


def _of_complete(model: Model, Y: NDArray[Any], mask: NDArray[np.intp]) -> Hidden | None:
    """What rows that miss nothing show and hide: the same features, if they share a mask."""
    visible = model.masks.sum(axis=1)[mask]
    judges = (visible > 0) & (visible < len(model.C))
    Y, mask = Y[judges], mask[judges]
    if len(Y) == 0:
        return None
    shown, away = [], []
    for number in np.unique(mask).tolist():
        some = Y[mask == number]
        hidden = np.flatnonzero(~model.masks[number])
        shown.append(_columns(model, some, np.flatnonzero(model.masks[number])))
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
        starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        rows = Rows(starts, np.nonzero(seen)[1].astype(np.int32), Y[seen])
    if not model.known.all():
        rows = picked(rows, model.known[rows.features])
    starts, features, values = rows
    return Rows(starts, features, (values - model.center[features]) / model.noise[features])


def _owners(rows: Rows) -> NDArray[np.int64]:
    """The row of each entry."""
    return np.repeat(np.arange(len(rows)), np.diff(rows.starts))


def judge_hidden(model: Model, hidden: Hidden | None) -> Model:
    """The model with what the hidden entries of some rows tell."""
    if hidden is None:
        return model
    C = model.coding.astype(np.float64, copy=False)
    shown, (starts, which, truth), turn = hidden
    n, owner = len(turn), _owners(hidden.away)
    rows = Whitened(len(C), None, None, np.diff(shown.starts), hold_back(model, shown))
    codes = codes_of(model, rows, limit=outlier_limit(model), keep_covariances=True)
    variance = np.empty(len(which))
    for at, (X, H) in enumerate(zip(codes.X, codes.covariances, strict=True)):
        here = slice(starts[at], starts[at + 1])
        spread(C, H, model.Sigma, X, model.rarity, model.kappa, which[here], variance[here])
    size, weight = (model.noise / model.unit)[which], 1.0 / np.diff(starts)
    errors = truth - _made(C, which, codes.X[owner])
    of_mean = truth - model.one * C[which, -1]
    if model.drops:  # outliers that were hidden are nobody's fault
        size = np.where(np.abs(errors) > OUTLIER * np.sqrt(variance), 0.0, size)
    fades = 1.0 - 2.0 / (model.checked + np.arange(n) + 50.0)
    left = np.append(np.cumprod(fades[:0:-1])[::-1], 1.0)[turn]  # of a row, after those behind it
    histogram = np.prod(fades) * model.histogram
    histogram += binned(np.abs(errors) / np.sqrt(variance), (left * weight)[owner])
    now = [weight * np.bincount(owner, (e * size) ** 2, n) for e in (errors, of_mean)]
    fade = 1.0 - 1.0 / RECENT_ROWS
    recent = fade**n * model.judged[1] + [float(np.sum(fade ** (n - 1 - turn) * e)) for e in now]
    judged = np.array([model.judged[0] + np.sum(now, axis=1), recent])
    trial = _votes(model, C, hidden, rows, codes.X) if model.looks else model.trial
    return replace(
        model, histogram=histogram, judged=judged, trial=trial, checked=model.checked + n
    )


def _votes(model: Model, C: Matrix, hidden: Hidden, rows: Whitened, X: Matrix) -> Vector:
    """Votes on dropping outliers, with those of more rows, whose codes as it is done now are X."""
    (_, which, truth), turn, owner = hidden.away, hidden.turn, _owners(hidden.away)
    size, n = (model.noise / model.unit)[which], len(turn)
    other = codes_of(model, rows, limit=None if model.drops else OUTLIER).X
    plain, dropping = (
        np.bincount(owner, np.clip((truth - _made(C, which, X[owner])) * size, *SQUARED) ** 2, n)
        for X in ((other, X) if model.drops else (X, other))
    )
    vote = (plain - dropping) / np.maximum(plain + dropping, 1e-300)
    fade = 1.0 - 2.0 / (model.checked + 50.0)
    left = fade ** (n - 1 - turn)
    return fade**n * model.trial + [np.sum(left), np.sum(left * vote), np.sum(left * vote**2)]


def _made(C: Matrix, which: NDArray[np.int32], X: Matrix) -> Vector:
    """What codes, one for each of the features `which`, make of them."""
    return np.einsum("ij,ij->i", C[which], X)


def outlier_limit(model: Model) -> float | None:
    """Beyond how many deviations an entry counts as missing; None where none does."""
    return OUTLIER if model.drops else None


def looking(model: Model) -> Model:
    """The model, with what it does about outliers in the batch to come.

    At first they are if the head held spikes. They are looked for where more entries were far off
    than a normal law allows. Heavy tails alone are no reason to drop any: a peak that many features
    share is far from what is usual, too. So entries are dropped only where that fills what was
    hidden better.
    """
    far = float(model.histogram[int(BINS_PER_OCTAVE * (np.log2(FAR) + LOWEST)) :].sum())
    heavy = far > HEAVY_SHARE * float(model.histogram.sum())
    count, votes, squares = model.trial
    worth = votes > max(WORTH * count, SURE * float(np.sqrt(squares)))
    if model.checked < FIRST_CHECKS:  # nothing is known yet but what the head showed
        return model
    return replace(model, looks=bool(model.settings.outliers and heavy), drops=bool(worth))


def judged_anew(model: Model, X: Any) -> Model:
    """The model of which only what rows of X hide now was judged."""
    fresh = replace(
        model, histogram=np.zeros(N_BINS), judged=np.zeros((2, 2)), checked=0, C_codes=None,
        G=gram(model.C), looks=False,
    )  # fmt: skip
    for start in range(0, X.shape[0], TOGETHER):
        part = X[start : start + TOGETHER]
        fresh = judge_hidden(fresh, hide(fresh, part, look_at_all=True)[1])
    return fresh
