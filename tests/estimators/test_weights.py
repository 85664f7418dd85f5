"""Weights of rows: a row of weight 2 is the same row twice."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.estimators.weights import checked_weights
from omfb.learner.fit_stream import StopFitting

from ..making import rows, same, snapshot, sparse

FACTOR_MODELS = pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])


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


# -- the factor model -------------------------------------------------------------------------


def made(rng, n=300, m=8, missing=0.0):
    X = 2.0 + rng.standard_normal((n, 3)) @ rng.standard_normal((3, m))
    X += 0.3 * rng.standard_normal((n, m))
    X[rng.random((n, m)) < missing] = np.nan
    return X


def covariance(model):
    """That of a row, by the model."""
    C = model.components_
    return C.T @ C + np.diag(np.broadcast_to(model.noise_variance_, C.shape[1]))


def apart(one, other):
    """How far two models' covariances are apart, as a share."""
    return np.linalg.norm(covariance(one) - covariance(other)) / np.linalg.norm(covariance(other))


@FACTOR_MODELS
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_factor_model_of_weighted_rows_is_one_of_repeated_rows(rng, estimator, missing):
    """But for the order of the stream, and for what is held out."""
    X, weights = made(rng, missing=missing), rng.integers(0, 4, size=300)
    how = {"random_state": 0, "shuffle": False}
    often = estimator(**how).fit(counted(X, weights))
    once = estimator(**how).fit(X, sample_weight=weights)
    unweighted = estimator(**how).fit(X[weights > 0])
    assert apart(once, often) < (0.03 if missing else 1e-3)
    assert apart(once, often) < apart(unweighted, often) / (2 if missing else 30)
    assert once.n_samples_seen_ == unweighted.n_samples_seen_


@FACTOR_MODELS
def test_rows_of_weight_zero_are_as_if_absent(rng, estimator):
    X, weights = made(rng, missing=0.1), rng.integers(0, 3, size=300).astype(float)
    kept = weights > 0
    X[~kept] = 1e6
    how = {"random_state": 0}
    for given in (X, pd.DataFrame(X), sparse(X)):
        rest = given.loc[kept] if isinstance(given, pd.DataFrame) else given[kept]
        model = estimator(**how).fit(given, sample_weight=weights)
        assert snapshot(model) == snapshot(estimator(**how).fit(rest, sample_weight=weights[kept]))
        stream = estimator(**how).partial_fit(given, sample_weight=weights)
        rest = estimator(**how).partial_fit(rest, sample_weight=weights[kept])
        assert snapshot(stream) == snapshot(rest)


@FACTOR_MODELS
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_equal_weights_change_what_is_known_and_not_what_is_found(rng, estimator, missing):
    X = made(rng, 2000, missing=missing)
    plain = estimator(random_state=0).fit(X)
    for weight in (1.0, 3.0):
        model = estimator(random_state=0).fit(X, sample_weight=np.full(2000, weight))
        assert apart(model, plain) < (1e-9 if weight == 1.0 else 0.02)


@FACTOR_MODELS
@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse])
def test_a_weighted_stream_goes_on_from_a_file_bit_for_bit(rng, tmp_path, estimator, entries, kind):
    X, weights = made(rng, 90, missing=0.2), rng.random(90) + 0.5
    precisions = rng.random(X.shape) + 0.5
    whole, model = (estimator(2, random_state=0) for _ in range(2))

    def learn(model, first, last):
        given = {"entry_weight": precisions[first:last]} if entries else {}
        rows = kind(X[first:last])
        model.partial_fit(rows, sample_weight=weights[first:last], **given)

    for first in range(0, 90, 15):
        learn(whole, first, first + 15)
        learn(model, first, first + 15)
        model.save(tmp_path / "model.omfb")
        model = estimator.load(tmp_path / "model.omfb")
    np.testing.assert_array_equal(model.components_, whole.components_)
    np.testing.assert_array_equal(model.complete(X), whole.complete(X))


