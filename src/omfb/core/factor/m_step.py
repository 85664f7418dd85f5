"""After each period: noise, basis and the components' variances, found from what was gathered.

1. Noise: σ_i² = (20 σ² + E_i) / (20 + n_i (1 − lever_i)), with E_i and n_i squared residuals of the
   feature and their number, σ² the shared one, and lever_i what codes take of a residual. Not below
   5 % of what is usual.
2. Basis: codes turned to mean 0 and covariance I, what shifts them goes into the mean; columns of C
   uncorrelated, the largest first.
3. Variances: v_j = ‖c_j‖²/m + Σ_jj, not below what switches a component off (`least_variance`).
4. S' = S_data + Σ_t Cov(x_t) + diag(1/v),  C' = C S T⁻ᵀ S'⁻¹, as C S is the sum of y x̃ᵀ.
"""

from dataclasses import replace

import numpy as np

from ..conformal import rescaled
from ..linalg.rows import gram
from .new_features import acquainted
from .schedule import fading, period_rows
from .state import Matrix, Model, Vector, inverse, least_variance

# How many observations the shared noise counts as in that of a feature.
SHARED_WEIGHT = 20.0
# Of the usual noise: none is explained better than this.
LEAST_NOISE = 0.05
# Of its unit, a feature's noise: rounding of the data, and of products with C.
ROUNDING = {"float64": 1e-7, "float32": 1e-4}
MOST_LEVER = 0.95
# Of the largest variance of codes: directions with less are not told apart.
LEAST_VARIANCE = 1e-6


def revised(model: Model) -> Model:
    """The model at the start of the next period."""
    m, r = len(model.C), model.n_components
    period = period_rows(model.n_seen, r, model.batch_left, model.config.forget_factor)
    if not model.freedom > 0.0:  # nothing was observed
        return acquainted(replace(model, C_codes=None, G=gram(model.C), period_left=period))
    change = _noise_change(model)
    S_data = model.S - model.held * np.diag(1.0 / model.v)
    S_data[:r, :r] += model.unsure
    scaled = model.C / change.astype(model.C.dtype)[:, None]
    G = gram(scaled)
    T = _basis(model, S_data, G)
    T_inverse = np.asarray(np.linalg.inv(T), np.float64)
    S_data = _symmetric(T_inverse @ S_data @ T_inverse.T)
    v = _variances(model, np.diagonal(T.T @ G @ T) / m, S_data)
    S = S_data + np.diag(1.0 / v)
    Sigma = _symmetric(inverse(S))
    turn = model.S @ T_inverse.T @ Sigma
    C = scaled @ turn.astype(model.C.dtype)
    errors = model.errors.copy()
    errors[0] /= change**2
    missing = 1.0 - model.n_entries / (model.n_seen * m)
    fade, head_start = fading(missing, r)
    usual = float(np.median(change))
    after = replace(
        model, C=C, C_codes=None, G=gram(C), S=S, Sigma=Sigma, unsure=np.zeros((r, r)), v=v,
        noise=model.noise * change, errors=errors, weight=0.0, held=1.0,
        energy=model.energy / _shared(model), fade=fade, head_start=head_start, period_left=period,
        histogram=rescaled(model.histogram, 1.0 / usual), turn=model.turn @ T,
    )  # fmt: skip
    return acquainted(after)


def _shared(model: Model) -> float:
    """The shared noise, in units of what it was thought to be."""
    return max(model.energy / model.freedom, 1e-10)


def _noise_change(model: Model) -> Vector:
    """By what each feature's noise is to be multiplied."""
    shared = _shared(model)
    variance = np.full(len(model.C), shared)
    if model.config.noise == "diagonal":
        energies, numbers = model.errors
        freedom = SHARED_WEIGHT + numbers * (1.0 - _levers(model))
        variance = (SHARED_WEIGHT * shared + energies) / freedom
        usual = float(np.mean((model.noise / model.unit) ** 2)) * shared
        least = LEAST_NOISE**2 * usual * (model.unit / model.noise) ** 2
        variance = np.maximum(variance, least)
    floor = ROUNDING[str(model.C.dtype)] * model.unit / model.noise
    return np.maximum(np.sqrt(variance), floor)


def _levers(model: Model) -> Vector:
    """What codes take of the squared residual of each feature that they were made of.

    cᵀ Cov c is h of a row that does not observe the feature, and h / (1 + h) of one that does. Its
    average a over all rows, of which a share s misses the feature, gives h by s h² + (1 − a) h = a.
    """
    m, r = len(model.C), model.n_components
    C = model.C[:, :r].astype(np.float64)
    a = np.sum((C @ (model.unsure / max(model.weight, 1e-300))) * C, axis=1)
    numbers = model.errors[1]
    observed = model.n_entries / (model.n_seen * m) * numbers / max(float(numbers.mean()), 1e-300)
    missing = np.clip(1.0 - observed, 0.0, 1.0)
    h = 2.0 * a / np.maximum(1.0 - a + np.sqrt((1.0 - a) ** 2 + 4.0 * missing * a), 1e-12)
    return np.minimum(h / (1.0 + h), MOST_LEVER)


def _basis(model: Model, S_data: Matrix, G: Matrix) -> Matrix:
    """T: codes x̃ become T⁻¹x̃, of mean 0 and covariance I, and C becomes C T, uncorrelated."""
    m, r, n = len(model.C), model.n_components, model.n_rows
    T = np.eye(r + 1)
    mean = S_data[:r, r] / S_data[r, r] if model.config.center else np.zeros(r)
    covariance = _symmetric(S_data[:r, :r] - np.outer(mean, mean) * S_data[r, r]) / n
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, LEAST_VARIANCE * values[-1]))
    Sigma = inverse(S_data + np.diag(1.0 / model.v))
    _, turn = np.linalg.eigh(root.T @ (G[:r, :r] / m + Sigma[:r, :r]) @ root)
    T[:r, :r] = root @ turn[:, ::-1]
    # Signs that do not hang on rounding: the largest share of each new code is positive.
    largest = np.argmax(np.abs(T[:r, :r]), axis=0)
    T[:r, :r] *= np.where(T[largest, np.arange(r)] < 0.0, -1.0, 1.0)
    T[:r, r] = mean
    return T


def _variances(model: Model, energies: Vector, S_data: Matrix) -> Vector:
    """Prior variances of the columns of C, by which components that are not needed go out."""
    r = model.n_components
    Sigma = inverse(S_data + np.diag(1.0 / model.v))
    v = energies + np.diagonal(Sigma)
    v[:r] = np.maximum(v[:r], least_variance(len(model.C), model.n_rows))
    return np.maximum(v, 1e-12)


def _symmetric(M: Matrix) -> Matrix:
    return 0.5 * (M + M.T)
