"""`Hyper`: constants of the factor model that decide a result, each with its reason.

`benchmarks/ablation.py` switches mechanisms off by these fields and writes what each buys to
`docs/ablation.md`. Block sizes and guards against overflow stay beside the code that needs them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hyper:
    """Constants of the factor model. Users do not set them; tests and the ablation do."""

    # -- the first rows (init.py) ----------------------------------------------------------
    head_rows: int = 400
    """Rows that the first dictionary is made of: an SVD of more gains nothing over learning."""
    head_weight: float = 1.0 / 3.0
    """Share of these rows that the first dictionary counts as: it is worse than a learned one."""
    first_noise: float = 0.3
    """Share of the head's noise to begin with: codes follow rows closely, so C learns faster."""
    spike_limit: float = 12.0
    """Robust deviations beyond which an entry of the head does not influence its column's unit."""

    # -- batches and M-steps (schedule.py) -------------------------------------------------
    first_batch: int = 16
    """Rows whose codes share a dictionary, at first: it still changes fast."""
    last_batch: int = 256
    """The same later; longer batches are larger products, and slow the alternation down."""
    longest_batch: int = 1024
    """The same of complete rows, which learn as fast from any dictionary."""
    batch_fraction: float = 1 / 32
    """A batch is at most this share of the rows before it."""
    update_rows: tuple[int, int] = (4, 16)
    """Rows between M-steps for each component, at first and later (at least `least_update`)."""
    least_update: int = 64
    """Fewest rows between M-steps: what is estimated from fewer is worse than what was there."""
    batch_entries: float = 1 / 8
    """A batch has at least so many entries for each feature: its end costs O(r²) for each one."""
    update_entries: float = 1 / 2
    """The same between M-steps, which cost a few times as much."""
    fade: tuple[float, float] = (1.0, 2.0)
    """Early rows count less: exponent of a row's weight if complete, and with 10 % missing."""
    max_passes_weight: float = 1.5
    """Rows that come again are no new evidence: all passes together weigh at most so many."""

    # -- noise and rank (m_step.py) --------------------------------------------------------
    noise_prior: float = 20.0
    """Observations that the noise shared by all features counts as in that of one feature."""
    least_noise: float = 0.05
    """No feature's noise is below this share of the usual one: a perfect fit is overfitting."""
    least_coverage: float = 0.02
    """A feature's share of S is at least this: a rare feature learns at most 50 times as fast."""
    active_variance: float = 1.5
    """A component is active if its variance exceeds this times what pure noise would give it."""

    weak_information: float = 1.0
    """A row's information on a code, beside its prior's 1, below which a component may be noise."""

    # -- held-out entries (holdout.py) -----------------------------------------------------
    holdout_every: int = 8
    """One row in so many holds entries out: more cost information, fewer make scores noisy."""
    holdout_share: float = 0.25
    """Share of a row that is held out where the head has no pattern of missing entries."""
    recent_rows: float = 50.0
    """Rows after which an error has lost most of its weight in `recent_error_`."""

    # -- drift (drift.py) ------------------------------------------------------------------
    drift_window: float = 1000.0
    """Rows that say what is usual: slower changes are not noticed, more would notice them late."""
    drift_burn_in: float = 100.0
    """Rows before the first alarm, and after each one: what is usual must be known."""
    drift_floor: float = 0.03
    """Changes of the noise by less than about this share do not count, in rows of any width."""
    drift_clip: float = 3.0
    """Deviations that one row counts for at most: an alarm takes several rows."""
    drift_slack: float = 0.5
    """Deviations by which rows must be off on average to add up."""
    drift_limit: float = 10.0
    """Sum at which there is an alarm."""
    drift_rows_left: float = 20.0
    """What the past counts for after an alarm, if it is forgotten, in rows."""

    # -- outliers (robust.py) --------------------------------------------------------------
    clip_limit: float = 12.0
    """Marginal standard deviations at which entries are clipped."""
    clip_agreement: float = 1.75
    """Beyond the limit, an entry may reach this many times its leave-one-out prediction."""
    outlier_limit: float = 6.0
    """Predictive standard deviations beyond which an entry counts as an outlier."""
    outlier_gain: float = 0.04
    """Mean vote (-1 to 1) of held-out entries from which on outliers are dropped: 0.05 to 0.3 where
    one entry in a hundred is a spike, at most 0.03 where rare events are real."""
    level_change: int = 5
    """After so many consecutive outliers of a feature, the next are taken for a change of level."""
    heavy_tails: tuple[float, float] = (4.0, 0.002)
    """Tails are heavy if this share of errors (second) exceeds so many deviations (first)."""

    # -- new features (features.py) --------------------------------------------------------
    new_feature_entries: int = 5
    """Entries that give a feature, unseen in the head, its mean and unit."""
    few_entries: int = 10
    """With fewer entries in the head, a feature's mean is shrunk towards the others'."""

    # -- refinement and calibration (refine.py, calibrate.py) ------------------------------
    refine_rounds: tuple[int, int] = (4, 50)
    """Fewest and most variational rounds: where levels drift, rare columns need 30 to 50."""
    refine_work: float = 3e9
    """Multiply-adds that rounds beyond the fewest may cost in all: some seconds."""
    refine_tolerance: float = 3e-3
    """Stop when log noise variance changes by less in a round, on average over the entries."""
    noise_shape: float = 1.0
    """Shape of the noise's gamma prior, 2 entries; with 10, near duplicates err twice as much."""
    idle_information: float = 0.1
    """Components are dropped if the usual row tells less of their code, beside its prior's 1."""
    max_temper: float = 64.0
    """Noise is tried 1, 2, 4, … to so many times as large: correlated residuals tell less."""
    temper_gain: float = 0.01
    """Share by which the squared error of held-out gaps must fall for more noise."""
    held_out_of_table: float = 0.25
    """Share of a table's entries that gaps moved elsewhere hold out, at most."""
    held_out_of_column: float = 0.5
    """The same of a column: of a late sensor all would be held out, and nothing learned."""
    calibration_prior: int = 50
    """Errors of a normal law added to those of held-out gaps, which are few in small tables."""

    # -- time (temporal.py, univariate.py) -------------------------------------------------
    window: int = 2048
    """Last rows that the autoregressions are estimated from."""
    max_ar: float = 0.999
    """Largest AR coefficient: a unit root would leave a gap's variance unbounded."""
    ar_prior: tuple[float, float] = (20.0, 5.0)
    """Uncorrelated pairs that shrink the AR coefficients of residuals, and of past means."""
    ar_pairs: float = 50.0
    """Entries that all series together count as in the autoregression of each."""
    temporal_gain: float = 0.005
    """Share by which an autoregression must lower the squared error of held-out gaps."""
    series_gain: float = 0.05
    """The same for a feature's own series beside the factors."""
    series_prior: float = 200.0
    """Held-out entries that the weight shared by all features counts as in that of one."""
    innovation_components: int = 16
    """Factors of the innovations of features' own series, at most."""
    innovation_rounds: int = 10
    """Variational rounds that they are estimated in."""
    clip_innovations: float = 5.0
    """Deviations that an innovation counts for at most: jumps say nothing of other features."""
    season_gain: float = 0.005
    """Share by which a cycle must lower the squared innovations of parts that were left out."""
    season_cost: float = 0.005
    """Seasons may raise the error of held-out gaps by this share: forecasts need them."""
    horizon_prior: float = 20.0
    """Errors of backtests that what all features share counts as in one feature's."""
