"""Parameters: each has an effect, wrong values are refused by name and change nothing."""

import logging

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.core.broyden.config import BroydenConfig
from omfb.core.factor.config import FactorConfig

from ..making import ALL, DECOMPOSITIONS, PREDICTIVE, rows, snapshot, sparse

ESTIMATORS = (OMFB, OnlineFactorAnalysis, OMFBImputer)
EACH = pytest.mark.parametrize(
    ("estimator", "name"),
    [(estimator, name) for estimator in ESTIMATORS for name in estimator().get_params()],
    ids=lambda value: getattr(value, "__name__", value),
)

# Another value of each parameter, and what both fits need besides.
CHANGES = {
    "n_components": (2, {}),
    "lam": (5.0, {}),
    "forget_factor": (0.9, {}),
    "ridge": (0.5, {}),
    "smooth": (0.5, {"shuffle": False}),
    "shrink": (2.0, {"forget_factor": 0.9}),
    "inner_iter": (1, {}),
    "batch_size": (4, {}),
    "positive_code": (True, {}),
    "positive_dict": (True, {}),
    "alpha": (0.5, {}),
    "l1_ratio": (0.5, {"alpha": 0.5}),
    "absent": ("zero", {}),
    "max_iter": (2, {}),
    "tol": (0.5, {"max_iter": 9}),
    "shuffle": (False, {}),
    "init": ("random", {}),
    "random_state": (1, {}),
    "center": (False, {}),
    "scale": (None, {}),
    "noise": (None, {}),
    "robust": (False, {}),
    "temporal": (True, {}),
    "seasons": ([24], {"temporal": True}),
    "covariates": ([0], {"temporal": True}),
    "min_value": (0.0, {}),
    "max_value": (0.0, {}),
    "integers": (True, {}),
    "remainder": ("drop", {}),
    "missing_values": (20.0, {}),
    "add_indicator": (True, {}),
    "keep_empty_features": (False, {}),
}
OPPOSITE = {True: False, False: True, "isotropic": "diagonal", "diagonal": "isotropic"}


def table():
    """Integers of a slow random walk with missing entries and spikes: each parameter matters."""
    rng = np.random.default_rng(0)
    codes = np.cumsum(rng.normal(size=(600, 3)), axis=0)
    X = codes @ rng.normal(size=(3, 8)) + rng.normal(size=(600, 8)) * np.arange(1.0, 9.0) + 20.0
    X = np.round(np.where(rng.random(X.shape) < 0.01, 1000.0, X))
    return np.where(rng.random(X.shape) < 0.15, np.nan, X)


def outcome(model, X):
    """What a user sees of a fitted model."""
    filled = [model.transform(X)] if isinstance(model, OMFBImputer) else []
    return [model.components_, model.complete(X), np.array([model.n_iter_]), *filled]


@EACH
def test_every_parameter_has_an_effect(estimator, name, caplog):
    X, base = table(), {"n_components": 4, "random_state": 0, "max_iter": 1}
    if name == "verbose":
        with caplog.at_level(logging.INFO, logger="omfb"):
            estimator(**base).fit(X)
            assert not caplog.records
            estimator(verbose=1, **base).fit(X)
        assert caplog.records
        return
    if name == "keep_empty_features":
        pytest.skip("see test_indicators.py")
    if name == "drop_after":
        pytest.skip("see test_new_features.py")
    if name == "new_features":  # of rows by name: tests/estimators/test_new_features.py
        model = estimator(new_features="ignore", **base).partial_fit({"a": 1.0})
        assert model.partial_fit({"b": 1.0}).n_features_in_ == 1
        return
    if name == "remainder":
        X = pd.DataFrame(X, columns=list("abcdefgh")).assign(word="x")
    if name == "absent":
        X = sparse(X)
    if name == "covariates":
        X[:, 0] = np.arange(len(X))
    value, needed = CHANGES[name]  # a new parameter needs a case here
    without = {**base, **needed}
    value = OPPOSITE[estimator().get_params()[name]] if value is None else value
    changed = estimator(**{**without, name: value}).fit(X)
    usual = estimator(**without).fit(X)
    pairs = zip(outcome(changed, X), outcome(usual, X), strict=True)
    assert not all(np.array_equal(*pair) for pair in pairs)


