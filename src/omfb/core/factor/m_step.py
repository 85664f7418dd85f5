"""M-step: noise, basis and the components' variances, estimated from the statistics.

1. Noise: σ_i² = (20 σ² + E_i) / (20 + n_i (1 − h_i)), with E_i and n_i the squared residuals of the
   feature and their number, σ² the noise shared by all, and h_i the share of a squared residual
   that the codes absorb. Not below `least_noise` of the usual one.
2. Basis: codes are transformed to mean 0 and covariance I, their shift goes into the mean; columns
   of C become uncorrelated, the largest first.
3. Variances (automatic relevance determination): v_j = ‖c_j‖²/m + Σ_jj, not below
   `switched_off_variance`.
4. Weak components that promise more variance than rows have lose it (`_overstated`).
5. S' = S_data + Σ_t Cov(x_t) + diag(1/v),  C' = C S T⁻ᵀ S'⁻¹, as C S is the sum of y x̃ᵀ.
"""

import numpy as np

from ..conformal import rescaled
from ..linalg.rows import gram
from .drift import rescaled as rescaled_drift
from .features import admit_features
from .rank import switched_off_variance
from .schedule import fading, update_rows
from .state import State, evolve
from .stats import Matrix, Vector, inverse

# Rounding of the data, and of products with C, as a share of a feature's unit: noise is above it.
ROUNDING = {"float64": 1e-7, "float32": 1e-4}
# Codes absorb at most this share of a squared residual.
MOST_ABSORBED = 0.95
# Directions of the codes with less than this share of the largest variance are not told apart.
LEAST_VARIANCE = 1e-6


def m_step(state: State, *, shrink: bool = True) -> State:
    """The state after an M-step, in which weak components may shrink; the next one is scheduled."""
    params, stats, schedule = state.params, state.stats, state.schedule
    m, r = len(params.C), state.n_components
    share = schedule.n_entries / max(schedule.n_seen * m, 1)
    until_next = update_rows(state.age, r, schedule.batch_left, state.config, share)
    if not stats.residual_dof > 0.0:  # nothing was observed
        return admit_features(evolve(state, C_batch=None, G=gram(params.C), update_left=until_next))
    change = _noise_change(state)
    S_data = stats.S - stats.prior_weight * np.diag(1.0 / params.v)
    S_data[:r, :r] += stats.code_cov_sum
    scaled = params.C / change.astype(params.C.dtype)[:, None]
    G = gram(scaled)
    T = _basis(state, S_data, G)
    T_inverse = np.asarray(np.linalg.inv(T), np.float64)
    S_data = _symmetric(T_inverse @ S_data @ T_inverse.T)
    v = _variances(state, np.diagonal(T.T @ G @ T) / m, S_data)
    S = S_data + np.diag(1.0 / v)
    Sigma = _symmetric(inverse(S))
    solution = stats.S @ T_inverse.T @ Sigma
    if shrink:
        solution *= _overstated(state)[:, None]
    C = scaled @ solution.astype(params.C.dtype)
    sums = stats.residual_sums.copy()
    sums[0] /= change**2
    missing = 1.0 - schedule.n_entries / (schedule.n_seen * m)
    fade, head_start = fading(missing, r, state.config)
    usual = float(np.median(change))
    after = evolve(
        state, C=C, C_batch=None, G=gram(C), S=S, Sigma=Sigma, S_inverse=Sigma, v=v,
        code_cov_sum=np.zeros((r, r)), noise_std=params.noise_std * change, residual_sums=sums,
        code_cov_weight=0.0, prior_weight=1.0,
        residual_energy=stats.residual_energy / shared_variance(state),
        fade=fade, head_start=head_start, update_left=until_next,
        histogram=rescaled(state.holdout.histogram, 1.0 / usual),
        basis_change=params.basis_change @ T, drift=rescaled_drift(state.drift, change),
    )  # fmt: skip
    return admit_features(after)


def shared_variance(state: State) -> float:
    """The noise variance shared by all features, in units of its last estimate."""
    return max(state.stats.residual_energy / state.stats.residual_dof, 1e-10)


def _noise_change(state: State) -> Vector:
    """Factors of each feature's noise standard deviation."""
    params, hyper = state.params, state.config.hyper
    shared = shared_variance(state)
    variance = np.full(len(params.C), shared)
    if state.config.noise == "diagonal":
        energies, numbers = state.stats.residual_sums
        dof = hyper.noise_prior + numbers * (1.0 - _absorbed(state))
        variance = (hyper.noise_prior * shared + energies) / dof
        # Of a feature that hardly varied in the head and does now, `scale` says nothing: its noise
        # may be a thousand times that, and must not raise the floor of all others.
        relative = np.minimum(params.noise_std / params.scale, 1.0)
        usual = float(np.mean(relative**2)) * shared
        least = hyper.least_noise**2 * usual * (params.scale / params.noise_std) ** 2
        variance = np.maximum(variance, least)
    floor = ROUNDING[str(params.C.dtype)] * params.scale / params.noise_std
    return np.maximum(np.sqrt(variance), floor)


