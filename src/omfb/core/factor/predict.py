"""Predictions: codes, filled values with their deviations, samples and likelihoods."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import check_finite, dense_with_holes
from ..info import Info
from ..linalg.rows import gram
from ..linalg.threads import products_in_one_thread
from ..scoring import Predict, score_held_out_features
from ..weighted import WeightedRows, values_of
from .e_step import complete_system, encode_rows, predictive_variances
from .rank import drop_empty
from .robust import clip_rows, outlier_limit
from .state import State, evolve, settled
from .stats import Matrix, Vector
from .step import end_batch
from .whiten import Whitened, in_safe_range, pattern_of

# Rows at a time: few enough for their covariances (rows, r, r), many enough for products.
ROWS = 256
# Of complete rows more, for larger products.
PRODUCT_ROWS = 4096
# Entries from which on Student's law is as good as normal.
MANY_ENTRIES = 200.0
# Products of rows that are larger are refused elsewhere.
LARGEST = 1e150
# Sizes of means beside the noise at which complete rows keep enough digits.
MOST_OFFSET = {"float64": 1e5, "float32": 1e2}


class Moments(NamedTuple):
    """Rows without missing entries, and predictive standard deviations: 0 where observed."""

    mean: NDArray[Any]
    std: NDArray[np.float64] | None


def encode(state: State, X: Any) -> Matrix:
    """Codes (n_samples, n_components) of rows."""
    fewer, which = drop_empty(end_batch(state))
    codes = _encoded(fewer, X)
    if fewer.n_components == state.n_components:
        return codes
    all_codes = np.zeros((len(codes), state.n_components))
    all_codes[:, which[:-1]] = codes
    return all_codes


def _encoded(state: State, X: Any) -> Matrix:
    """Codes of rows by all components of a state."""
    codes = np.empty((X.shape[0], state.n_components))
    known = _codes_of_complete(state, X, codes)
    left = np.flatnonzero(~known)
    with products_in_one_thread(len(left) > 1):
        for start in range(0, len(left), ROWS):
            which = left[start : start + ROWS]
            rows = clip_rows(state, X[which])
            codes[which] = encode_rows(state, rows, limit=outlier_limit(state)).X[:, :-1]
    return codes


def _codes_of_complete(state: State, X: Any, codes: Matrix) -> NDArray[np.bool_]:
    """Write the codes of complete rows by one product; return which rows these are.

    The rows themselves are multiplied, not what is left of them without their mean: where that is
    a small part of them, too many digits would be lost, and it is left to the usual way.
    """
    none = np.zeros(X.shape[0], bool)
    offset = state.params.center / state.params.noise_std
    if isinstance(X, WeightedRows) or scipy.sparse.issparse(X):
        return none
    if state.outliers.drop or X.dtype != state.params.C.dtype:
        return none
    if np.abs(offset).max() > MOST_OFFSET[str(X.dtype)] or not in_safe_range(state):
        return none
    r, C = state.n_components, state.params.C
    scaled = C[:, :r] / state.params.noise_std.astype(C.dtype)[:, None]
    system, pulled = complete_system(state)
    pulled = pulled + offset @ C[:, :r].astype(np.float64)
    known = none
    for start in range(0, len(X), PRODUCT_ROWS):
        here = slice(start, start + PRODUCT_ROWS)
        with np.errstate(over="ignore", invalid="ignore"):
            P = (X[here] @ scaled).astype(np.float64, copy=False)
            codes[here] = (P - pulled) @ system
        known[here] = np.abs(P).max(axis=1) < LARGEST  # neither NaN nor infinite, nor too large
    return known


def decode(state: State, codes: Matrix) -> NDArray[Any]:
    """Rows in the data's units from their codes; infinite where they overflow their type."""
    C = state.params.C
    with np.errstate(over="ignore", invalid="ignore"):
        rows = codes.astype(C.dtype, copy=False) @ C[:, :-1].T
        rows = (rows + state.one * C[:, -1]) * state.params.noise_std + state.params.center
        return rows.astype(C.dtype, copy=False)


def predict(state: State, X: Any, *, std: bool = True) -> Moments:
    """The rows of X with their missing entries predicted, each row by itself.

    Observed entries stay as they are. The deviations are those of the model; `conformal` quantiles
    of held-out errors calibrate them.
    """
    filled = dense_with_holes(values_of(X)).astype(state.params.C.dtype)
    state = drop_empty(end_batch(state))[0] if np.isnan(filled).any() else state
    spreads = np.zeros(filled.shape) if std else None
    for start in range(0, len(filled), ROWS):
        here = slice(start, start + ROWS)
        missing = np.isnan(filled[here])
        if not missing.any():
            check_finite(filled[here], squares=False)
            continue
        with products_in_one_thread(len(missing) > 1):
            rows = clip_rows(state, X[here])
            limit = outlier_limit(state)
            codes = encode_rows(state, rows, limit=limit, keep_covariances=std)
            np.copyto(filled[here], decode(state, codes.X[:, :-1]), where=missing)
            if spreads is not None:
                starts, which = pattern_of(missing)
                variances = predictive_variances(state, codes.X, codes.covariances, starts, which)
                spreads[here][missing] = np.sqrt(variances) * state.spread[which]
    return Moments(filled, spreads)


