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
from scipy.stats import norm

from ..kernels.entries import draws_of
from ..kernels.posterior import spread
from ..kernels.shared import Rows, gram
from .codes import Codes, codes_of
from .rows import Forgotten, Whitened
from .state import Matrix, Model, Vector

# Rows that are looked at together, and how many must have been checked, to calibrate anew.
CALIBRATION_ROWS, FEWEST_CHECKS = 256, 10
# One row in so many hides something; all of the first are looked at, later one in so many.
ONE_IN, OFTEN, SELDOM = 8, 100, 8
# Masks that are lent, and what they show where no row of the head misses anything or most do.
N_MASKS, N_RANDOM_MASKS, VISIBLE = 16, 2, 0.75
# Entries that a row is known by, and that it is judged by: enough of both.
KNOWN_BY, MOST_ENTRIES = 64, 256
# Bins of the histogram: of log2 |error / deviation|, from −LOWEST octaves on.
BINS_PER_OCTAVE, LOWEST, OCTAVES = 16, 6, 12
N_BINS = BINS_PER_OCTAVE * OCTAVES
# Checked rows after which an error has lost most of its weight in what is said of the last rows.
RECENT_ROWS = 50
# Entries beyond so many deviations, and which share of them makes tails heavy (normal: 0.006 %).
FAR, HEAVY_SHARE, FIRST_CHECKS = 4.0, 0.002, 50
# Deviations from what the rest of its row says that make an entry an outlier; what dropping them
# must be worth on average, from −1 to 1, and how many standard errors that must be above zero.
OUTLIER, WORTH, SURE = 6.0, 0.03, 2.0


class Hidden(NamedTuple):
    """What one row shows and what it hides by one of the masks, in units of the noise."""

    mask: int
    shown: NDArray[np.int32]
    shown_values: Vector
    features: NDArray[np.int32]
    values: Vector


