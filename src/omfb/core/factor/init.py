"""The first model: units, mean, directions and noise of the head of the stream.

With Z the head (n, m), centred, in units of its deviations and zero where entries are missing (a
share s is observed), λ its squared singular values and V its right singular vectors,

    C = V √(λ / (n s)),   or with s < ½   C = V √(max(λ − edge, λ/50) / n) / s,
    edge = s (σ² + (1 − s) total) (√n + √m)²

as missing entries shrink what is signal by s and add noise that reaches up to `edge`. The noise σ²
is read off the median singular value, as Gavish and Donoho do.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import canonical, dense_with_holes
from ..conformal import N_BINS
from ..linalg.rows import gram
from .config import FactorConfig
from .constant_features import SAME, constant_features
from .holdout import kept_back, lent_masks
from .integer_features import whole_features
from .schedule import batch_rows, fading, period_rows
from .state import Matrix, Model, Vector

# Rows of the head, and its size: what is kept of a stream before anything is learned.
HEAD_ROWS = 400
HEAD_BYTES = 1 << 23
# The first dictionary weighs as much as this share of the rows that it comes from.
HEAD_WEIGHT = 1.0 / 3.0
# Values beyond this, or below its inverse, are divided before they are squared.
SAFE_SIZE = 1e100
# Units are not below this: they are divided by.
LEAST_UNIT = 1e-301
# Deviations that make a feature suspect of spikes, robust ones that make a spike, and which share
# of the entries may be some.
SUSPECT, SPIKE, MOST_SPIKES = 6.0, 12.0, 0.03
# How many times as far off as all others spikes stand alone, and what that counts for among the
# votes on dropping outliers: as much as so many rows that half agree.
GAP, VOTES_OF_THE_HEAD = 2.5, (100.0, 50.0, 25.0)
# Entries of a feature below which other features say what its mean may be, those of such others,
# or if they have not as many, and how many others there must be.
FEW, LEAST_TOLD = (10, 2), 5
# Deviations from where their means are expected, beyond which few entries are believed; and the
# share of features so far from the others with which these say nothing of each other.
UNLIKE, MOST_UNLIKE = 5.0, 0.1
# Of the noise that the head shows: with less of it, the first codes follow the rows more closely,
# and the dictionary learns faster. The first revision puts it right.
TRUSTING = 0.3
# Of the noise, at first, in all that varies.
LEAST_NOISE, MOST_NOISE = 0.02, 0.5


def head_rows(n_features: int, n_components: int) -> int:
    """How many rows the first model is made of."""
    fit_in = HEAD_BYTES // (8 * max(n_features, 1))
    return max(2 * n_components, min(HEAD_ROWS, fit_in))


def start(head: Any, config: FactorConfig, seed: int) -> Model:
    """The model before it learns from any row.

    Parameters
    ----------
    head : ndarray or scipy.sparse of shape (n, m)
        The first rows of the stream.
    config : FactorConfig
    seed : int
    """
    dtype = head.dtype
    head = canonical(head) if scipy.sparse.issparse(head) else head
    head = head[: head_rows(head.shape[1], config.components_for(head.shape[1]))]
    rows = dense_with_holes(head) if scipy.sparse.issparse(head) else head
    rows = rows.astype(np.float64, copy=False)
    seen = ~np.isnan(rows)
    m = rows.shape[1]
    share = max(float(seen.mean()), 1.0 / max(seen.size, 1))
    r = config.components_for(m)
    rng = np.random.default_rng(seed)
    gappy = bool(not seen.all())
    masks = lent_masks(seen, rng)
    if gappy:
        seen = seen & ~kept_back(head, seen, masks)
    center, unit = _units(rows, seen, config)
    spikes, alone = np.zeros_like(seen), False
    if config.robust:
        spikes, alone = _spikes(rows, seen, center, unit)
    if spikes.any():
        gappy, seen = True, seen & ~spikes
        center, unit = _units(rows, seen, config)
    Z = np.where(seen, rows - center, 0.0)
    Z /= unit
    C, variance = _directions(Z, share, r, rng)
    noise = float(np.sqrt(variance))
    C /= noise
    n_rows = max(len(rows) * share * HEAD_WEIGHT, 1.0)
    v = np.append(np.maximum(np.mean(C[:, :r] ** 2, axis=0), 1e-6), 0.1 / variance)
    S = n_rows * np.eye(r + 1) + np.diag(1.0 / v)
    constant, level = constant_features(rows, seen)
    fade, head_start = fading(1.0 - share, r)
    batch = batch_rows(0, gappy, config)
    C = np.ascontiguousarray(C, dtype)
    return Model(
        config=config, seed=seed, C=C, C_codes=None, G=gram(C), S=S, Sigma=np.linalg.inv(S),
        unsure=np.zeros((r, r)), v=v, center=center, unit=unit, noise=unit * noise,
        counts=np.full(m, n_rows), rarity=np.ones(m), errors=np.zeros((2, m)), n_rows=n_rows,
        weight=0.0, held=1.0, energy=0.0, freedom=0.0, fade=fade, head_start=head_start,
        n_seen=0, n_entries=0,
        batch_left=batch, period_left=period_rows(0, r, batch, config.forget_factor),
        gappy=gappy, pass_rows=0, masks=masks,
        histogram=np.zeros(N_BINS), checked=0, judged=np.zeros((2, 2)),
        trial=np.array(VOTES_OF_THE_HEAD if alone else (0.0, 0.0, 0.0)),
        looks=bool(spikes.any()), drops=bool(spikes.any()),
        outliers=np.zeros(m, np.int64), runs=np.zeros(m, np.int64),
        turn=np.eye(r + 1), kept=1.0,
        known=seen.any(axis=0) | (not config.scale and not config.center),
        first=np.zeros((3, m)),
        whole=whole_features(rows, seen), constant=constant, level=level,
        varied=np.zeros(m, bool),
    )  # fmt: skip


def _units(rows: Matrix, seen: NDArray[np.bool_], config: FactorConfig) -> tuple[Vector, Vector]:
    """The mean of each feature, and its deviation or, if it is constant, its size.

    Of a feature that is not seen, how far from its centre it may well be.
    """
    counts = seen.sum(axis=0)
    known = np.where(seen, rows, 0.0)
    size = np.maximum(known.max(axis=0), -known.min(axis=0))
    # Squares of huge values would overflow, and those of tiny ones vanish.
    least = size[size > 0.0].min(initial=1.0)
    extreme = bool(size.max() > SAFE_SIZE or least < 1.0 / SAFE_SIZE)
    scale = np.where(size > 0.0, size, 1.0) if extreme else np.ones_like(size)
    known /= scale
    mean = known.sum(axis=0) / np.maximum(counts, 1)
    known -= mean
    known *= seen
    deviation = np.sqrt(np.einsum("ti,ti->i", known, known) / np.maximum(counts - 1, 1))
    varies = (deviation > SAME * np.abs(mean)) & (counts > 1)
    mean, deviation = mean * scale, deviation * scale
    typical = float(np.median(deviation[varies])) if varies.any() else 1.0
    center = _believable(mean, deviation, counts) if config.center else np.zeros(len(size))
    if not config.scale:
        each = deviation[varies] if config.center else size
        peak = float(each.max(initial=0.0))
        root = peak * float(np.sqrt(np.mean((each / peak) ** 2))) if peak > 0.0 else 1.0
        return center, np.full(len(size), max(root, LEAST_UNIT))
    constant = np.where(mean != 0.0, np.abs(mean), typical)
    unit = np.maximum(np.where(varies, deviation, constant), LEAST_UNIT)
    unseen = counts == 0
    if unseen.any() and not unseen.all():
        apart = 1.4826 * float(np.median(np.abs(mean[~unseen] - center[unseen][0])))
        unit[unseen] = np.hypot(typical, apart)
    return center, unit


def _believable(mean: Vector, deviation: Vector, counts: NDArray[np.int64]) -> Vector:
    """The means; of features with few entries, as far as these say more than other features do.

    Where features are alike, as ratings are, a few entries of one say little beside the means of
    the others; where they are not, as with sensors, the others say nothing. How alike they are is
    told by those with more entries.
    """
    for least in FEW:
        told = counts >= least
        if told.sum() >= LEAST_TOLD:
            break
    else:
        return mean
    size = max(float(np.abs(mean).max()), float(deviation.max()), LEAST_UNIT)
    means = mean / size  # squares of huge values would overflow
    usual = float(np.median(means[told]))
    apart = 1.4826 * float(np.median(np.abs(means[told] - usual)))
    within = float(np.median(deviation[told]) / size) ** 2
    # Of what the means differ by, as much is left as their own errors do not explain.
    left = max(apart**2 - within / float(np.median(counts[told])), 0.0)
    own = counts * left / np.maximum(counts * left + within, 1e-300)
    # Entries that agree with each other, far from where all others are, are not like these.
    expected = np.sqrt(left + within / np.maximum(counts, 1))
    unlike = np.abs(means - usual) > UNLIKE * expected
    if np.mean(unlike[told]) > MOST_UNLIKE:
        return mean
    own = np.where(unlike, 1.0, own)
    return np.where(counts >= FEW[0], mean, size * (usual + own * (means - usual)))


def _spikes(
    rows: Matrix, seen: NDArray[np.bool_], center: Vector, unit: Vector
) -> tuple[NDArray[np.bool_], bool]:
    """Entries of the head so far off that they would make the units of their features.

    Looked for where a feature has entries many deviations off, and measured by its median absolute
    deviation, which they do not change. Many of them are no spikes but how the feature is. Also
    returns whether they stand alone: heavy tails have no gap between what is far and the rest.
    """
    spikes, gaps = np.zeros(seen.shape, bool), []
    with np.errstate(invalid="ignore", over="ignore"):
        known = rows if seen.all() else np.where(seen, rows, center)
        highest = np.maximum(known.max(axis=0) - center, center - known.min(axis=0)) / unit
        suspect = np.flatnonzero(highest > SUSPECT)
        for i in suspect.tolist():
            away = np.abs(rows[:, i] - np.median(rows[seen[:, i], i]))
            usual = 1.4826 * float(np.median(away[seen[:, i]]))
            far = seen[:, i] & (away > SPIKE * usual)
            if usual > 0.0 and far.sum() <= MOST_SPIKES * seen[:, i].sum():
                spikes[:, i] = far
                if far.any():
                    gaps.append(away[far].min() / away[seen[:, i] & ~far].max())
    return spikes, bool(gaps and np.median(gaps) > GAP)


def _directions(Z: Matrix, share: float, r: int, rng: np.random.Generator) -> tuple[Matrix, float]:
    """The first dictionary (m, r + 1) in units of the features, and the variance of the noise."""
    n, m = Z.shape
    wide = n < m
    energies, vectors = np.linalg.eigh(Z @ Z.T if wide else Z.T @ Z)
    energies = np.maximum(energies, 0.0)
    total = max(float(energies.sum()) / (n * m * share), 1e-12)
    noise = float(np.median(energies)) / (max(n, m) * _median_of_noise(n, m) * share)
    noise = min(max(TRUSTING * noise, LEAST_NOISE * total), MOST_NOISE * total)
    top = energies[::-1][:r]
    good = top > 1e-10 * max(float(top[0]), 1e-300)
    top, vectors = top[good], vectors[:, ::-1][:, :r][:, good]
    atoms = Z.T @ (vectors / np.sqrt(top)) if wide else vectors
    if share < 0.5:
        edge = share * (noise + (1.0 - share) * total) * (np.sqrt(n) + np.sqrt(m)) ** 2
        size = np.sqrt(np.maximum(top - edge, 0.02 * top) / n) / share
    else:
        size = np.sqrt(top / (n * share))
    C = np.zeros((m, r + 1))
    C[:, : len(top)] = atoms * size
    # A little of everything: what the head does not show can still grow.
    C[:, :r] += 0.01 * np.sqrt(total / r) * rng.standard_normal((m, r))
    return C, noise


def _median_of_noise(n: int, m: int) -> float:
    """Median of the Marchenko-Pastur law, squared singular values over the longer side."""
    ratio = min(n, m) / max(n, m)
    return float(np.interp(ratio, [0, 0.25, 0.5, 0.75, 1], [1.0, 0.911, 0.828, 0.739, 0.6528]))
