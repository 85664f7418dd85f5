"""Rows that are refused: named, with what to do, and before anything has changed."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.core.broyden.engine import BroydenEngine

from ..making import ALL, DECOMPOSITIONS, rows, snapshot, sparse


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
        "one dimension": (np.ones(9), r"X has 9 features|Expected 2D array"),
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


@ALL
@pytest.mark.parametrize("name", wrong_rows(np.random.default_rng(0)))
@pytest.mark.parametrize("batch_size", [1, 4])
def test_wrong_rows_are_refused_and_change_nothing(rng, name, batch_size, estimator):
    X, message = wrong_rows(rng)[name]
    model = estimator(3, random_state=0)
    if estimator is OMFB:
        model.set_params(batch_size=batch_size)
    elif batch_size > 1:
        pytest.skip("batches are the model's own")
    # While the first dictionary is still being made (its scale is then open), and after.
    for seen in (450,) if "large" in name else (2, 50, 450):
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


def test_infinity_is_refused_in_rows_that_hold_entries_out(rng):
    X = rows(rng, 600, 6)
    model = OMFBImputer(2, random_state=0).partial_fit(X[:500])
    for number in range(500, 540):
        for column in range(6):
            row = X[number : number + 1].copy()
            row[0, column] = np.inf
            with pytest.raises(ValueError, match=r"infinity|too large"):
                model.partial_fit(row)
        model.partial_fit(X[number : number + 1])
    assert np.isfinite(model.prequential_error_)
    assert np.isfinite(model.recent_error_)


def test_a_first_fit_that_fails_leaves_a_model_unfitted(rng):
    X = rows(rng)
    X[-1, 0] = np.inf
    model = OnlineFactorAnalysis(3, random_state=0)
    before = dict(vars(model))
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="infinity"):
            method(X)
        assert vars(model) == before
        with pytest.raises(NotFittedError):
            model.transform(X)


def test_codes_of_another_width_are_refused(rng):
    model = OnlineFactorAnalysis(3, random_state=0).fit(rows(rng))
    with pytest.raises(ValueError, match="X has 4 columns"):
        model.inverse_transform(np.ones((2, 4)))
    with pytest.raises(ValueError, match="NaN"):
        model.inverse_transform(np.full((2, 3), np.nan))


@DECOMPOSITIONS
def test_masked_entries_are_missing(rng, estimator):
    X = rows(rng)
    mask = rng.random(X.shape) < 0.2
    X[0, 0], mask[0, 0] = np.inf, True  # what is masked is not looked at
    masked, holed = np.ma.masked_array(X, mask), np.where(mask, np.nan, X)
    model = estimator(3, random_state=0).fit(holed)
    other = estimator(3, random_state=0).fit(masked)
    assert np.array_equal(other.components_, model.components_)
    assert np.array_equal(other.complete(masked), model.complete(holed))
    assert np.array_equal(other.transform(masked), model.transform(holed))
    for one, data in ((model, holed), (other, masked)):
        one.partial_fit(data[:1]).partial_fit(data[1:5])
    assert np.array_equal(other.components_, model.components_)
    whole = np.ma.masked_array(np.arange(60).reshape(10, 6), mask=np.eye(10, 6) > 0)
    assert OnlineFactorAnalysis(2, random_state=0).fit(whole).components_.dtype == np.float64


DATES = pd.date_range("2020-01-01", periods=50)
NO_NUMBERS = {
    "dates": DATES, "durations": DATES - DATES[0], "dates in a zone": DATES.tz_localize("UTC"),
    "text": ["x"] * 50, "objects of text": pd.Series(["x"] * 50, dtype=object),
    "categories": pd.Categorical(["a", "b"] * 25), "complex numbers": np.full(50, 1j),
    "booleans": [True, False] * 25, "true or nothing": pd.Series([True, None] * 25, dtype=object),
    "lists": pd.Series([[1.0]] * 50), "bytes": pd.Series([b"x"] * 50, dtype=object),
    "numbers, then text": pd.Series([1.5, "x"] * 25, dtype=object),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_is_no_number_is_refused_by_the_name_of_its_column(rng, name):
    good = pd.DataFrame(rows(rng), columns=[f"f{i}" for i in range(10)])
    bad = good.assign(f3=NO_NUMBERS[name])
    fitted = OnlineFactorAnalysis(3, random_state=0).fit(good)
    for call in (
        OnlineFactorAnalysis(3).fit,
        OnlineFactorAnalysis(3).partial_fit,
        fitted.partial_fit,
        fitted.complete,
    ):
        with pytest.raises(ValueError, match="non-numeric values: column 'f3'"):
            call(bad)


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]"])
def test_arrays_of_dates_are_refused(kind):
    for X in (np.zeros((5, 3), kind), np.full((5, 3), "NaT", kind)):
        for same in (X, list(X), [list(row) for row in X]):
            with pytest.raises(ValueError, match="non-numeric values"):
                OnlineFactorAnalysis(2).fit(same)


@ALL
def test_paths_and_streams_are_for_fit_alone(rng, tmp_path, estimator):
    np.save(tmp_path / "x.npy", rows(rng))
    model = estimator(3, random_state=0).fit(tmp_path / "x.npy")
    before = snapshot(model)
    calls = [model.partial_fit, model.transform, model.complete, model.score]
    calls += [] if estimator is OMFB else [model.interval]
    for call in calls:
        for X in (tmp_path / "x.npy", str(tmp_path / "x.npy"), iter(rows(rng))):
            with pytest.raises(TypeError, match="which only `fit` reads"):
                call(X)
    assert snapshot(model) == before


def test_a_column_of_objects_may_hold_numbers_of_any_kind_and_what_says_that_they_are_missing(rng):
    good = pd.DataFrame(rows(rng), columns=[f"f{i}" for i in range(10)])
    good.loc[::7, "f3"] = np.nan
    for nothing in (None, pd.NA, pd.NaT, np.nan):
        f3 = [nothing if np.isnan(value) else Decimal(value) for value in good["f3"]]
        objects = good.assign(f3=pd.Series(f3, dtype=object))
        before = objects.copy()
        for estimator in (OMFB, OMFBImputer):
            model = estimator(3, random_state=0).fit(good)
            other = estimator(3, random_state=0).fit(objects)
            assert np.array_equal(other.components_, model.components_)
            assert np.array_equal(other.complete(objects).astype(float), model.complete(good))
        pd.testing.assert_frame_equal(objects, before)


@DECOMPOSITIONS
@pytest.mark.parametrize(("dtype", "largest"), [(np.float16, 6e4), (np.float32, 3.3e38)])
def test_what_is_filled_is_finite_near_the_end_of_a_types_range(rng, dtype, largest, estimator):
    X = (rng.choice([-1.0, 1.0], (60, 2)) @ rng.normal(size=(2, 8))).astype(np.float64)
    X = (largest * X / np.abs(X).max()).astype(dtype)
    X[rng.random(X.shape) < 0.3] = np.nan
    model = estimator(4, random_state=0).fit(X)
    assert np.isfinite(model.complete(X)).all()
    assert np.isfinite(model.inverse_transform(10 * model.transform(X))).all()


@DECOMPOSITIONS
def test_the_prequential_error_is_finite_when_rows_become_huge(rng, estimator):
    X = rng.random((5, 6))
    model = estimator(2, random_state=0)
    model.partial_fit(X[:2]).partial_fit(1e155 * X[2:])
    assert np.isfinite(model.prequential_error_)


class Undecided(BroydenEngine):
    """Its rows are infinity less infinity."""

    def decode(self, state, codes):
        return np.full((len(codes), len(state.C)), np.nan)


def test_codes_whose_rows_overflow_are_refused_or_bounded(rng):
    model = OMFB(3, init=np.ones((3, 10)), lam=1e300, random_state=0).fit(rows(rng))
    assert np.array_equal(
        model.inverse_transform([[1e308] * 3]), np.full((1, 10), np.finfo(float).max)
    )
    learner = model.learner_
    learner.engine = Undecided()
    with pytest.raises(ValueError, match="overflow"):
        learner.decode(np.ones((1, 3)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.learner_.decode(np.full((1, 3), np.nan))


def broken_sparse(kind):
    """A matrix whose indices lead out of it: compiled code that follows them ends the process."""
    X = scipy.sparse.csr_matrix(np.arange(1.0, 31.0).reshape(3, 10))
    if kind == "column too large":
        X.indices[4] = 10_000_000
    elif kind == "negative column":
        X.indices[4] = -1
    elif kind == "rows beyond the end":
        X.indptr[2:] = 10_000_000
    elif kind == "rows backwards":
        X.indptr[1] = 25
    elif kind == "csc":
        X = scipy.sparse.csc_matrix(X)
        X.indices[4] = 10_000_000
    elif kind == "coo":
        X = scipy.sparse.coo_matrix(X)
        X.col[4] = 10_000_000
    elif kind == "coo of other lengths":
        X = scipy.sparse.coo_matrix(X)
        X.data = np.ones(20_000_000)
    elif kind == "lil":
        X = scipy.sparse.lil_matrix(X)
        X.rows[1][0] = 10_000_000
    elif kind == "lil of other lengths":
        X = scipy.sparse.lil_matrix(X)
        X.data = np.concatenate([X.data, X.data])
    elif kind == "dia":
        X = scipy.sparse.dia_matrix(X)
        X.data = np.concatenate([X.data, X.data])
    elif kind == "bsr":
        X = scipy.sparse.bsr_matrix(X)
        X.indptr[1] = 10_000_000
    elif kind == "no end":
        X.indptr[-1] = -(2**31)
    elif kind == "objects":
        X.data = X.data.astype(object)
    return X


BROKEN = [
    "column too large", "negative column", "rows beyond the end", "rows backwards", "csc", "coo",
    "coo of other lengths", "lil", "lil of other lengths", "dia", "bsr", "no end", "objects",
]  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_sparse_matrix_whose_indices_lead_out_of_it_is_refused(rng, kind):
    fitted = OnlineFactorAnalysis(3, random_state=0).fit(rows(rng))
    before = snapshot(fitted)
    new = OnlineFactorAnalysis(3)
    for call in (
        new.fit, new.partial_fit, fitted.partial_fit, fitted.transform, fitted.complete,
        fitted.score,
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"not a valid sparse matrix|non-numeric values"):
            call(broken_sparse(kind))
    assert snapshot(fitted) == before
    assert not hasattr(new, "components_")


def test_a_sparse_matrix_stays_as_it_was_whatever_scipy_believes_of_it(rng):
    """Whoever changes indices leaves SciPy believing that they are in order, and none twice."""
    X = sparse(rows(rng, 9, holes=0.3))
    assert X.has_canonical_format
    X.indices[:2] = X.indices[0]  # twice there: entries that add up
    parts = [part.copy() for part in (X.data, X.indices, X.indptr)]
    summed = scipy.sparse.csr_array((X.data, X.indices.copy(), X.indptr), shape=X.shape)
    model = OnlineFactorAnalysis(3, random_state=0).fit(rows(rng))
    assert np.array_equal(model.complete(X), model.complete(summed))
    for before, after in zip(parts, (X.data, X.indices, X.indptr), strict=True):
        assert np.array_equal(before, after)


@pytest.mark.parametrize("kind", [np.asarray, sparse])
def test_rows_so_far_off_that_their_products_overflow_are_refused(rng, kind):
    """Compiled loops raise nothing: the dictionary was NaN from then on."""
    model = OnlineFactorAnalysis(3, random_state=0).fit(rows(rng, 450, holes=0.2))
    before = snapshot(model)
    with pytest.raises(ValueError, match="too large compared with the data"):
        model.partial_fit(kind(np.where(np.eye(9, 10) > 0, np.nan, 1e120)))
    assert snapshot(model) == before


def test_rows_that_a_young_stream_cannot_use_are_refused_when_they_come(rng):
    """Beside rows of 1e-214 those of 1 are spikes, farther off than any product can be."""
    model = OnlineFactorAnalysis(3, random_state=0).partial_fit(np.ones((1, 10)))
    before = snapshot(model)
    with pytest.raises(ValueError, match="too large compared with the data"):
        model.partial_fit(1e-214 * rows(rng, 40))
    assert snapshot(model) == before
    assert np.isfinite(model.components_).all()


@pytest.mark.parametrize("forget_factor", [0.0, 1e-300, 0.3])
def test_a_model_that_forgets_at_once_is_refused(rng, forget_factor):
    with pytest.raises(ValueError, match=r"forget_factor must be between 0\.5 and 1"):
        OnlineFactorAnalysis(3, forget_factor=forget_factor).partial_fit(rows(rng))


def test_numbers_beyond_all_floats_and_masked_things_are_refused(rng):
    fitted = OnlineFactorAnalysis(2, random_state=0).fit(rows(rng, m=2))
    for X in (
        [[10**400, 1], [2, 3]],
        np.ma.masked_array(np.array([[{}, 1.0], [2.0, 3.0]], object), [[False, True]] * 2),
        np.ma.masked_array([["x", "y"]] * 2, [[False, True]] * 2),
    ):
        for call in (OnlineFactorAnalysis(1).fit, fitted.partial_fit, fitted.complete):
            with pytest.raises(ValueError, match="non-numeric values"):
                call(X)


def test_columns_are_told_by_their_place_where_names_are_none(rng):
    X = pd.DataFrame(rows(rng, 40, 3, holes=0.1))
    X.insert(1, "text", "x")
    X.columns = [np.nan, 1, 2, 3]
    filled = OMFBImputer(2, random_state=0).fit(X).transform(X)
    assert (filled.iloc[:, 1] == "x").all()
    assert not filled.isna().any(axis=None)


def test_codes_and_atoms_beyond_the_range_of_a_type_are_bounded_without_a_warning(rng):
    X = rows(rng, 60, dtype=np.float32)
    model = OnlineFactorAnalysis(3, random_state=0).fit(X)
    for size in (1e30, 1e300):
        huge = np.where(np.eye(4, 10) > 0, np.nan, size)
        for call in (model.transform, model.complete, model.score, model.interval):
            try:
                answer = call(huge)
            except ValueError as error:
                assert "large" in str(error)  # noqa: PT017
            else:
                assert np.isfinite(answer).all()


@ALL
@pytest.mark.parametrize("holes", [0.0, 0.1])
@pytest.mark.parametrize("form", ["array", "frame", "sparse"])
def test_infinity_is_found_at_the_same_place_everywhere(rng, estimator, holes, form):
    X = rows(rng, 60, 4, holes=holes)
    X[37, 2] = 1.0
    bad = X.copy()
    bad[37, 2] = np.inf
    where = "row 38, column 3"
    if form == "frame":
        X, bad = (pd.DataFrame(each, columns=list("abcd")) for each in (X, bad))
        where = "row 38, column 'c'"
    elif form == "sparse":
        X, bad = (scipy.sparse.csr_array(np.nan_to_num(each, posinf=np.inf)) for each in (X, bad))
    model = estimator(2, random_state=0).fit(X)
    calls = [estimator(2).fit, estimator(2).partial_fit, model.partial_fit, model.transform]
    calls += [model.complete, model.score]
    if estimator is not OMFB:
        calls += [model.interval, model.sample, model.score_samples]
    for call in calls:
        with pytest.raises(ValueError, match=f"infinity at {where}"):
            call(bad)
