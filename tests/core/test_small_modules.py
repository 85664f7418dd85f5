"""Checks of parameters, finite results, energies, conformal quantiles, held-out scores, fading."""

import math
import sys

import numpy as np
import pytest
import scipy.sparse

from omfb.core import conformal
from omfb.core.checks import LARGEST_COUNT, checked_count, checked_number, shown
from omfb.core.evidence import Evidence, Fading, MergeError, check_start, merge_states
from omfb.core.finite import find_infinity, infinity_problem, is_ordinary, made_finite
from omfb.core.info import Info
from omfb.core.require import require
from omfb.core.scoring import folds, score_held_out_features

# -- checks -------------------------------------------------------------------------------------


def test_a_number_of_any_type_becomes_a_float():
    for value in (1, np.float32(1), np.int8(1)):
        assert type(checked_number("lam", value, "0 or more", "try 1")) is float


@pytest.mark.parametrize("value", [True, "1", None, 1j, [1.0]])
def test_what_is_not_a_number_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"lam must be a number 0 or more \(try 1\), got"):
        checked_number("lam", value, "0 or more", "try 1")


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 10**400])
def test_a_number_out_of_range_is_a_value_error(value):
    with pytest.raises(ValueError, match=r"lam must be 0 or more \(try 1\), got"):
        checked_number("lam", value, "0 or more", "try 1")


def test_counts_are_at_least_1_and_fit_compiled_loops():
    assert type(checked_count("n", np.uint8(3), "rows")) is int
    for value, problem in ((0, "1 or more"), (LARGEST_COUNT + 1, "at most")):
        with pytest.raises(ValueError, match=problem):
            checked_count("n", value, "rows")
    with pytest.raises(TypeError, match="whole number"):
        checked_count("n", 2.0, "rows")


def test_long_values_are_shortened_in_messages():
    assert shown([1]) == "[1]"
    assert len(shown("x" * 1000)) == 80


def test_a_requirement_that_does_not_hold_is_a_value_error():
    require(True, "never raised")
    with pytest.raises(ValueError, match="a reason"):
        require(False, "a reason")


# -- finite -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_infinity_is_found_in_arrays_and_sparse_matrices(kind):
    X = np.zeros((4, 3))
    assert find_infinity(kind(X)) is None
    X[2, 1] = -np.inf
    assert find_infinity(kind(X)) == (2, 1)


def test_a_message_about_infinity_names_what_is_known():
    assert "row 3, column 2 (the first is 1)" in infinity_problem(2, 1)
    assert "row 3, column 'b'" in infinity_problem(2, 1, ["a", "b"])
    assert infinity_problem(None, 1, ["a", "b"]).startswith("contains infinity at column 'b'. ")


def test_overflow_is_clipped_and_nan_refused():
    largest = np.finfo(np.float32).max
    rows = np.array([[np.inf, 1.0, -np.inf]], np.float32)
    np.testing.assert_array_equal(made_finite(rows, np.ones(3)), [[largest, 1.0, -largest]])
    with pytest.raises(ValueError, match="infinity at row 1, column 1"):
        made_finite(rows, np.array([[np.inf]]))
    with pytest.raises(ValueError, match="overflows"):
        made_finite(np.array([[np.nan]]), np.ones(1))


def test_only_values_far_from_the_ends_of_the_range_are_ordinary():
    assert is_ordinary(np.array([1.0, -1e9, 0.0, np.nan]))
    assert not is_ordinary(np.array([1.0, 1e100]))
    assert not is_ordinary(np.array([1.0, 1e-100]))


# -- info -----------------------------------------------------------------------------------------


def test_errors_and_scores_follow_from_energies():
    info = Info(1.0, 4.0).plus(Info(0.0, 0.0))
    assert (info.error, info.score) == (0.5, 0.75)
    assert Info(0.0, 0.0).error == 0.0
    assert Info(math.nan, 2.0).sound() == Info(2.0, 2.0)
    assert Info(1.0, math.inf).sound() == Info(sys.float_info.max, sys.float_info.max)


# -- conformal -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.99])
def test_quantiles_hold_their_share_of_errors_of_any_distribution(rng, level):
    sizes = np.abs(rng.standard_t(3, size=50_000))
    histogram = conformal.binned(sizes, np.ones(len(sizes)))
    width = conformal.quantile(histogram, level)
    assert np.mean(sizes <= width) == pytest.approx(level, abs=0.01)  # bins of 4 %


