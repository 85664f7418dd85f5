"""Standard deviations, intervals, draws, likelihoods, forecasts; what the model estimates."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.core.engine import UnsupportedError

from ..making import PREDICTIVE, rows


def hidden_table(seed, n=1500, m=12, rank=3, missing=0.2):
    """Rows of low rank in all units, and the same with missing entries."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) + 0.3 * rng.normal(size=(n, m))
    Y = Y * 10.0 ** rng.uniform(-3, 3, m) + 10.0 ** rng.uniform(-3, 3, m)
    return Y, np.where(rng.random(Y.shape) < missing, np.nan, Y)


@PREDICTIVE
def test_deviations_are_those_of_the_errors(estimator):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Y = rows(rng, 1500)
        X = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
        hidden = np.isnan(X)
        model = estimator(random_state=0).fit(X)
        filled, std = model.complete(X, return_std=True)
        assert np.array_equal(filled, model.complete(X))
        assert (std[~hidden] == 0.0).all()
        assert (std[hidden] > 0.0).all()
        assert 0.85 < np.sqrt(np.mean(((filled - Y)[hidden] / std[hidden]) ** 2)) < 1.15


@pytest.mark.parametrize("estimator", [OMFBImputer, OnlineFactorAnalysis])
def test_intervals_of_young_streams_are_wide_until_rows_are_known(estimator):
    """From the second row on they hold what they say; before, nothing is known."""
    inside = {2: [], 3: [], 5: [], 10: []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        Y = rng.normal(size=(11, 2)) @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(11, 8))
        Y = 10.0 * rng.normal(size=8) + Y
        X = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
        X[:, seed % 8] = np.nan
        X[: seed % 3 + 1, seed % 8] = Y[: seed % 3 + 1, seed % 8]
        model = estimator(random_state=seed)  # it says which rows hold something out
        for at in range(len(X)):
            if at in inside:
                low, high = model.interval(X[at : at + 1], 0.9)
                assert not np.isnan(low).any()
                assert not np.isnan(high).any()
                held = (low <= Y[at]) & (Y[at] <= high)
                inside[at] += held[np.isnan(X[at])[None]].tolist()
            model.partial_fit(X[at : at + 1])
            if at == 0:
                low, high = model.interval(np.full((1, 8), np.nan), 0.9)
                assert np.isinf(low).all()
                assert np.isinf(high).all()
                assert np.isfinite(model.complete(np.full((1, 8), np.nan))).all()
    for held in inside.values():
        assert 0.83 < np.mean(held) < 0.99


@PREDICTIVE
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_however_a_stream_is_cut_intervals_are_as_wide(estimator, missing):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 12)) + 0.3 * rng.normal(size=(2000, 12))
    X = np.where(rng.random(Y.shape) < missing, np.nan, Y)
    hidden = np.where(rng.random((200, 12)) < 0.2, np.nan, Y[:200])
    widths = []
    for size in (2000, 700, 64):
        model = estimator(random_state=0)
        for start in range(0, len(X), size):
            model.partial_fit(X[start : start + size])
        low, high = model.interval(hidden, 0.9)
        widths.append(high - low)
    assert np.isfinite(widths[0]).all()
    assert np.mean((low <= Y[:200]) & (Y[:200] <= high)) > 0.85
    np.testing.assert_allclose(widths[1:], np.broadcast_to(widths[0], (2, 200, 12)), rtol=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_hold_what_they_say(level):
    shares = []
    for seed in range(4):
        Y, X = hidden_table(seed)
        low, high = OMFBImputer(random_state=0).fit(X).interval(X, level)
        hidden = np.isnan(X)
        assert np.array_equal(low[~hidden], X[~hidden])
        assert np.array_equal(high[~hidden], X[~hidden])
        shares.append(np.mean(((low <= Y) & (high >= Y))[hidden]))
    assert abs(np.mean(shares) - level) < 0.03


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 2, np.nan, "x"])
def test_a_level_is_between_0_and_1(rng, level):
    X = rows(rng, holes=0.1)
    with pytest.raises((ValueError, TypeError), match="level must be"):
        OnlineFactorAnalysis(2).fit(X).interval(X, level)


