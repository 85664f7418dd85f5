"""The factor model as naively as its equations read: feature by feature, and dense Gaussians."""

import numpy as np


def code(C, Sigma, shares, one, y, w=None):
    """Code x̃, covariance A⁻¹, residual energy and degrees of freedom of one row, NaN is missing.

    An entry of weight w has the noise 1 / w.
    """
    r, w = C.shape[1] - 1, np.ones(len(y)) if w is None else w
    A, b = np.eye(r), np.zeros(r)
    G = np.zeros((r, r))
    for i in np.flatnonzero(~np.isnan(y)):
        c, mean = C[i, :r], C[i, r]
        G += w[i] * np.outer(c, c)
        A += w[i] * (np.outer(c, c) + Sigma[:r, :r] / shares[i])
        b += w[i] * (c * (y[i] - one * mean) - one * Sigma[:r, r] / shares[i])
    covariance = np.linalg.inv(A)
    x = np.append(covariance @ b, one)
    seen = ~np.isnan(y)
    residual = np.sum(w[seen] * (y[seen] - C[seen] @ x) ** 2)
    used = min(np.trace(covariance @ G), 0.98 * seen.sum())
    return x, covariance, residual, seen.sum() - used


def learn_batch(state, Y, weights=None, precisions=None):
    """The fields of a state after a batch of rows in units of the noise, by name.

    A row of weight 2 counts in all sums as two rows would; an entry of weight 2 has half the noise
    variance.
    """
    weights = np.ones(len(Y)) if weights is None else weights
    precisions = np.ones(Y.shape) if precisions is None else precisions
    age = state.schedule.n_seen + state.schedule.extra_weight
    params, stats, schedule = state.params, state.stats, state.schedule
    C, C_batch, Sigma = np.array(params.C, float), np.array(params.C, float), state.batch.Sigma
    S, counts, n_rows = stats.S.copy(), stats.counts.copy(), stats.n_rows
    sums, cov_sum = stats.residual_sums.copy(), stats.code_cov_sum.copy()
    weight, energy, dof = stats.code_cov_weight, stats.residual_energy, stats.residual_dof
    left = 1.0
    one = 1.0 if state.config.center else 0.0
    shares = np.clip(counts / counts.mean(), 0.02, 1.0)
    for t, y in enumerate(Y):
        seen = ~np.isnan(y)
        if not seen.any():
            continue
        often, w = weights[t], precisions[t]
        share = often * np.sum(w[seen]) / len(y)
        after = age + weights[: t + 1].sum() + schedule.head_start
        keep = (state.config.forget_factor * (1.0 - schedule.fade / after)) ** often
        left *= keep
        x, covariance, residual, free = code(C_batch, Sigma, shares, one, y, w)
        S, n_rows = keep * S, keep * n_rows
        counts, sums = keep * counts, keep * sums
        z = np.linalg.solve(S, x)
        h, leverage = x @ z, x @ Sigma @ x
        for i in np.flatnonzero(seen):
            f = min(max(counts[i] / n_rows, 0.02), 1.0)
            error = w[i] * (y[i] - C_batch[i] @ x) ** 2 / (1.0 + w[i] * leverage / f)
            sums[:, i] += often * error, often
            u = often * w[i]
            C[i] += (y[i] - C[i] @ x) * u * z / (f + u * h)
            counts[i] += u
        S = S + share * np.outer(x, x)
        n_rows += share
        cov_sum, weight = keep * cov_sum + share * covariance, keep * weight + share
        energy = keep * energy + often * residual / (1.0 + leverage)
        constant = np.sum(seen & state.features.constant)
        dof = keep * dof + often * max(free - constant, 0.02 * (seen.sum() - constant))
    return {
        "C": C, "S": S, "S_inverse": np.linalg.inv(S), "counts": counts, "n_rows": n_rows,
        "residual_sums": sums, "code_cov_sum": cov_sum, "code_cov_weight": weight,
        "residual_energy": energy, "residual_dof": dof,
        "prior_weight": left * stats.prior_weight, "start_weight": left * stats.start_weight,
    }  # fmt: skip


def predictive(C, Sigma, shares, one, y):
    """Mean and variance of every feature of a row in units of the noise."""
    r = C.shape[1] - 1
    x, covariance, _, _ = code(C, Sigma, shares, one, y)
    unsure = x @ Sigma @ x + np.trace(covariance @ Sigma[:r, :r])
    known = np.array([c[:r] @ covariance @ c[:r] for c in C])
    return C @ x, 1.0 + known + unsure / shares


def log_likelihood(C, one, y):
    """Log-density of what is observed of a row, in units of the noise, given C."""
    from scipy.stats import multivariate_normal

    seen = ~np.isnan(y)
    C = C[seen]
    covariance = C[:, :-1] @ C[:, :-1].T + np.eye(seen.sum())
    return multivariate_normal(one * C[:, -1], covariance).logpdf(y[seen])


def condition(mean, covariance, y):
    """Mean and variance of each entry of a Gaussian vector given those that are not NaN."""
    seen = ~np.isnan(y)
    gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen]).T
    given = mean + gain @ (y[seen] - mean[seen])
    return given, np.maximum(np.diagonal(covariance - gain @ covariance[seen]), 0.0)


