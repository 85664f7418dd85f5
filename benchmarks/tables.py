"""Generated tables of which the truth is known, and simple methods to compare with on them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Table:
    """A table with missing entries: `X` may be seen, `hidden` is what the error looks at."""

    X: np.ndarray
    truth: np.ndarray
    hidden: np.ndarray
    loadings: np.ndarray
    noise: float = 0.3

    def error(self, filled: np.ndarray) -> float:
        """RMSE on the hidden entries."""
        return rms((filled - self.truth)[self.hidden])

    def hiding(self, hidden: np.ndarray) -> "Table":
        """The same rows with other entries missing."""
        return replace(self, X=np.where(hidden, np.nan, self.truth), hidden=hidden)


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


def low_rank(seed: int, n: int = 2000, m: int = 200, missing: float = 0.25, rank: int = 5) -> Table:
    """Independent factors with noise of 0.3, entries missing at random."""
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((m, rank))
    truth = rng.standard_normal((n, rank)) @ loadings.T + 0.3 * rng.standard_normal((n, m))
    hidden = rng.random((n, m)) < missing
    return Table(np.where(hidden, np.nan, truth), truth, hidden, loadings)


def oracle(table: Table) -> np.ndarray:
    """Filled by one who knows the loadings and the noise: nobody can do better on average."""
    C, seen = table.loadings, ~table.hidden
    systems = np.einsum("ni,ij,ik->njk", seen, C, C, optimize=True)
    systems += table.noise**2 * np.eye(C.shape[1])
    sides = np.where(seen, table.X, 0.0) @ C
    return np.linalg.solve(systems, sides[:, :, None])[:, :, 0] @ C.T


def drifting(seed: int, n: int = 1000, m: int = 100) -> Table:
    """Random walks of five factors and of each column; one column missing for a fifth of the time.

    The rows keep their order, the block lies anywhere in it.
    """
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((m, 5))
    factors = np.cumsum(0.1 * rng.standard_normal((n, 5)), axis=0)
    own = np.cumsum(0.05 * rng.standard_normal((n, m)), axis=0)
    truth = factors @ loadings.T + own + 0.1 * rng.standard_normal((n, m))
    hidden = np.zeros((n, m), bool)
    start = rng.integers(n - n // 5)
    hidden[start : start + n // 5, 0] = True
    return Table(np.where(hidden, np.nan, truth), truth, hidden, loadings, 0.1)


def soft_impute(X: np.ndarray, threshold: float, rounds: int = 200) -> np.ndarray:
    """Mazumder, Hastie and Tibshirani's: the missing filled, again and again, by a shrunk SVD.

    Columns are standardised. Singular values are lowered by the threshold, which is a share of the
    largest one.
    """
    centre, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    scaled = (X - centre) / np.where(scale > 0, scale, 1.0)
    if X.shape[0] < X.shape[1]:
        return _soft_impute(scaled.T, threshold, rounds).T * scale + centre
    return _soft_impute(scaled, threshold, rounds) * scale + centre


def _soft_impute(scaled: np.ndarray, threshold: float, rounds: int) -> np.ndarray:
    """The same of a tall matrix as it is."""
    missing = np.isnan(scaled)
    filled = np.where(missing, 0.0, scaled)
    level = threshold * np.linalg.norm(filled, 2)
    for _ in range(rounds):
        # The eigenvectors of the smaller Gram matrix are a tenth of the work of an SVD.
        energies, V = np.linalg.eigh(filled.T @ filled)
        sizes = np.sqrt(np.maximum(energies, 1e-12))
        shrunk = (filled @ (V * (np.maximum(sizes - level, 0.0) / sizes))) @ V.T
        change = rms((shrunk - filled)[missing])
        filled[missing] = shrunk[missing]
        if change < 1e-4:
            break
    return filled


# -- ratings ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratings:
    """Ratings from 1 to 5 as triplets; a tenth is kept for the error."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    test: np.ndarray

    def matrix(self) -> sparse.csr_matrix:
        """What may be seen, one row for each user."""
        seen = ~self.test
        return sparse.csr_matrix(
            (self.values[seen], (self.users[seen], self.items[seen])), shape=self.shape
        )

    def error(self, predicted: np.ndarray) -> float:
        """RMSE on the test ratings, of a prediction for each user and item."""
        return rms(predicted[self.users[self.test], self.items[self.test]] - self.values[self.test])

    def again(self, seed: int) -> "Ratings":
        """The same kind of problem made of what may be seen: for choosing settings."""
        seen = ~self.test
        test = np.random.default_rng(seed).random(seen.sum()) < 0.1
        return Ratings(self.users[seen], self.items[seen], self.values[seen], self.shape, test)


def ratings(seed: int, n: int = 943, m: int = 1682, share: float = 0.06) -> Ratings:
    """Offsets of users and items, ten tastes, noise; a few users and items have most ratings."""
    rng = np.random.default_rng(seed)
    active = 1.0 / (10.0 + rng.permutation(n)) ** 0.5
    popular = 1.0 / (20.0 + rng.permutation(m))
    weights = np.log(rng.random((n, m))) / (active[:, None] * popular)
    count = round(share * n * m)
    users, items = np.unravel_index(np.argpartition(-weights, count, axis=None)[:count], (n, m))
    tastes = 0.7 ** np.arange(10) * 0.5
    scores = 3.5 + 0.45 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal(m)
    scores = scores + (rng.standard_normal((n, 10)) * tastes) @ rng.standard_normal((10, m))
    noisy = scores[users, items] + 0.8 * rng.standard_normal(count)
    values = np.clip(np.round(noisy), 1, 5)
    return Ratings(users, items, values, (n, m), rng.random(count) < 0.1)


def biases(known: Ratings, strength: float) -> np.ndarray:
    """Regularised offsets of users and items, by turns."""
    X = np.full(known.shape, np.nan)
    seen = ~known.test
    X[known.users[seen], known.items[seen]] = known.values[seen]
    return biases_of(X, strength)


def biases_of(X: np.ndarray, strength: float) -> np.ndarray:
    """The same of a table where NaN is missing."""
    seen = (~np.isnan(X)).astype(float)
    mean = np.nanmean(X)
    centred = np.where(np.isnan(X), 0.0, X - mean)
    of_row = np.zeros(len(X))
    for _ in range(20):
        of_column = (centred.sum(axis=0) - seen.T @ of_row) / (seen.sum(axis=0) + strength)
        of_row = (centred.sum(axis=1) - seen @ of_column) / (seen.sum(axis=1) + strength)
    filled: np.ndarray = mean + of_row[:, None] + of_column
    return filled


def cmfrec_filled(known: Ratings, k: int, lambda_: float) -> np.ndarray:
    """Alternating least squares with offsets, by cmfrec."""
    from cmfrec import CMF

    model = CMF(k, lambda_=lambda_, nthreads=1, verbose=False, precompute_for_predictions=False)
    model.fit(known.matrix().tocoo())
    offsets = model.user_bias_[:, None] + model.item_bias_ + model.glob_mean_
    filled: np.ndarray = offsets + model.A_ @ model.B_.T
    return filled


def cmfrec_settings() -> Iterator[dict[str, Any]]:
    for k in (5, 10, 20):
        for strength in (3.0, 6.0, 12.0, 24.0):
            yield {"k": k, "lambda_": strength}
