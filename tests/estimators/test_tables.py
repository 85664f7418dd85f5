"""Tables as users have them: columns that hold no numbers, times, and a search for parameters."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis

from ..conftest import SHARED
from ..making import rows

DATES = pd.date_range("2026-01-01", periods=200, freq="h")


def mixed_pandas(rng):
    X = rows(rng, 200, holes=0.1)
    numbers = {f"f{i}": X[:, i] for i in range(10)}
    return pd.DataFrame(
        {
            "text": ["a", None] * 100, **numbers, "date": DATES, "flag": np.arange(200) % 3 == 0,
            "kind": pd.Categorical(["u", "v"] * 100),
        }
    )  # fmt: skip


def mixed_polars(rng):
    frame = mixed_pandas(rng)
    frame["kind"] = frame["kind"].astype(str)
    return pl.from_pandas(frame).with_columns(pl.col("kind").cast(pl.Categorical))


OTHERS = ["text", "date", "kind"]
FEATURES = [*(f"f{i}" for i in range(10)), "flag"]


@pytest.mark.parametrize("mixed", [mixed_pandas, mixed_polars])
def test_columns_that_hold_no_numbers_are_passed_through(rng, mixed):
    frame = mixed(rng)
    model = OMFBImputer(random_state=0).fit(frame)
    assert list(model.feature_names_in_) == FEATURES
    numbers = np.column_stack([frame[f"f{i}"].to_numpy() for i in range(10)])
    for filled in (model.transform(frame), model.complete(frame), model.fit_transform(frame)):
        assert type(filled) is type(frame)
        assert list(filled.columns) == list(frame.columns)
        for name in (*OTHERS, "flag"):
            assert filled[name].dtype == frame[name].dtype
            assert filled[name].equals(frame[name])
        values = np.column_stack([filled[f"f{i}"].to_numpy() for i in range(10)])
        assert np.isfinite(values).all()
        assert np.array_equal(values[~np.isnan(numbers)], numbers[~np.isnan(numbers)])
    model.partial_fit(frame)
    assert model.n_samples_seen_ > 200


@pytest.mark.parametrize("name", [*OTHERS, "flag"])
@pytest.mark.parametrize("mixed", [mixed_pandas, mixed_polars])
def test_a_decomposition_names_the_column_that_holds_no_numbers(rng, mixed, name):
    frame = mixed(rng)
    kept = [f"f{i}" for i in range(10)]
    with pytest.raises(ValueError, match=f"column '{name}' holds"):
        OnlineFactorAnalysis().fit(frame[[*kept, name]])
    if name == "flag":
        return
    with pytest.raises(ValueError, match="no column of numbers"):
        OMFBImputer().fit(frame[[name]])


@pytest.mark.parametrize("names", [["user", "item", "rating"], ["userId", "movieId", "Rating"]])
def test_ratings_one_in_a_row_are_told_from_features(rng, tmp_path, names):
    frame = pd.DataFrame(rng.integers(1, 6, size=(100, 3)), columns=names)
    frame.to_csv(tmp_path / "x.csv", index=False)
    for X in (frame, tmp_path / "x.csv"):
        with pytest.warns(UserWarning, match="one rating per row. Make one row per user"):
            OMFBImputer(random_state=0).fit(X)
    OMFBImputer(random_state=0).fit(frame.set_axis(["user age", "income", "height"], axis=1))


def test_a_frame_with_times_is_in_time(rng):
    codes = np.cumsum(rng.normal(size=(200, 2)), axis=0)
    Y = codes @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))
    frame = pd.DataFrame(Y, columns=list("abcdef"), index=DATES)
    model = OMFBImputer(random_state=0).fit(frame)
    assert model.forecast(2).shape == (2, 6)
    following = frame[:1].set_axis(DATES[-1:] + pd.Timedelta("1h"))
    assert model.partial_fit(following).forecast(1).shape == (1, 6)
    for other in (frame.reset_index(drop=True), frame):
        plain = OMFBImputer(random_state=0, temporal=False if other is frame else None).fit(other)
        with pytest.raises(ValueError, match="consecutive in time"):
            plain.forecast()


@pytest.mark.parametrize("name", ["beijing_air", "metr_la_week"])
def test_a_search_picks_the_model_that_fills_hidden_cells_best(name):
    """`score` judges entries that did not make the codes, so more components look no better."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the shared data")
    with np.load(path) as arrays:
        X = arrays["speed" if name == "metr_la_week" else "x"][:1500]
    X = X.reshape(len(X), -1).astype(np.float64)
    X = X[:, np.mean(np.isnan(X), axis=0) < 0.5]
    X = (X - np.nanmean(X, axis=0)) / np.maximum(np.nanstd(X, axis=0), 1e-12)
    # As many as `score` hides: with fewer, more components and less ridge may fill better.
    hidden = (np.random.default_rng(0).random(X.shape) < 0.25) & ~np.isnan(X)
    shown = np.where(hidden, np.nan, X)
    grid = {"n_components": [2, 10, 40], "ridge": [0.0, 1.0, 100.0]}
    given = {"forget_factor": 1.0, "random_state": 0}
    rows_of_all_times = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(OMFB(**given), grid, cv=rows_of_all_times).fit(shown)
    errors = []
    for parameters in search.cv_results_["params"]:
        model = OMFB(**given, **parameters).fit(shown)
        errors.append(np.sqrt(np.mean((model.complete(shown) - X)[hidden] ** 2)))
    assert errors[search.best_index_] <= 1.05 * min(errors)


