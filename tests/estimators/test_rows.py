"""One row as streams bring it: by name or as an array, the model and its answers are the same."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis

from ..making import ALL, PREDICTIVE, same

NAMES = list("abcdef")


@pytest.fixture
def frame(rng):
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(60, 6))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = np.arange(6.0)
    return pd.DataFrame(X, columns=NAMES)


def learned(estimator, rows):
    model = estimator(2, random_state=0)
    for row in rows:
        model.partial_fit(row)
    return model


def without_missing(row):
    """A row as a dict in which missing entries are absent, in another order."""
    return {name: row[name] for name in reversed(NAMES) if not np.isnan(row[name])}


FORMS = {
    "dict": lambda X: [dict(zip(NAMES, row, strict=True)) for row in X.to_numpy().tolist()],
    "sparse dict": lambda X: [without_missing(row) if at else dict(row)
                              for at, (_, row) in enumerate(X.iterrows())],
    "None": lambda X: [{k: None if np.isnan(v) else v for k, v in row.items()}
                       for _, row in X.iterrows()],
    "Series": lambda X: [row for _, row in X.iterrows()],
    "record": lambda X: list(X.to_records(index=False)),
    "named tuple": lambda X: list(X.itertuples()),
    "list of dicts": lambda X: [X.to_dict("records")],
    "array of records": lambda X: [np.array(X.to_records(index=False).tolist(),
                                            [(name, float) for name in NAMES])],
    "frame": lambda X: [X[at : at + 1] for at in range(len(X))],
}  # fmt: skip


@ALL
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_rows_by_name_are_the_rows_of_the_frame(estimator, form, frame):
    model = learned(estimator, form(frame))
    expected = estimator(2, random_state=0).partial_fit(frame)
    assert same(model.components_, expected.components_)
    assert model.feature_names_in_.tolist() == NAMES


@ALL
def test_an_array_of_one_dimension_is_one_row(estimator, frame):
    X = frame.to_numpy()
    model = learned(estimator, X)
    assert np.array_equal(model.components_, learned(estimator, X[:, None]).components_)
    assert np.array_equal(model.complete(X[5]), model.complete(X[5:6])[0])


@ALL
def test_filled_rows_come_back_in_their_form(estimator, frame):
    model = estimator(2, random_state=0).partial_fit(frame)
    filled = model.complete(frame[7:8]).iloc[0]
    row = without_missing(frame.iloc[7])
    assert len(row) < 6
    answer = model.complete(row)
    assert list(answer)[: len(row)] == list(row)
    assert answer == filled.to_dict()
    series = model.complete(frame.iloc[7])
    pd.testing.assert_series_equal(series, filled)
    record = frame.to_records(index=False)[7]
    assert model.complete(record).tolist() == tuple(filled)
    assert np.isnan(record.tolist()).any()  # it was not written into
    named = next(frame[7:8].itertuples())
    assert model.complete(named)[1:] == tuple(filled)
    assert model.complete([row]) == [answer]


@PREDICTIVE
def test_deviations_intervals_and_scores_of_one_row(estimator, frame):
    model = estimator(2, random_state=0).partial_fit(frame)
    row, table = without_missing(frame.iloc[7]), frame[7:8]
    filled, std = model.complete(row, return_std=True)
    assert filled == model.complete(row)
    expected = model.complete(table, return_std=True)[1][0]
    assert std == dict(zip(NAMES, expected, strict=True))
    of_series = model.complete(frame.iloc[7], return_std=True)[1]
    assert of_series.tolist() == expected.tolist()
    for mine, theirs in zip(model.interval(row), model.interval(table), strict=True):
        assert mine == theirs.iloc[0].to_dict()
    score = model.score_samples(row)
    assert type(score) is float
    assert score == model.score_samples(table)[0]
    assert model.score_samples([row]).shape == (1,)


@ALL
def test_values_of_other_types_of_numbers(estimator, frame):
    model = estimator(2, random_state=0).partial_fit(frame)
    plain = {"a": 1.0, "b": 2.0, "c": 0.5, "d": 1.0}
    others = {"a": 1, "b": np.int8(2), "c": Decimal("0.5"), "d": np.float32(1.0), "e": pd.NA}
    filled = model.complete(plain)
    answer = model.complete(others)
    assert all(answer[name] is others[name] for name in "abcd")
    assert answer["e"] == filled["e"]
    assert answer["f"] == filled["f"]


@ALL
def test_rows_that_cannot_be_used_are_refused_by_name(estimator, frame):
    model = estimator(2, random_state=0).partial_fit(frame)
    before = model.components_
    for call in (model.partial_fit, model.complete):
        with pytest.raises(TypeError, match="'b' is '3'"):
            call({"a": 1.0, "b": "3"})
        with pytest.raises(TypeError, match="'b' is True"):
            call({"a": 1.0, "b": True})
        with pytest.raises(ValueError, match=r"too large|infin|Infin"):
            call({"a": 10**400})
        with pytest.raises(ValueError, match="holds a name twice"):
            call(pd.Series([1.0, 2.0], index=["a", "a"]))
    if estimator is not OMFB:
        model.set_params(new_features="error")
    for call in (model.partial_fit, model.complete):
        with pytest.raises(ValueError, match="'other'"):
            call({"a": 1.0, "other": 2.0})
    assert np.array_equal(model.components_, before)
    with pytest.raises(TypeError, match="key 3"):
        estimator(2).partial_fit({3: 1.0})
    with pytest.raises(ValueError, match="nothing to learn"):
        estimator(2).partial_fit({})
    with pytest.raises(TypeError, match="X is a dict"):
        model.transform({"a": 1.0})
    unnamed = estimator(2, random_state=0).partial_fit(frame.to_numpy())
    with pytest.raises(ValueError, match="without names"):
        unnamed.complete({"a": 1.0})


def test_text_is_passed_through_by_the_imputer_and_refused_by_others(frame):
    rows = [{"id": f"row {at}", **row} for at, row in enumerate(frame.to_dict("records"))]
    model = OMFBImputer(2, random_state=0)
    for row in rows:
        model.partial_fit(row)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.complete({"id": "x", "a": 1.0})["id"] == "x"
    for estimator in (OMFB, OnlineFactorAnalysis):
        with pytest.raises(TypeError, match="'id' is 'row 0'"):
            estimator(2).partial_fit(rows[0])
