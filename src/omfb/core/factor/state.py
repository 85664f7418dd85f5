"""All that is known after the rows so far (`Model`), and what follows from it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..require import demand
from .config import FactorConfig

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
# A feature's share of the average count that its part of S is not below.
LEAST_SHARE = 0.02
# As many times as this, rows of a table may count that come again and again.
MOST_PASSES = 1.5


@dataclass(frozen=True, slots=True)
class Memory:
    """How rows in time depend on those before them, and the last of them.

    Attributes
    ----------
    codes : ndarray of shape (r,)
        Of each component, what its code keeps from one row to the next; 0 where that is not used.
    residuals : ndarray of shape (m,)
        The same of each feature's residual.
    code, covariance : ndarray of shape (r,), (r, r)
        Code of the last row.
    residual : ndarray of shape (m,)
        The last residual that is known of each feature, in units of its noise; 0 if none is.
    age : ndarray of shape (m,)
        Rows since then.
    series : ndarray of shape (m,)
        What each feature itself keeps from one row to the next.
    trust : ndarray of shape (n_distances, m)
        What of a filled value is bridged by the feature's own series: see `alone.py`.
    n_seen : int
        Rows that the model had learned from by the last of them.
    histogram : ndarray of shape (n_bins,)
        Errors of entries hidden in time, in units of their predicted deviation.
    ahead : ndarray of shape (n_bins,)
        Errors of forecasts by one row, in those units.
    """

    codes: Vector
    residuals: Vector
    code: Vector
    covariance: Matrix
    residual: Vector
    age: NDArray[np.int64]
    histogram: Vector
    ahead: Vector
    series: Vector
    trust: Matrix
    n_seen: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """All that the next step needs. Treat its arrays as read-only.

    Of m features and r components; a last, (r+1)-th entry of codes and column of C belong to the
    mean. Features are in units of their noise, after `center` was subtracted.

    Attributes
    ----------
    config : FactorConfig
    seed : int
        Of what is drawn at random.
    C : ndarray of shape (m, r + 1)
        The dictionary and, last, the mean.
    C_codes : ndarray of shape (m, r + 1) or None
        The dictionary at the start of the batch, which makes the codes of its rows; None there.
    G : ndarray of shape (r + 1, r + 1)
        Gram matrix of the dictionary that makes the codes.
    S : ndarray of shape (r + 1, r + 1)
        Precision of a row of C.
    Sigma : ndarray of shape (r + 1, r + 1)
        Its covariance, S⁻¹ as of the last revision.
    unsure : ndarray of shape (r, r)
        Covariances of the codes since the last revision, faded as S.
    v : ndarray of shape (r + 1,)
        Prior variances of the columns of C.
    center, unit, noise : ndarray of shape (m,)
        What is subtracted, the deviation of a feature at the start, and that of its noise.
    counts : ndarray of shape (m,)
        How many rows each feature has learned from, faded as S.
    rarity : ndarray of shape (m,)
        How many times less than the average one each feature had been observed when the batch
        began: 1 / f.
    errors : ndarray of shape (2, m)
        Squared residuals of each feature and their number, faded as S.
    n_rows : float
        How many rows S holds, faded, each by the share of features it observes.
    weight : float
        The weights of `unsure`.
    held : float
        What S still holds of the prior.
    energy, freedom : float
        Residual energy and its degrees of freedom, faded as S.
    fade, head_start : float
        A row is weighted by how late it came: keep = memory · (1 − fade / (rows + head_start)).
    n_seen, n_entries : int
        Rows and observed entries so far.
    batch_left, period_left : int
        Rows until the codes get a new dictionary, and until the next revision.
    gappy : bool
        Whether an entry was missing before this batch; then checked rows hide what they hide from
        the dictionary, too.
    pass_rows : int
        Rows of the first pass, while they come again; 0 while rows are new.
    masks : ndarray of shape (n_masks, m)
        What rows that are checked may show.
    histogram : ndarray of shape (n_bins,)
        Errors of hidden entries in units of their predicted deviation, faded.
    checked : int
        Rows that were checked so far.
    judged : ndarray of shape (2, 2)
        Squared errors of hidden entries and squares of those entries, in units: of all rows so
        far, and of the last ones.
    trial : ndarray of shape (3,)
        Votes of hidden entries on dropping outliers, where tails are heavy: number, sum, squares.
    looks, drops : bool
        Whether outliers are looked for in this batch, and whether they are dropped.
    outliers : ndarray of shape (m,)
        Entries of each feature that were taken for outliers.
    runs : ndarray of shape (m,)
        How many of the last entries of each feature in a row were.
    whole : ndarray of shape (m,)
        Features that held whole numbers only, as far as they were observed.
    constant, varied, level : ndarray of shape (m,)
        Features that had not varied when the batch began, though others had; which of them have
        since; and what they were.
    known : ndarray of shape (m,)
        Features whose units are known; others are missing from what is learned.
    first : ndarray of shape (3, m)
        Of features that are not known: count, mean, and sum of squares about it.
    turn : ndarray of shape (r + 1, r + 1)
        What makes codes of now into those of the start, which revisions have turned since.
    kept : float
        What S still holds of what it was at the start.
    memory : Memory or None
        How rows in time depend on each other, if they are in time.
    """

    config: FactorConfig
    seed: int
    C: NDArray[Any]
    C_codes: NDArray[Any] | None
    G: Matrix
    S: Matrix
    Sigma: Matrix
    unsure: Matrix
    v: Vector
    center: Vector
    unit: Vector
    noise: Vector
    counts: Vector
    rarity: Vector
    errors: Matrix
    n_rows: float
    weight: float
    held: float
    energy: float
    freedom: float
    fade: float
    head_start: float
    n_seen: int
    n_entries: int
    batch_left: int
    period_left: int
    gappy: bool
    pass_rows: int
    masks: NDArray[np.bool_]
    histogram: Vector
    checked: int
    judged: Matrix
    trial: Vector
    looks: bool
    drops: bool
    outliers: NDArray[np.int64]
    runs: NDArray[np.int64]
    whole: NDArray[np.bool_]
    constant: NDArray[np.bool_]
    varied: NDArray[np.bool_]
    level: Vector
    known: NDArray[np.bool_]
    first: Matrix
    turn: Matrix
    kept: float
    memory: Memory | None = None

    @property
    def n_components(self) -> int:
        """Components, in use or not."""
        return self.C.shape[1] - 1

    @property
    def judges(self) -> bool:
        """Whether the next rows hide something: of complete streams those of a first pass only."""
        return self.gappy or self.pass_rows == 0

    @property
    def coding(self) -> NDArray[Any]:
        """The dictionary that makes the codes."""
        return self.C if self.C_codes is None else self.C_codes

    @property
    def one(self) -> float:
        """The code of the mean: 1, or 0 where there is none."""
        return 1.0 if self.config.center else 0.0

    @property
    def spread(self) -> Vector:
        """Deviation of what the rest of its row does not tell of a feature: of unknown ones all."""
        return np.where(self.known, self.noise, self.unit)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which components stand out of what noise alone would make of them.

        The largest variance of n rows of noise in m dimensions is (1 + √(m / n))².
        """
        m = len(self.C)
        a = m / max(self.n_rows, 1.0)
        there = np.diagonal(self.G)[:-1] > 1e-12  # not spared at the end of a fit
        return there & (self.v[:-1] > 1.5 * (2.0 * np.sqrt(a) + a) / m)

    def keep(self, n: int) -> Vector:
        """What each of the next n rows leaves of the past."""
        rows = self.n_seen + np.arange(1.0, n + 1.0)
        if self.pass_rows > 0:  # rows that come again are no new evidence
            rows = np.minimum(rows, MOST_PASSES * self.pass_rows)
        after = rows + self.head_start
        kept: Vector = self.config.forget_factor * (1.0 - self.fade / after)
        return kept