def test_draws_are_joint(rng):
    """Two columns that are nearly the same stay so in each draw, where both are missing."""
    Y = rows(rng, 1500)
    Y[:, 1] = Y[:, 0] + 0.01 * rng.normal(size=len(Y))
    X = np.where(rng.random(Y.shape) < 0.1, np.nan, Y)
    model = OMFBImputer(random_state=0).fit(X)
    row = np.full((1, 10), np.nan)
    row[0, 5] = X[~np.isnan(X[:, 5]), 5][0]
    drawn = model.sample(row, 4000, random_state=0)
    assert drawn.shape == (4000, 1, 10)
    assert (drawn[:, 0, 5] == row[0, 5]).all()
    assert np.corrcoef(drawn[:, 0, 0], drawn[:, 0, 1])[0, 1] > 0.99
    filled, std = model.complete(row, return_std=True)
    missing = np.isnan(row[0])
    apart = np.abs(drawn[:, 0].mean(axis=0) - filled[0])[missing]
    assert (apart < 5.0 * std[0, missing] / np.sqrt(4000)).all()
    assert np.allclose(drawn[:, 0, missing].std(axis=0), std[0, missing], rtol=0.1)
    assert np.array_equal(
        model.sample(row, 2, random_state=3), model.sample(row, 2, random_state=3)
    )


@PREDICTIVE
def test_the_likelihood_is_the_dense_one(rng, estimator):
    X = rows(rng, 600, holes=0.2)
    X[7] = np.nan
    model = estimator(random_state=0).fit(X)
    W = model.components_.astype(np.float64)
    noise = np.broadcast_to(model.noise_variance_, 10)
    covariance = W.T @ W + np.diag(noise)
    for row, score in zip(X[:30], model.score_samples(X[:30]), strict=True):
        seen = ~np.isnan(row)
        dense = 0.0
        if seen.any():
            part = covariance[np.ix_(seen, seen)]
            dense = multivariate_normal.logpdf(row[seen], model.mean_[seen], part)
        assert np.isclose(score, dense, rtol=1e-6, atol=1e-6)


