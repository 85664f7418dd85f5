"""Codes and filled values of rows, and how sure they are; nothing is learned."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import check_finite, dense_with_holes
from ..info import Info
from ..linalg.rows import gram
from ..linalg.threads import products_in_one_thread
from ..scoring import Predict, judge_hidden_parts
from .active import slim
from .e_step import codes_of, complete_system, variances_of
from .holdout_scores import outlier_limit
from .state import Matrix, Model, Vector, rarity_of
from .whiten import Whitened, in_safe_range, pattern_of
from .winsorize import believed

# Rows at a time: few enough for their covariances (rows, r, r), many enough for products.
ROWS = 256
# Of complete rows more, for larger products.
PRODUCT_ROWS = 4096
# Products of rows that are larger are refused elsewhere.
LARGEST = 1e150
# Sizes of means beside the noise at which complete rows keep enough digits.
MOST_OFFSET = {"float64": 1e5, "float32": 1e2}


class Filled(NamedTuple):
    """Rows without missing entries, and the predictive deviation of each entry: 0 if observed."""

    rows: NDArray[Any]
    deviations: NDArray[np.float64] | None


def settled(model: Model) -> Model:
    """The model as its rows so far have made it: codes by the dictionary as it is now."""
    if model.C_codes is None:
        return model
    return replace(model, C_codes=None, G=gram(model.C), rarity=rarity_of(model.counts))


def encode(model: Model, X: Any) -> Matrix:
    """Codes (n_samples, n_components) of rows."""
    fewer, which = slim(settled(model))
    codes = _encoded(fewer, X)
    if fewer.n_components == model.n_components:
        return codes
    all_codes = np.zeros((len(codes), model.n_components))
    all_codes[:, which[:-1]] = codes
    return all_codes


def _encoded(model: Model, X: Any) -> Matrix:
    """Codes of rows by all components that a model has."""
    codes = np.empty((X.shape[0], model.n_components))
    known = _codes_of_complete(model, X, codes)
    left = np.flatnonzero(~known)
    with products_in_one_thread(len(left) > 1):
        for start in range(0, len(left), ROWS):
            which = left[start : start + ROWS]
            rows = believed(model, X[which])
            codes[which] = codes_of(model, rows, limit=outlier_limit(model)).X[:, :-1]
    return codes


def _codes_of_complete(model: Model, X: Any, codes: Matrix) -> NDArray[np.bool_]:
    """Fill in the codes of complete rows by one product; tells which rows these are.

    The rows themselves are multiplied, not what is left of them without their mean: where that is
    a small part of them, too many digits would be lost, and it is left to the usual way.
    """
    none = np.zeros(X.shape[0], bool)
    offset = model.center / model.noise
    if scipy.sparse.issparse(X) or model.drops or X.dtype != model.C.dtype:
        return none
    if np.abs(offset).max() > MOST_OFFSET[str(X.dtype)] or not in_safe_range(model):
        return none
    r, C = model.n_components, model.C
    scaled = C[:, :r] / model.noise.astype(C.dtype)[:, None]
    system, pulled = complete_system(model)
    pulled = pulled + offset @ C[:, :r].astype(np.float64)
    known = none
    for start in range(0, len(X), PRODUCT_ROWS):
        here = slice(start, start + PRODUCT_ROWS)
        with np.errstate(over="ignore", invalid="ignore"):
            P = (X[here] @ scaled).astype(np.float64, copy=False)
            codes[here] = (P - pulled) @ system
        known[here] = np.abs(P).max(axis=1) < LARGEST  # neither NaN nor infinite, nor too large
    return known


def decode(model: Model, codes: Matrix) -> NDArray[Any]:
    """Rows in the data's units from their codes; infinite where they overflow their type."""
    C = model.C
    with np.errstate(over="ignore", invalid="ignore"):
        rows = codes.astype(C.dtype, copy=False) @ C[:, :-1].T
        rows = (rows + model.one * C[:, -1]) * model.noise + model.center
        return rows.astype(C.dtype, copy=False)


def fill(model: Model, X: Any, *, deviations: bool = False) -> Filled:
    """The rows of X with their missing entries filled; what is observed stays as it is."""
    filled = dense_with_holes(X).astype(model.C.dtype)
    model = slim(settled(model))[0] if np.isnan(filled).any() else model
    spreads = np.zeros(filled.shape) if deviations else None
    for start in range(0, len(filled), ROWS):
        here = slice(start, start + ROWS)
        missing = np.isnan(filled[here])
        if not missing.any():
            check_finite(filled[here], squares=False)
            continue
        with products_in_one_thread(len(missing) > 1):
            rows = believed(model, X[here])
            codes = codes_of(model, rows, limit=outlier_limit(model), keep_covariances=deviations)
            np.copyto(filled[here], decode(model, codes.X[:, :-1]), where=missing)
            if spreads is not None:
                starts, which = pattern_of(missing)
                variances = variances_of(model, codes.X, codes.covariances, starts, which)
                spreads[here][missing] = np.sqrt(variances) * model.spread[which]
    return Filled(filled, spreads)


