"""Components that a fit has spared cost nothing, and change nothing."""

from copy import deepcopy

import numpy as np
import pytest
from omfb.core.factor.active import slim

from omfb import OMFBImputer
from omfb.core.factor import predict as coding


@pytest.fixture(scope="module")
def spared():
    """A model of three components, of which many more were spared, and rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3)) @ rng.standard_normal((3, 60))
    X += 0.5 * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = OMFBImputer(random_state=0).fit(X)
    assert model.n_components_ < 10 < model.learner_.state.n_components
    return model, X[:300]


def test_what_is_said_of_rows_is_the_same_without_them(spared, monkeypatch):
    model, X = spared
    state = model.learner_.state

    def answers():
        filled = coding.fill(state, X, deviations=True)
        judged = coding.judge(state, X)
        complete = np.nan_to_num(X)
        return (
            filled.rows, filled.deviations, coding.encode(state, X), coding.encode(state, complete),
            coding.log_likelihood(state, X), judged.residual, judged.energy,
        )  # fmt: skip

    without = answers()
    seen = []
    monkeypatch.setattr(
        coding, "slim", lambda given: (given, seen.append(given) or np.arange(given.C.shape[1]))
    )
    with_all = answers()
    assert len(seen) > 0
    for one, other in zip(without, with_all, strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_components_that_make_no_difference_are_spared_where_most_is_observed():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((5000, 5)) @ rng.standard_normal((5, 50))
    X += 0.3 * rng.standard_normal(X.shape)
    for missing, spares in ((0.1, True), (0.8, False)):
        shown = np.where(rng.random(X.shape) < missing, np.nan, X)
        state = OMFBImputer(random_state=0).fit(shown).learner_.state
        assert (slim(state)[0].n_components < state.n_components / 2) == spares
        assert state.used.sum() >= 5


def test_codes_of_spared_components_are_zero(spared):
    state, X = spared[0].learner_.state, spared[1]
    codes = coding.encode(state, X)
    assert codes.shape[1] == state.n_components
    assert np.array_equal(np.any(codes != 0.0, axis=0), np.any(state.C[:, :-1] != 0.0, axis=0))


def test_a_model_that_spares_all_components_fills_means_and_draws(rng):
    X = rng.standard_normal((400, 8))  # nothing but noise
    X[rng.random(X.shape) < 0.1] = np.nan
    model = OMFBImputer(random_state=0).fit(X)
    state = model.learner_.state
    assert not state.C[:, :-1].any()
    assert slim(state)[0].n_components == 1
    assert np.isfinite(model.sample(X)).all()


def test_rows_are_drawn_and_learned_from_after_components_were_spared(spared):
    model, X = spared
    drawn = np.array(model.sample(X, 20, random_state=0))
    low, high = model.interval(X, level=0.9)
    missing = np.isnan(X)
    inside = (low <= drawn) & (drawn <= high)
    assert np.mean(inside[:, missing]) == pytest.approx(0.9, abs=0.03)
    more = deepcopy(model).partial_fit(X)
    assert more.n_samples_seen_ == model.n_samples_seen_ + len(X)
    assert np.allclose(more.complete(X)[missing], model.complete(X)[missing], atol=0.5)
