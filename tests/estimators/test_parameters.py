"""Parameters: the wrong ones are named and change nothing, what is None is found."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from omfb import OMFB, OMFBImputer

from ..making import BOTH, ENGINES, given, rows, snapshot

WRONG = [
    ("n_components", 0, ValueError), ("n_components", 2.5, TypeError),
    ("n_components", "3", TypeError),
    ("lam", 0.0, ValueError), ("lam", -1.0, ValueError), ("lam", np.nan, ValueError),
    ("lam", np.inf, ValueError), ("lam", "1", TypeError),
    ("memory", -0.1, ValueError), ("memory", 1.1, ValueError), ("memory", "a", TypeError),
    ("ridge", -1.0, ValueError), ("ridge", np.nan, ValueError), ("ridge", 1j, TypeError),
    ("smooth", -1.0, ValueError), ("smooth", "x", TypeError),
    ("shrink", -1.0, ValueError), ("shrink", np.inf, ValueError),
    ("inner_iter", 0, ValueError), ("inner_iter", 1.0, TypeError), ("inner_iter", True, TypeError),
    ("batch_size", 0, ValueError), ("memory", None, TypeError),
    ("max_iter", 0, ValueError), ("max_iter", "many", TypeError),
    ("tol", -1e-3, ValueError), ("tol", None, TypeError),
    ("shuffle", "often", ValueError), ("shuffle", None, ValueError), ("shuffle", 2, ValueError),
    ("init", "svd", ValueError), ("init", np.ones((2, 2)), ValueError), ("init", None, ValueError),
    ("init", np.full((3, 10), np.nan), ValueError), ("init", [["a"] * 10] * 3, TypeError),
    ("random_state", "seed", ValueError),
]  # fmt: skip
OF_THE_RULE = {"lam", "memory", "ridge", "smooth", "shrink", "inner_iter", "batch_size"}


@ENGINES
@pytest.mark.parametrize(("name", "value", "error"), WRONG)
@BOTH
def test_wrong_parameters_are_named_and_change_nothing(rng, name, value, error, estimator, engine):
    X = rows(rng)
    model = estimator(3, random_state=0, **engine)
    with pytest.raises(error, match="seed" if name == "random_state" else name):
        clone(model).set_params(**{name: value}).fit(X)
    model.fit(X).set_params(**{name: value})
    before = snapshot(model)
    calls = [model.fit, model.partial_fit] if name in OF_THE_RULE else [model.fit]
    for call in calls:
        with pytest.raises(error):
            call(X)
        assert snapshot(model) == before


FLAGS = ("center", "scale", "outliers", "in_time")


@pytest.mark.parametrize(
    ("name", "value"),
    [*((name, "yes") for name in FLAGS), ("outliers", None), ("noise", "loud"), ("noise", 1.0)],
)
@BOTH
def test_wrong_choices_of_what_is_found_are_named_and_change_nothing(rng, name, value, estimator):
    X = rows(rng)
    model = estimator(3, random_state=0).fit(X).set_params(**{name: value})
    before = snapshot(model)
    for call in (model.fit, model.partial_fit, model.complete):
        with pytest.raises(ValueError, match=name):
            call(X)
        assert snapshot(model) == before


@BOTH
def test_a_rule_that_ties_rows_to_those_before_them_needs_their_order(rng, estimator):
    X = rows(rng)
    model = estimator(3, **given(random_state=0)).fit(X).set_params(smooth=0.5)
    before = snapshot(model)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=r"smooth=0\.5 .* \(shuffle=False\)"):
            call(X)
        assert snapshot(model) == before
    model.set_params(shuffle=False).fit(X)


@BOTH
@pytest.mark.parametrize("name", ["lam", "ridge", "smooth", "shrink", "inner_iter", "batch_size"])
def test_what_is_none_is_found(rng, estimator, name):
    """None was refused before anything could be found."""
    X = rows(rng, holes=0.1)
    model = estimator(3, random_state=0).fit(X)
    again = estimator(3, random_state=0, **{name: None}).fit(X)
    assert np.array_equal(again.components_, model.components_)


@BOTH
def test_a_fitted_model_does_not_become_one_of_another_kind(rng, estimator):
    X = rows(rng)
    for model, other in [
        (estimator(3, random_state=0), {"memory": 0.0}),
        (estimator(3, random_state=0, memory=0.0), {"memory": 1.0}),
        (estimator(3, **given(random_state=0)), {"ridge": None}),
    ]:
        model.fit(X).set_params(**other)
        before = snapshot(model)
        for call in (model.partial_fit, model.transform, model.complete, model.score):
            with pytest.raises(ValueError, match=r"another kind of model .* fit again"):
                call(X)
        assert snapshot(model) == before
        model.fit(X)


@BOTH
@pytest.mark.parametrize(
    "choice",
    [
        {"noise": "shared"},
        {"noise": "feature"},
        {"noise": "loud"},
        {"noise": np.arange(3)},
        {"in_time": True},
    ],
)
def test_what_a_rule_cannot_obey_is_refused(rng, estimator, choice):
    with pytest.raises(ValueError, match=f"{next(iter(choice))}=.* leave .* out"):
        estimator(3, memory=0.0, **choice).fit(rows(rng))


@BOTH
@pytest.mark.parametrize("seed", [-1, 2**32, "seed", 0.5])
def test_a_seed_that_is_none_is_refused_by_name(rng, estimator, seed):
    with pytest.raises(ValueError, match=r"random_state must be a seed \(from 0 to 4294967295\)"):
        estimator(3, random_state=seed).fit(rows(rng))


@BOTH
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_there_are_fewer_components_than_features_unless_more_are_asked_for(rng, estimator, holes):
    """With as many, every row is explained in full, and errors of 0 tell nothing."""
    X = rows(rng, 200, m=6, holes=holes)
    model = estimator(memory=0.0, random_state=0).fit(X)
    assert model.components_.shape == (5, 6)
    assert estimator(random_state=0).fit(X).prequential_error_ > 0.0
    assert estimator(60, random_state=0).fit(X).components_.shape == (6, 6)
    if holes == 0.0:  # of fewer entries than atoms nothing is left
        assert model.prequential_error_ > 0.0


@BOTH
def test_a_prior_on_the_dictionary_needs_a_memory(rng, estimator):
    X = rows(rng)
    with pytest.raises(ValueError, match=r"shrink=1\.0 needs a memory"):
        estimator(3, shrink=1.0, memory=0.0).fit(X)
    model = estimator(3, memory=0.0, random_state=0).fit(X).set_params(shrink=1.0)
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"shrink=1\.0 needs a memory"):
        model.partial_fit(X)
    assert snapshot(model) == before


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("ridge", -1, ValueError), ("ridge", np.nan, ValueError), ("ridge", "x", TypeError),
     ("smooth", "x", TypeError), ("lam", 0, ValueError)],
)  # fmt: skip
@ENGINES
@BOTH
def test_parameters_are_checked_wherever_they_are_used(rng, estimator, name, value, error, engine):
    X = rows(rng, holes=0.1)
    model = estimator(3, random_state=0, **engine).fit(X).set_params(**{name: value})
    for call in (model.transform, model.complete, model.score):
        with pytest.raises(error, match=name):
            call(X)


@BOTH
def test_another_number_of_components_waits_for_the_next_fit(rng, estimator, tmp_path):
    X = rows(rng)
    model = estimator(3, random_state=0).fit(X).set_params(n_components=1).partial_fit(X)
    model.save(tmp_path / "m.omfb")
    loaded = estimator.load(tmp_path / "m.omfb")
    assert loaded.components_.shape == (3, 10)
    assert loaded.n_components == 1


@pytest.mark.parametrize(
    ("bounds", "message"),
    [({"min_value": np.inf}, "no number between"), ({"max_value": -np.inf}, "no number between"),
     ({"min_value": 2.0, "max_value": 1.0}, "not above max_value"),
     ({"integers": "yes"}, "integers"), ({"integers": np.arange(3)}, "integers"),
     ({"noise": np.arange(3)}, "noise")],
)  # fmt: skip
def test_bounds_without_room_and_flags_that_are_none_are_refused(rng, bounds, message):
    X = rows(rng, holes=0.1)
    model = OMFBImputer(3, random_state=0).fit(X).set_params(**bounds)
    with pytest.raises(ValueError, match=message):
        model.transform(X)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, "sparse"])
@pytest.mark.parametrize(
    ("n", "observed", "passes"), [(5000, 0.9, 1), (5000, 0.1, 3), (2500, 0.6, 2)]
)
def test_rows_that_observe_little_are_passed_over_more_often(rng, kind, n, observed, passes):
    X = rng.normal(size=(n, 1)) * np.ones(12) + 0.1 * rng.normal(size=(n, 12))
    seen = rng.random(X.shape) < observed
    if kind == "sparse":
        X = scipy.sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    else:
        X = kind(np.where(seen, X, np.nan))
    assert OMFB(2).fit(X).n_iter_ == passes


@ENGINES
def test_a_given_dictionary_says_how_many_components_there_are(rng, engine):
    X = rows(rng, 200)
    for count in (2, 9):
        model = OMFB(init=rng.normal(size=(count, 10)), random_state=0, **engine).fit(X)
        assert model.components_.shape == (count, 10)


def test_more_atoms_than_features_are_for_the_papers_rule(rng):
    X, init = rows(rng, 200), rng.normal(size=(12, 10))
    with pytest.raises(ValueError, match="12 atoms for 10 features"):
        OMFB(init=init).fit(X)
    assert OMFB(init=init, memory=0.0).fit(X).components_.shape == (12, 10)


@pytest.mark.parametrize(
    ("name", "value"), [("center", False), ("scale", True), ("noise", "feature")]
)
def test_what_a_model_was_begun_with_waits_for_the_next_fit(rng, name, value):
    X = rows(rng, 200, holes=0.1) + 5.0
    models = [OMFB(3, random_state=0).fit(X) for _ in range(2)]
    models[1].set_params(**{name: value})
    assert np.array_equal(*(model.complete(X) for model in models))
    assert np.array_equal(*(model.partial_fit(X).complete(X) for model in models))
    assert not np.array_equal(*(model.fit(X).complete(X) for model in models))


def test_rows_are_no_longer_in_time_if_one_says_so(rng):
    X = np.cumsum(rows(rng, 400, holes=0.0), axis=0)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = OMFBImputer(3, in_time=True, random_state=0).fit(X)
    in_time = model.complete(X)
    model.set_params(in_time=False)
    assert not np.allclose(model.complete(X), in_time, atol=1e-3)
    assert np.array_equal(model.complete(X, return_std=True)[0], model.complete(X))
    with pytest.raises(ValueError, match="in_time=True"):
        model.forecast(3)
    assert np.array_equal(model.set_params(in_time=True).complete(X), in_time)


def test_outliers_are_no_longer_dropped_if_one_says_so(rng):
    X = rows(rng, 3000, holes=0.1)
    X[rng.random(X.shape) < 0.01] = 300.0
    model = OMFBImputer(3, random_state=0).fit(X)
    assert model.learner_.state.drops
    model.set_params(outliers=False)
    assert not model.state_in_use().drops
    before = model.learner_.state.outliers.sum()
    for _ in range(3):
        model.partial_fit(X)
    assert not model.learner_.state.drops
    assert model.learner_.state.outliers.sum() == before


def test_tol_waits_for_errors_that_are_judged(rng):
    """Later passes over complete rows judge nothing: an error that stays is no reason to stop."""
    X = rows(rng, 300)
    assert OMFB(3, max_iter=4, tol=1e-12, random_state=0).fit(X).n_iter_ == 4
    assert OMFB(3, max_iter=9, tol=0.5, random_state=0).fit(rows(rng, 300, holes=0.1)).n_iter_ < 9
