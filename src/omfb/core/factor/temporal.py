"""Rows in time: what neighbouring rows tell of each other, used where that fills better.

Codes and each feature's own residual follow autoregressions of order one, whose coefficients are
found from rows in their order. Whether either memory is used is decided by hiding: what the rows
miss, moved along in time, is hidden from them, and filled with and without. So is how far each
feature's own series is trusted (`alone.py`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from ..conformal import N_BINS, binned, quantile, rescaled
from ..linalg.autoregression import bridge, eliminate, substitute
from ..linalg.posterior import spread
from .e_step import codes_of, variances_of
from .holdout_scores import outlier_limit
from .predict import Filled, settled
from .state import Matrix, Memory, Model, Vector
from .univariate import DISTANCES, alone, away_from_mean, distance_classes, trust_in
from .whiten import REACH, pattern_of
from .winsorize import believed

# Rows whose systems are kept at a time.
PART = 128
# Rows in their order that the memories are found from.
WINDOW = 2048
# Rows that tell the last code and residuals.
RECENT = 64
# Rows that tell how sure a forecast is, and an age at which nothing is left of a residual.
AHEAD, LONG_AGO = 256, 1 << 30
# The share of errors by which widths of intervals are compared.
CENTRAL = 0.8
# As many pairs of residuals without memory each feature's coefficient begins with.
PAIRS_BEFORE, PAIRS_OF_A_SERIES = 20.0, 5.0
MOST_MEMORY = 0.999
# Of the entries, at least, that must have been hidden to decide by.
FEWEST_HIDDEN = 50
# A memory must lower the squared error to this share of it.
WORTH = 0.995


def remembering(model: Model, X: Any) -> Model:
    """The model with memories found from rows in their order, the last of them those of the stream.

    Parameters
    ----------
    model : Model
    X : ndarray of shape (n_rows, n_features)
        Rows that follow each other; of many the last are used.
    """
    model = settled(model)
    rows = dense_with_holes(X[-WINDOW:])
    W = _in_units(model, rows)
    found = _memory(model, W)
    hidden = _moved(np.isnan(rows))
    none = np.zeros_like
    choices = [
        replace(found, codes=codes, residuals=residuals)
        for codes in (none(found.codes), found.codes)
        for residuals in (none(found.residuals), found.residuals)
    ]
    if hidden.sum() < FEWEST_HIDDEN:
        return _knowing_errors_ahead(replace(model, memory=choices[-1]), rows)
    shown = np.where(hidden, np.nan, rows)
    fills = [fill_in_time(replace(model, memory=choice), shown).rows for choice in choices]
    losses = [float(np.sum((((filled - rows) / model.unit)[hidden]) ** 2)) for filled in fills]
    best = int(np.argmin(losses))
    best = best if losses[best] < WORTH * losses[0] else 0
    chosen = _trusting(model, choices[best], fills[best], shown, rows, hidden)
    plain = _errors_in_time(model, choices[0], shown, rows, hidden)
    used = plain
    if best > 0 or chosen.trust.any():
        used = _errors_in_time(model, chosen, shown, rows, hidden)
    # The dictionary has learned from what is hidden here, so that these errors are a little small:
    # by as much as those without a memory are smaller than those of entries that it never saw.
    honest = quantile(model.histogram, CENTRAL) / quantile(plain, CENTRAL)
    histogram = rescaled(used, 1.0 / max(honest, 1.0))
    memory = replace(chosen, histogram=histogram)
    return _knowing_errors_ahead(replace(model, memory=memory), rows)


def up_to_date(model: Model, X: Any) -> Model:
    """The model with the last of some more rows in mind; what codes and residuals keep stays."""
    memory = model.memory
    assert memory is not None
    last = _memory(settled(model), _in_units(model, dense_with_holes(X[-RECENT:])))
    kept = replace(
        memory, code=last.code, covariance=last.covariance, residual=last.residual, age=last.age,
        n_seen=model.n_seen,
    )  # fmt: skip
    return replace(model, memory=kept)


def _trusting(
    model: Model, memory: Memory, filled: NDArray[Any], shown: NDArray[Any], truth: NDArray[Any],
    hidden: NDArray[np.bool_],
) -> Memory:  # fmt: skip
    """The memory that knows how far to trust each feature's own series."""
    own = alone(model, _in_units(model, shown), memory.series).values * model.noise + model.center
    own, shared = ((made - truth) / model.unit for made in (own, filled))
    return replace(memory, trust=trust_in(own, shared, hidden, np.isnan(shown)))