def lent_masks(seen: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Masks (n, m), True where a checked row may show its entries."""
    shares = seen.mean(axis=1)
    partial = np.flatnonzero((shares >= 0.5) & (shares < 1.0))
    if len(partial) and seen.mean() >= 0.5:
        return seen[rng.choice(partial, N_MASKS)]
    n_masks = N_RANDOM_MASKS if seen.all() else N_MASKS
    return rng.random((n_masks, seen.shape[1])) < VISIBLE


def draws(X: Any) -> list[int]:
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
    return out.tolist()


def hide(model: Model, X: Any) -> tuple[list[Forgotten], list[Hidden]]:
    """What rows must not learn of themselves, and what some of them hide for `judge_hidden`."""
    forgotten: list[Forgotten] = []
    hidden: list[Hidden] = []
    if not model.gappy and not model.first_pass:
        return forgotten, hidden
    seldom = 1 if model.checked < OFTEN else SELDOM
    n_masks = len(model.masks)
    for t, draw in enumerate(draws(X)):
        looked_at = draw // (ONE_IN * n_masks) % seldom == 0
        if draw % ONE_IN or not (model.gappy or looked_at):
            continue
        mask = draw // ONE_IN % n_masks
        features, values = _entries(model, X, t)
        visible = model.masks[mask][features]
        if not visible.any() or visible.all():
            continue
        if model.gappy:
            forgotten.append((t, features[~visible]))
        if looked_at:
            away = np.flatnonzero(~visible)
            away = away[:: max(1, len(away) // MOST_ENTRIES)]
            hidden.append(
                Hidden(mask, features[visible], values[visible], features[away], values[away])
            )
    return forgotten, hidden


def _entries(model: Model, X: Any, t: int) -> tuple[NDArray[np.int32], Vector]:
    """Features that a row observes, and their values in units of the noise."""
    if scipy.sparse.issparse(X):
        here = slice(X.indptr[t], X.indptr[t + 1])
        known = ~np.isnan(X.data[here])
        features, values = X.indices[here][known], X.data[here][known]
    else:
        features = np.flatnonzero(~np.isnan(X[t]))
        values = X[t, features]
    known = model.known[features]  # others have no units yet
    features, values = features[known].astype(np.int32), values[known].astype(np.float64)
    return features, (values - model.center[features]) / model.noise[features]


def judge_hidden(model: Model, hidden: list[Hidden]) -> Model:
    """The model with what the hidden entries of some rows tell."""
    if not hidden:
        return model
    # Rows that show the same features share a system, if they come one after the other.
    order = np.argsort([row.mask for row in hidden], kind="stable")
    place = np.argsort(order)
    C = model.coding.astype(np.float64, copy=False)
    unit = model.noise / model.unit
    mean = model.one * C[:, -1]
    histogram, judged, trial = model.histogram, model.judged.copy(), model.trial
    checked = model.checked
    shown = _shown(model, [hidden[at] for at in order])
    codes = codes_of(model, shown, limit=outlier_limit(model), keep_covariances=True)
    for at, (_, _, _, which, truth) in zip(place.tolist(), hidden, strict=True):
        predicted, variance = _predicted(model, C, codes, at, which)
        errors, size, weight = truth - predicted, unit[which], 1.0 / len(which)
        fade = 1.0 - 2.0 / (checked + 50.0)
        histogram = fade * histogram + weight * binned(np.abs(errors) / np.sqrt(variance))
        now = np.array([np.sum((errors * size) ** 2), np.sum(((truth - mean[which]) * size) ** 2)])
        judged[0] += weight * now
        judged[1] = (1.0 - 1.0 / RECENT_ROWS) * judged[1] + weight * now
        checked += 1
    if model.looks:
        trial = _votes(model, C, hidden, shown, place)
    return replace(model, histogram=histogram, judged=judged, trial=trial, checked=checked)


def _votes(
    model: Model, C: Matrix, hidden: list[Hidden], shown: Whitened, place: NDArray[np.int64]
) -> Vector:
    """Votes on dropping outliers, with those of more rows."""
    tried = [codes_of(model, shown, limit=limit).X for limit in (np.inf, OUTLIER)]
    trial = model.trial
    for at, (_, _, _, which, truth) in zip(place.tolist(), hidden, strict=True):
        size = (model.noise / model.unit)[which]
        plain, dropping = (float(np.sum(((truth - C[which] @ X[at]) * size) ** 2)) for X in tried)
        vote = (plain - dropping) / max(plain + dropping, 1e-300)
        fade = 1.0 - 2.0 / (model.checked + 50.0)
        trial = fade * trial + np.array([1.0, vote, vote**2])
    return trial


def _shown(model: Model, hidden: list[Hidden]) -> Whitened:
    """What the rows show, as rows of their own."""
    counts = np.array([len(row.shown) for row in hidden])
    starts = np.concatenate([[0], np.cumsum(counts)])
    features = np.concatenate([row.shown for row in hidden])
    values = np.concatenate([row.shown_values for row in hidden])
    return Whitened(len(model.C), None, None, counts, Rows(starts, features, values))


def _predicted(
    model: Model, C: Matrix, codes: Codes, at: int, which: NDArray[np.int32]
) -> tuple[Vector, Vector]:
    """Means and variances of the features `which` of one row."""
    variance = np.empty(len(which))
    spread(
        C, codes.covariances[at], model.Sigma, codes.X[at], model.rarity, model.kappa, which,
        variance,
    )  # fmt: skip
    return C[which] @ codes.X[at], variance


def binned(sizes: Vector) -> Vector:
    """A histogram of errors in units of their deviation."""
    with np.errstate(divide="ignore"):
        at = BINS_PER_OCTAVE * (np.log2(sizes) + LOWEST)
    return np.bincount(np.clip(at, 0, N_BINS - 1).astype(int), minlength=N_BINS).astype(np.float64)


def rescaled(histogram: Vector, change: float) -> Vector:
    """The histogram, had the deviations been `change` times as large."""
    at = np.arange(N_BINS) + BINS_PER_OCTAVE * np.log2(change)
    total = np.concatenate([[0.0], np.cumsum(histogram)])
    below = np.interp(np.append(at, at[-1] + 1.0), np.arange(N_BINS + 1), total)
    below[0], below[-1] = 0.0, total[-1]
    return np.diff(below)


def quantile(model: Model, level: float) -> float:
    """How many predicted deviations hold this share of the errors."""
    total = float(model.histogram.sum())
    normal = float(norm.ppf(0.5 + level / 2.0))
    if total == 0.0:
        return normal
    below = np.concatenate([[0.0], np.cumsum(model.histogram)]) / total
    found = 2.0 ** (
        float(np.interp(level, below, np.arange(N_BINS + 1))) / BINS_PER_OCTAVE - LOWEST
    )
    trust = min(1.0, total / 20.0)
    return trust * found + (1.0 - trust) * normal


def outlier_limit(model: Model) -> float:
    """Beyond how many deviations an entry counts as missing; infinity where none does."""
    return OUTLIER if model.drops else float(np.inf)


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


def calibrated(model: Model, X: Any) -> Model:
    """The model whose intervals come from what rows of X hide now, and from nothing before.

    Rows that were learned from, but for what they hide; so nothing is found where the stream has no
    missing entries, and nothing was hidden.
    """
    if not model.gappy:
        return model
    fresh = replace(model, histogram=np.zeros(N_BINS), checked=0, C_codes=None, G=gram(model.C))
    for start in range(0, X.shape[0], CALIBRATION_ROWS):
        part = X[start : start + CALIBRATION_ROWS]
        fresh = judge_hidden(fresh, hide(fresh, part)[1])
    if fresh.checked < FEWEST_CHECKS:
        return model
    return replace(model, histogram=fresh.histogram)