@FACTOR_MODELS
def test_a_weighted_fit_resumes_bit_for_bit(rng, tmp_path, estimator):
    X, weights = made(rng, 900, missing=0.2), rng.random(900) + 0.5
    given = {"sample_weight": weights, "entry_weight": rng.random(X.shape) + 0.5}
    whole = estimator(2, random_state=0, max_iter=2).fit(X, **given)
    checkpoint = tmp_path / "fit.omfb"

    def stop(progress):
        if progress.number == 2:
            raise StopFitting

    model = estimator(2, random_state=0, max_iter=2)
    rows, checked = checked_weights(X, **given)
    with pytest.raises(StopFitting):
        model.fit_source(
            model._weighted_source(rows, checked), checkpoint=checkpoint, every="1rows",
            on_block=stop,
        )  # fmt: skip
    resumed = estimator(2, random_state=0, max_iter=2)
    resumed.fit(X, checkpoint=checkpoint, resume=True, **given)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    other = {**given, "sample_weight": 2.0 * weights}
    with pytest.raises(ValueError, match="other data"):
        resumed.fit(X, checkpoint=checkpoint, resume=True, **other)


@FACTOR_MODELS
def test_single_rows_have_weights(rng, estimator):
    X = made(rng, 60)
    names = list("abcdefgh")
    model = estimator(2, random_state=0).partial_fit(pd.DataFrame(X, columns=names))
    other = estimator(2, random_state=0).partial_fit(pd.DataFrame(X, columns=names))
    model.partial_fit(dict(zip(names, X[0].tolist(), strict=True)), sample_weight=3.0)
    other.partial_fit(pd.DataFrame(X[:1], columns=names), sample_weight=[3.0])
    assert same(model.components_, other.components_)
    assert model.learner_.state.schedule.extra_weight == pytest.approx(2.0)


def precise(rng, n=400, m=12):
    """A table whose entries are known with precisions over three decades, and the truth."""
    truth = rng.standard_normal((n, 3)) @ rng.standard_normal((3, m))
    weights = 10.0 ** rng.uniform(-2, 1, truth.shape)
    X = truth + 0.3 * rng.standard_normal(truth.shape) / np.sqrt(weights)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, weights, truth


@FACTOR_MODELS
@pytest.mark.parametrize("how", ["fit", "partial_fit", "sparse"])
def test_known_precisions_of_entries_help(rng, estimator, how):
    X, weights, truth = precise(rng)
    missing, errors = np.isnan(X), []
    for given in ({"entry_weight": weights}, {}):
        model, rows = estimator(random_state=0), sparse(X) if how == "sparse" else X
        if how == "sparse" and given:
            given = {"entry_weight": scipy.sparse.csr_array(np.where(missing, 0.0, weights))}
        (model.partial_fit if how == "partial_fit" else model.fit)(rows, **given)
        filled, std = model.complete(rows, return_std=True, **given)
        errors.append(np.sqrt(np.mean((filled - truth)[missing] ** 2)))
        scores = np.abs(filled - truth)[missing] / std[missing]
        if given:
            assert 0.5 < np.sqrt(np.mean(scores**2)) < 1.5
            assert 0.06 < np.mean(model.noise_variance_) < 0.25  # 0.09, and it may be tempered
    assert errors[0] < 0.75 * errors[1]


@FACTOR_MODELS
def test_the_unit_of_precisions_does_not_matter(rng, estimator):
    X, weights, _ = precise(rng)
    for learn in (estimator.fit, estimator.partial_fit):
        usual, other = (
            learn(estimator(3, random_state=0), X, entry_weight=unit * weights)
            for unit in (1.0, 2.0**20)
        )
        assert same(other.components_, usual.components_, 1e-5)
        assert same(other.noise_variance_, 2.0**20 * usual.noise_variance_, 1e-4)


def test_an_entry_of_weight_zero_is_missing(rng):
    X, weights, _ = precise(rng)
    gone = rng.random(X.shape) < 0.2
    weights[gone] = 0.0
    holes = np.where(gone, np.nan, X)
    for estimator in (OMFBImputer, OnlineFactorAnalysis):
        model = estimator(3, random_state=0).fit(X, entry_weight=weights)
        other = estimator(3, random_state=0).fit(holes, entry_weight=weights)
        np.testing.assert_array_equal(model.components_, other.components_)
        given = {"entry_weight": weights}
        filled = model.complete(X, **given)
        np.testing.assert_array_equal(filled, other.complete(holes, **given))
        frame = pd.DataFrame(X, columns=list("abcdefghijkl"))
        named = estimator(3, random_state=0).fit(frame, **given)
        np.testing.assert_array_equal(named.complete(frame, **given), filled)
        codes = model.transform(X, **given)
        assert codes.shape == (len(X), 12 if estimator is OMFBImputer else 3)