def test_times_out_of_order_give_a_warning_and_are_not_used(rng):
    times = pd.date_range("2026-01-01", periods=500, freq="h")
    X = pd.DataFrame(np.cumsum(rows(rng, 500, 6), axis=0), index=times)
    X = X.mask(rng.random(X.shape) < 0.1)
    model = OMFBImputer(random_state=0).fit(X)
    alone = OMFBImputer(random_state=0).fit(X).set_params(temporal=False)
    shuffled = X.sample(frac=1.0, random_state=0)
    with pytest.warns(UserWarning, match="sort_index"):
        pd.testing.assert_frame_equal(model.complete(shuffled), alone.complete(shuffled))
    with pytest.warns(UserWarning, match="sort_index"):
        low, high = model.interval(shuffled)
    for bound, expected in zip((low, high), alone.interval(shuffled), strict=True):
        pd.testing.assert_frame_equal(bound, expected)
    with pytest.warns(UserWarning, match="sort_index"):
        fitted = OMFBImputer(random_state=0).fit(shuffled)
    assert not fitted.learner_.config.temporal
    assert model.learner_.config.temporal


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_outages_of_smooth_series_are_bridged_as_well_as_by_a_line(shared):
    """Series that have little to do with each other, each off for 20 rows at a time."""
    ours, lines, held = [], [], []
    for seed in (101, 7):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((2000, 9))
        X = np.empty_like(noise)
        X[0] = 7.0 * noise[0]
        for t in range(1, 2000):
            X[t] = 0.99 * X[t - 1] + noise[t]
        X = np.sqrt(1.0 - shared) * X[:, :8] + np.sqrt(shared) * X[:, 8:]
        off = np.zeros(X.shape, bool)
        for i in range(8):
            for first in rng.integers(0, 1970, 5):
                off[first : first + 20, i] = True
        table = pd.DataFrame(X).mask(off | (rng.random(X.shape) < 0.05))
        model = OMFBImputer(temporal=True, random_state=0).fit(table)
        for filled, errors in (
            (model.complete(table), ours),
            (table.interpolate(limit_direction="both"), lines),
        ):
            errors.append(np.mean((filled.to_numpy() - X)[off] ** 2))
        low, high = (bound.to_numpy() for bound in model.interval(table))
        held.append(np.mean((low <= X)[off] & (high >= X)[off]))
    assert np.mean(ours) < (1.15 if shared == 0.0 else 0.95) * np.mean(lines)
    assert 0.8 < np.mean(held) < 0.97