WRONG = {
    "n_components": [0, 2.5, "3", True],
    "lam": [0.0, -1.0, np.nan, np.inf, "1", None],
    "forget_factor": [-0.1, 1.1, "a", None],
    "ridge": [-1.0, np.nan, 1j, None],
    "smooth": [-1.0, "x", None],
    "shrink": [-1.0, np.inf, None],
    "inner_iter": [0, 1.0, True, None],
    "batch_size": [0, None],
    "positive_code": [1, None, "yes"],
    "positive_dict": [1, None, "yes"],
    "alpha": [-1.0, np.nan, None, "x"],
    "l1_ratio": [-0.1, 1.5, 0.5, None],
    "absent": ["never", 0, True],
    "max_iter": [0, "many", 1.5],
    "tol": [-1e-3, None],
    "shuffle": ["often", None, 2],
    "init": ["svd", None, np.full((3, 10), np.nan), [["a"] * 10] * 3],
    "random_state": ["seed", -1, 2**32, 0.5],
    "verbose": ["loud", None],
    "center": ["yes", None],
    "scale": ["yes", None],
    "noise": ["loud", 1.0, None, np.arange(3)],
    "robust": ["yes", None],
    "temporal": ["yes", 1],
    "seasons": ["daily", 24, [1], [np.nan], [None], ["soon"], [True]],
    "min_value": [np.inf, np.nan, "x"],
    "max_value": [-np.inf, np.nan, "x"],
    "integers": ["yes", None, np.arange(3)],
    "remainder": ["keep", None, 1],
    "new_features": ["yes", 1, True],
    "missing_values": ["x", True, np.inf, {"zz": 1.0}, {0: "x"}],
    "add_indicator": ["yes", None],
    "keep_empty_features": ["yes", None],
    "covariates": [0.5, [0.5], ["a", "a"]],
    "drop_after": [0, -1, 2.5, "soon", True],
}


@EACH
def test_wrong_parameters_are_refused_by_name_and_change_nothing(rng, estimator, name):
    """Wherever a model is fitted or used."""
    X = rows(rng, holes=0.1)
    for value in WRONG[name]:
        new = estimator(3, random_state=0).set_params(**{name: value})
        for call in (new.fit, new.partial_fit):
            with pytest.raises((TypeError, ValueError), match=name):
                call(X)
        assert not hasattr(new, "components_")
        model = estimator(3, random_state=0).fit(X).set_params(**{name: value})
        before = snapshot(model)
        for call in (model.fit, model.partial_fit, model.transform, model.complete, model.score):
            with pytest.raises((TypeError, ValueError), match=name):
                call(X)
            assert snapshot(model) == before


@ALL
def test_an_estimator_has_no_parameters_of_another_algorithm(estimator):
    names = set(estimator().get_params())
    given = {"lam", "ridge", "smooth", "shrink", "inner_iter", "batch_size", "init"}
    estimated = {"center", "scale", "noise", "robust", "temporal"}
    assert names.isdisjoint(estimated if estimator is OMFB else given)


def test_algorithms_have_the_defaults_of_their_configs():
    paper, analysis, imputer = (estimator().checked_config() for estimator in ESTIMATORS)
    assert paper == BroydenConfig()
    assert analysis == FactorConfig(scale=False, noise="isotropic")
    assert imputer == FactorConfig(scale=True, noise="diagonal")


@ALL
def test_a_config_is_built_once_until_a_parameter_changes(rng, estimator, monkeypatch):
    X = rows(rng, 500)
    model = estimator(3, random_state=0).partial_fit(X).partial_fit(X[:1])
    built = []
    checked = estimator.checked_config
    monkeypatch.setattr(
        estimator, "checked_config", lambda self, *args: built.append(1) or checked(self, *args)
    )
    for row in X[:20]:
        model.partial_fit(row[None])
    model.transform(X)
    assert built == []
    model.set_params(forget_factor=0.5).partial_fit(X[:1]).partial_fit(X[:1])
    # Once for the parameter, once for the config that the model then has.
    assert 1 <= len(built) <= 2
    assert model.learner_.config.forget_factor == 0.5


def test_smooth_codes_need_the_order_of_rows(rng):
    X = rows(rng)
    model = OMFB(3, random_state=0).fit(X).set_params(smooth=0.5)
    before = snapshot(model)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=r"smooth=0\.5 .* \(shuffle=False\)"):
            call(X)
        assert snapshot(model) == before
    model.set_params(shuffle=False).fit(X)


def test_a_prior_on_the_dictionary_needs_past_codes(rng):
    X = rows(rng)
    with pytest.raises(ValueError, match=r"shrink=1\.0 needs forget_factor > 0"):
        OMFB(3, shrink=1.0).fit(X)


@PREDICTIVE
def test_a_model_that_forgets_all_is_refused(rng, estimator):
    with pytest.raises(ValueError, match=r"forget_factor must be between 0\.5"):
        estimator(3, forget_factor=0.0).fit(rows(rng))


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_there_are_fewer_components_than_features_unless_more_are_given(rng, holes):
    """With as many, every row is reproduced exactly, and errors are 0."""
    X = rows(rng, 200, m=6, holes=holes)
    model = OMFB(random_state=0).fit(X)
    assert model.components_.shape == (5, 6)
    if holes == 0.0:  # of fewer entries than atoms nothing is left
        assert model.prequential_error_ > 0.0
    assert OMFB(9, random_state=0).fit(X).components_.shape == (9, 6)
    for estimator in (OnlineFactorAnalysis, OMFBImputer):
        assert estimator(random_state=0).fit(X).prequential_error_ > 0.0
        assert estimator(60, random_state=0).fit(X).components_.shape == (6, 6)


@ALL
def test_another_number_of_components_waits_for_the_next_fit(rng, estimator, tmp_path):
    X = rows(rng)
    model = estimator(3, random_state=0).fit(X).set_params(n_components=1).partial_fit(X)
    model.save(tmp_path / "m.omfb")
    loaded = estimator.load(tmp_path / "m.omfb")
    assert loaded.components_.shape == (3, 10)
    assert loaded.n_components == 1