def _errors_in_time(
    model: Model, memory: Memory, shown: NDArray[Any], truth: NDArray[Any],
    hidden: NDArray[np.bool_],
) -> Vector:  # fmt: skip
    """Histogram of errors of hidden entries, in units of their predicted deviation."""
    filled, deviations = fill_in_time(replace(model, memory=memory), shown, deviations=True)
    assert deviations is not None
    sizes = np.abs(filled - truth)[hidden] / deviations[hidden]
    return binned(sizes, np.ones(len(sizes)))


def fill_in_time(model: Model, X: Any, *, deviations: bool = False) -> Filled:
    """Rows in time with their missing entries filled from each other as well."""
    memory = model.memory
    assert memory is not None
    model = settled(model)
    rows = dense_with_holes(X).astype(model.C.dtype)
    W = _in_units(model, rows)
    missing = np.isnan(rows)
    codes, variances = _codes_in_time(model, rows, missing if deviations else None)
    E = _residuals(model, W, codes)
    means, remains = np.zeros_like(E), np.ones_like(E)
    bridge(E, memory.residuals, means, remains)
    made = codes @ model.C.T.astype(np.float64) + means
    size = np.sqrt(variances - 1.0 + remains) if deviations else np.zeros(1)
    if memory.trust.any():
        own = alone(model, W, memory.series)
        share = memory.trust[distance_classes(missing), np.arange(W.shape[1])]
        made += share * (own.values - made)
        size = size + share * (own.deviations - size)
    np.copyto(rows, made * model.noise + model.center, where=missing)
    if not deviations:
        return Filled(rows, None)
    return Filled(rows, np.where(missing, size, 0.0) * model.spread)


def forecast(model: Model, steps: int) -> tuple[Matrix, Matrix]:
    """Means and deviations (steps, n_features) of the rows that follow the last one."""
    memory = model.memory
    assert memory is not None
    model = settled(model)
    ahead = [_ahead(model, memory, step) for step in range(1, steps + 1)]
    means, deviations = (np.array(each).reshape(steps, -1) for each in zip(*ahead, strict=True))
    return means * model.noise + model.center, deviations * model.spread


def _ahead(model: Model, memory: Memory, step: int) -> tuple[Vector, Vector]:
    """Mean and deviation of each feature so many rows after the one that is remembered."""
    C = model.C.astype(np.float64)
    kept = memory.codes**step
    x = np.append(kept * memory.code, model.one)
    covariance = np.outer(kept, kept) * memory.covariance
    covariance += np.diag(1.0 - kept**2)
    variance, every = np.empty(len(C)), np.arange(len(C), dtype=np.int32)
    spread(C, covariance, model.Sigma, x, model.rarity, every, variance)
    left = memory.residuals ** (memory.age + step)
    return C @ x + left * memory.residual, np.sqrt(variance - left**2)


def _knowing_errors_ahead(model: Model, rows: NDArray[Any]) -> Model:
    """The model that knows how far each of the last rows was from what the one before made of it.

    What a row hides from itself says nothing of that.
    """
    memory = model.memory
    assert memory is not None
    W = _in_units(model, rows[-AHEAD - 1 :])
    given = believed(model, W * model.noise + model.center)
    codes = codes_of(model, given, limit=outlier_limit(model), keep_covariances=True)
    E = _residuals(model, W, codes.X)
    sizes = [np.empty(0)]
    for t in range(len(W) - 1):
        then = replace(
            memory, code=codes.X[t, :-1], residual=np.nan_to_num(E[t]),
            covariance=codes.covariances[min(t, len(codes.covariances) - 1)],
            age=np.where(np.isnan(E[t]), LONG_AGO, 0),
        )  # fmt: skip
        mean, deviation = _ahead(model, then, 1)
        size = np.abs(W[t + 1] - mean) / deviation
        sizes.append(size[~np.isnan(size)])
    found = np.concatenate(sizes)
    return replace(model, memory=replace(memory, ahead=binned(found, np.ones(len(found)))))


def _in_units(model: Model, rows: NDArray[Any]) -> Matrix:
    return (rows.astype(np.float64) - model.center) / model.noise


