"""Noise, basis and variances are estimated in M-steps."""

import numpy as np
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.core.factor.init import init
from omfb.core.factor.m_step import m_step
from omfb.core.factor.predict import encode
from omfb.core.factor.rank import active_components
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch, step

from .making import assert_identical, config, learned, table


def low_rank(m, missing, n=6000):
    rng = np.random.default_rng(m)
    Y = rng.normal(size=(n, 5)) @ rng.normal(size=(5, m)) + 0.3 * rng.normal(size=(n, m))
    Y[rng.random(Y.shape) < missing] = np.nan
    return Y


@pytest.mark.parametrize(("m", "missing"), [(60, 0.1), (60, 0.5), (60, 0.8), (100, 0.9), (12, 0.3)])
def test_the_noise_is_estimated_however_much_is_missing(m, missing):
    """Also where rows have 10 entries and 5 components: codes take most of the residuals then."""
    model = OMFBImputer(random_state=0, max_iter=1).fit(low_rank(m, missing))
    assert 0.27 < np.sqrt(np.median(model.noise_variance_)) < 0.36


def test_components_that_follow_the_noise_are_pruned():
    model = OMFBImputer(random_state=0).fit(low_rank(200, 0.1, 2000))
    assert model.n_components_ == 5
    assert np.count_nonzero(np.any(np.abs(model.components_) > 1e-9, axis=1)) == 5


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("n", [2000, 20_000])
def test_the_number_of_components_is_found(n, missing):
    rng = np.random.default_rng(n)
    Y = rng.normal(size=(n, 6)) @ rng.normal(size=(6, 30)) + 0.5 * rng.normal(size=(n, 30))
    Y[rng.random(Y.shape) < missing] = np.nan
    assert 5 <= OnlineFactorAnalysis().fit(Y).n_components_ <= 7


def test_a_long_stream_forgets_components_that_follow_the_noise():
    rng, model = np.random.default_rng(1), OnlineFactorAnalysis()
    C = rng.normal(size=(6, 30))
    for _ in range(20):
        model.partial_fit(rng.normal(size=(1000, 6)) @ C + 0.5 * rng.normal(size=(1000, 30)))
    assert 5 <= model.n_components_ <= 7
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("shape", [(100, 5), (500, 30), (5000, 20)])
def test_noise_has_no_components(shape):
    rng = np.random.default_rng(2)
    for missing in (0.0, 0.1):
        Y = rng.normal(size=shape)
        Y[rng.random(shape) < missing] = np.nan
        assert OMFBImputer().fit(Y).n_components_ <= 1
        assert OnlineFactorAnalysis().fit(Y).n_components_ <= 1


@pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])
def test_intervals_are_as_wide_beside_many_constant_columns(estimator):
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(1500, 2)) @ rng.normal(size=(2, 20)) + 0.5 * rng.normal(size=(1500, 20))
    Y = np.hstack([Y, np.full((1500, 40), 7.0)])
    hidden = (rng.random(Y.shape) < 0.15) & (np.arange(60) < 20)
    X = np.where(hidden, np.nan, Y)
    low, high = estimator(random_state=0).fit(X).interval(X)
    assert 0.84 < ((low <= Y) & (high >= Y))[hidden].mean() < 0.95


@pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])
@pytest.mark.parametrize("seed", [13, 21, 34])
def test_constant_columns_do_not_make_the_noise_of_others_seem_small(estimator, seed):
    """As many components as columns that vary would explain all of them."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 10)) + 0.3 * rng.normal(size=(300, 10))
    hidden = rng.random(Y.shape) < 0.15
    Y[:, 3], Y[:, 5] = 7.0, 0.0
    hidden[:, [3, 5]] = False
    X, varying = np.where(hidden, np.nan, Y), np.delete(np.arange(10), [3, 5])

    def scored(X, Y, hidden):
        model = estimator(random_state=0).fit(X)
        low, high = model.interval(X)
        held = ((low <= Y) & (high >= Y))[hidden].mean()
        error = np.sqrt(np.mean((model.complete(X) - Y)[hidden] ** 2))
        return error, held, (high - low)[hidden].mean()

    error, held, width = scored(X, Y, hidden)
    others = scored(X[:, varying], Y[:, varying], hidden[:, varying])
    assert error < 1.05 * others[0]
    assert 0.82 < held < 0.98
    assert width < 1.25 * others[2]


# -- one M-step ---------------------------------------------------------------------------------


def just_before(X, **given):
    """A state that has learned from all rows in one batch and is due for an M-step."""
    state = evolve(init(X, config(**given)), batch_left=len(X) + 1, update_left=len(X) + 1)
    return end_batch(step(state, X)[0])


def test_an_m_step_changes_the_basis_not_the_span():
    """Rotation, shift and rescaling leave the space of C, beside the shrinkage by the prior."""
    state = just_before(table(5, 400, 12, 0.1), n_components=4)
    after = m_step(evolve(state, code_cov_sum=0.0 * state.stats.code_cov_sum))
    before = (state.params.C * state.params.noise_std[:, None])[:, :4]
    spanned = (after.params.C * after.params.noise_std[:, None])[:, :4]
    basis = np.linalg.qr(spanned)[0]
    size = np.abs(before).max()
    np.testing.assert_allclose(basis @ (basis.T @ before), before, atol=1e-6 * size)
    assert not np.allclose(spanned, before, atol=1e-3 * size)


def test_after_an_m_step_codes_have_mean_zero_and_unit_covariance(rng):
    X = 5 + rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 20))
    X += 0.3 * rng.standard_normal(X.shape)
    state = learned(X, config(5, noise="isotropic", scale=False))
    codes, active = encode(state, X), active_components(state)
    assert active.tolist() == [True, True, True, False, False]
    np.testing.assert_allclose(codes[:, active].mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(np.cov(codes[:, active].T), np.eye(3), atol=0.15)


def test_after_an_m_step_columns_are_uncorrelated_and_in_descending_order():
    state = m_step(just_before(table(6, 600, 15, 0.1, rank=3), n_components=5))
    C = state.params.C[:, :-1].astype(float)
    sizes = np.linalg.norm(C, axis=0)
    large = sizes > 0.05 * sizes[0]
    cosines = (C / sizes).T @ (C / sizes)
    np.testing.assert_allclose(cosines[large][:, large], np.eye(large.sum()), atol=0.15)
    assert (np.diff(state.params.v[:-1]) <= 1e-12).all()


def test_an_m_step_leaves_derived_fields_consistent():
    state = m_step(just_before(table(7, 300, 8, 0.2)))
    C, batch, stats = state.params.C, state.batch, state.stats
    np.testing.assert_allclose(batch.G, C.T @ C, rtol=1e-10)
    np.testing.assert_allclose(batch.Sigma @ stats.S, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(batch.S_inverse @ stats.S, np.eye(4), atol=1e-8)
    assert stats.prior_weight == 1.0
    assert not stats.code_cov_sum.any()
    assert batch.C_batch is None


def test_the_basis_change_maps_codes_back_to_those_before():
    state = just_before(table(8, 300, 8, 0.1))
    after = m_step(state)
    T = np.linalg.solve(state.params.basis_change, after.params.basis_change)
    x = np.array([0.3, -1.0, 0.5, 1.0])
    rows = after.params.C @ x * after.params.noise_std
    np.testing.assert_allclose(T[-1], [0, 0, 0, 1], atol=1e-12)
    before = state.params.C @ (T @ x) * state.params.noise_std
    assert np.linalg.norm(rows - before) < 0.1 * np.linalg.norm(before)  # beside the prior


def test_one_noise_is_shared_unless_it_is_diagonal(rng):
    X = rng.standard_normal((4000, 2)) @ rng.standard_normal((2, 10))
    size = np.where(np.arange(10) < 5, 0.2, 0.8)
    X += size * rng.standard_normal(X.shape)
    shared, own = (
        learned(X, config(2, scale=False, noise=noise)).params.noise_std
        for noise in ("isotropic", "diagonal")
    )
    assert np.ptp(shared) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(own, size, rtol=0.25)


def test_no_noise_is_below_a_share_of_the_usual_one(rng):
    """A feature that two others explain exactly would have no noise at all."""
    X = rng.standard_normal((2000, 6))
    X[:, 0] = X[:, 1] + X[:, 2]
    state = learned(X, config(4))
    relative = (state.params.noise_std / state.params.scale) ** 2
    assert relative.min() >= 0.05**2 * relative.mean() * 0.99


def test_rows_without_entries_change_nothing_but_the_schedule():
    X = table(9, 100, 5)
    state = init(X, config())
    after = step(evolve(state, batch_left=5, update_left=5), np.full((5, 5), np.nan))[0]
    assert_identical(after.stats, state.stats)
    assert np.array_equal(after.params.C, state.params.C)
    assert after.schedule.update_left > 0
