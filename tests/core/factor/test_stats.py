"""Statistics add, fade, rotate and rescale as the sums they are."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.factor.stats import Stats, inverse, inverse_coverage

from .making import assert_same

M, R = 5, 3
seeds = st.integers(0, 10_000)


class Rows:
    """Codes, covariances and residuals of n rows, as a batch has them."""

    def __init__(self, rng, n):
        self.X = np.column_stack([rng.normal(size=(n, R - 1)), np.ones(n)])
        roots = rng.normal(size=(n, R - 1, R - 1))
        self.covariances = roots @ roots.transpose(0, 2, 1)
        self.seen = rng.random((n, M)) < 0.7
        self.residuals = rng.normal(size=(n, M)) * self.seen
        self.dof = rng.random(n)

    def gather(self, keep=1.0):
        """Their statistics by definition: each row has lost what the rows after it left."""
        n = len(self.X)
        weights = keep ** np.arange(n - 1, -1, -1)
        shares = weights * self.seen.mean(axis=1)
        squares = self.residuals**2
        return Stats(
            S=np.einsum("t,ti,tj->ij", shares, self.X, self.X),
            code_cov_sum=np.einsum("t,tij->ij", shares, self.covariances),
            code_cov_weight=float(shares.sum()),
            counts=weights @ self.seen,
            residual_sums=np.array([weights @ squares, weights @ self.seen]),
            n_rows=float(shares.sum()),
            residual_energy=float(weights @ squares.sum(axis=1)),
            residual_dof=float(weights @ self.dof),
            prior_weight=0.0,
            start_weight=0.0,
        )

    def part(self, which):
        some = object.__new__(Rows)
        some.__dict__ = {name: value[which] for name, value in self.__dict__.items()}
        return some


def basis(rng):
    """A change of basis that keeps the last entry of a code 1."""
    T = np.eye(R)
    T[:-1] = rng.normal(size=(R - 1, R))
    T[:-1, :-1] += 3.0 * np.eye(R - 1)
    return T


@given(seeds, st.integers(0, 8), st.integers(0, 8))
@settings(max_examples=40, deadline=None)
def test_the_statistics_of_two_parts_add_up_to_those_of_all_rows(seed, n, more):
    rows = Rows(np.random.default_rng(seed), n + more)
    first, second = rows.part(slice(n)).gather(), rows.part(slice(n, None)).gather()
    assert_same(first.plus(second), rows.gather())
    assert_same(rows.gather().minus(first), second, 1e-6)


@given(seeds, st.integers(0, 8), st.integers(0, 8), st.floats(0.1, 1.0))
@settings(max_examples=40, deadline=None)
def test_old_rows_fade_by_what_the_rows_after_them_leave(seed, n, more, keep):
    rows = Rows(np.random.default_rng(seed), n + more)
    first, second = (rows.part(part).gather(keep) for part in (slice(n), slice(n, None)))
    assert_same(first.fade(keep**more).plus(second), rows.gather(keep))


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_rotated_statistics_are_those_of_rotated_codes(seed):
    rng = np.random.default_rng(seed)
    rows = Rows(rng, 6)
    T_inverse = np.linalg.inv(basis(rng))
    rotated = rows.part(slice(None))
    rotated.X = rows.X @ T_inverse.T
    own = T_inverse[:-1, :-1]
    rotated.covariances = own @ rows.covariances @ own.T
    assert_same(rows.gather().rotate(T_inverse), rotated.gather())


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_rotating_back_gives_the_statistics_again(seed):
    rng = np.random.default_rng(seed)
    stats, T = Rows(rng, 6).gather(), basis(rng)
    assert_same(stats.rotate(T).rotate(np.linalg.inv(T)), stats, 1e-6)


@given(seeds, st.floats(0.01, 100.0))
@settings(max_examples=40, deadline=None)
def test_rescaled_statistics_are_those_of_residuals_in_other_units(seed, size):
    rng = np.random.default_rng(seed)
    rows = Rows(rng, 6)
    larger = rows.part(slice(None))
    larger.residuals = rows.residuals / size
    assert_same(rows.gather().rescale(np.full(M, size)), larger.gather())
    change = np.exp(rng.normal(size=M))
    larger.residuals = rows.residuals / change
    sums = rows.gather().rescale(change).residual_sums
    np.testing.assert_allclose(sums, larger.gather().residual_sums, rtol=1e-10)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_two_changes_of_units_are_one(seed):
    rng = np.random.default_rng(seed)
    stats, (one, other) = Rows(rng, 6).gather(), np.exp(rng.normal(size=(2, M)))
    assert_same(stats.rescale(one).rescale(other), stats.rescale(one * other))


@given(seeds, st.floats(0.1, 1.0))
@settings(max_examples=20, deadline=None)
def test_changes_of_basis_and_units_commute_with_sums_and_fading(seed, left):
    rng = np.random.default_rng(seed)
    one, other, T = Rows(rng, 4).gather(), Rows(rng, 5).gather(), basis(rng)
    change = np.exp(rng.normal(size=M))

    def act(stats):
        return stats.rotate(T).rescale(change)

    assert_same(act(one.fade(left).plus(other)), act(one).fade(left).plus(act(other)))


def test_every_statistic_declares_how_changes_act_on_it():
    for each in fields(Stats):
        assert set(each.metadata) == {"basis", "squares"}, each.name


def test_the_first_dictionary_counts_as_rows():
    S = np.diag([3.0, 4.0, 5.0])
    stats = Stats.start(S, M, 12.0)
    assert stats.S is S
    assert stats.counts.tolist() == [12.0] * M
    assert stats.n_rows == 12.0
    assert (stats.prior_weight, stats.start_weight) == (1.0, 1.0)
    assert not any((stats.code_cov_sum.any(), stats.residual_sums.any(), stats.residual_energy))


def test_coverage_is_beside_the_average_feature_within_bounds():
    counts = np.array([10.0, 5.0, 0.0, 25.0])  # the average is 10
    np.testing.assert_allclose(inverse_coverage(counts, 0.02), [1.0, 2.0, 50.0, 1.0])
    assert inverse_coverage(np.zeros(3), 0.02).tolist() == [50.0] * 3


def test_a_precision_that_rounding_has_made_singular_is_inverted_all_the_same(rng):
    S = np.diag([1.0, 2.0, 4.0])
    np.testing.assert_allclose(inverse(S), np.diag([1.0, 0.5, 0.25]))
    x = np.array([1.0, 1.0, 1.0])
    singular = np.outer(x, x)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(singular)
    assert np.isfinite(inverse(singular)).all()
