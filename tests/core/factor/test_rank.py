"""Which components are active, and states without the others."""

from copy import deepcopy

import numpy as np
import pytest

from omfb import OMFBImputer
from omfb.core.factor import predict as predictions
from omfb.core.factor.rank import (
    active_components,
    drop_empty,
    switched_off_variance,
    with_components,
)
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch

from .making import config, learned, table


@pytest.fixture(scope="module")
def pruned():
    """A model of three components, of which many more were pruned, and rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3)) @ rng.standard_normal((3, 60))
    X += 0.5 * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = OMFBImputer(random_state=0).fit(X)
    assert model.n_components_ < 10 < model.learner_.state.n_components
    return model, X[:300]


# -- which are active ---------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_as_many_components_are_active_as_stand_out_of_the_noise(rng, rank):
    X = rng.standard_normal((4000, rank)) @ rng.standard_normal((rank, 30))
    X += 0.5 * rng.standard_normal(X.shape)
    assert active_components(learned(X, config(10, scale=False))).sum() == rank


def test_a_component_is_active_from_a_multiple_of_what_noise_gives_it():
    """The largest of n rows of noise in m dimensions has the variance (1 + √(m / n))²."""
    state = learned(table(0, 400, 10), config(2))
    state = evolve(state, n_rows=1000.0)
    edge = 1.5 * ((1.0 + np.sqrt(10 / 1000.0)) ** 2 - 1.0) / 10
    state = evolve(state, v=np.array([1.01 * edge, 0.99 * edge, 1.0]))
    assert active_components(state).tolist() == [True, False]


def test_components_without_loadings_are_not_active():
    state = end_batch(learned(table(0, 400, 10), config(2)))
    assert active_components(state).all()
    G = state.batch.G.copy()
    G[1] = G[:, 1] = 0.0
    assert active_components(evolve(state, G=G)).tolist() == [True, False]


def test_what_is_left_of_a_component_falls_with_the_rows():
    left = [switched_off_variance(20, n) for n in (0.0, 1.0, 10.0, 1e3, 1e6)]
    assert left[0] == left[1]  # no rows count as one
    assert (np.diff(left[1:]) < 0.0).all()
    assert left[-1] > 0.0


# -- states without the others ------------------------------------------------------------------


def test_a_state_with_all_components_is_the_same():
    state = end_batch(learned(table(1, 300, 8), config()))
    fewer, which = drop_empty(state)
    assert fewer is state
    assert which.tolist() == [0, 1, 2, 3]


def test_a_state_with_some_components_keeps_their_fields():
    state = end_batch(learned(table(1, 300, 8), config()))
    which = np.array([0, 2, 3])
    some = with_components(state, which)
    assert some.n_components == 2
    np.testing.assert_array_equal(some.params.C, state.params.C[:, which])
    np.testing.assert_allclose(some.batch.G, some.params.C.T @ some.params.C)
    np.testing.assert_array_equal(some.params.v, state.params.v[which])
    for name in ("Sigma", "S_inverse"):
        whole = getattr(state.batch, name)
        np.testing.assert_array_equal(getattr(some.batch, name), whole[np.ix_(which, which)])
    np.testing.assert_array_equal(some.stats.S, state.stats.S[np.ix_(which, which)])
    assert some.stats.code_cov_sum.shape == (2, 2)


def test_predictions_are_the_same_without_pruned_components(pruned):
    """The same state, with Gram matrix so little changed that nothing is dropped."""
    model, X = pruned
    state = end_batch(model.learner_.state)
    assert drop_empty(state)[0].n_components < state.n_components
    G = state.batch.G + 1e-280 * np.eye(len(state.batch.G))
    full = evolve(state, G=G)
    assert drop_empty(full)[0] is full

    def answers(state):
        mean, std = predictions.predict(state, X)
        scored = predictions.score_held_out(state, X)
        complete = np.nan_to_num(X)
        return (
            mean, std, predictions.encode(state, X), predictions.encode(state, complete),
            predictions.log_likelihood(state, X), scored.residual, scored.energy,
        )  # fmt: skip

    for one, other in zip(answers(state), answers(full), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_components_of_whose_codes_rows_tell_nothing_are_pruned():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((5000, 5)) @ rng.standard_normal((5, 50))
    X += 0.3 * rng.standard_normal(X.shape)
    for missing in (0.1, 0.8):
        shown = np.where(rng.random(X.shape) < missing, np.nan, X)
        state = OMFBImputer(random_state=0).fit(shown).learner_.state
        assert drop_empty(state)[0].n_components < state.n_components
        assert active_components(state).sum() >= 5


def test_codes_of_pruned_components_are_zero(pruned):
    state, X = pruned[0].learner_.state, pruned[1]
    codes = predictions.encode(state, X)
    assert codes.shape[1] == state.n_components
    assert np.array_equal(np.any(codes != 0.0, axis=0), np.any(state.C[:, :-1] != 0.0, axis=0))


def test_a_model_of_pure_noise_predicts_nearly_the_means(rng):
    """One weak component stays, as a model has one at least."""
    X = rng.standard_normal((400, 8))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = OMFBImputer(random_state=0).fit(X)
    assert drop_empty(model.learner_.state)[0].n_components == 1
    missing = np.isnan(X)
    away = (model.complete(X) - np.nanmean(X, axis=0))[missing]
    assert np.abs(away).max() < 0.3
    assert 0.8 < np.std((model.sample(X, random_state=0) - np.nanmean(X, axis=0))[0][missing]) < 1.2


def test_models_sample_and_learn_after_components_were_pruned(pruned):
    model, X = pruned
    drawn = np.array(model.sample(X, 20, random_state=0))
    low, high = model.interval(X, level=0.9)
    missing = np.isnan(X)
    inside = (low <= drawn) & (drawn <= high)
    assert np.mean(inside[:, missing]) == pytest.approx(0.9, abs=0.03)
    more = deepcopy(model).partial_fit(X)
    assert more.n_samples_seen_ == model.n_samples_seen_ + len(X)
    assert np.allclose(more.complete(X)[missing], model.complete(X)[missing], atol=0.5)