def walking(seed, n=3000, m=8):
    """Rows of an AR(1)."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, 2))
    for t in range(1, n):
        codes[t] = 0.95 * codes[t - 1] + rng.normal(size=2)
    return 5.0 + codes @ rng.normal(size=(2, m)) + 0.3 * rng.normal(size=(n, m))


def test_a_forecast_is_better_than_the_mean_and_knows_how_sure_it_is():
    inside, errors, plain = [], [], []
    for seed in range(5):
        Y = walking(seed)
        model = OMFBImputer(temporal=True, random_state=0).fit(Y[:2000])
        for at in range(2000, 2400, 20):
            model.partial_fit(Y[at - 20 if at > 2000 else at : at] if at > 2000 else Y[1999:2000])
            means, low, high = model.forecast(5, level=0.9)
            truth = Y[at : at + 5]
            inside.append(np.mean((low <= truth) & (truth <= high)))
            errors.append(np.mean((means[0] - truth[0]) ** 2))
            plain.append(np.mean((model.mean_ - truth[0]) ** 2))
            assert (
                np.diff(high - low, axis=0) > -1e-9 * np.abs(high[1:])
            ).all()  # less and less sure
    assert np.mean(errors) < 0.5 * np.mean(plain)
    assert 0.87 < np.mean(inside) < 0.93


def test_streams_in_time_are_filled_as_those_that_were_fitted(rng):
    """However a stream was cut; the last rows are part of the model, and of its file."""
    Y = walking(0, 1200)
    X = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    models = []
    for cuts in ([], [1, 2, 700, 1100], [1150]):
        model = OMFBImputer(temporal=True, random_state=0)
        for part in np.split(X, cuts):
            model.partial_fit(part)
        models.append(model)
    first = models[0].forecast(3)
    for model in models[1:]:
        assert np.allclose(model.forecast(3), first, rtol=1e-9)
        assert np.allclose(model.complete(X), models[0].complete(X), rtol=1e-9)
    hidden = np.isnan(X)
    plain = OMFBImputer(temporal=False, random_state=0).partial_fit(X).complete(X)
    error, without = ((f - Y)[hidden].std() for f in (models[0].complete(X), plain))
    assert error <= 1.001 * without


def test_a_loaded_stream_in_time_forecasts_the_same(tmp_path):
    Y = walking(0, 900)
    model = OMFBImputer(temporal=True, random_state=0).partial_fit(Y[:800])
    model.save(tmp_path / "m.omfb")
    loaded = OMFBImputer.load(tmp_path / "m.omfb")
    assert np.array_equal(loaded.forecast(4), model.forecast(4))
    for one in (model, loaded):
        one.partial_fit(Y[800:])
    assert np.array_equal(loaded.forecast(4), model.forecast(4))
    assert np.array_equal(loaded.residuals_, model.residuals_)


def test_a_forecast_needs_a_temporal_model(rng):
    with pytest.raises(ValueError, match="set temporal=True"):
        OnlineFactorAnalysis(2).fit(rows(rng)).forecast()


def test_the_residuals_of_the_last_rows(rng):
    X = rows(rng, 500, holes=0.1)
    model = OnlineFactorAnalysis(random_state=0).partial_fit(X[:450])
    for row in X[450:]:
        model.partial_fit(row[None])
    made = model.inverse_transform(model.transform(X[-1:]))
    np.testing.assert_allclose(model.residuals_, X[-1:] - made, rtol=1e-9, atol=1e-12)
    kept = OnlineFactorAnalysis(temporal=True, random_state=0).partial_fit(X).residuals_
    assert kept.shape == X.shape
    assert np.array_equal(np.isnan(kept), np.isnan(X))


def test_bounds_and_whole_numbers():
    _, X = hidden_table(0)
    X[:, 0] = np.round(3.0 * X[:, 0] / np.nanstd(X[:, 0]))
    hidden = np.isnan(X)
    top = np.nanmean(X, axis=0)
    model = OMFBImputer(max_value=top, min_value=-np.inf, integers=True, random_state=0).fit(X)
    low, high = model.interval(X)
    for filled in (model.transform(X), model.complete(X), low, high, model.sample(X, 1)[0]):
        assert (filled <= np.maximum(top, X, where=~hidden, out=top + 0 * filled)).all()
        assert np.array_equal(filled[~hidden], X[~hidden])
    free = OMFBImputer(integers=True, random_state=0).fit(X).transform(X)
    assert np.array_equal(free[:, 0], np.round(free[:, 0]))
    assert not np.array_equal(free[:, 1], np.round(free[:, 1]))


@pytest.mark.parametrize(
    ("bound", "message"), [([1.0, 2.0], "has shape"), (np.nan, "NaN"), ("x", "must be a number")]
)
def test_bounds_that_mean_nothing_are_refused(rng, bound, message):
    X = rows(rng, holes=0.1)
    with pytest.raises((TypeError, ValueError), match=f"min_value.*{message}"):
        OMFBImputer(min_value=bound).fit(X).transform(X)


def test_spikes_are_left_out_and_a_new_level_is_believed():
    rises = []
    for seed in range(3):
        Y, X = hidden_table(seed, n=3000, m=30)
        rng = np.random.default_rng(seed)
        spikes = (rng.random(X.shape) < 0.01) & ~np.isnan(X)
        spoiled = X + spikes * 10.0 * np.nanstd(X, axis=0)
        hidden = np.isnan(X)
        errors = []
        for data in (X, spoiled):
            model = OMFBImputer(random_state=0).fit(data)
            errors.append(
                np.sqrt(np.mean((((model.complete(data) - Y) / Y.std(axis=0))[hidden]) ** 2))
            )
        rises.append(errors[1] / errors[0])
        assert model.outliers_.shape == (30,)
        assert model.outliers_.sum() > 0.5 * spikes.sum()
        off = OMFBImputer(robust=False, random_state=0).fit(spoiled)
        assert off.outliers_.sum() == 0
    assert np.mean(rises) < 1.09
    rng = np.random.default_rng(0)
    Y = rows(rng, 4000, m=20)
    Y[2000:, 3] += 50.0
    model = OMFBImputer(forget_factor=0.99, random_state=0).partial_fit(Y)
    assert abs(model.mean_[3] - Y[2000:, 3].mean()) < 5.0


def test_noise_is_not_predicted_where_the_head_is_the_whole_table():
    """The first model is made of the head, which must not know what its rows hide."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        Y = np.where(rng.random((80, 60)) < 0.1, np.nan, rng.normal(size=(80, 60)))
        errors.append(OMFBImputer(max_iter=1, random_state=0).fit(Y).prequential_error_)
    assert np.mean(errors) > 0.97


