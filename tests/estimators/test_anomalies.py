"""Unusual rows are found at the rate that is asked for, and so are the entries to blame."""

import numpy as np
import pytest

from ..making import PREDICTIVE

NAMES = list("abcdefgh")


def rows(n, seed, missing=0.1):
    rng = np.random.default_rng(seed)
    C = np.random.default_rng(5).normal(size=(2, 8))
    X = rng.normal(size=(n, 2)) @ C + 0.3 * rng.normal(size=(n, 8)) + 4.0
    X[rng.random(X.shape) < missing] = np.nan
    return X


@PREDICTIVE
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_usual_rows_are_called_unusual_as_often_as_contamination_says(estimator, missing):
    model = estimator(random_state=0).partial_fit(rows(3000, 0, missing))
    fresh = rows(4000, 1, missing)
    for level in (0.01, 0.1):
        share = np.mean(model.predict(fresh, contamination=level) == -1)
        assert 0.4 * level < share < 2.0 * level
    p = model.p_values(fresh)
    assert ((p >= 0.0) & (p <= 1.0)).all()
    assert np.array_equal(model.predict(fresh) == -1, p < 0.01)


@PREDICTIVE
def test_an_entry_that_is_off_is_found_and_blamed(estimator):
    model = estimator(random_state=0).fit(rows(2000, 0))
    X = rows(50, 2, 0.0)
    X[:, 3] += 4.0
    assert np.mean(model.predict(X) == -1) > 0.9
    scores = model.entry_scores(X)
    assert np.mean(np.abs(scores).argmax(axis=1) == 3) > 0.9
    X[:, 5] = np.nan
    assert not model.entry_scores(X)[:, 5].any()
    usual = model.entry_scores(rows(2000, 3, 0.2))
    assert np.std(usual[usual != 0.0]) == pytest.approx(1.0, abs=0.15)


@PREDICTIVE
def test_one_row_by_name(estimator):
    X = rows(600, 0)
    model = estimator(random_state=0)
    model.partial_fit([dict(zip(NAMES, row, strict=True)) for row in X.tolist()])
    row = {"a": 4.0, "b": 4.0, "c": 30.0, "d": 4.0}
    scores = model.entry_scores(row)
    assert max(scores, key=lambda name: abs(scores[name])) == "c"
    assert type(model.p_values(row)) is float
    assert model.p_values(row) < 0.01
    assert model.predict([row]).tolist() == [-1]
    assert model.p_values(dict.fromkeys(NAMES)) == 1.0


@PREDICTIVE
def test_a_level_that_is_none_is_refused(estimator):
    model = estimator(random_state=0).partial_fit(rows(50, 0))
    for wrong in (0.0, 1.0, -0.1, "x", None):
        with pytest.raises((TypeError, ValueError), match="contamination"):
            model.predict(rows(3, 1), contamination=wrong)