@pytest.mark.parametrize(
    ("bounds", "message"),
    [({"min_value": 2.0, "max_value": 1.0}, "not above max_value"),
     ({"min_value": [1.0] * 10, "max_value": [0.0] * 10}, "not above max_value"),
     ({"min_value": [[1.0]]}, "has shape"),
     ({"min_value": [1.0] * 3, "max_value": [2.0] * 4}, "one for each feature")],
)  # fmt: skip
def test_bounds_without_room_are_refused_by_fit(rng, bounds, message):
    with pytest.raises(ValueError, match=message):
        OMFBImputer(3, **bounds).fit(rows(rng))


def test_bounds_of_another_length_are_refused(rng):
    X = rows(rng, holes=0.1)
    with pytest.raises(ValueError, match="one for each of the 10 features"):
        OMFBImputer(3, min_value=[1.0, 2.0]).fit(X)
    with pytest.raises(ValueError, match="one for each of the 10 features"):
        OMFBImputer(3, min_value=[1.0, 2.0]).partial_fit(X)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, "sparse"])
@pytest.mark.parametrize(
    ("n", "observed", "passes"), [(5000, 0.9, 1), (5000, 0.1, 2), (2500, 0.6, 2)]
)
def test_rows_that_observe_little_are_passed_over_more_often(rng, kind, n, observed, passes):
    X = rng.normal(size=(n, 1)) * np.ones(12) + 0.1 * rng.normal(size=(n, 12))
    seen = rng.random(X.shape) < observed
    if kind == "sparse":
        X = scipy.sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    else:
        X = kind(np.where(seen, X, np.nan))
    assert OnlineFactorAnalysis(2).fit(X).n_iter_ == passes


def test_a_given_dictionary_decides_the_number_of_components(rng):
    X = rows(rng, 200)
    for count in (2, 9, 12):
        model = OMFB(init=rng.normal(size=(count, 10)), random_state=0).fit(X)
        assert model.components_.shape == (count, 10)
    with pytest.raises(ValueError, match=r"init has shape \(2, 2\), expected .* \(3, 10\)"):
        OMFB(3, init=np.ones((2, 2))).fit(X)


@pytest.mark.parametrize(
    ("name", "value"), [("center", False), ("scale", True), ("noise", "diagonal")]
)
def test_what_a_model_began_with_waits_for_the_next_fit(rng, name, value):
    X = rows(rng, 200, holes=0.1) + 5.0
    models = [OnlineFactorAnalysis(3, random_state=0).fit(X) for _ in range(2)]
    models[1].set_params(**{name: value})
    assert np.array_equal(*(model.complete(X) for model in models))
    assert np.array_equal(*(model.partial_fit(X).complete(X) for model in models))
    assert not np.array_equal(*(model.fit(X).complete(X) for model in models))


def test_a_fitted_model_can_stop_being_temporal(rng):
    X = np.cumsum(rows(rng, 400, holes=0.0), axis=0)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = OMFBImputer(3, temporal=True, random_state=0).fit(X)
    smoothed = model.complete(X)
    model.set_params(temporal=False)
    assert not np.allclose(model.complete(X), smoothed, atol=1e-3)
    assert np.array_equal(model.complete(X, return_std=True)[0], model.complete(X))
    with pytest.raises(ValueError, match="temporal=True"):
        model.forecast(3)
    assert np.array_equal(model.set_params(temporal=True).complete(X), smoothed)


def test_a_fitted_model_can_stop_dropping_outliers(rng):
    X = rows(rng, 3000, holes=0.1)
    X[rng.random(X.shape) < 0.01] = 300.0
    model = OMFBImputer(3, random_state=0).fit(X)
    assert model.learner_.describe()["outliers count as missing"]
    assert len(model.learner_.outlier_entries(X)[0]) > 0
    model.set_params(robust=False)
    without = model.learner_.with_config(model.current_config())
    assert not without.describe()["outliers count as missing"]
    assert len(without.outlier_entries(X)[0]) == 0
    before = model.outliers_.sum()
    for _ in range(3):
        model.partial_fit(X)
    assert model.outliers_.sum() == before


def test_tol_ignores_passes_without_held_out_entries(rng):
    """Later passes over complete rows hold nothing out: their error is not a reason to stop."""
    X = rows(rng, 300)
    assert OnlineFactorAnalysis(3, max_iter=4, tol=1e-12, random_state=0).fit(X).n_iter_ == 4
    X = rows(rng, 300, holes=0.1)
    assert OnlineFactorAnalysis(3, max_iter=9, tol=0.5, random_state=0).fit(X).n_iter_ < 9


@DECOMPOSITIONS
def test_parameters_of_any_number_type_are_taken(rng, estimator):
    X = rows(rng)
    usual = estimator(3, forget_factor=1.0, random_state=0).fit(X)
    other = clone(usual).set_params(n_components=np.int64(3), forget_factor=np.float32(1.0)).fit(X)
    assert np.array_equal(other.components_, usual.components_)
