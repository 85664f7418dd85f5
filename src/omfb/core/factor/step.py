"""A step of the model: rows in batches, a revision after each period.

A batch's codes come from the dictionary at its start. Then the dictionary learns from its rows one
after the other, by recursive least squares (`kernels/recursion.py`). Where all rows are complete
and all features have been observed alike that is, for codes X̃ with weights w,

    S' = keep S + X̃ᵀ w X̃,   C' = C + (Y − X̃ Cᵀ)ᵀ w X̃ S'⁻¹

two products with the rows, as in the paper's mini-batches. How a stream is cut into calls does not
matter: amid a batch the model keeps the dictionary that makes its codes.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import canonical
from ..info import Info
from ..linalg.recursion import gains, learn_features, steps
from ..linalg.rows import check_finite_step, gram
from ..linalg.threads import in_threads
from ..linalg.workspace import Room
from .constant_features import freedom_of, still_constant, with_varied
from .e_step import ROWS, Codes, codes_of
from .holdout import hide
from .holdout_scores import judge_hidden, looking, outlier_limit
from .integer_features import with_fractions
from .m_step import revised
from .new_features import set_aside
from .schedule import LONGEST_BATCH, batch_rows
from .state import LEAST_SHARE, Matrix, Model, Vector, inverse, rarity_of
from .whiten import Whitened, by_feature
from .winsorize import believed

# For the rows of a batch in the model's units, their codes, these weighted, and their gains.
ROOM, CODES, WEIGHTED, GAINS = Room(), Room(), Room(), Room()
# What comes after so many outliers in a row is a change of level, and believed.
BELIEVED = 5
# Rows whose steps are made together: their number grows with its square.
STEPS = 32
# Entries that are squared at a time.
SQUARES = 1 << 13
# Observed shares from which on it is faster to go through all entries than through a list of them.
MOSTLY = 0.3


def learn(model: Model, X: Any, *, reuse: bool = False) -> tuple[Model, NDArray[Any], Info]:
    """Learn from rows: return the next model, the rows' codes, and errors of what was hidden.

    Parameters
    ----------
    model : Model
        Where to start from; unchanged unless `reuse`.
    X : ndarray or scipy.sparse of shape (n_samples, n_features)
    reuse : bool, default=False
        Allow writing into arrays of `model`, which is lost then.
    """
    X = canonical(X) if scipy.sparse.issparse(X) else X
    codes = np.empty((X.shape[0], model.n_components), model.C.dtype)
    given, judged = model.C, model.judged[0]
    room = None
    if not scipy.sparse.issparse(X):
        room = ROOM.array((min(len(X), LONGEST_BATCH), X.shape[1]), model.C.dtype)
    at = 0
    while at < len(codes):
        here = slice(at, at + min(model.batch_left, model.period_left))
        model, X_codes = _learn_rows(model, X[here], reuse or model.C is not given, room)
        codes[here] = X_codes[:, :-1]
        at = here.stop
        if model.batch_left == 0 or model.period_left == 0:
            model = next_batch(model)
    return model, codes, Info(*(model.judged[0] - judged).tolist())


def mostly_observed(row: Any) -> bool:
    """Whether a row is learned from by products, which make a new dictionary."""
    if scipy.sparse.issparse(row):
        return False
    return np.count_nonzero(np.isnan(row)) < (1.0 - MOSTLY) * row.size


def next_batch(model: Model) -> Model:
    """The model at the start of a batch, and of a period if one has ended."""
    gappy = model.gappy or model.n_entries < model.n_seen * len(model.C)
    left = batch_rows(model.n_seen, gappy, model.config)
    model = replace(
        looking(model), gappy=gappy, batch_left=left, rarity=rarity_of(model.counts),
        constant=still_constant(model), varied=np.zeros_like(model.varied),
    )  # fmt: skip
    if model.period_left == 0:
        return revised(model)
    return replace(model, C_codes=None, G=gram(model.C))


class _Learned(NamedTuple):
    """What rows change of a model."""

    C: NDArray[Any]
    S: Matrix
    counts: Vector
    errors: Matrix


def _learn_rows(
    model: Model, X: Any, reuse: bool, room: NDArray[Any] | None
) -> tuple[Model, Matrix]:
    """Learn from rows of one batch; also return their codes, which the next batch overwrites."""
    forgotten, hidden = hide(model, X)
    model = judge_hidden(model, hidden)
    model, known = set_aside(model, X)
    rows, q = believed(model, known, forgotten, room), X.shape[0]
    model, constant = with_varied(model, known)
    model = with_fractions(model, X)
    n_entries = round(float(rows.shares.sum()) * len(model.C))
    keep = np.where(rows.shares > 0.0, model.keep(q), 1.0)
    after = _left_after(keep)
    weights = after * rows.shares
    codes = codes_of(model, rows, weights, limit=outlier_limit(model), room=CODES)
    if codes.dropped.any():
        model, rows = _without_outliers(model, rows, codes)
    elif model.runs.any():  # whatever was observed fits
        runs = model.runs.copy()
        runs[rows.entries.features] = 0
        model = replace(model, runs=runs)
    leverage = _leverage(model, codes)
    freedom = freedom_of(rows, codes, constant)
    learned = _updated(model, rows, codes, keep, after, leverage, reuse)
    check_finite_step(codes.X, learned.S)
    faded = float(keep.prod())
    return replace(
        model,
        C=learned.C,
        C_codes=model.coding,
        S=learned.S,
        counts=learned.counts,
        errors=learned.errors,
        unsure=faded * model.unsure + codes.unsure,
        weight=faded * model.weight + float(weights.sum()),
        held=faded * model.held,
        kept=faded * model.kept,
        energy=faded * model.energy + float((after * codes.residual / (1.0 + leverage)).sum()),
        freedom=faded * model.freedom + float((after * freedom).sum()),
        n_rows=faded * model.n_rows + float((after * rows.shares).sum()),
        n_seen=model.n_seen + q,
        n_entries=model.n_entries + n_entries,
        batch_left=model.batch_left - q,
        period_left=model.period_left - q,
    ), codes.X


def _left_after(keep: Vector) -> Vector:
    """What the rows after it leave of each row."""
    after = np.ones(len(keep))
    after[:-1] = keep[:0:-1].cumprod()[::-1]
    return after


def _leverage(model: Model, codes: Codes) -> Vector:
    """x̃ᵀ Σ x̃ of each row: how unsure the dictionary is where it points to."""
    X, leverage = codes.X, np.empty(len(codes.X))
    for start in range(0, len(X), ROWS):
        x = X[start : start + ROWS]
        np.einsum("ij,ij->i", x @ model.Sigma, x, out=leverage[start : start + ROWS])
    return np.maximum(leverage, 0.0, out=leverage)


def _updated(
    model: Model, rows: Whitened, codes: Codes, keep: Vector, after: Vector, leverage: Vector,
    reuse: bool,
) -> _Learned:  # fmt: skip
    """What some rows with these codes change."""
    alike = model.counts.max() - model.counts.min() <= 1e-9 * model.counts.max()
    if rows.complete and alike:
        return _by_products(model, rows.values, codes, keep, after, leverage)
    return _by_recursion(model, rows, codes, keep, leverage, reuse)


def _by_products(
    model: Model, Y: Any, codes: Codes, keep: Vector, after: Vector, leverage: Vector
) -> _Learned:
    """Complete rows, and features that have all been observed alike."""
    X, C, dtype = codes.X, model.C, model.C.dtype
    faded = float(keep.prod())
    weighted = X if after[0] == 1.0 else _weighted(X, after)
    gathered = weighted.T @ X
    S = faded * model.S + gathered
    back = inverse(S)
    B = np.matmul(weighted, back, out=GAINS.array(X.shape, np.float64)).astype(dtype, copy=False)
    if 2 * len(X) < len(S):  # so few rows are cheaper by what they leave unexplained
        new = _product(Y - X.astype(dtype) @ C.T, B)
        new += C
    else:
        new = C @ (np.eye(len(S)) - gathered @ back).astype(dtype) + Y.T @ B
    errors = model.errors
    if model.config.noise == "diagonal":
        errors = faded * errors
        errors[0] += _residual_squares(model.coding, Y, X, after / (1.0 + leverage))
        errors[1] += after.sum()
    return _Learned(new, S, faded * model.counts + after.sum(), errors)


def _product(E: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """EᵀB. Of a column and a row, `@` makes a loop that is three times slower."""
    return np.einsum("ti,tj->ij", E, B) if len(E) == 1 else E.T @ B


def _residual_squares(C: NDArray[Any], Y: NDArray[Any], X: Matrix, weights: Vector) -> Vector:
    """Σ_t w_t (y_t − C x̃_t)² of each feature; of many rows without the residuals."""
    if 2 * len(X) < C.shape[1]:
        residuals = (Y - X.astype(C.dtype) @ C.T).astype(np.float64, copy=False)
        squares: Vector = weights @ residuals**2
        return squares
    weighted = _weighted(X, weights)
    product = Y.T @ weighted.astype(C.dtype, copy=False)
    fitted = C @ (weighted.T @ X).astype(C.dtype)
    energy = _weighted_squares(Y, weights)
    energy += np.sum((fitted - 2.0 * product).astype(np.float64) * C, axis=1)
    return np.maximum(energy, 0.0)


def _weighted(X: Matrix, weights: Vector) -> Matrix:
    """w_t x̃_t of each row, until this is asked for again."""
    return np.multiply(X, weights[:, None], out=WEIGHTED.array(X.shape, X.dtype))


def _weighted_squares(Y: NDArray[Any], weights: Vector) -> Vector:
    """Σ_t w_t y_t² of each feature, of few rows at a time: in the cache, and no fresh memory."""
    total = np.zeros(Y.shape[1])
    rows = max(1, SQUARES // Y.shape[1])
    for start in range(0, len(Y), rows):
        part = Y[start : start + rows].astype(np.float64)
        part *= part
        total += weights[start : start + rows] @ part
    return total


def _by_recursion(
    model: Model, rows: Whitened, codes: Codes, keep: Vector, leverage: Vector, reuse: bool
) -> _Learned:
    """Any rows, one after the other."""
    X, m, before = codes.X, len(model.C), model.coding
    S = model.S.copy()
    S_inverse = inverse(S)
    Z, h = np.empty_like(X), np.empty(len(X))
    gains(S, S_inverse, X, rows.shares, keep, Z, h)
    mean_counts = _mean_counts(model.n_rows, keep, rows.shares)
    counts, errors = model.counts.copy(), model.errors.copy()
    if rows.values is not None and rows.shares.mean() > MOSTLY:
        C = _by_steps(model, rows, X, Z, h, leverage, keep, mean_counts, counts, errors)
        return _Learned(C, S, counts, errors)
    mine = reuse and before is not model.C and model.C.dtype == np.float64
    C = model.C if mine else model.C.astype(np.float64)
    columns = by_feature(rows.entries, m)
    before = before.astype(np.float64, copy=False)
    in_threads(
        lambda first, last: learn_features(
            C, before, *columns, first, last, X, Z, h, leverage, keep, mean_counts, counts, errors,
            LEAST_SHARE,
        ),
        m,
        4 * len(columns.values) * X.shape[1],
    )  # fmt: skip
    return _Learned(C.astype(model.C.dtype, copy=False), S, counts, errors)


def _by_steps(
    model: Model, rows: Whitened, X: Matrix, Z: Matrix, h: Vector, leverage: Vector, keep: Vector,
    mean_counts: Vector, counts: Vector, errors: Matrix,
) -> NDArray[Any]:  # fmt: skip
    """The dictionary after rows that are mostly observed; counts and errors change in place."""
    C, before, Y = model.C, model.coding, rows.values
    assert Y is not None
    m, dtype = len(C), C.dtype
    for start in range(0, len(X), STEPS):
        part = slice(start, start + STEPS)
        x, z = X[part].astype(dtype), Z[part].astype(dtype)
        E_codes = (Y[part] - x @ before.T).astype(np.float64, copy=False)
        E = E_codes.copy() if C is before else (Y[part] - x @ C.T).astype(np.float64, copy=False)
        seen = np.ones(E.shape, bool) if rows.seen is None else rows.seen[part]
        args = (
            E, E_codes, seen, Z[part] @ X[part].T, h[part], leverage[part], keep[part],
            mean_counts[part], counts, errors, LEAST_SHARE,
        )  # fmt: skip
        in_threads(partial(steps, *args), m, len(x) * E.size)
        change = _product(E.astype(dtype, copy=False), z)
        C = np.add(C, change, out=change)
    return C


def _mean_counts(n_rows: float, keep: Vector, shares: Vector) -> Vector:
    """The average feature's count as each row finds it, faded by that row."""
    means = np.empty(len(keep))
    for t, (kept, share) in enumerate(zip(keep.tolist(), shares.tolist(), strict=True)):
        n_rows *= kept
        means[t] = max(n_rows, 1e-9)
        n_rows += share
    return means


def _without_outliers(model: Model, rows: Whitened, codes: Codes) -> tuple[Model, Whitened]:
    """The rows without entries that are outliers, which are counted.

    A run of outliers of one feature is a change of its level: its last entries are believed.
    """
    dropped = codes.dropped.copy()
    features = rows.entries.features
    runs, outliers = model.runs.copy(), model.outliers.copy()
    runs[features[~dropped]] = 0  # at least one entry fits: whatever began before it has ended
    for feature in np.unique(features[dropped]).tolist():
        run = int(model.runs[feature])
        for at in np.flatnonzero(features == feature).tolist():
            run = run + 1 if dropped[at] else 0
            if run > BELIEVED:
                dropped[at] = False
            outliers[feature] += dropped[at]
        runs[feature] = run
    return replace(model, outliers=outliers, runs=runs), rows.without(dropped)