def test_a_drift_shows_in_the_recent_error(rng):
    before, after = rows(rng, 3000), rows(rng, 1000)
    model = OnlineFactorAnalysis(random_state=0).partial_fit(before)
    error, overall = model.recent_error_, model.prequential_error_
    assert len(model.drift_) == 0
    after = 5.0 + 3.0 * after[:, ::-1]
    for row in after[:20]:
        model.partial_fit(row)
    risen = model.recent_error_
    assert risen > 2.0 * error
    assert 3000 < model.drift_[0] <= 3020
    model.partial_fit(after[20:])
    assert model.recent_error_ < 0.5 * risen
    assert model.prequential_error_ > 0.9 * overall


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_the_running_error_is_told_after_several_passes(rng, missing):
    """Complete rows hide nothing in a second pass: what the first one found stays."""
    X = rng.standard_normal((600, 2)) @ rng.standard_normal((2, 8))
    X += 0.3 * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < missing] = np.nan
    once, twice = (OnlineFactorAnalysis(random_state=0, max_iter=n).fit(X) for n in (1, 2))
    assert 0.5 < twice.prequential_error_ / once.prequential_error_ < 1.05


@PREDICTIVE
@pytest.mark.parametrize("temporal", [False, True])
def test_the_error_of_a_complete_table_is_that_of_its_first_pass(rng, estimator, temporal):
    """Later passes over complete rows hide nothing: an error of 0 would tell nothing."""
    X = rows(rng, 300)
    once = estimator(random_state=0, temporal=temporal, max_iter=1).fit(X)
    often = estimator(random_state=0, temporal=temporal).fit(X)
    assert often.n_iter_ == 2
    assert often.prequential_error_ == once.prequential_error_ > 0.0


@pytest.mark.parametrize("seed", range(8))
def test_the_error_of_a_short_table_is_not_that_of_a_few_rows(seed):
    """Of the last of three passes hardly a row is judged, or none: an error of 0."""
    X = rows(np.random.default_rng(seed), 420, 5, holes=0.15)
    once, often = (OMFBImputer(random_state=0, max_iter=n).fit(X) for n in (1, None))
    assert often.n_iter_ == 2
    assert often.prequential_error_ == pytest.approx(once.prequential_error_, rel=0.4)


def test_a_drift_after_a_fit_shows_in_the_recent_error(rng):
    model = OnlineFactorAnalysis(random_state=0).fit(rows(rng, 500))
    error = model.recent_error_
    model.partial_fit(rows(rng, 50))  # of other atoms
    assert model.recent_error_ > 1.5 * error


