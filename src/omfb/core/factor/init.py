"""The first state: units, mean, directions and noise of the head, the first rows of a stream.

With Z the head (n, m), centred, in units of its deviations and zero where entries are missing (a
share s is observed), λ its squared singular values and V its right singular vectors,

    C = V √(λ / (n s)),   or with s < ½   C = V √(max(λ − edge, λ/50) / n) / s,
    edge = s (σ² + (1 − s) total) (√n + √m)²

as missing entries shrink what is signal by s and add noise that reaches up to `edge`. The noise σ²
is read off the median singular value, as Gavish and Donoho do.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import canonical, dense_with_holes
from ..conformal import N_BINS
from ..linalg.rows import gram
from ..weighted import WeightedRows, values_of
from .config import FactorConfig
from .features import ROUNDING, constant_features, integer_features
from .holdout import held_out_of_head, sample_masks
from .hyper import Hyper
from .schedule import batch_rows, fading, update_rows
from .state import Batch, Features, Flags, Holdout, Outliers, Params, Schedule, State
from .stats import Matrix, Stats, Vector, inverse

# The head is at most this large.
HEAD_BYTES = 1 << 23
# Values beyond this, or below its inverse, are divided before they are squared.
SAFE_SIZE = 1e100
# Units are not below this: they are divided by.
LEAST_UNIT = 1e-301
# Deviations that make a feature suspect of spikes, the share of its entries that these are at most,
# and how many times as far off as all others they are: heavy tails have no such gap.
SUSPECT, MOST_SPIKES, GAP = 3.0, 0.1, 2.5
# Features that must have enough entries to say what others are like.
LEAST_INFORMATIVE = 5
# Deviations from the expected mean beyond which few entries are taken as they are, and the share of
# such features with which features are not alike.
UNLIKE, MOST_UNLIKE = 5.0, 0.1
# Bounds of the first noise, as shares of all that varies.
LEAST_NOISE, MOST_NOISE = 0.02, 0.5


def head_rows(n_features: int, config: FactorConfig) -> int:
    """How many rows the first state is made of."""
    fit_in = HEAD_BYTES // (8 * max(n_features, 1))
    return max(2 * config.components_for(n_features), min(config.hyper.head_rows, fit_in))


def init(
    rows: Any, config: FactorConfig | None = None, *, seed: int = 0,
    numbers: NDArray[np.int64] | None = None,
) -> State:  # fmt: skip
    """The state before it learns from any row.

    Parameters
    ----------
    rows : ndarray, scipy.sparse or WeightedRows of shape (n, m)
        The first rows of the stream; of many, `head_rows` are used.
    config : FactorConfig, default=FactorConfig()
    seed : int, default=0
        Of what is drawn at random.
    numbers : ndarray or None, default=None
        Of the rows, see `holdout.py`; None is from 0 on.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import factor
    >>> Y = np.random.default_rng(0).normal(size=(100, 20))
    >>> state = factor.init(Y, factor.FactorConfig(n_components=3))
    >>> state, codes, info = factor.step(state, Y)
    >>> codes.shape
    (100, 3)
    """
    config = FactorConfig() if config is None else config
    dtype = rows.dtype
    given = rows[: head_rows(rows.shape[1], config)] if isinstance(rows, WeightedRows) else None
    rows = values_of(rows)
    head = canonical(rows) if scipy.sparse.issparse(rows) else rows
    head = head[: head_rows(head.shape[1], config)]
    values = dense_with_holes(head) if scipy.sparse.issparse(head) else head
    values = values.astype(np.float64, copy=False)
    seen = ~np.isnan(values)
    share = max(float(seen.mean()), 1.0 / max(seen.size, 1))
    rng = np.random.default_rng(seed)
    has_missing = bool(not seen.all())
    masks = sample_masks(seen, config, rng)
    if has_missing:
        numbers = np.arange(len(seen)) if numbers is None else numbers[: len(seen)]
        seen = seen & ~held_out_of_head(numbers, seed, seen, masks, config)
    weights = None if given is None else _head_weights(given, seen)
    center, scale = _units(values, seen, config, weights)
    spikes, alone = np.zeros_like(seen), False
    if config.robust:
        spikes, alone = _spikes(values, seen, center, scale, config.hyper)
    if spikes.any():
        has_missing, seen = True, seen & ~spikes
        center, scale = _units(values, seen, config, weights)
    n_rows = len(values) if given is None else float(given.weights.sum())
    return _assembled(
        config, seed, dtype, values, seen, share, center, scale, masks, has_missing,
        alone, rng, n_rows, weights,
    )  # fmt: skip


class _HeadWeights(NamedTuple):
    """Weights of the head's entries, 1 on average, and the weight of the average entry."""

    entries: Matrix
    """(n, 1), or (n, m) if entries have weights of their own."""
    precision: float