def rarity_of(counts: Vector) -> Vector:
    """1 / f of each feature, from how often each has been observed."""
    shares = counts / max(float(counts.mean()), 1e-300)
    rarity: Vector = (1.0 / np.clip(shares, LEAST_SHARE, 1.0)).astype(np.float64)
    return rarity


def inverse(S: Matrix) -> Matrix:
    """S⁻¹ of a precision; of a little more than it where rounding has made it singular.

    One row that is a hundred million deviations off does that: what it says of one direction leaves
    no digits for the others.
    """
    try:
        return np.asarray(np.linalg.inv(S), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.inv(S + np.diag(1e-12 * np.diagonal(S))), np.float64)


def least_variance(n_features: int, n_rows: float) -> float:
    """What is left of the variance of a component that is switched off.

    ω / n with 1/ω = 2√a + a/(1 + √a)², a = m / n: below that, noise cannot bring it back, but
    signal can.
    """
    n = max(n_rows, 1.0)
    a = n_features / n
    return float(1.0 / (2.0 * np.sqrt(a) + a / (1.0 + np.sqrt(a)) ** 2) / n)


# No stream is longer; numbers beyond it would overflow where they meet floats.
LARGEST_COUNT = 2**62


def check_model(model: Model) -> None:
    """Refuse, by a ValueError, a model that no learning can have led to."""
    m, R = model.C.shape if model.C.ndim == 2 else (0, 0)
    r = R - 1
    demand(m > 0 and r > 0 and model.C.dtype in FLOATS, "its dictionary is no matrix")
    shapes = {
        "G": (R, R), "S": (R, R), "Sigma": (R, R), "unsure": (r, r), "v": (R,), "center": (m,),
        "unit": (m,), "noise": (m,), "counts": (m,), "rarity": (m,), "errors": (2, m),
        "level": (m,), "judged": (2, 2), "trial": (3,), "first": (3, m), "turn": (R, R),
    }  # fmt: skip
    for name, shape in shapes.items():
        array = getattr(model, name)
        demand(array.shape == shape and array.dtype == np.float64, f"{name} does not fit")
        demand(bool(np.isfinite(array).all()), f"{name} is not finite")
    codes = model.C_codes
    demand(codes is None or (codes.shape == (m, R) and codes.dtype == model.C.dtype), "C_codes")
    for name in ("outliers", "runs"):
        array = getattr(model, name)
        demand(array.shape == (m,) and array.dtype == np.int64, f"{name} does not fit")
    for flags in (model.known, model.whole, model.constant, model.varied):
        demand(flags.shape == (m,) and flags.dtype == np.bool_, "flags that do not fit")
    demand(model.masks.ndim == 2 and model.masks.shape[1] == m, "masks do not fit")
    demand(model.masks.dtype == np.bool_ and len(model.masks) > 0, "masks are none")
    demand(model.histogram.ndim == 1 and model.histogram.dtype == np.float64, "no histogram")
    for name in ("v", "unit", "noise", "rarity"):
        demand(bool((getattr(model, name) > 0.0).all()), f"{name} is not above zero")
    demand(model.trial[0] >= 0.0 and model.trial[2] >= 0.0, "votes below zero")
    for name in ("counts", "histogram", "errors", "judged"):
        demand(bool((getattr(model, name) >= 0.0).all()), f"{name} is below zero")
    for name in ("n_seen", "n_entries", "checked", "pass_rows"):
        demand(0 <= getattr(model, name) < LARGEST_COUNT, f"{name} is no count")
    demand(0.0 <= model.kept <= 1.0, "kept is no share")
    demand(model.batch_left > 0 and model.period_left > 0, "no rows are left to its batch")
    demand(r <= model.config.components_for(m), "more components than it may have")
    demand(bool((np.diagonal(model.S) > 0.0).all()), "a precision that is not above zero")
    if model.memory is not None:
        _check_memory(model.memory, m, r)


def _check_memory(memory: Memory, m: int, r: int) -> None:
    shapes = {
        "codes": (r,), "residuals": (m,), "code": (r,), "covariance": (r, r), "residual": (m,),
        "series": (m,), "trust": (*memory.trust.shape[:1], m),
    }  # fmt: skip
    for name, shape in shapes.items():
        array = getattr(memory, name)
        demand(array.shape == shape and array.dtype == np.float64, f"memory.{name} does not fit")
        demand(bool(np.isfinite(array).all()), f"memory.{name} is not finite")
    demand(memory.age.shape == (m,) and memory.age.dtype == np.int64, "memory.age does not fit")
    for kept in (memory.codes, memory.residuals, memory.series):
        demand(bool(((kept >= 0.0) & (kept < 1.0)).all()), "a memory that is none")
    trust = memory.trust
    demand(bool(((trust >= 0.0) & (trust <= 1.0)).all()), "a trust that is none")
    for histogram in (memory.histogram, memory.ahead):
        demand(histogram.ndim == 1 and histogram.dtype == np.float64, "no histogram")