def _absorbed(state: State) -> Vector:
    """The share of each feature's squared residual that codes absorb.

    cᵀ Cov c is h for a row that does not observe the feature, and h / (1 + h) for one that does.
    Its average a over all rows, of which a share s misses the feature, gives h by
    s h² + (1 − a) h = a.
    """
    m, r, stats = len(state.params.C), state.n_components, state.stats
    C = state.params.C[:, :r].astype(np.float64)
    covariance = stats.code_cov_sum / max(stats.code_cov_weight, 1e-300)
    a = np.sum((C @ covariance) * C, axis=1)
    numbers = stats.residual_sums[1]
    mean_share = state.schedule.n_entries / (state.schedule.n_seen * m)
    observed = mean_share * numbers / max(float(numbers.mean()), 1e-300)
    missing = np.clip(1.0 - observed, 0.0, 1.0)
    h = 2.0 * a / np.maximum(1.0 - a + np.sqrt((1.0 - a) ** 2 + 4.0 * missing * a), 1e-12)
    return np.minimum(h / (1.0 + h), MOST_ABSORBED)


def _basis(state: State, S_data: Matrix, G: Matrix) -> Matrix:
    """T: codes x̃ become T⁻¹x̃, of mean 0 and covariance I, and C becomes C T, uncorrelated."""
    m, r, n = len(state.params.C), state.n_components, state.stats.n_rows
    T = np.eye(r + 1)
    mean = S_data[:r, r] / S_data[r, r] if state.config.center else np.zeros(r)
    covariance = _symmetric(S_data[:r, :r] - np.outer(mean, mean) * S_data[r, r]) / n
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, LEAST_VARIANCE * values[-1]))
    Sigma = inverse(S_data + np.diag(1.0 / state.params.v))
    _, rotation = np.linalg.eigh(root.T @ (G[:r, :r] / m + Sigma[:r, :r]) @ root)
    T[:r, :r] = root @ rotation[:, ::-1]
    # Signs that do not depend on rounding: the largest entry of each column is positive.
    largest = np.argmax(np.abs(T[:r, :r]), axis=0)
    T[:r, :r] *= np.where(T[largest, np.arange(r)] < 0.0, -1.0, 1.0)
    T[:r, r] = mean
    return T


def _overstated(state: State) -> Vector:
    """Factors below 1 for weak components that promise more variance than recent rows have.

    With g the information that a row has on a code, its posterior covariance and the variance of
    its mean add up to 1 if the component is real. If the rows vary by ρ noise variances in its
    direction instead of 1 + g, they add up to 1 + g (ρ − 1 − g) / (1 + g)². EM needs some 1 / g
    rounds to correct that, and each takes a large part of the stream. So c² becomes at once what
    ρ allows, within two standard errors of it.
    """
    r, stats, m = state.n_components, state.stats, len(state.params.C)
    factors, n = np.ones(r + 1), stats.code_cov_weight
    if n < 2.0:
        return factors
    share = state.schedule.n_entries / (state.schedule.n_seen * m)
    g = np.maximum(share * np.diagonal(state.batch.G)[:r], 1e-12)  # of what made the codes
    total = np.diagonal(stats.S)[:r] - stats.prior_weight / state.params.v[:r]
    # At the last M-step codes had covariance I.
    changed = (total + np.diagonal(stats.code_cov_sum) - stats.n_rows) / n
    most = g + changed * (1.0 + g) ** 2 / g + 2.0 * np.sqrt(2.0 / n) * (1.0 + g)
    most = np.maximum(most, m * switched_off_variance(m, stats.n_rows))
    weak = g < state.config.hyper.weak_information
    factors[:r] = np.where(weak, np.sqrt(np.minimum(most / g, 1.0)), 1.0)
    return factors


def _variances(state: State, energies: Vector, S_data: Matrix) -> Vector:
    """Prior variances of the columns of C, which switch components off that are not needed."""
    r = state.n_components
    Sigma = inverse(S_data + np.diag(1.0 / state.params.v))
    v = energies + np.diagonal(Sigma)
    v[:r] = np.maximum(v[:r], switched_off_variance(len(state.params.C), state.stats.n_rows))
    return np.maximum(v, 1e-12)


def _symmetric(M: Matrix) -> Matrix:
    return 0.5 * (M + M.T)