def draw(model: Model, X: Any, n: int, rng: np.random.Generator) -> Iterator[NDArray[Any]]:
    """n times the rows of X with missing entries drawn jointly from what the model believes.

    For each draw one dictionary, then for each row a code given that row, then the noise.
    """
    model, _ = slim(settled(model))
    r, m = model.n_components, len(model.C)
    rows = dense_with_holes(X).astype(model.C.dtype)
    roots = np.linalg.cholesky(model.Sigma)
    deviations = np.sqrt(model.rarity)[:, None]
    for _ in range(n):
        C = model.C + deviations * (rng.standard_normal((m, r + 1)) @ roots.T)
        drawn = rows.copy()
        for here, part in _parts(model, X):
            missing = np.isnan(rows[here])
            if not missing.any():
                continue
            codes = codes_of(model, part, limit=outlier_limit(model), keep_covariances=True)
            x = codes.X.copy()
            x[:, :r] += _normal(codes.covariances, len(x), rng)
            values = x @ C.T + rng.standard_normal((len(x), m))
            np.copyto(drawn[here], values * model.spread + model.center, where=missing)
        yield drawn


def _normal(covariances: Matrix, n: int, rng: np.random.Generator) -> Matrix:
    roots = np.linalg.cholesky(covariances)
    drawn = rng.standard_normal((n, covariances.shape[1]))
    return np.einsum("tij,tj->ti", np.broadcast_to(roots, (n, *roots.shape[1:])), drawn)


def log_likelihood(model: Model, X: Any) -> Vector:
    """Log-likelihood of what is observed of each row, given the dictionary.

    y ~ N(μ, C Cᵀ + I) in units of the noise: by Woodbury, with A = C_ΩᵀC_Ω + I, the quadratic form
    is ‖y − C x‖² + ‖x‖² at x = A⁻¹C_Ωᵀy, and the determinant is that of A.
    """
    model, _ = slim(settled(model))
    r = model.n_components
    exact = replace(model, Sigma=np.zeros_like(model.Sigma))
    scores = np.empty(X.shape[0])
    log_noise = np.log(model.noise)
    for here, rows in _parts(exact, X):
        codes = codes_of(exact, rows, keep_covariances=True)
        x = codes.X[:, :r]
        signs, inverse_logs = np.linalg.slogdet(codes.covariances)
        del signs
        entries = rows.entries
        scale = np.add.reduceat(
            np.append(log_noise[entries.features], 0.0), entries.starts[:-1]
        ) * (np.diff(entries.starts) > 0)
        quadratic = codes.residual + np.sum(x**2, axis=1)
        count = np.diff(entries.starts)
        scores[here] = -0.5 * (quadratic - inverse_logs + count * np.log(2.0 * np.pi)) - scale
    return scores


def judge(model: Model, X: Any) -> Info:
    """Squared errors of entries that were hidden from their row's code, beside those of the mean.

    In units of the features.
    """
    model, _ = slim(settled(model))
    mean = model.center + model.one * model.noise * model.C[:, -1].astype(np.float64)

    def predicting(visible: NDArray[np.bool_]) -> Predict:
        hidden = ~visible
        C = model.C[hidden].astype(np.float64)
        codes_of_visible = _coding(model, visible)

        def predict(rows: NDArray[Any]) -> NDArray[Any]:
            made = codes_of_visible(rows) @ C[:, :-1].T + model.one * C[:, -1]
            made *= model.noise[hidden]
            made += model.center[hidden]
            return made

        return predict

    return judge_hidden_parts(X, mean, model.unit, predicting)


def _coding(model: Model, visible: NDArray[np.bool_]) -> Callable[[NDArray[Any]], Matrix]:
    """What makes codes of rows from some of the features."""
    if model.drops:  # what is hidden would be taken for outliers
        return lambda rows: encode(model, np.where(visible, rows, np.nan).astype(rows.dtype))
    # With zeros for the others in C, they make no difference, and no row has to be copied.
    C = model.C * visible[:, None]
    shown = replace(model, C=C, G=gram(C), rarity=model.rarity * visible)
    return lambda rows: encode(shown, rows)


def _parts(model: Model, X: Any) -> Iterator[tuple[slice, Whitened]]:
    """Some rows at a time, in units of the noise."""
    for start in range(0, X.shape[0], ROWS):
        here = slice(start, start + ROWS)
        yield here, believed(model, X[here])


def errors_of(model: Model) -> Vector:
    """The histogram of the errors of what the model fills, in time if it fills in time."""
    memory = model.memory
    return model.histogram if memory is None or not memory.histogram.any() else memory.histogram