def _head_weights(given: WeightedRows, seen: Flags) -> _HeadWeights:
    rows = given.weights[:, None] / float(given.weights.mean())
    if given.precisions is None or not seen.any():
        return _HeadWeights(rows, 1.0)
    weights = rows * np.where(seen, np.nan_to_num(dense_with_holes(given.precisions)), 0.0)
    precision = float(weights.sum() / np.sum(np.broadcast_to(rows, seen.shape), where=seen))
    return _HeadWeights(weights / precision, precision)


def _assembled(
    config: FactorConfig, seed: int, dtype: Any, values: Matrix, seen: Flags, share: float,
    center: Vector, scale: Vector, masks: Flags, has_missing: bool, alone: bool,
    rng: np.random.Generator, n_rows: float, weights: _HeadWeights | None,
) -> State:  # fmt: skip
    """The state of a head with these units, whose rows count as `n_rows`."""
    m = values.shape[1]
    r = config.components_for(m)
    Z = np.where(seen, values - center, 0.0)
    Z /= scale
    if weights is not None:
        Z *= np.sqrt(weights.entries)
    in_data_units = not config.scale and not config.center
    known = np.asarray(seen.any(axis=0)) | in_data_units
    C, variance = _directions(Z, share, r, config, known, rng)
    noise = float(np.sqrt(variance))
    C /= noise
    n_rows = max(n_rows * share * config.hyper.head_weight, 1.0)
    v = np.append(np.maximum(np.mean(C[:, :r] ** 2, axis=0), 1e-6), 0.1 / variance)
    S = n_rows * np.eye(r + 1) + np.diag(1.0 / v)
    constant, constant_value = constant_features(values, seen)
    fade, head_start = fading(1.0 - share, r, config)
    batch = batch_rows(0, has_missing, config)
    C, S_inverse = np.ascontiguousarray(C, dtype), inverse(S)
    return State(
        config, seed,
        Params(
            C, v, center, scale, scale * noise, np.eye(r + 1),
            1.0 if weights is None else weights.precision,
        ),
        Batch(None, gram(C), S_inverse, S_inverse, np.ones(m)),
        Stats.start(S, m, n_rows),
        Schedule(
            0, 0, batch, update_rows(0, r, batch, config), fade, head_start, has_missing, 0
        ),
        Holdout(masks, np.zeros(N_BINS), 0, np.zeros((2, 2))),
        Outliers(np.zeros(3), alone, alone, np.zeros(m, np.int64), np.zeros(m, np.int64)),
        Features(
            known, np.zeros((3, m)), integer_features(values, seen), constant, np.zeros(m, bool),
            constant_value,
        ),
    )  # fmt: skip


def _units(
    rows: Matrix, seen: Flags, config: FactorConfig, weights: _HeadWeights | None = None
) -> tuple[Vector, Vector]:
    """The mean of each feature, and its deviation or, if it is constant, its size.

    Weights are those of the entries, see `_head_weights`. Of a feature that is not seen, how far
    from its centre it may well be.
    """
    counts = seen.sum(axis=0)
    known = np.where(seen, rows, 0.0)
    size = np.maximum(known.max(axis=0), -known.min(axis=0))
    # Squares of huge values would overflow, and those of tiny ones vanish.
    least = size[size > 0.0].min(initial=1.0)
    extreme = bool(size.max() > SAFE_SIZE or least < 1.0 / SAFE_SIZE)
    scale = np.where(size > 0.0, size, 1.0) if extreme else np.ones_like(size)
    known /= scale
    if weights is None:
        mean = known.sum(axis=0) / np.maximum(counts, 1)
    else:
        shares = np.where(seen, weights.entries, 0.0)
        shares /= np.maximum(shares.sum(axis=0), 1e-300)
        mean = np.sum(shares * known, axis=0)
    known -= mean
    known *= seen
    if weights is not None:
        known *= np.sqrt(shares * counts)
    deviation = np.sqrt(np.einsum("ti,ti->i", known, known) / np.maximum(counts - 1, 1))
    varies = (deviation > ROUNDING * np.abs(mean)) & (counts > 1)
    mean, deviation = mean * scale, deviation * scale
    typical = float(np.median(deviation[varies])) if varies.any() else 1.0
    center = (
        _shrunk_means(mean, deviation, counts, config) if config.center else np.zeros(len(size))
    )
    if not config.scale:
        each = deviation[varies] if config.center else size
        peak = float(each.max(initial=0.0))
        root = peak * float(np.sqrt(np.mean((each / peak) ** 2))) if peak > 0.0 else 1.0
        return center, np.full(len(size), max(root, LEAST_UNIT))
    constant = np.where(mean != 0.0, np.abs(mean), typical)
    # Where few entries are not believed to be the mean, they are no farther off than a unit.
    constant = np.maximum(constant, np.abs(mean - center))
    unit = np.maximum(np.where(varies, deviation, constant), LEAST_UNIT)
    unseen = counts == 0
    if unseen.any() and not unseen.all():
        apart = 1.4826 * float(np.median(np.abs(mean[~unseen] - center[unseen][0])))
        unit[unseen] = np.hypot(typical, apart)
    return center, unit


