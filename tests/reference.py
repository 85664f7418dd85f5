"""The paper's formulas, naive, line by line; then the same with forget_factor, pulls and prior.

Rows of Y are observations (the paper's columns), NaN is missing, C is (m, r). Nothing here is
shared with the library: inverses are inverses and the codes are one dense least squares problem.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

# -- the paper ------------------------------------------------------------------------------


def algorithm_1(Y, C, lam, rounds=2):
    """OMF-B. Returns the dictionary and the codes, in rows."""
    codes = []
    for y in Y:
        C_before = C
        for _ in range(rounds):
            x = np.linalg.inv(C.T @ C) @ C.T @ y
            C = C_before + np.outer(y - C_before @ x, x) / (lam + x @ x)
        codes.append(x)
    return C, np.array(codes)


def mini_batches(Y, C, lam, size, rounds=2):
    """Updates (6) and (7) for every `size` rows; the last batch may be short."""
    codes = []
    for first in range(0, len(Y), size):
        y, C_before = Y[first : first + size].T, C
        for _ in range(rounds):
            x = np.linalg.inv(C.T @ C) @ C.T @ y
            C = (lam * C_before + y @ x.T) @ np.linalg.inv(lam * np.eye(len(x)) + x @ x.T)
        codes.append(x.T)
    return C, np.concatenate(codes)


def algorithm_2(Y, C, lam, rounds=2):
    """OMF-B with missing data."""
    codes = []
    for row in Y:
        m = ~np.isnan(row)
        y, M_C, C_before = np.where(m, row, 0.0), np.tile(m[:, None], C.shape[1]), C
        for _ in range(rounds):
            x = np.linalg.inv((M_C * C).T @ (M_C * C)) @ (M_C * C).T @ (m * y)
            C = C_before + np.outer(m * (y - C_before @ x), x) / (lam + x @ x)
        codes.append(x)
    return C, np.array(codes)


# -- the generalised objective (docs/explanation/paper.md) ----------------------------------


class Past(NamedTuple):
    """What the next rows meet: dictionary, precision, the code before, if any, and the count."""

    C: np.ndarray
    S: np.ndarray
    x: np.ndarray | None = None
    n: int = 0
    prior: float = 0.0  # of `shrink` in S, when it was last put there
    since: tuple = ()  # rows, observed entries and residual energy of each batch since then


class Told(NamedTuple):
    past: Past
    codes: np.ndarray
    residual: float
    """Of each row with the dictionary before its batch, over the observed entries."""
    energy: float


def first(C, lam):
    C = np.array(C, dtype=np.float64)
    return Past(C, lam * np.eye(C.shape[1]))


def precision_before(past, Y, config):
    """S̄. Beside forget_factor, each row fades those before it, so that it counts by its number.

    Not constant weights: early codes belong to a poor dictionary. Mostly
    missing rows fade nothing.
    """
    r, rows = len(past.S), range(past.n, past.n + len(Y))
    fading = np.prod([(n + 5 * r) / (n + 5 * r + 1) for n in rows])
    fading = 1.0 if np.isnan(Y).mean() > 0.5 else fading
    return config.forget_factor * fading * past.S + (
        1.0 - config.forget_factor
    ) * config.lam * np.eye(r)


def penalised_codes(C, Y, config):
    """½‖y − C x‖²_Ω + a‖x‖₁ + ½ α‖x‖² for each row, x ≥ 0 if positive: one coordinate at a time."""
    a, ridge = config.alpha * config.l1_ratio, config.ridge
    codes = np.zeros((len(Y), C.shape[1]))
    for x, y in zip(codes, Y, strict=True):
        seen = ~np.isnan(y)
        for _ in range(20000):
            before = x.copy()
            for j, c in enumerate(C[seen].T):
                aim = c @ (y[seen] - C[seen] @ x) + c @ c * x[j]
                size = max(aim - a, 0.0) - (0.0 if config.positive_code else max(-aim - a, 0.0))
                x[j] = size / (c @ c + ridge) if size else 0.0
            if np.abs(x - before).max() <= 1e-15 * np.abs(x).max():
                break
    return codes


def codes_of(C, Y, ridge, smooth, x_before=None):
    """Σ_t ‖y_t − C x_t‖²_Ω + α‖x_t‖² + τ‖x_t − x_{t−1}‖², least and of minimum norm.

    All rows at once, as one dense least squares problem, by singular values. x_0 is
    `x_before`; without it the first row has no pull.
    """
    if smooth == 0.0 and len(Y) > 1:  # rows are independent
        return np.concatenate([codes_of(C, y[None], ridge, 0.0) for y in Y])
    n, r = len(Y), C.shape[1]
    blocks, targets = [], []

    def add(at, block, target):
        wide = np.zeros((len(block), n, r))
        wide[:, at] = block
        blocks.append(wide.reshape(len(block), n * r))
        targets.append(target)
        return wide

    eye, zero = np.eye(r), np.zeros(r)
    for t, y in enumerate(Y):
        seen = ~np.isnan(y)
        add(t, C[seen], y[seen])
        add(t, np.sqrt(ridge) * eye, zero)
        if t > 0:
            add(t, np.sqrt(smooth) * eye, zero)[:, t - 1] = -np.sqrt(smooth) * eye
        elif x_before is not None:
            add(t, np.sqrt(smooth) * eye, np.sqrt(smooth) * x_before)
    A, target = np.concatenate(blocks), np.concatenate(targets)
    return np.linalg.lstsq(A, target, rcond=1e-9)[0].reshape(n, r)


def dictionary_for(past, Y, X, config):
    """C for fixed codes: c_i + Σ (y − c_i x) xᵀ S_i⁻¹, over the rows that see feature i."""
    S_before = precision_before(past, Y, config)
    C = past.C.copy()
    for i, c in enumerate(past.C):
        seen = ~np.isnan(Y[:, i])
        X_i = X[seen]
        C[i] = c + (Y[seen, i] - X_i @ c) @ X_i @ np.linalg.inv(S_before + X_i.T @ X_i)
    return C


def learn_batch(past, Y, config):
    """One mini-batch; a single row is a batch of one."""
    seen = ~np.isnan(Y)
    some = seen.any(axis=1)
    C, told = past.C, None
    for _ in range(config.inner_iter):
        if config.positive_code or config.alpha * config.l1_ratio > 0.0:
            X = penalised_codes(C, Y, config)
        else:
            X = codes_of(C, Y, config.ridge, config.smooth, past.x)
        if told is None:
            told = np.sum((Y - X @ C.T)[seen] ** 2)
        C = dictionary_for(past, Y, X, config)
    # A feature has learned from the observed share of the rows only. With whole rows, mostly
    # missing data would make the dictionary far too stiff.
    S = past.S
    if some.any():
        S = precision_before(past, Y, config) + (X.T * seen.mean(axis=1)) @ X
    x = X[-1] if some.any() or past.x is not None else None
    now = past._replace(C=C, S=S, x=x, n=past.n + len(Y))
    return Told(now, X, told, np.sum(Y[seen] ** 2))


def with_prior(past, Y, residual, config):
    """After 4r rows and more: prior and uncertainty into S, at the dictionary zero.

    C S is Σ y xᵀ, which stays; S grows by the precision of the prior that has faded from it, and
    by σ² (G_Ω + (α + τ) I)⁻¹ for each row, here with the observed share of G for G_Ω.
    """
    if config.shrink == 0.0:
        return past
    (m, r), eye = past.C.shape, np.eye(past.C.shape[1])
    since = (*past.since, (len(Y), np.sum(~np.isnan(Y)), residual))
    n, entries, residual = np.sum(since, axis=0)
    if n < 4 * r:
        return past._replace(since=since)
    if entries == 0:
        return past._replace(since=())
    share, noise = entries / (n * m), residual / entries
    fading = (past.n - n + 5 * r) / (past.n + 5 * r) if share >= 0.5 else 1.0
    kept = config.forget_factor**n * fading * past.prior
    code = np.linalg.inv(share * past.C.T @ past.C + (config.ridge + config.smooth) * eye)
    rows = (
        n
        if config.forget_factor == 1.0
        else (1 - config.forget_factor**n) / (1 - config.forget_factor)
    )
    S = past.S + (config.shrink - kept) * eye + rows * share * noise * code
    C = past.C @ past.S @ np.linalg.inv(S)
    return past._replace(C=C, S=S, prior=config.shrink, since=())


def nearest(C_free, S, positive, bounded):
    """The constraints' C near C*, in the metric of S: their cut, then three sweeps over atoms."""
    C = C_free.copy()
    for sweep in range(4):
        for j in range(C.shape[1]):
            c = C[:, j] - (C - C_free) @ S[j] / S[j, j] * (sweep > 0)
            c = np.maximum(c, 0.0) if positive else c
            C[:, j] = c / max(np.linalg.norm(c), 1.0) if bounded else c
    return C


