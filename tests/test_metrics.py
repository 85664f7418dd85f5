"""Every metric against its formula."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from omfb.metrics import coverage, crps, nlpd, projection_error, relative_error, rmse, snr


def test_snr_is_its_formula(rng):
    truth = rng.random((7, 5))
    wrong = truth + 0.1 * rng.standard_normal((7, 5))
    noise = sum((a - b) ** 2 for a, b in zip(truth.flat, wrong.flat, strict=True)) / 35
    signal = sum((a - truth.sum() / 35) ** 2 for a in truth.flat) / 35
    assert snr(truth, wrong) == pytest.approx(10 * np.log10(signal / noise), abs=1e-11)
    assert snr(truth, truth) == np.inf


def test_errors_are_their_formulas(rng):
    rows, atoms = rng.random((9, 6)), rng.random((3, 6))
    codes = np.linalg.lstsq(atoms.T, rows.T, rcond=None)[0].T
    assert projection_error(rows, atoms) == pytest.approx(np.linalg.norm(rows - codes @ atoms))
    twice = np.concatenate([atoms, atoms])  # a dictionary without full rank explains no more
    assert projection_error(rows, twice) == pytest.approx(projection_error(rows, atoms))
    assert relative_error(rows, 0.9 * rows) == pytest.approx(0.1)


# -- filled values ------------------------------------------------------------------------------


@pytest.fixture
def predictions(rng):
    truth, mean = rng.normal(size=(2, 20, 6))
    return truth, mean, rng.uniform(0.2, 2.0, size=(20, 6))


def test_rmse_is_its_formula(predictions, rng):
    truth, mean, _ = predictions
    where = rng.random(truth.shape) < 0.3
    wrong = [(a - b) ** 2 for a, b, w in zip(truth.flat, mean.flat, where.flat, strict=True) if w]
    assert rmse(truth, mean, where) == pytest.approx(np.sqrt(sum(wrong) / len(wrong)), rel=1e-12)


def test_crps_is_its_integral(predictions):
    """∫ (F(y) − [y ≥ truth])² dy, entry by entry."""
    expected = []
    for truth, mean, std in zip(*(array.flat for array in predictions), strict=True):
        below = quad(lambda y, m=mean, s=std: norm.cdf(y, m, s) ** 2, -np.inf, truth)[0]
        above = quad(lambda y, m=mean, s=std: norm.sf(y, m, s) ** 2, truth, np.inf)[0]
        expected.append(below + above)
    assert crps(*predictions) == pytest.approx(np.mean(expected), rel=1e-6)  # quad's accuracy


def test_nlpd_is_scipys(predictions):
    truth, mean, std = predictions
    assert nlpd(truth, mean, std) == pytest.approx(-norm.logpdf(truth, mean, std).mean(), rel=1e-12)


def test_intervals_of_the_right_width_cover_their_level(rng):
    truth = rng.normal(size=100_000)
    half = np.full(truth.shape, norm.ppf(0.95))
    # Three standard deviations of a share of so many draws.
    assert coverage(truth, -half, half) == pytest.approx(0.9, abs=3 * 0.3 / np.sqrt(100_000))
    assert coverage([1.0, 2.0], [1.0, 0.0], [1.0, 1.0]) == 0.5  # ends count


@pytest.mark.parametrize("score", [crps, nlpd])
def test_scores_are_least_for_the_true_spread(score, rng):
    truth = rng.normal(scale=2.0, size=20_000)
    zero = np.zeros_like(truth)
    right, narrow, wide = (score(truth, zero, zero + std) for std in (2.0, 1.5, 2.7))
    assert right < min(narrow, wide)


def test_without_a_spread_crps_is_the_absolute_error_and_nlpd_infinite(predictions):
    truth, mean, std = predictions
    assert crps(truth, mean, 0 * std) == pytest.approx(np.abs(truth - mean).mean(), rel=1e-12)
    assert nlpd(truth, mean, 0 * std) == np.inf


@pytest.mark.parametrize(
    "metric",
    [
        lambda truth, mean, std, *where: rmse(truth, mean, *where),
        lambda truth, mean, std, *where: coverage(truth, mean - std, mean + std, *where),
        crps,
        nlpd,
    ],
)
class TestWhere:
    def test_only_the_chosen_entries_count(self, metric, predictions, rng):
        where = rng.random(predictions[0].shape) < 0.5
        spoiled = [np.where(where, array, 1e9) for array in predictions]
        assert metric(*predictions, where) == metric(*spoiled, where)
        assert metric(*predictions, where) == metric(*(array[where] for array in predictions))
        assert metric(*predictions) == metric(*predictions, np.ones_like(where))

    def test_what_is_not_known_is_not_judged(self, metric, predictions):
        truth, mean, std = predictions
        truth = np.where(np.arange(truth.size).reshape(truth.shape) % 3 == 0, np.nan, truth)
        known = ~np.isnan(truth)
        assert metric(truth, mean, std) == metric(truth[known], mean[known], std[known])
        assert metric(truth, mean, std, known) == metric(truth, mean, std)

    def test_float32_is_judged_in_float64(self, metric, predictions):
        small = [array.astype(np.float32) for array in predictions]
        assert metric(*small) == metric(*(array.astype(np.float64) for array in small))

    def test_refuses_what_makes_no_sense(self, metric, predictions):
        truth, mean, std = predictions
        with pytest.raises(ValueError, match="nothing to score"):
            metric(truth, mean, std, np.zeros(truth.shape, bool))
        with pytest.raises(ValueError, match="same shape"):
            metric(truth[:3], mean, std)
        with pytest.raises(ValueError, match="same shape"):
            metric(truth, mean, std, np.ones(6, bool))
        with pytest.raises(ValueError, match="booleans"):
            metric(truth, mean, std, np.ones(truth.shape))


@pytest.mark.parametrize("score", [crps, nlpd])
def test_a_negative_spread_is_refused(score):
    with pytest.raises(ValueError, match="negative"):
        score([1.0], [1.0], [-1.0])
