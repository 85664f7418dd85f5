"""`OMFB` and `OMFBImputer`: the contract of an estimator, and that a model never half-changes."""

import copy
import logging
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from omfb import OMFB, OMFBImputer, codes

from . import reference

settings.register_profile(
    "omfb", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("omfb")

BOTH = pytest.mark.parametrize("estimator", [OMFB, OMFBImputer])


def rows(rng, n=50, m=10, holes=0.0, dtype=np.float64):
    Y = rng.normal(size=(n, 3)) @ rng.normal(size=(3, m)) + 0.1 * rng.normal(size=(n, m))
    Y[rng.random(Y.shape) < holes] = np.nan
    return Y.astype(dtype)


def same(a, b, tolerance=1e-10):
    """Equal to rounding: over some fifty well-conditioned steps it stays far below this."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape == b.shape and np.abs(a - b).max() <= tolerance * np.abs(b).max()


def snapshot(model):
    """Everything a model holds, to compare bit by bit."""
    return pickle.dumps(model)


# With smooth > 0 the rows of `transform` are one sequence: order matters there, by intent.
@parametrize_with_checks(
    [
        OMFB(2, random_state=0),
        OMFB(2, memory=0.0, batch_size=7, shuffle="uniform", max_iter=2, random_state=0),
        OMFB(3, ridge=0.1, shuffle=False, init="random", inner_iter=1, random_state=0),
        OMFB(2, memory=0.9, batch_size=3, tol=1e-3, max_iter=5, random_state=0),
        OMFBImputer(2, random_state=0),
        OMFBImputer(2, ridge=0.1, batch_size=4, max_iter=3, random_state=0),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# -- chunks, seeds, copies --------------------------------------------------------------------


@st.composite
def streams(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rows(rng, draw(st.integers(1, 40)), holes=draw(st.sampled_from([0.0, 0.2])))
    batch_size = draw(st.sampled_from([1, 1, 1, 4]))
    cuts = draw(st.lists(st.integers(1, max(1, (len(X) - 1) // batch_size)), max_size=8))
    cuts = sorted({cut * batch_size for cut in cuts if cut * batch_size < len(X)})
    if draw(st.booleans()):
        cuts = list(range(batch_size, len(X), batch_size))  # as small as can be
    model = OMFB(
        draw(st.integers(1, 4)),
        memory=draw(st.sampled_from([0.0, 0.9, 1.0])),
        smooth=draw(st.sampled_from([0.0, 0.5])),
        batch_size=batch_size,
        init=draw(st.sampled_from(["data", "random"])),
        shuffle=False,
        random_state=draw(st.integers(0, 5)),
    )
    return X, cuts, model, draw(st.sampled_from([np.asarray, sparse]))


def sparse(X):
    row, column = np.nonzero(~np.isnan(X))
    return scipy.sparse.csr_array((X[row, column], (row, column)), shape=X.shape)


@pytest.mark.filterwarnings("ignore:Never observed")
@given(streams())
def test_one_pass_in_order_equals_any_chunks(stream):
    X, cuts, model, kind = stream
    whole, chunked = clone(model).fit(kind(X)), clone(model)
    for chunk in np.split(X, cuts):
        chunked.partial_fit(kind(chunk))
    # A row may see fewer entries than there are atoms; nothing bounds the condition then.
    assert same(chunked.components_, whole.components_, 1e-7)
    assert chunked.n_samples_seen_ == whole.n_samples_seen_ == len(X)
    assert np.isclose(chunked.prequential_error_, whole.prequential_error_, atol=1e-7)


def test_chunks_may_be_of_different_kinds(rng):
    X = rows(rng, holes=0.2)
    whole = OMFB(2, shuffle=False, random_state=0).fit(X)
    mixed = OMFB(2, random_state=0)
    mixed.partial_fit(sparse(X[:2])).partial_fit(X[2:3]).partial_fit(
        scipy.sparse.csc_matrix(sparse(X[3:30]))
    )
    mixed.partial_fit(X[30:].tolist())
    assert same(mixed.components_, whole.components_)


def test_learning_goes_on_after_fit_and_after_a_copy(rng):
    X = rows(rng)
    model = OMFB(3, random_state=0).fit(X)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]
    model.partial_fit(X[:1])
    for other in copies:
        assert not same(other.components_, model.components_)
        assert same(other.partial_fit(X[:1]).components_, model.components_)


@BOTH
def test_the_same_seed_gives_the_same_model_and_fit_starts_anew(rng, estimator):
    X = rows(rng, holes=0.1)
    model = estimator(3, max_iter=2, random_state=3).fit(X)
    first = snapshot(model)
    assert snapshot(model.fit(X)) == first
    assert snapshot(clone(model).fit(X)) == first
    assert not same(estimator(3, random_state=4).fit(X).components_, model.components_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_keep_the_inputs_type(rng, dtype):
    X = rows(rng, holes=0.1, dtype=dtype)
    model = OMFB(3, random_state=0).fit(X)
    codes = model.transform(X)
    for output in (model.components_, codes, model.inverse_transform(codes), model.complete(X)):
        assert output.dtype == dtype


@BOTH
def test_nothing_that_was_given_or_returned_is_tied_to_the_model(rng, estimator):
    X = rows(rng, holes=0.1)
    init = rng.normal(size=(3, 10))
    given, first = X.copy(), init.copy()
    model = estimator(3, init=init, max_iter=2).fit(X).partial_fit(X[:1])
    model.transform(X), model.complete(X), model.score(X)
    assert np.array_equal(X, given, equal_nan=True)
    assert np.array_equal(init, first)
    before = model.components_.copy()
    X[:] = 0.0
    model.components_[:] = 0.0
    assert np.array_equal(model.components_, before)


@pytest.mark.parametrize("how", ["read-only", "memmap"])
def test_read_only_models_and_data_can_be_used_and_learned_from(rng, tmp_path, how):
    X = rows(rng, holes=0.1)
    model, path = OMFB(3, random_state=0).fit(X), tmp_path / "X.npy"
    if how == "memmap":
        np.save(path, X)
        X = np.load(path, mmap_mode="r")
    else:
        X.flags.writeable = False
    again = OMFB(3, random_state=0).fit(X)
    assert np.array_equal(again.components_, model.components_)
    assert np.array_equal(again.complete(X)[~np.isnan(X)], X[~np.isnan(X)])


# -- using a model ------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("smooth", [0.0, 0.7])
@pytest.mark.parametrize("holes", [0.0, 0.02, 0.3])
def test_transform_equals_the_reference(rng, monkeypatch, ridge, smooth, holes):
    monkeypatch.setattr(codes, "ROWS", 7)  # the chain goes on from one part to the next
    X = rows(rng, holes=holes)
    X[20] = np.nan if holes else X[20]
    model = OMFB(3, ridge=ridge, smooth=smooth, shuffle=False, random_state=0).fit(X)
    C = model.components_.T
    expected = reference.codes_of(C, X, ridge, smooth)
    for same_rows in (X, sparse(X)):
        assert same(model.transform(same_rows), expected)
        explained = 1.0 - np.nansum((X - expected @ C.T) ** 2) / np.nansum(X**2)
        assert np.isclose(model.score(same_rows), explained, rtol=1e-12)
        filled = model.complete(same_rows)
        assert same(filled, np.where(np.isnan(X), expected @ C.T, X))
        assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert same(model.inverse_transform(expected), expected @ C.T)


@pytest.mark.parametrize("parameters", [{}, {"batch_size": 4}, {"smooth": 0.5, "shuffle": False}])
@BOTH
def test_fit_transform_is_fit_then_transform(rng, estimator, parameters):
    X = rows(rng, holes=0.1)
    model = estimator(3, random_state=0, **parameters)
    assert np.array_equal(model.fit_transform(X), clone(model).fit(X).transform(X))


@BOTH
def test_an_unfitted_model_says_so(estimator):
    model = estimator(2)
    for call in (lambda: model.transform([[1.0]]), lambda: model.complete([[1.0]]),
                 lambda: model.score([[1.0]]), lambda: model.components_):  # fmt: skip
        with pytest.raises(NotFittedError):
            call()
    for name in ("components_", "n_samples_seen_", "prequential_error_", "n_features_in_"):
        assert not hasattr(model, name)


def test_the_prequential_error_is_that_before_learning(rng):
    X = rows(rng)
    model = OMFB(3, max_iter=3, shuffle=False, random_state=0).fit(X)
    two = OMFB(3, max_iter=2, shuffle=False, random_state=0).fit(X)
    residual = energy = 0.0
    for x in X:
        error = x - two.transform(x[None])[0] @ two.components_
        residual, energy = residual + error @ error, energy + x @ x
        two.partial_fit(x[None])
    assert np.isclose(model.prequential_error_, np.sqrt(residual / energy), rtol=1e-9)


def test_the_atoms_that_a_fitted_model_has_are_what_counts(rng):
    """Parameters may be set for the next fit while the model is still in use."""
    X = rows(rng)
    model = OMFB(3, random_state=0).fit(X)
    codes = model.transform(X)
    model.set_params(n_components=5)
    assert np.array_equal(model.transform(X), codes)
    assert model.inverse_transform(codes).shape == X.shape


# -- passes -------------------------------------------------------------------------------------


def test_passes_stop_when_they_no_longer_improve(rng):
    X = rows(rng)
    model = OMFB(3, max_iter=50, tol=1e-2, random_state=0).fit(X)
    assert 1 < model.n_iter_ < 50
    assert model.n_samples_seen_ == model.n_iter_ * len(X)
    assert OMFB(3, max_iter=7, random_state=0).fit(X).n_iter_ == 7


@pytest.mark.parametrize("shuffle", [True, False, "uniform"])
def test_each_way_to_shuffle_takes_as_many_rows(rng, shuffle):
    X = rows(rng)
    model = OMFB(3, shuffle=shuffle, max_iter=2, random_state=0).fit(X)
    assert model.n_samples_seen_ == 2 * len(X)
    others = [
        OMFB(3, shuffle=s, max_iter=2, random_state=0).fit(X) for s in (True, False, "uniform")
    ]
    equal = [np.array_equal(model.components_, other.components_) for other in others]
    assert sum(equal) == 1


def test_shuffling_permutes_and_uniform_draws_with_replacement():
    """Row i sees feature i only, so a feature never observed is a row never drawn."""
    X = scipy.sparse.eye_array(1000, format="csr")
    OMFB(2, shuffle=True, random_state=0).fit(X)  # a warning would be an error
    with pytest.warns(UserWarning, match="Never observed") as told:
        OMFB(2, shuffle="uniform", random_state=0).fit(X)
    missed = 10 + int(re.search(r"and (\d+) more", str(told[0].message)).group(1))
    assert 320 < missed < 420  # 368 are expected, with a deviation of 10


def test_verbose_logs_each_pass(rng, caplog):
    with caplog.at_level(logging.INFO, logger="omfb"):
        OMFB(3, max_iter=3, verbose=1, random_state=0).fit(rows(rng))
        told = [record.getMessage() for record in caplog.records]
        OMFB(3, max_iter=3, random_state=0).fit(rows(rng))
    assert [message.partition(":")[0] for message in told] == [f"pass {i} of 3" for i in (1, 2, 3)]
    assert len(caplog.records) == 3


class Watch:
    """A scikit-learn callback that counts passes, and may ask to stop."""

    def __init__(self, stop_after=None):
        self.stop_after, self.begun, self.ended, self.kept = stop_after, 0, 0, []
        self.set_up = self.torn_down = 0

    def setup(self, estimator, context):
        self.set_up += 1

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.begun += context.task_name == "pass"

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name != "pass":
            return False
        self.ended += 1
        self.kept.append((fitted_estimator, fitted_estimator.components_.copy()))
        return self.ended == self.stop_after


def test_callbacks_see_each_pass_and_can_stop(rng):
    pytest.importorskip("sklearn.callback")
    X, watch = rows(rng), Watch(stop_after=3)
    model = OMFB(3, max_iter=10, random_state=0).set_callbacks(watch).fit(X)
    assert (watch.begun, watch.ended, watch.set_up, watch.torn_down) == (3, 3, 1, 1)
    assert model.n_iter_ == 3
    for passes, (kept, components) in enumerate(watch.kept, start=1):
        so_far = OMFB(3, max_iter=passes, random_state=0).fit(X)
        assert np.array_equal(components, so_far.components_)
        assert np.array_equal(kept.components_, components)  # later passes leave it alone
        assert same(kept.transform(X), so_far.transform(X))


def test_callbacks_are_torn_down_when_a_fit_fails(rng):
    pytest.importorskip("sklearn.callback")
    X, watch = rows(rng), Watch()
    X[-1, -1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        OMFB(3, random_state=0).set_callbacks(watch).fit(X)
    assert watch.set_up == watch.torn_down == 1


# -- names and frames ---------------------------------------------------------------------------


def test_features_never_observed_are_named(rng):
    X = rows(rng)
    X[:, [2, 5]] = np.nan
    stored = sparse(rows(rng))
    stored.data[stored.indices == 2] = np.nan
    with pytest.warns(UserWarning, match=r"Never observed: feature 2, 5\."):
        OMFB(3, random_state=0).fit(X)
    with pytest.warns(UserWarning, match=r"Never observed: feature 2, 5\."):
        OMFB(3, random_state=0).fit(sparse(X))
    with pytest.warns(UserWarning, match=r"Never observed: feature 2\."):
        OMFB(3, random_state=0).fit(stored)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(10)])
    with pytest.warns(UserWarning, match=r"Never observed: feature f2, f5\."):
        OMFBImputer(3, random_state=0).fit(frame)


FRAMES = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


def frame_of(library, X, prefix="f"):
    return library.DataFrame({f"{prefix}{i}": X[:, i] for i in range(X.shape[1])})


@FRAMES
def test_frames_equal_arrays_and_names_are_checked(rng, library):
    X = rows(rng, holes=0.1)
    frame = frame_of(library, X)
    model = OMFB(3, random_state=0).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert same(model.components_, OMFB(3, random_state=0).fit(X).components_)
    assert same(model.transform(frame), OMFB(3, random_state=0).fit(X).transform(X))
    other = frame_of(library, X, prefix="g")
    for method in (model.transform, model.complete, model.score, model.partial_fit):
        with pytest.raises(ValueError, match="feature names"):
            method(other)
        with pytest.warns(UserWarning, match="valid feature names"):
            method(X)


@FRAMES
@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
@BOTH
def test_set_output_and_names_out(rng, library, output, estimator):
    frame = frame_of(library, rows(rng, holes=0.1))
    model = estimator(3, random_state=0).set_output(transform=output).fit(frame)
    result = model.transform(frame)
    names = [f"omfb{i}" for i in range(3)] if estimator is OMFB else list(frame.columns)
    assert list(model.get_feature_names_out()) == names
    if output == "default":
        assert type(result) is np.ndarray
    else:
        assert type(result) is {"pandas": pd.DataFrame, "polars": pl.DataFrame}[output]
        assert list(result.columns) == names


def test_complete_keeps_a_pandas_frame_as_it_was(rng):
    X = rows(rng)
    frame = pd.DataFrame(
        {
            "whole": X[:, 0],
            "holes": np.where(np.arange(50) % 7, X[:, 1], np.nan),
            "short": np.where(np.arange(50) % 6, X[:, 2], np.nan).astype(np.float32),
            "count": np.arange(50),
            "flag": np.arange(50) % 3 == 0,
            "nullable": pd.array(X[:, 4], dtype="Float64"),
            "int": pd.array(np.arange(50), dtype="Int64"),
        },
        index=pd.date_range("2026-01-01", periods=50),
    )
    frame.loc[frame.index[3], ["nullable", "int"]] = pd.NA
    before = frame.copy()
    model = OMFB(3, random_state=0).fit(frame)
    filled = model.complete(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert type(filled) is pd.DataFrame
    assert filled.index.equals(frame.index)
    assert not filled.isna().any().any()
    for name in frame.columns:
        seen = ~frame[name].isna()
        assert (filled[name][seen] == frame[name][seen]).all()
        if name != "int":  # a fraction does not fit there
            assert filled[name].dtype == frame[name].dtype
    assert OMFBImputer(3, random_state=0).fit(frame).transform(frame).dtype == np.float64


def test_complete_keeps_a_polars_frame_as_it_was(rng):
    X = rows(rng)
    frame = pl.DataFrame(
        {
            "whole": X[:, 0],
            "nan": np.where(np.arange(50) % 7, X[:, 1], np.nan),
            "null": pl.Series([None, *X[1:, 2]]),
            "short": pl.Series([None, *X[1:, 3]], dtype=pl.Float32),
            "count": np.arange(50),
            "self": pl.Series([None, *range(49)]),
        }
    )
    before = frame.clone()
    filled = OMFB(3, random_state=0).fit(frame).complete(frame)
    assert frame.equals(before)
    assert type(filled) is pl.DataFrame
    assert filled.columns == frame.columns
    assert filled.null_count().sum_horizontal().item() == 0
    for name in frame.columns:
        seen = ~np.isnan(frame[name].to_numpy().astype(float))
        assert seen.all() == (name in ("whole", "count"))
        assert (filled[name].to_numpy()[seen] == frame[name].to_numpy()[seen]).all()
        if name != "self":  # a fraction does not fit among whole numbers
            assert filled[name].dtype == frame[name].dtype


def test_the_imputer_fills_holes_in_a_pipeline(rng):
    X = rows(rng, holes=0.2)
    pipeline = make_pipeline(OMFBImputer(3, random_state=0), OMFB(2, random_state=0))
    assert np.isfinite(pipeline.fit_transform(X)).all()
    filled = pipeline[0].transform(X)
    assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.array_equal(filled, pipeline[0].complete(X))


# -- what is refused ----------------------------------------------------------------------------

WRONG = [
    ("n_components", 0, ValueError), ("n_components", 2.5, TypeError),
    ("n_components", "3", TypeError),
    ("lam", 0.0, ValueError), ("lam", -1.0, ValueError), ("lam", np.nan, ValueError),
    ("lam", np.inf, ValueError), ("lam", "1", TypeError), ("lam", None, TypeError),
    ("memory", -0.1, ValueError), ("memory", 1.1, ValueError), ("memory", "a", TypeError),
    ("ridge", -1.0, ValueError), ("ridge", np.nan, ValueError), ("ridge", 1j, TypeError),
    ("smooth", -1.0, ValueError), ("smooth", 0.5, ValueError), ("smooth", None, TypeError),
    ("inner_iter", 0, ValueError), ("inner_iter", 1.0, TypeError), ("inner_iter", True, TypeError),
    ("batch_size", 0, ValueError), ("batch_size", None, TypeError),
    ("max_iter", 0, ValueError), ("max_iter", "many", TypeError),
    ("tol", -1e-3, ValueError), ("tol", None, TypeError),
    ("shuffle", "often", ValueError), ("shuffle", None, ValueError), ("shuffle", 2, ValueError),
    ("init", "svd", ValueError), ("init", np.ones((2, 2)), ValueError), ("init", None, ValueError),
    ("init", np.full((3, 10), np.nan), ValueError), ("init", [["a"] * 10] * 3, TypeError),
    ("random_state", "seed", ValueError),
]  # fmt: skip
OF_THE_RULE = {"lam", "memory", "ridge", "smooth", "inner_iter", "batch_size"}


@pytest.mark.parametrize(("name", "value", "error"), WRONG)
@BOTH
def test_wrong_parameters_are_named_and_change_nothing(rng, name, value, error, estimator):
    X = rows(rng)
    model = estimator(3, random_state=0)
    with pytest.raises(error, match="seed" if name == "random_state" else name):
        clone(model).set_params(**{name: value}).fit(X)
    model.fit(X).set_params(**{name: value})
    before = snapshot(model)
    calls = [model.fit, model.partial_fit] if name in OF_THE_RULE else [model.fit]
    for call in calls:
        with pytest.raises(error):
            call(X)
        assert snapshot(model) == before


def wrong_rows(rng):
    late = rows(rng, 400)
    late[397, 3] = np.inf
    holed = np.where(rng.random(late.shape) < 0.3, np.nan, late)
    holed[397, 3] = -np.inf
    return {
        "infinity in a late row": (late, "X contains infinity"),
        "infinity in one row": (late[397:398], "X contains infinity"),
        "infinity among holes": (holed, "X contains infinity"),
        "infinity in one row with holes": (holed[397:398], "X contains infinity"),
        "infinity in a sparse matrix": (sparse(holed), "X contains infinity"),
        "too few columns": (rows(rng, m=9), "X has 9 features"),
        "too many columns": (rows(rng, m=11), "X has 11 features"),
        "too many columns, sparse": (sparse(rows(rng, m=11)), "X has 11 features"),
        "one dimension": (np.ones(10), "Expected 2D array"),
        "no rows": (np.empty((0, 10)), "0 sample"),
        "text": ([["a"] * 10] * 3, "X"),
        "text in a frame": (pd.DataFrame([["a"] * 10] * 3), "X"),
        "complex": (np.ones((3, 10), complex), "Complex data not supported"),
        "too large": (np.full((2, 10), 1e200), "X contains values up to"),
        "too large, one row": (np.full((1, 10), 1e200), "X contains values up to"),
        "too large, one row with holes": (
            np.where(np.arange(10) == 4, np.nan, 1e200)[None], "X contains values up to",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", wrong_rows(np.random.default_rng(0)))
@pytest.mark.parametrize("batch_size", [1, 4])
@BOTH
def test_wrong_rows_are_refused_and_change_nothing(rng, name, batch_size, estimator):
    X, message = wrong_rows(rng)[name]
    model = estimator(3, batch_size=batch_size, random_state=0)
    # While the first dictionary is still being made (its scale is then open), and after.
    for seen in (50,) if "large" in name else (2, 50):
        model = clone(model).partial_fit(rows(rng, seen))
        before = snapshot(model)
        with pytest.raises((ValueError, TypeError), match=message):
            model.partial_fit(X)
        assert snapshot(model) == before
    if "columns" in name or "large" in name:
        return  # fit may take these
    for call in (model.fit, clone(model).fit):
        with pytest.raises((ValueError, TypeError), match=message):
            call(X)
    assert snapshot(model) == before


def test_a_first_fit_that_fails_leaves_a_model_unfitted(rng):
    X = rows(rng)
    X[-1, 0] = np.inf
    model = OMFB(3, random_state=0)
    before = dict(vars(model))
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="infinity"):
            method(X)
        assert vars(model) == before
        with pytest.raises(NotFittedError):
            model.transform(X)


def test_codes_of_another_width_are_refused(rng):
    model = OMFB(3, random_state=0).fit(rows(rng))
    with pytest.raises(ValueError, match="X has 4 columns"):
        model.inverse_transform(np.ones((2, 4)))
    with pytest.raises(ValueError, match="NaN"):
        model.inverse_transform(np.full((2, 3), np.nan))