def with_constraints(past, Y, config):
    """After 4r rows and more, the dictionary that satisfies its constraints."""
    if not (config.positive_dict or config.alpha > 0.0):
        return past
    since = (*past.since, len(Y))
    if sum(since) < 4 * past.C.shape[1]:
        return past._replace(since=since)
    S = past.S if config.forget_factor > 0.0 else config.lam * np.eye(len(past.S))
    C = nearest(past.C, S, config.positive_dict, config.alpha > 0.0)
    return past._replace(C=C, since=())


def with_least_ridge(C_first, config):
    """Where C would fade, codes have a ridge of 1e-6 of an atom's energy at least."""
    config = replace(config, ridge=config.ridge + (1.0 - config.l1_ratio) * config.alpha)
    if not (0.0 < config.forget_factor < 1.0 or config.shrink > 0.0):
        return config
    return replace(config, ridge=max(config.ridge, 1e-6 * np.mean(np.sum(C_first**2, axis=0))))


def learn(past, Y, config):
    """The rows of Y, `batch_size` at a time, from the first dictionary on."""
    config = with_least_ridge(past.C, config)
    Y = np.asarray(Y, dtype=np.float64)
    codes, residual, energy = [], 0.0, 0.0
    for at in range(0, len(Y), config.batch_size):
        rows = Y[at : at + config.batch_size]
        told = learn_batch(past, rows, config)
        past = with_prior(told.past, rows, told.residual, config)
        past = with_constraints(past, rows, config)
        codes.append(told.codes)
        residual, energy = residual + told.residual, energy + told.energy
    return Told(past, np.concatenate(codes), residual, energy)


def objective(C, X, Y, past, config):
    """What a step makes small, at the dictionary C and the codes X of one batch Y."""
    change = C - past.C
    fit = np.nansum((Y - X @ C.T) ** 2)
    stay = np.trace(change @ precision_before(past, Y, config) @ change.T)
    walk = np.diff(X, axis=0, prepend=X[:1] if past.x is None else past.x[None])
    pulls = config.ridge * np.sum(X**2) + config.smooth * np.sum(walk**2)
    return fit + stay + pulls + 2 * config.alpha * config.l1_ratio * np.sum(np.abs(X))
