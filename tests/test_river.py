"""`omfb.river`: river's own checks, pipelines, and the same answers as the estimators."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest

river = pytest.importorskip("river", reason="river is not installed")

from river import checks, compose, linear_model, preprocessing  # noqa: E402

from omfb import OMFBImputer  # noqa: E402
from omfb.river import AnomalyDetector, FactorAnalysis, Imputer  # noqa: E402

MODELS = [FactorAnalysis(3, seed=0), Imputer(3, seed=0), AnomalyDetector(3, seed=0)]
# Long streams of rows, to measure memory: they take a minute, and the memory of a model is bounded
# by its features.
LONG = "check_bounded_memory_growth"


class Transactions:
    """In place of a data set that river would download: rows, and which of them are unusual."""

    def take(self, n):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(n, 8))
        unusual = rng.random(n) < 0.05
        X[unusual] = 3.0 * rng.normal(size=(unusual.sum(), 8))
        for row, label in zip(X.tolist(), unusual.tolist(), strict=True):
            yield {f"V{i}": value for i, value in enumerate(row)}, label


def checks_of(model):
    with mock.patch("river.datasets.CreditCard", Transactions):
        found = list(checks.yield_checks(model))
    return [
        pytest.param(model, check, id=f"{type(model).__name__}-{number}-{check.__name__}")
        for number, check in enumerate(found)
        if check.__name__ != LONG
    ]


CASES = [case for model in MODELS for case in checks_of(model)]


@pytest.mark.parametrize(("model", "check"), CASES)
def test_the_checks_of_river_pass(model, check):
    check(model.clone())


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(n, 5))
    return [dict(zip("abcde", row, strict=True)) for row in X.tolist()]


def test_the_imputer_fills_as_the_estimator():
    model, expected = Imputer(seed=0), OMFBImputer(random_state=0, temporal=False)
    for row in rows():
        model.learn_one(row)
        expected.partial_fit(row)
        if expected.n_samples_seen_ == 100:
            expected.learner_.close_head()
    row = {"a": 1.0, "b": None, "d": 0.5, "text": "x"}
    assert model.transform_one(row) == expected.complete(row)
    frame = model.transform_many(pd.DataFrame([{"a": 1.0}, {"b": 1.0}], index=[3, 4]))
    assert not frame.isna().any(axis=None)
    assert list(frame.index) == [3, 4]


def test_models_work_in_pipelines():
    model = compose.Pipeline(
        Imputer(seed=0), preprocessing.StandardScaler(), linear_model.LinearRegression()
    )
    errors = []
    for t, row in enumerate(rows(600)):
        y = row.pop("e")
        if t % 3 == 0:
            row["b"] = None
        errors.append(abs(model.predict_one(row) - y))
        model.learn_one(row, y)
    assert np.mean(errors[-200:]) < 0.5 * np.mean(errors[:100])


def test_keys_that_are_not_text_come_back_as_they_are():
    model = Imputer(seed=0)
    for row in rows(50):
        model.learn_one({ord(key): value for key, value in row.items()})
    filled = model.transform_one({97: 1.0, 98: None})
    assert {97, 98} <= set(filled)
    assert np.isfinite(filled[98])


def test_anomalies_have_higher_scores():
    model = AnomalyDetector(seed=0)
    for row in rows():
        model.learn_one(row)
    usual = [model.score_one(row) for row in rows()[-50:]]
    shuffled = [model.score_one({**row, "b": row["b"] + 3.0}) for row in rows()[-50:]]
    assert np.median(shuffled) > max(usual)