def sample(state: State, X: Any, n: int, rng: np.random.Generator) -> Iterator[NDArray[Any]]:
    """n times the rows of X with missing entries drawn jointly from their posterior.

    For each draw one dictionary, then for each row a code given that row, then the noise.
    """
    state, _ = drop_empty(end_batch(state))
    r, m = state.n_components, len(state.params.C)
    rows = dense_with_holes(X).astype(state.params.C.dtype)
    roots = np.linalg.cholesky(state.batch.Sigma)
    deviations = np.sqrt(state.batch.inverse_coverage)[:, None]
    for _ in range(n):
        C = state.params.C + deviations * (rng.standard_normal((m, r + 1)) @ roots.T)
        drawn = rows.copy()
        for here, part in parts(state, X):
            missing = np.isnan(rows[here])
            if not missing.any():
                continue
            codes = encode_rows(state, part, limit=outlier_limit(state), keep_covariances=True)
            x = codes.X.copy()
            x[:, :r] += _normal(codes.covariances, len(x), rng)
            values = x @ C.T + rng.standard_normal((len(x), m))
            np.copyto(drawn[here], values * state.spread + state.params.center, where=missing)
        yield drawn


def _normal(covariances: Matrix, n: int, rng: np.random.Generator) -> Matrix:
    roots = np.linalg.cholesky(covariances)
    drawn = rng.standard_normal((n, covariances.shape[1]))
    return np.einsum("tij,tj->ti", np.broadcast_to(roots, (n, *roots.shape[1:])), drawn)


def log_likelihood(state: State, X: Any) -> Vector:
    """Log-likelihood of the observed entries of each row, given the dictionary.

    y ~ N(μ, C Cᵀ + I) in units of the noise: by Woodbury, with A = C_ΩᵀC_Ω + I, the quadratic form
    is ‖y − C x‖² + ‖x‖² at x = A⁻¹C_Ωᵀy, and the determinant is that of A.
    """
    state, _ = drop_empty(end_batch(state))
    r = state.n_components
    exact = evolve(state, Sigma=np.zeros_like(state.batch.Sigma))
    scores = np.empty(X.shape[0])
    log_noise = np.log(state.params.noise_std)
    for here, rows in parts(exact, X):
        codes = encode_rows(exact, rows, keep_covariances=True)
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


def score_held_out(state: State, X: Any) -> Info:
    """Squared errors of entries that were held out of their row's code, beside those of the mean.

    In units of the features.
    """
    state, _ = drop_empty(end_batch(state))
    mean = state.params.center + state.one * state.params.noise_std * state.params.C[:, -1].astype(
        np.float64
    )

    def predicting(visible: NDArray[np.bool_]) -> Predict:
        hidden = ~visible
        C = state.params.C[hidden].astype(np.float64)
        codes_of_visible = _coding(state, visible)

        def predict(rows: NDArray[Any]) -> NDArray[Any]:
            made = codes_of_visible(rows) @ C[:, :-1].T + state.one * C[:, -1]
            made *= state.params.noise_std[hidden]
            made += state.params.center[hidden]
            return made

        return predict

    return score_held_out_features(X, mean, state.params.scale, predicting)


def _coding(state: State, visible: NDArray[np.bool_]) -> Callable[[NDArray[Any]], Matrix]:
    """What makes codes of rows from some of the features."""
    if state.outliers.drop:  # zeros in place of hidden entries would be taken for outliers
        return lambda rows: encode(state, np.where(visible, rows, np.nan).astype(rows.dtype))
    # With zeros for the others in C, they make no difference, and no row has to be copied.
    C = state.params.C * visible[:, None]
    shown = evolve(state, C=C, G=gram(C), inverse_coverage=state.batch.inverse_coverage * visible)
    return lambda rows: encode(shown, rows)


def parts(state: State, X: Any) -> Iterator[tuple[slice, Whitened]]:
    """Some rows at a time, in units of the noise."""
    for start in range(0, X.shape[0], ROWS):
        here = slice(start, start + ROWS)
        yield here, clip_rows(state, X[here])


def error_histogram(state: State) -> Vector:
    """|error| / std of held-out entries, in time if the state is temporal."""
    temporal = state.temporal
    if temporal is None or not temporal.histogram.any():
        return state.holdout.histogram
    return temporal.histogram


def noise_dof(state: State) -> Vector | None:
    """Degrees of freedom of each feature's noise in a young stream; None if there are many.

    A posterior of each feature's own knows of its few entries already.
    """
    stats = settled(state).stats
    if state.config.noise == "diagonal":
        dof: Vector = stats.residual_sums[1] - 1.0
    else:  # residuals of single features are not counted, and the first dictionary counts as rows
        dof = np.minimum(stats.counts, state.n_seen) - 1.0
    if state.posterior is not None or dof.min() >= MANY_ENTRIES:
        return None
    return np.maximum(dof, 0.0)