def _residuals(model: Model, W: Matrix, X: Matrix) -> Matrix:
    """What codes leave of rows in units of the noise; no neighbour should hear of more."""
    return np.clip(W - X @ model.C.T.astype(np.float64), -REACH, REACH)


def _memory(model: Model, W: Matrix) -> Memory:
    """Coefficients of both memories, and the last row's code and residuals."""
    rows = believed(model, W * model.noise + model.center)
    codes = codes_of(model, rows, limit=outlier_limit(model), keep_covariances=True)
    E = _residuals(model, W, codes.X)
    r = model.n_components
    known = np.flatnonzero(rows.shares > 0.0)
    along = _coefficients(codes.X[:, :r], 0.0)
    own = _coefficients(E, PAIRS_BEFORE)
    seen = ~np.isnan(E)
    last = len(E) - 1 - np.argmax(seen[::-1], axis=0)
    age = np.where(seen.any(axis=0), len(E) - 1 - last, 0)
    residual = np.where(seen.any(axis=0), E[last, np.arange(E.shape[1])], 0.0)
    at = int(known[-1]) if len(known) else len(E) - 1
    covariance = codes.covariances[min(at, len(codes.covariances) - 1)]
    return Memory(
        along, own, codes.X[at, :r].copy(), covariance.copy(), np.nan_to_num(residual), age,
        np.zeros(N_BINS), np.zeros(N_BINS),
        series=_coefficients(away_from_mean(model, W)[0], PAIRS_OF_A_SERIES),
        trust=np.zeros((len(DISTANCES), len(model.C))), n_seen=model.n_seen,
    )  # fmt: skip


def _coefficients(E: Matrix, pairs_before: float) -> Vector:
    """What each column keeps from one row to the next."""
    before, now = E[:-1], E[1:]
    both = ~np.isnan(before * now)
    products = np.sum(before * now, axis=0, where=both)
    squares = np.sum(0.5 * (before**2 + now**2), axis=0, where=both)
    typical = float(np.nanmean(E**2)) if np.isfinite(E).any() else 1.0
    kept = products / np.maximum(squares + pairs_before * typical, 1e-300)
    return np.clip(kept, 0.0, MOST_MEMORY)


def _moved(missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What the rows miss, a third of the sequence later, where they do not miss it now."""
    return np.roll(missing, len(missing) // 3, axis=0) & ~missing


def _codes_in_time(
    model: Model, rows: NDArray[Any], missing: NDArray[np.bool_] | None
) -> tuple[Matrix, Matrix]:
    """Codes (n, r + 1) of rows, and the variances of their missing entries beside the noise's."""
    memory = model.memory
    assert memory is not None
    n, r, m = len(rows), model.n_components, len(model.C)
    given = believed(model, rows)
    if missing is None and not memory.codes.any():
        return codes_of(model, given, limit=outlier_limit(model)).X, np.empty((0, m))
    entries = given.entries
    C, phi = model.C.astype(np.float64, copy=False), memory.codes
    starts = list(range(0, n, PART))
    carries = [np.zeros((r, r + 1))]
    inverses, eta = np.empty((PART, r, r)), np.empty((PART, r))

    def eliminated(first: int, carry: Matrix) -> int:
        last = min(first + PART, n)
        eliminate(
            C, model.G, model.Sigma, model.rarity, model.one, phi, *entries, first, last, n,
            carry, inverses, eta,
        )  # fmt: skip
        return last

    for first in starts:
        carry = carries[-1].copy()
        eliminated(first, carry)
        carries.append(carry)
    X, variances = np.empty((n, r + 1)), np.ones((n if missing is not None else 0, m))
    X[:, r] = model.one
    x_next, covariance_next = np.zeros(r), np.zeros((r, r))
    covariances = np.empty((1 if missing is None else PART, r, r))
    for first, carry in reversed(list(zip(starts, carries[:-1], strict=True))):
        last = eliminated(first, carry.copy())
        q = last - first
        substitute(
            inverses[:q], eta[:q], phi, last < n, x_next, covariance_next, X[first:last],
            covariances,
        )  # fmt: skip
        if missing is None:
            continue
        asked = missing[first:last]
        variances[first:last][asked] = variances_of(
            model, X[first:last], covariances[:q], *pattern_of(asked)
        )
    return X, variances
