"""`State`: everything the next step needs, in nested groups.

The model of a row y of m features, with r components (R = r + 1 with the mean):

    y_i = center_i + noise_std_i (c_iᵀx̃ + ε_i),   x̃ = (x, 1),   x ~ N(0, I),   ε_i ~ N(0, 1),
    c_i ~ N(0, diag(v))                                            on the observed entries.

Features are in units of their noise after a fixed centre was subtracted, so the noise is 1 for all
of them. The last entry of a code is 1, and the last column of C is the mean. Treat all arrays as
read-only.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.drift import MEMORY
from .config import FactorConfig
from .stats import Matrix, Stats, Vector

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of p(y | x) and of the prior of the dictionary.

    Attributes
    ----------
    C : ndarray of shape (m, R)
        The dictionary and, in its last column, the mean.
    v : ndarray of shape (R,)
        Prior variances of the columns of C (automatic relevance determination).
    center : ndarray of shape (m,)
        What is subtracted from each feature.
    scale : ndarray of shape (m,)
        Standard deviation of each feature in the first rows: the unit of scores.
    noise_std : ndarray of shape (m,)
        Standard deviation of each feature's noise.
    basis_change : ndarray of shape (R, R)
        Accumulated change of basis, for merges: codes_start = basis_change @ codes_now.
    precision : float
        The weight of entries with that noise, the average one of the first rows.
    """

    C: NDArray[Any]
    v: Vector
    center: Vector
    scale: Vector
    noise_std: Vector
    basis_change: Matrix
    precision: float = 1.0


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch works with; its codes are made by what it began with, however it is cut.

    Attributes
    ----------
    C_batch : ndarray of shape (m, R) or None
        The dictionary at the start of the batch; None if it is still `Params.C`.
    G : ndarray of shape (R, R)
        Its Gram matrix.
    Sigma : ndarray of shape (R, R)
        Posterior covariance of a row of C, S⁻¹ at the last M-step.
    S_inverse : ndarray of shape (R, R)
        S⁻¹ after the last row: computed at the start of the batch, then kept up to date by
        rank-one updates.
    inverse_coverage : ndarray of shape (m,)
        How many times as often as a feature itself the average one had been observed.
    count_fade : float
        What rows of few entries have left of `Stats.counts` and `Stats.residual_sums`, which are
        still to be multiplied by it (`restrict.py`).
    """

    C_batch: NDArray[Any] | None
    G: Matrix
    Sigma: Matrix
    S_inverse: Matrix
    inverse_coverage: Vector
    count_fade: float = 1.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many rows have come, and how many come before the next batch and M-step.

    Attributes
    ----------
    n_seen, n_entries : int
        Rows and observed entries so far.
    batch_left, update_left : int
        Rows until codes get a new dictionary, and until the next M-step.
    fade, head_start : float
        Each row leaves forget_factor · (1 − fade / (rows + head_start)) of the past.
    has_missing : bool
        Whether an entry was missing before this batch. If so, held-out entries are withheld from
        the dictionary as well.
    pass_rows : int
        Rows of the first pass, while they come again; 0 while rows are new.
    extra_weight : float
        By how much the weights of the rows since the past was last forgotten exceed their number.
    """

    n_seen: int
    n_entries: int
    batch_left: int
    update_left: int
    fade: float
    head_start: float
    has_missing: bool
    pass_rows: int
    extra_weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Holdout:
    """Scores on held-out entries.

    Attributes
    ----------
    masks : ndarray of shape (n_masks, m)
        Patterns of entries that a scored row may show.
    histogram : ndarray of shape (n_bins,)
        |error| / predictive standard deviation, faded: what makes intervals conformal.
    n_scored : int
        Scored rows so far.
    sse : ndarray of shape (2, 2)
        Squared errors of the model and of the mean, in units of `Params.scale`: of all rows so
        far, and of the most recent ones.
    """

    masks: Flags
    histogram: Vector
    n_scored: int
    sse: Matrix