def _shrunk_means(
    mean: Vector, deviation: Vector, counts: NDArray[np.int64], config: FactorConfig
) -> Vector:
    """The means; those of features with few entries are shrunk towards the others'.

    Where features are alike, as ratings are, a few entries of one say little beside the means of
    the others; where they are not, as with sensors, the others say nothing. Features with more
    entries show how alike they are.
    """
    few = config.hyper.few_entries
    for least in (few, 2):
        told = counts >= least
        if told.sum() >= LEAST_INFORMATIVE:
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
    return np.where(counts >= few, mean, size * (usual + own * (means - usual)))


def _spikes(
    rows: Matrix, seen: Flags, center: Vector, unit: Vector, hyper: Hyper
) -> tuple[Flags, bool]:
    """Entries of the head so far off that they would decide the units of their features.

    Measured by the median absolute deviation, which they do not change. Only those that stand alone
    count: many of them, or ever fewer the farther off, are how the feature is. Also returns whether
    they do in most features that have entries so far off; in a single one it may be by chance.
    """
    spikes = np.zeros(seen.shape, bool)
    with np.errstate(invalid="ignore", over="ignore"):
        known = rows if seen.all() else np.where(seen, rows, center)
        highest = np.maximum(known.max(axis=0) - center, center - known.min(axis=0)) / unit
        suspect = np.flatnonzero(highest > SUSPECT)
        usable = seen[:, suspect]
        middle = _medians(rows[:, suspect], usable)
        away = np.where(usable, np.abs(rows[:, suspect] - middle), 0.0)
        usual = 1.4826 * _medians(away, usable)
        far = (away > hyper.spike_limit * usual) & (usual > 0.0)
        nearest = np.where(far, away, np.inf).min(axis=0)
        gap = nearest > GAP * np.where(far, 0.0, away).max(axis=0)
        count = far.sum(axis=0)
        few = (count > 0) & (count <= MOST_SPIKES * usable.sum(axis=0))
    spikes[:, suspect] = far & gap & few
    return spikes, bool(2 * np.sum(gap & few) > np.sum(few))


def _medians(rows: Matrix, seen: Flags) -> Vector:
    """The (upper) median of what is seen of each column."""
    ordered = np.sort(np.where(seen, rows, np.inf), axis=0)
    middle = np.minimum(seen.sum(axis=0) // 2, len(rows) - 1)
    return np.asarray(ordered[middle, np.arange(rows.shape[1])], np.float64)


def _directions(
    Z: Matrix, share: float, r: int, config: FactorConfig, known: Flags, rng: np.random.Generator
) -> tuple[Matrix, float]:
    """The first dictionary (m, r + 1) in units of the features, and the variance of the noise."""
    n, m = Z.shape
    wide = n < m
    energies, vectors = np.linalg.eigh(Z @ Z.T if wide else Z.T @ Z)
    energies = np.maximum(energies, 0.0)
    total = max(float(energies.sum()) / (n * m * share), 1e-12)
    noise = float(np.median(energies)) / (max(n, m) * _median_of_noise(n, m) * share)
    noise = min(max(config.hyper.first_noise * noise, LEAST_NOISE * total), MOST_NOISE * total)
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
    # A little of everything: what the head does not show can still grow. Features that it does not
    # observe, which of wide sparse tables are nearly all, get loadings when they are admitted.
    C[known, :r] += 0.01 * np.sqrt(total / r) * rng.standard_normal((np.count_nonzero(known), r))
    return C, noise


def _median_of_noise(n: int, m: int) -> float:
    """Median of the Marchenko-Pastur law, squared singular values over the longer side."""
    ratio = min(n, m) / max(n, m)
    return float(np.interp(ratio, [0, 0.25, 0.5, 0.75, 1], [1.0, 0.911, 0.828, 0.739, 0.6528]))