def ar_covariance(phi, n, steps=None):
    """Covariance (n, n) of a stationary AR(1) sequence of variance 1, at some steps."""
    steps = np.arange(n) if steps is None else steps
    return float(phi) ** np.abs(np.subtract.outer(steps, steps))


def noisy_covariance(phi, noise, n, steps=None):
    """The same of one of variance 1 of which a share is noise."""
    return (1.0 - noise) * ar_covariance(phi, n, steps) + noise * np.eye(n)


def shared_path(C, noise_std, Z, phi, steps):
    """What shared innovations add up to: of each row by its posterior mean, then row by row."""
    path = np.zeros_like(Z)
    for t in range(1, len(Z)):
        rho = phi ** (steps[t] - steps[t - 1])
        v = (Z[t] - rho * Z[t - 1]) / np.sqrt(1.0 - rho**2) / noise_std
        seen = ~np.isnan(v)
        precision = np.eye(C.shape[1]) + C[seen].T @ C[seen]
        u = np.linalg.solve(precision, C[seen].T @ v[seen])
        path[t] = rho * path[t - 1] + np.sqrt(1.0 - rho**2) * noise_std * (C @ u)
    return path


def smoothed(C, phi, one, Y, steps=None):
    """Mean and variance of every entry of consecutive rows, in units of the noise, given C.

    Each component of the codes is an AR(1) sequence of variance 1, and the noise is white.
    """
    n, m = Y.shape
    mean = np.tile(one * C[:, -1], n)
    covariance = np.eye(n * m)
    for j, coefficient in enumerate(phi):
        covariance += np.kron(ar_covariance(coefficient, n, steps), np.outer(C[:, j], C[:, j]))
    means, variances = condition(mean, covariance, Y.ravel())
    return means.reshape(n, m), variances.reshape(n, m)


def leave_one_out_errors(C, one, y):
    """Error of each observed entry, predicted by a code from the other entries of its row."""
    r, seen = C.shape[1] - 1, ~np.isnan(y)
    errors = np.full(len(y), np.nan)
    for i in np.flatnonzero(seen):
        rest = seen.copy()
        rest[i] = False
        B = C[rest, :r]
        x = np.linalg.solve(B.T @ B + np.eye(r), B.T @ (y[rest] - one * C[rest, r]))
        errors[i] = y[i] - C[i, :r] @ x - one * C[i, r]
    return errors


def page_alarms(z, window, burn_in, clip, slack, limit):
    """Page's test in both directions, with a mean and a variance that follow; rows of alarms."""
    alarms, n = [], 0
    mean = variance = running = running_variance = up = down = 0.0
    for t, value in enumerate(z):
        if n >= burn_in:
            u = np.clip((value - mean) / np.sqrt(max(variance, 1.0)), -clip, clip)
            value = mean + np.sqrt(max(variance, 1.0)) * u
            u /= np.sqrt(max(1.0, 63.0 * running_variance / variance))
            up, down = max(0.0, up + u - slack), max(0.0, down - u - slack)
        weight = max(3.0 / (n + 3.0), 1.0 / window)
        before = value - mean
        mean += weight * before
        variance += weight * (before * (value - mean) - variance)
        running += (value - mean - running) / 32.0
        square = min(running**2, 4.0 * max(running_variance, variance / 63.0))
        running_variance += weight * (square - running_variance)
        n += 1
        if max(up, down) > limit:
            alarms.append(t)
            n = 0
            mean = variance = running = running_variance = up = down = 0.0
    return alarms


def season_loadings(y, steps, frequencies, phi, prior):
    """Generalized least squares of one series, with AR(1) errors of variance 1 and a ridge.

    y has no missing entries; the constant comes first and is not penalized.
    """
    angles = 2.0 * np.pi * np.outer(steps, frequencies)
    Z = np.hstack([np.ones((len(y), 1)), np.cos(angles), np.sin(angles)])
    precision = np.linalg.inv(ar_covariance(phi, len(y), steps))
    return np.linalg.solve(Z.T @ precision @ Z + np.diag(prior), Z.T @ precision @ y)


def regression_with_ar_errors(y, Z, rounds=10):
    """Coefficients of a regression with AR(1) errors, by generalised least squares with its matrix.

    The AR coefficient is that of the residuals, by pairs of known neighbours.
    """
    at = np.flatnonzero(~np.isnan(y))
    y, Z = y[at], np.column_stack([np.ones(len(at)), Z[at]])
    beta = np.linalg.lstsq(Z, y, rcond=None)[0]
    for _ in range(rounds):
        e = y - Z @ beta
        next_to = np.diff(at) == 1
        phi = np.sum(e[1:] * e[:-1], where=next_to) / np.sum(e[:-1] ** 2, where=next_to)
        inverse = np.linalg.inv(phi ** np.abs(at[:, None] - at[None]))
        beta = np.linalg.solve(Z.T @ inverse @ Z, Z.T @ inverse @ y)
    return beta[1:]
