"""The model with nothing to tune, as naively as its equations read: feature by feature."""

import numpy as np


def code(C, Sigma, shares, kappa, one, y):
    """Code x̃, covariance A⁻¹, residual energy and degrees of freedom of one row, NaN is missing."""
    r = C.shape[1] - 1
    A, b = kappa * np.eye(r), np.zeros(r)
    G = np.zeros((r, r))
    for i in np.flatnonzero(~np.isnan(y)):
        c, mean = C[i, :r], C[i, r]
        G += np.outer(c, c)
        A += np.outer(c, c) + Sigma[:r, :r] / shares[i]
        b += c * (y[i] - one * mean) - one * Sigma[:r, r] / shares[i]
    covariance = np.linalg.inv(A)
    x = np.append(covariance @ b, one)
    seen = ~np.isnan(y)
    residual = np.sum((y[seen] - C[seen] @ x) ** 2)
    used = min(np.trace(covariance @ G), 0.98 * seen.sum())
    return x, covariance, residual, seen.sum() - used


def learn_batch(model, Y):
    """What a batch of rows, in units of the noise, makes of C, S, counts and sums of the model."""
    C, C_codes = np.array(model.C, float), np.array(model.C, float)
    S, counts, n = model.S.copy(), model.counts.copy(), model.n_rows
    errors, unsure = model.errors.copy(), model.unsure.copy()
    energy, freedom = model.energy, model.freedom
    one = 1.0 if model.settings.center else 0.0
    shares = np.clip(counts / counts.mean(), 0.02, 1.0)
    for t, y in enumerate(Y):
        seen = ~np.isnan(y)
        if not seen.any():
            continue
        share = seen.mean()
        after = model.n_seen + model.head_start + t + 1
        keep = model.settings.memory * (1.0 - model.fade / after)
        x, covariance, left, free = code(C_codes, model.Sigma, shares, model.kappa, one, y)
        S, n = keep * S, keep * n
        counts, errors = keep * counts, keep * errors
        z = np.linalg.solve(S, x)
        h, leverage = x @ z, x @ model.Sigma @ x
        for i in np.flatnonzero(seen):
            f = min(max(counts[i] / n, 0.02), 1.0)
            errors[:, i] += (y[i] - C_codes[i] @ x) ** 2 / (1.0 + leverage / f), 1.0
            C[i] += (y[i] - C[i] @ x) * z / (f + h)
            counts[i] += 1.0
        S = S + share * np.outer(x, x)
        n += share
        unsure = keep * unsure + share * model.kappa * covariance
        energy = keep * energy + left / (1.0 + leverage)
        constant = np.sum(seen & model.constant)
        freedom = keep * freedom + max(free - constant, 0.02 * (seen.sum() - constant))
    return {
        "C": C, "S": S, "counts": counts, "n_rows": n, "errors": errors, "unsure": unsure,
        "energy": energy, "freedom": freedom,
    }  # fmt: skip


def predictive(C, Sigma, shares, kappa, one, y):
    """Mean and variance of every feature of a row in units of the noise."""
    r = C.shape[1] - 1
    x, covariance, _, _ = code(C, Sigma, shares, kappa, one, y)
    unsure = x @ Sigma @ x + kappa * np.trace(covariance @ Sigma[:r, :r])
    known = np.array([c[:r] @ covariance @ c[:r] for c in C])
    return C @ x, 1.0 + kappa * known + unsure / shares


def log_likelihood(C, one, y):
    """Log-density of what is observed of a row, in units of the noise, given C."""
    from scipy.stats import multivariate_normal

    seen = ~np.isnan(y)
    C = C[seen]
    covariance = C[:, :-1] @ C[:, :-1].T + np.eye(seen.sum())
    return multivariate_normal(one * C[:, -1], covariance).logpdf(y[seen])