def test_without_errors_quantiles_are_those_of_the_normal_distribution():
    assert conformal.quantile(np.zeros(conformal.N_BINS), 0.9) == pytest.approx(1.645, abs=1e-3)
    assert conformal.calibration(np.zeros(conformal.N_BINS)) == pytest.approx(1.0, abs=1e-3)


def test_rescaling_the_deviations_rescales_the_quantiles(rng):
    sizes = np.abs(rng.normal(size=20_000))
    histogram = conformal.binned(sizes, np.ones(len(sizes)))
    wider = conformal.rescaled(histogram, 2.0)
    assert wider.sum() == pytest.approx(histogram.sum())
    expected = conformal.quantile(histogram, 0.9) / 2.0
    assert conformal.quantile(wider, 0.9) == pytest.approx(expected, rel=0.05)


def test_the_quantile_of_one_bin_lies_in_it():
    """All errors lie within 4 % of two deviations, whatever the level."""
    histogram = conformal.binned(np.full(100, 2.0), np.ones(100))
    for level in (0.1, 0.5, 0.99):
        assert 2.0 <= conformal.quantile(histogram, level) <= 2.0 * 2 ** (1 / 16)
    half = histogram + conformal.binned(np.full(100, 0.5), np.ones(100))
    assert 0.5 <= conformal.quantile(half, 0.49) <= 0.53
    assert 2.0 <= conformal.quantile(half, 0.51) <= 2.1


def test_few_errors_count_in_part():
    """Ten of twenty errors are needed for half of the way to their own quantile."""
    histogram = conformal.binned(np.full(10, 8.0), np.ones(10))
    own, normal = conformal.quantile(2.0 * histogram, 0.9), 1.6449
    assert conformal.quantile(histogram, 0.9) == pytest.approx((own + normal) / 2, abs=1e-3)


def test_the_share_beyond_a_limit_counts_larger_errors():
    sizes = np.array([0.5, 1.0, 3.0, 5.0, 20.0])
    histogram = conformal.binned(sizes, np.array([4.0, 3.0, 1.0, 1.0, 1.0]))
    assert conformal.share_beyond(histogram, 4.0) == pytest.approx(0.2)
    assert conformal.share_beyond(histogram, 2.0) == pytest.approx(0.3)
    assert conformal.share_beyond(np.zeros(conformal.N_BINS), 4.0) == 0.0


def test_errors_that_are_nan_or_zero_have_a_bin():
    counts = conformal.binned(np.array([0.0, np.nan, np.inf]), np.array([1.0, 2.0, 4.0]))
    assert (counts[0], counts[-1]) == (1.0, 6.0)


# -- scoring --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_each_row_is_scored_on_one_fold_that_its_prediction_does_not_see(rng, sparse):
    X = rng.normal(size=(16, 20))
    X[0, 0] = np.nan
    fold = folds(20)
    assert np.bincount(fold).tolist() == [3, 3, 3, 3, 2, 2, 2, 2]

    def predicting(visible):
        return lambda rows: np.zeros((len(rows), np.count_nonzero(~visible)))

    given = scipy.sparse.csr_array(np.nan_to_num(X)) if sparse else X
    info = score_held_out_features(given, np.zeros(20), np.full(20, 2.0), predicting)
    held_out = fold == np.arange(16)[:, None] % 8
    expected = np.nansum(np.where(held_out, X, 0.0) ** 2) / 4.0
    assert info.energy == pytest.approx(expected)
    assert info.residual == pytest.approx(expected)


# -- evidence --------------------------------------------------------------------------------------


def test_fading_is_recovered_from_what_it_keeps():
    fading = Fading(50.0, 1.3, 200)
    assert Fading.of(50.0, fading.kept, 200).exponent == pytest.approx(1.3)
    t = np.arange(200) + 0.5
    weights = ((50.0 + t) / 250.0) ** 1.3
    assert fading.mean == pytest.approx(weights.mean(), rel=1e-4)
    assert Fading.of(50.0, 1.0, 0).mean == 1.0


def test_evidence_adds_up_in_order():
    def gather(start, part):
        return Evidence(1, 0.5, {"S": part - start}, {"n": 1})

    def merged(start, evidence):
        return start + evidence.weighted["S"], evidence.n_rows, evidence.counted["n"]

    assert merge_states(1.0, [2.0, 4.0], gather, merged) == (5.0, 2, 2)
    with pytest.raises(MergeError, match="nothing to merge"):
        merge_states(1.0, [], gather, merged)
    with pytest.raises(MergeError, match="no common start"):
        check_start(False)
