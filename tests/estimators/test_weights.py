"""Weights of rows: a row of weight 2 is the same row twice."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from omfb import OMFB

from ..making import rows, same, snapshot, sparse


def counted(X, weights):
    return X[np.repeat(np.arange(len(X)), weights)]


@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize(
    "given", [{}, {"ridge": 0.3}, {"positive_code": True, "positive_dict": True}], ids=str
)
def test_a_weight_of_two_is_the_row_twice(rng, holes, given):
    """In one mini-batch, where nothing is forgotten on the way."""
    X, weights = np.abs(rows(rng, 30, holes=holes)), rng.integers(0, 4, size=30)
    how = {"init": rng.random((3, 10)), "shuffle": False, "batch_size": 200, **given}
    twice = OMFB(3, **how).fit(counted(X, weights))
    model = OMFB(3, **how).fit(X, sample_weight=weights)
    assert same(model.components_, twice.components_, 1e-9)
    again = OMFB(3, **how).partial_fit(X, sample_weight=weights.tolist())
    assert same(again.components_, twice.components_, 1e-9)
    assert model.prequential_error_ == pytest.approx(twice.prequential_error_)


@pytest.mark.parametrize("kind", [pd.DataFrame, sparse, scipy.sparse.csc_matrix, np.ndarray.tolist])
def test_rows_of_any_kind_have_weights(rng, kind):
    X, weights = rows(rng, 30), rng.random(30) + 0.1
    expected = OMFB(3, random_state=0).fit(X * np.sqrt(weights)[:, None]).components_
    given = kind(X)
    model = OMFB(3, random_state=0).fit(given, sample_weight=weights)
    assert same(model.components_, expected)
    before = model.n_samples_seen_
    assert model.partial_fit(given, sample_weight=weights).n_samples_seen_ == before + 30
    assert model.components_.dtype == np.float64
    assert hasattr(model, "feature_names_in_") is False or kind is pd.DataFrame
    small = OMFB(3, random_state=0).fit(X.astype(np.float32), sample_weight=weights)
    assert small.components_.dtype == np.float32


def test_weights_of_one_change_nothing(rng):
    X = rows(rng, 50, holes=0.1)
    model = OMFB(3, random_state=0).fit(X)
    np.testing.assert_array_equal(
        OMFB(3, random_state=0).fit(X, sample_weight=np.ones(50)).components_, model.components_
    )


@pytest.mark.parametrize(
    ("weights", "given", "message"),
    [
        (np.ones(49), {}, "sample_weight.shape"),
        (-np.ones(50), {}, "Negative values"),
        (np.full(50, np.nan), {}, "NaN"),
        (np.zeros(50), {}, "zero"),
        (np.ones(50), {"alpha": 1.0}, "sample_weight cannot be used with alpha=1.0"),
        (np.ones(50), {"smooth": 1.0, "shuffle": False}, "with smooth=1.0"),
    ],
)
def test_weights_that_cannot_be_used_are_refused_and_change_nothing(rng, weights, given, message):
    X = rows(rng, 50)
    model = OMFB(3, random_state=0, **given).fit(X)
    before = snapshot(model)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            call(X, sample_weight=weights)
    assert snapshot(model) == before


def test_streams_have_no_weights(tmp_path):
    for X in (iter([np.ones((5, 3))]), "table.csv", {"a": 1.0}):
        with pytest.raises(TypeError, match="sample_weight needs rows at hand"):
            OMFB(2).fit(X, sample_weight=np.ones(5))