@dataclass(frozen=True, slots=True)
class Outliers:
    """Whether entries far from what the rest of their row predicts count as missing.

    Attributes
    ----------
    votes : ndarray of shape (3,)
        Votes of held-out entries on dropping outliers, where tails are heavy: number, sum, squares.
    detect, drop : bool
        Whether votes are taken in this batch, and whether outliers are dropped.
    n_dropped : ndarray of shape (m,)
        Entries of each feature that were dropped.
    run_length : ndarray of shape (m,)
        How many of the last consecutive entries of each feature were outliers.
    """

    votes: Vector
    detect: bool
    drop: bool
    n_dropped: NDArray[np.int64]
    run_length: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of single features.

    Attributes
    ----------
    known : ndarray of shape (m,)
        Features whose unit is known; others count as missing until then.
    pending_moments : ndarray of shape (3, m)
        Of features that are not known: count, mean, and sum of squares about it.
    integer : ndarray of shape (m,)
        Features that have held whole numbers only.
    constant, varied : ndarray of shape (m,)
        Features that had not varied when the batch began though others had, and which of them have
        varied since.
    constant_value : ndarray of shape (m,)
        The value of constant features.
    last_seen : ndarray of shape (m,)
        Number of the last row that observed each feature; empty if silent features stay.
    """

    known: Flags
    pending_moments: Matrix
    integer: Flags
    constant: Flags
    varied: Flags
    constant_value: Vector
    last_seen: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


def _no_numbers() -> Vector:
    return np.zeros(0)


def _no_matrix() -> Matrix:
    return np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class Seasons:
    """Cycles in time: feature i has Σ_k a_ik cos(2π f_k t) + b_ik sin(2π f_k t) besides its mean.

    Attributes
    ----------
    periods : ndarray of shape (n_periods,)
        Lengths of the cycles, in the units of times.
    frequencies : ndarray of shape (n_frequencies,)
        Frequencies of the cycles and their harmonics, in cycles per unit of time.
    loadings : ndarray of shape (m, 2 n_frequencies)
        The a of each feature, then its b, in units of the noise.
    code_basis : ndarray of shape (r, r)
        About the seasons, codes are `code_basis` @ u with u of covariance I: less is left of
        components that the seasons explain. Empty if it was not estimated.
    """

    periods: Vector
    frequencies: Vector
    loadings: Matrix
    code_basis: Matrix = field(default_factory=_no_matrix)


@dataclass(frozen=True, slots=True)
class Regressors:
    """Columns that are always known, and what they add to the others (`regressors.py`).

    Attributes
    ----------
    columns : ndarray of shape (q,)
        The known features.
    mean, scale : ndarray of shape (q,)
        Their means and standard deviations.
    loadings : ndarray of shape (m, q)
        What a feature gains if a known one is a standard deviation above its mean, in the data's
        units.
    code_basis : ndarray of shape (r, r)
        As that of `Seasons`, about the regressors.
    """

    columns: NDArray[np.int64]
    mean: Vector
    scale: Vector
    loadings: Matrix
    code_basis: Matrix = field(default_factory=_no_matrix)


@dataclass(frozen=True, slots=True)
class Horizons:
    """What backtests say of forecasts, for each of q horizons.

    Attributes
    ----------
    steps : ndarray of shape (q,)
        The horizons, in steps.
    weight : ndarray of shape (q, m)
        Weight of the last known value beside the forecast by the factors.
    ratio : ndarray of shape (q, m)
        Size of the errors, in deviations predicted by the factors.
    histogram : ndarray of shape (n_bins,)
        |error| / (ratio · predicted deviation), of all features and horizons.
    """

    steps: Vector
    weight: Matrix
    ratio: Matrix
    histogram: Vector


@dataclass(frozen=True, slots=True)
class Innovations:
    """Factors of the innovations of features' own series (`innovations.py`).

    Attributes
    ----------
    C : ndarray of shape (m, k)
        Loadings in units of the noise.
    noise_std : ndarray of shape (m,)
        Deviations of what the factors leave of an innovation, over √(1 − φ²).
    """

    C: Matrix
    noise_std: Vector


@dataclass(frozen=True, slots=True)
class Temporal:
    """How rows depend on those before them, and where the sequence stands.

    Codes and residuals of features follow autoregressions of order one about the seasons.

    Attributes
    ----------
    code_ar : ndarray of shape (r,)
        Coefficients of the codes; 0 where they are not used.
    residual_ar : ndarray of shape (m,)
        Coefficients of the features' residuals.
    last_code, last_code_cov : ndarray of shape (r,), (r, r)
        Posterior of the last row's code.
    last_residual : ndarray of shape (m,)
        The last known residual of each feature, in units of its noise; 0 if none is known.
    residual_age : ndarray of shape (m,)
        Rows since then.
    histogram : ndarray of shape (n_bins,)
        |error| / predicted deviation of entries held out in time.
    one_step_histogram : ndarray of shape (n_bins,)
        The same of forecasts of one row.
    series_ar : ndarray of shape (m,)
        Coefficients of each feature's own series.
    series_noise, series_size : ndarray of shape (m,)
        The share of its variance that is noise, and its deviation.
    series_weight : ndarray of shape (n_distances, m)
        Weight of the feature's own series in a filled value (`univariate.py`).
    n_seen : int
        Rows that had been learned from by the last of them.
    last_value : ndarray of shape (m,)
        The last known value of each feature without its season, in units of its noise.
    step : float
        The usual time between two rows: the unit of the coefficients' time.
    last_time : float
        When the last row came: seconds since 1970, or the number of the row if rows have no times.
    stamped : bool
        Whether rows have times.
    window_start : float or None
        When the first of the rows came that seasons are estimated from, if others came before.
    seasons : Seasons or None
        Cycles that fill held-out gaps better; None if there are none.
    horizons : Horizons or None
        Weights and widths of forecasts; None if there were too few rows for backtests.
    regressors : Regressors or None
        Known columns; all the rest is about what they leave. None if there are none.
    innovations : Innovations or None
        What innovations of the features' own series share; None if that does not help.
    """

    code_ar: Vector
    residual_ar: Vector
    last_code: Vector
    last_code_cov: Matrix
    last_residual: Vector
    residual_age: NDArray[np.int64]
    histogram: Vector
    one_step_histogram: Vector
    series_ar: Vector
    series_weight: Matrix
    n_seen: int = 0
    last_value: Vector = field(default_factory=_no_numbers)
    step: float = 1.0
    last_time: float = 0.0
    stamped: bool = False
    window_start: float | None = None
    seasons: Seasons | None = None
    horizons: Horizons | None = None
    regressors: Regressors | None = None
    innovations: Innovations | None = None
    series_noise: Vector = field(default_factory=_no_numbers)
    series_size: Vector = field(default_factory=_no_numbers)


@dataclass(frozen=True, slots=True)
class FeaturePosterior:
    """Posterior covariances of the rows of C, one for each feature: p(c_i | table) = N(c_i, Σ_i).

    Where a fit had the whole table at hand. A stream has one covariance for all features
    (`Batch.Sigma`), so learning from more rows drops these.

    Attributes
    ----------
    active : ndarray of shape (k + 1,)
        The components that have loadings, in rising order; the last one is the mean.
    covariances : ndarray of shape (m, k + 1, k + 1)
        Σ_i, restricted to those components.
    """

    active: NDArray[np.int64]
    covariances: Matrix


@dataclass(frozen=True, slots=True)
class Drift:
    """Whether rows still look as they did (`drift.py`).

    Attributes
    ----------
    memory : ndarray of shape (8,)
        What Page's test remembers, see `linalg/drift.py`.
    alarms : ndarray of shape (n_alarms,)
        Numbers of the rows at which it has raised an alarm, the last ones.
    origin : int
        Rows before the last time that the past was forgotten.
    """

    memory: Vector = field(default_factory=lambda: np.zeros(MEMORY))
    alarms: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    origin: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """Everything the next step needs.

    Attributes
    ----------
    config : FactorConfig
        What the user gave.
    seed : int
        Of what is drawn at random.
    params, batch, stats, schedule, holdout, outliers, features
        See their classes.
    temporal : Temporal or None
        If rows are consecutive in time.
    posterior : FeaturePosterior or None
        If a fit has refined each feature by itself.
    drift : Drift
        See its class.
    """

    config: FactorConfig
    seed: int
    params: Params
    batch: Batch
    stats: Stats
    schedule: Schedule
    holdout: Holdout
    outliers: Outliers
    features: Features
    temporal: Temporal | None = None
    posterior: FeaturePosterior | None = None
    drift: Drift = field(default_factory=Drift)

    @property
    def C(self) -> NDArray[Any]:  # noqa: N802
        """The dictionary and, in its last column, the mean."""
        return self.params.C

    @property
    def n_seen(self) -> int:
        """Rows so far."""
        return self.schedule.n_seen

    @property
    def age(self) -> int:
        """Rows since the past was last forgotten."""
        return self.schedule.n_seen - self.drift.origin

    @property
    def width(self) -> int:
        """How many features a row has, of which it observes a share."""
        return len(self.params.C)

    @property
    def n_components(self) -> int:
        """Components, active or not."""
        return self.params.C.shape[1] - 1

    @property
    def holds_out(self) -> bool:
        """Whether the next rows hold entries out: of complete streams only in the first pass."""
        return self.schedule.has_missing or self.schedule.pass_rows == 0

    def numbers(self, n: int) -> NDArray[np.int64]:
        """Numbers of the next n rows, where every pass has the same rows in the same order."""
        numbers = self.schedule.n_seen + np.arange(n)
        return numbers % self.schedule.pass_rows if self.schedule.pass_rows > 0 else numbers

    @property
    def coding(self) -> NDArray[Any]:
        """The dictionary that makes the codes."""
        return self.params.C if self.batch.C_batch is None else self.batch.C_batch

    @property
    def one(self) -> float:
        """The code of the mean: 1, or 0 if no mean is learned."""
        return 1.0 if self.config.center else 0.0

    @property
    def spread(self) -> Vector:
        """Standard deviation of a feature given its row: its noise, or its scale if unknown."""
        return np.where(self.features.known, self.params.noise_std, self.params.scale)

    def keep(self, n: int, weights: Vector | None = None) -> Vector:
        """What each of the next n rows leaves of the past; a row of weight 2 as two rows do."""
        age, extra = self.age, self.schedule.extra_weight
        each = np.ones(n) if weights is None else weights
        rows = age + extra + np.cumsum(each)
        if self.schedule.pass_rows > 0:  # rows that come again are no new evidence
            usual = 1.0 + extra / max(age, 1)
            most = self.config.hyper.max_passes_weight * self.schedule.pass_rows
            rows = np.minimum(rows, usual * most)
        after = rows + self.schedule.head_start
        kept: Vector = self.config.fixed_forget_factor * (1.0 - self.schedule.fade / after)
        return kept if weights is None else np.maximum(kept, 0.0) ** weights


_GROUPS = {
    "params": Params, "batch": Batch, "stats": Stats, "schedule": Schedule, "holdout": Holdout,
    "outliers": Outliers, "features": Features, "drift": Drift,
}  # fmt: skip
_GROUP_OF = {each.name: name for name, group in _GROUPS.items() for each in fields(group)}


def evolve(state: State, **changes: Any) -> State:
    """The state with fields replaced, whichever group they belong to.

    >>> evolve(state, C=C, G=gram(C), n_seen=5)  # doctest: +SKIP
    """
    by_group: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        by_group.setdefault(_GROUP_OF.get(name, ""), {})[name] = value
    own = by_group.pop("", {})
    groups = {name: replace(getattr(state, name), **new) for name, new in by_group.items()}
    return replace(state, **groups, **own)


def settled(state: State) -> State:
    """The state with all statistics faded by the rows of the batch."""
    fade, stats = state.batch.count_fade, state.stats
    if fade == 1.0:
        return state
    return evolve(
        state, counts=fade * stats.counts, residual_sums=fade * stats.residual_sums, count_fade=1.0
    )