def test_weights_of_entries_follow_the_columns_of_a_frame(rng):
    X, weights, _ = precise(rng, 60, 4)
    plain = OMFBImputer(2, random_state=0).fit(X, entry_weight=weights)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(1, "text", "x")
    of_all = np.insert(weights, 1, 7.0, axis=1)
    named = pd.DataFrame(weights[:, ::-1], columns=list("dcba"))
    for given in (weights, of_all, named):
        model = OMFBImputer(2, random_state=0).fit(frame, entry_weight=given)
        np.testing.assert_array_equal(model.components_, plain.components_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight": np.ones(59)}, "sample_weight.shape"),
        ({"sample_weight": -np.ones(60)}, "Negative values"),
        ({"sample_weight": np.full(60, np.nan)}, "NaN"),
        ({"sample_weight": np.full(60, np.inf)}, "infinity"),
        ({"sample_weight": np.zeros(60)}, "zero"),
        ({"entry_weight": np.ones((60, 7))}, "entry_weight has the shape"),
        ({"entry_weight": np.ones(60)}, "entry_weight has the shape"),
        ({"entry_weight": np.full((60, 8), -1.0)}, "entry_weight has the weight -1"),
        ({"entry_weight": np.full((60, 8), np.nan)}, "entry_weight has the weight nan"),
        ({"entry_weight": np.full((60, 8), np.inf)}, "entry_weight has the weight inf"),
        ({"entry_weight": np.full((60, 8), 1e300)}, "entry_weight has the weight 1e.300"),
        ({"sample_weight": 10**400}, "sample_weight is too large"),
        ({"sample_weight": np.full(60, 1e-300)}, "sample_weight has the weight 1e-300"),
        ({"entry_weight": "heavy"}, "entry_weight must be a table of numbers"),
        ({"entry_weight": np.full((60, 8), 1j)}, "entry_weight must be a table of numbers"),
    ],
)
@FACTOR_MODELS
def test_weights_that_are_none_are_refused_and_change_nothing(rng, estimator, given, message):
    X = made(rng, 60)
    model = estimator(2, random_state=0).fit(X)
    before = snapshot(model)
    for call in (model.fit, model.partial_fit, estimator().fit, estimator().partial_fit):
        with pytest.raises((ValueError, TypeError), match=message):
            call(X, **given)
    assert snapshot(model) == before


def test_weights_are_refused_where_they_cannot_be_used(rng, tmp_path):
    X = made(rng, 60)
    ones, model = np.ones(X.shape), OMFBImputer(2, random_state=0)
    for stream in (iter([X]), "table.csv"):
        with pytest.raises(TypeError, match="needs rows at hand"):
            model.fit(stream, sample_weight=np.ones(60))
    dask = pytest.importorskip("dask.array")
    for each in (model, OMFB(2)):
        with pytest.raises(TypeError, match="sample_weight needs rows at hand"):
            each.fit(dask.from_array(X), sample_weight=np.ones(60))
    with pytest.raises(TypeError, match="entry_weight is for tables"):
        model.partial_fit({"a": 1.0, "b": 2.0}, entry_weight=[[1.0, 1.0]])
    with pytest.raises(ValueError, match="consecutive in time"):
        OMFBImputer(2, temporal=True).fit(X, entry_weight=ones)
    model.fit(X)
    with pytest.raises(ValueError, match="cannot be used with max_gap"):
        model.complete(X, max_gap=3, entry_weight=ones)
    with pytest.raises(TypeError, match="entry_weight"):
        OMFB(2).fit(X, entry_weight=ones)


def test_a_weight_that_leaves_nothing_of_the_past_is_refused(rng):
    """0.9 to the power of a thousand million is 0: one row alone determines no dictionary."""
    model = OMFBImputer(n_components=3, forget_factor=0.9, random_state=0)
    with pytest.raises(ValueError, match="leaves nothing of the past"):
        model.partial_fit(rng.standard_normal((1, 6)), sample_weight=[1e9])
    assert not model.__sklearn_is_fitted__()
    model.partial_fit(rng.standard_normal((1, 6)), sample_weight=[150.0])
    assert np.isfinite(model.components_).all()