def test_new_rows_after_several_passes_are_new_evidence():
    """As good as if all rows had come in one stream; those of later passes were no evidence."""
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(8000, 5)) @ rng.normal(size=(5, 30)) + rng.normal(size=(8000, 30))
    X = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    stream = OnlineFactorAnalysis(random_state=0).partial_fit(X[:6000])
    model = OnlineFactorAnalysis(random_state=0).fit(X[:100])
    assert model.n_iter_ == 2
    model.partial_fit(X[100:6000])
    assert model.score(Y[6000:]) == pytest.approx(stream.score(Y[6000:]), abs=0.005)


@PREDICTIVE
def test_what_was_found(rng, estimator):
    Y = rows(rng, 4000, m=12) + 7.0
    model = estimator(random_state=0).fit(Y)
    assert 3 <= model.n_components_ < 12
    ratio = model.explained_variance_ratio_
    assert (np.diff(ratio) <= 0.0).all()
    assert 0.9 < ratio[:3].sum() < 1.0
    assert np.allclose(ratio, ratio[0] * model.explained_variance_ / model.explained_variance_[0])
    assert np.allclose(model.mean_, Y.mean(axis=0), atol=0.05 * Y.std(axis=0).max())
    assert np.allclose(np.sqrt(np.mean(model.noise_variance_)), 0.1, rtol=0.15)
    if estimator is OMFBImputer:
        assert np.allclose(model.scale_, Y.std(axis=0), rtol=0.3)
        assert model.noise_variance_.shape == (12,)
    else:
        assert len(set(model.scale_)) == 1
        assert isinstance(model.noise_variance_, float)


def test_the_papers_algorithm_has_no_uncertainty(rng):
    X = rows(rng, holes=0.1)
    model = OMFB(2).fit(X)
    for name in ("mean_", "scale_", "noise_variance_", "explained_variance_", "outliers_",
                 "recent_error_", "residuals_", "score_samples", "interval", "sample",
                 "forecast"):  # fmt: skip
        assert not hasattr(model, name)
    with pytest.raises(TypeError, match="return_std"):
        model.complete(X, return_std=True)
    learner = model.learner_
    for call in (
        lambda: learner.predict(X, std=True), lambda: learner.interval(X, 0.9),
        lambda: learner.sample(X, 1, rng), lambda: learner.log_likelihood(X),
        lambda: learner.forecast(1), lambda: learner.outlier_entries(X),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="fit OnlineFactorAnalysis or OMFBImputer"):
            call()
    assert model.n_components_ == 2


@PREDICTIVE
def test_a_learner_predicts_as_its_estimator(rng, estimator):
    X = rows(rng, 600, holes=0.15)
    model = estimator(random_state=0).fit(X)
    prediction = model.learner_.predict(X, std=True)
    filled, std = prediction
    assert np.array_equal(filled, model.complete(X))
    assert np.array_equal(std, model.complete(X, return_std=True)[1])
    for ours, theirs in zip(model.learner_.interval(X, 0.8), model.interval(X, 0.8), strict=True):
        assert np.array_equal(ours, theirs)
    part = prediction[5:9]
    assert np.array_equal(part.mean, filled[5:9])
    assert np.array_equal(part.std, std[5:9])
    with pytest.raises(ValueError, match="std=True"):
        model.learner_.predict(X).half_width(0.9)


@pytest.mark.filterwarnings("ignore:Never observed")
def test_of_a_column_that_was_never_observed_it_is_not_sure(rng):
    Y = 10 * rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 50 + rng.normal(size=(300, 8))
    X = Y.copy()
    X[:, 3] = np.nan
    model = OMFBImputer(random_state=0).fit(X)
    low, high = model.interval(X)
    assert ((low <= Y) & (high >= Y))[:, 3].mean() > 0.75
    std = model.complete(X, return_std=True)[1]
    assert std[:, 3].min() > 0.5 * np.median(Y.std(axis=0))
