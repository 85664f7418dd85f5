"""How good the model is with nothing set: fast versions of `benchmarks/nothing_set.py`.

What is hidden has seeds of its own, by which no constant was ever chosen.
"""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import IncrementalPCA
from sklearn.preprocessing import scale

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.init import init

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
SEED = 20261201


@pytest.fixture
def tables(monkeypatch):
    """The benchmarks' generated tables."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return pytest.importorskip("tables", reason="the benchmarks are not here")


@pytest.fixture
def panel(monkeypatch):
    """A function that returns one of the public panels, or skips."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    data = pytest.importorskip("data", reason="the benchmarks are not here")

    def named(name, seed=SEED, size="full"):
        try:
            return data.with_holes(name, size, seed)
        except data.AbsentError as reason:
            pytest.skip(str(reason))

    return named


def filled(X, **given):
    return OMFBImputer(random_state=0, **given).fit_transform(X)


def held(model, problem):
    """Share of the hidden entries that lie in their 90 % intervals."""
    low, high = model.interval(problem.X, 0.9)
    inside = (low <= problem.truth) & (problem.truth <= high)
    return inside[problem.hidden].mean()


# -- tables with missing entries --------------------------------------------------------------


@pytest.mark.parametrize(("missing", "most"), [(0.1, 1.01), (0.5, 1.01), (0.9, 1.05)])
def test_a_generated_table_is_filled_nearly_as_by_one_who_knows_the_truth(tables, missing, most):
    table = tables.low_rank(SEED, missing=missing)
    model = OMFBImputer(random_state=0).fit(table.X)
    assert table.error(model.transform(table.X)) <= most * table.error(tables.oracle(table))
    assert 0.87 <= held(model, table) <= 0.93


def test_offsets_and_units_do_not_matter(tables):
    table = tables.low_rank(SEED, 1000, 60)
    rng = np.random.default_rng(SEED)
    unit = 10.0 ** rng.permutation(np.linspace(-3, 6, 60))
    offset = 10.0 * rng.standard_normal(60) * unit
    raw = (filled(table.X * unit + offset) - offset) / unit
    assert table.error(raw) <= 1.03 * table.error(filled(table.X))


def test_a_column_that_is_mostly_missing_is_learned_as_fast_as_it_can_be(tables):
    table = tables.low_rank(SEED, 2000, 50, 0.1)
    hidden = table.hidden.copy()
    hidden[:, 0] = np.random.default_rng(SEED).random(len(hidden)) < 0.8
    table = table.hiding(hidden)
    rare = hidden[:, 0]
    model = OMFBImputer(random_state=0).fit(table.X)
    without = table.X.copy()
    without[:, 0] = np.nan
    codes = model.learner_.encode(without)[:, : model.n_components_]
    codes = np.column_stack([codes, np.ones(len(codes))])
    solution = np.linalg.lstsq(codes[~rare], table.X[~rare, 0], rcond=None)[0]
    exact = np.linalg.norm(codes[rare] @ solution - table.truth[rare, 0])
    ours = np.linalg.norm(model.transform(table.X)[rare, 0] - table.truth[rare, 0])
    assert ours <= 1.1 * exact


@pytest.mark.parametrize("deviations", [10.0, 1000.0])
def test_spikes_hardly_matter(tables, deviations):
    table = tables.low_rank(SEED)
    rng = np.random.default_rng(SEED)
    size = deviations * np.nanstd(table.X, axis=0) * rng.choice([-1.0, 1.0], table.X.shape)
    spiked = np.where(rng.random(table.X.shape) < 0.01, table.X + size, table.X)
    assert table.error(filled(spiked)) <= 1.09 * table.error(filled(table.X))


@pytest.mark.parametrize(
    ("shape", "share"), [((300, 6), 0.01), ((2000, 10), 0.01), ((1500, 30), 0.03)]
)
def test_values_that_stand_for_missing_hardly_matter(tables, shape, share):
    """Spikes that stand alone are told from heavy tails before any row has been judged."""
    errors = []
    for seed in (SEED, SEED + 1, SEED + 2):
        table = tables.low_rank(seed, *shape, rank=2)
        wrong = np.random.default_rng(seed).random(shape) < share
        spiked = np.where(wrong & ~np.isnan(table.X), -999.0, table.X)
        errors.append(table.error(filled(spiked)) / table.error(filled(table.X)))
    assert np.mean(errors) <= 1.09


@pytest.mark.parametrize("seed", [SEED, SEED + 1, SEED + 2])
def test_columns_that_are_almost_always_zero_spoil_no_others(tables, seed):
    table = tables.low_rank(seed, m=60)
    rng = np.random.default_rng(seed)
    rare = rng.random((len(table.X), 20)) < 0.003
    counts = np.where(rare, np.exp(rng.normal(1.0, 1.0, rare.shape)), 0.0)
    together = filled(np.hstack([counts, table.X]))[:, counts.shape[1] :]
    assert table.error(together) <= 1.01 * table.error(filled(table.X))


@pytest.mark.parametrize("seed", [SEED, SEED + 1, SEED + 2])
def test_columns_with_heavy_tails_spoil_no_others(tables, seed):
    table = tables.low_rank(seed, n=1500, m=40)
    others = np.s_[:, 8:]
    heavy = np.exp(2.0 * np.maximum(table.X[:, :8], 0.0)) - 1.0
    together = filled(np.hstack([heavy, table.X[others]]))[others]
    truth, hidden = table.truth[others], table.hidden[others]
    error, alone = (
        np.linalg.norm((result - truth)[hidden]) for result in (together, filled(table.X[others]))
    )
    assert error <= 1.02 * alone


def test_ratings_are_filled_better_than_by_offsets(tables):
    known = tables.ratings(SEED, 500, 800)
    offsets = min(known.error(tables.biases(known, s)) for s in (2.0, 4.0, 8.0, 16.0))
    for model in (OnlineFactorAnalysis(random_state=0), OMFBImputer(random_state=0)):
        assert known.error(model.fit(known.matrix()).complete(known.matrix())) < offsets


# -- public panels ----------------------------------------------------------------------------


def error_of_holes(X, share, rng):
    """Of a table of which this share is observed: of what is missing, in deviations."""
    missing = rng.random(X.shape) > share
    return np.sqrt(np.mean((filled(np.where(missing, np.nan, X)) - X)[missing] ** 2)) / X.std()


@pytest.mark.parametrize(("share", "most"), [(0.52, 1.02), (0.48, 1.02), (0.3, 1.1)])
def test_many_components_are_found_where_most_is_missing(share, most):
    """Rank 20 of 100 features; components were once far fewer below one half."""
    rng = np.random.default_rng(SEED)
    atoms = rng.normal(size=(20, 100))
    X = rng.normal(size=(4000, 20)) @ atoms + rng.normal(size=(4000, 100))
    seen = rng.random((400, 100)) < share  # what one who knows the truth makes of such rows
    squares = []
    for row, known in zip(X[:400], seen, strict=True):
        system = atoms[:, known] @ atoms[:, known].T + np.eye(20)
        made = atoms.T @ np.linalg.solve(system, atoms[:, known] @ row[known])
        squares.append(np.square(made - row)[~known])
    truth = np.sqrt(np.mean(np.concatenate(squares))) / X.std()
    assert error_of_holes(X, share, rng) < most * truth


@pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])
def test_items_with_few_ratings_are_filled_from_what_items_are_like(estimator):
    """Their means were once taken for zero, or for their only rating."""
    rng = np.random.default_rng(SEED)
    n, m = 900, 1200
    taste = rng.normal(size=(n, 4)) @ (0.4 * rng.normal(size=(4, m)))
    stars = np.clip(
        np.round(3.5 + 0.5 * rng.normal(size=m) + taste + rng.normal(size=(n, m))), 1, 5
    )
    popular = rng.gamma(0.7, 0.08, size=m)
    seen = rng.random((n, m)) < np.minimum(popular, 0.9)
    X = np.where(seen, stars, np.nan)
    with pytest.warns(UserWarning, match="Never observed"):
        made = estimator(random_state=0).fit(X)
    made = made.complete(X) if estimator is OnlineFactorAnalysis else made.transform(X)
    errors, ratings = np.where(seen, 0.0, made - stars), seen.sum(axis=0)
    means = np.where(seen, stars, 0.0).sum(axis=0) / np.maximum(ratings, 1)
    for least, most, better in ((0, 0, 0.0), (1, 4, 0.1), (20, n, 0.03)):
        items = (ratings >= least) & (ratings <= most)
        usual = means if most else np.full(m, X[seen].mean())
        by_means = np.where(seen, 0.0, usual - stars)[:, items]
        ours = np.linalg.norm(errors[:, items]) / np.linalg.norm(by_means)
        assert ours < 1.005 - better


def test_means_of_features_with_few_entries_need_others_that_are_alike(rng):
    X = rng.normal(size=(300, 30))
    X[5:, 0] = np.nan
    sensors = X + 10.0 ** np.arange(-10, 20)  # each in units of its own
    sensors[:, 1:11] = X[:, 1:11] * 1e-14 + 10.0 ** np.arange(-10, 0)
    for table, alike in ((X + 3.5, True), (sensors, False)):
        first = init(table, FactorConfig(hyper=Hyper(holdout_every=2**60)), seed=0)
        own = np.nanmean(table[:, 0])
        np.testing.assert_allclose(first.params.center[1:], table[:, 1:].mean(axis=0), rtol=1e-13)
        assert (abs(first.params.center[0] - own) > 0.1) == alike
        if alike:
            assert abs(first.params.center[0] - 3.5) < abs(own - 3.5)


@pytest.mark.usefixtures("faces")  # skips where the panel would download them
def test_faces_with_a_block_missing(panel):
    """Means over three masks, as in the benchmark: of 400 faces, one mask tells too little."""
    errors, shares = [], []
    for seed in range(SEED, SEED + 3):
        problem = panel("faces, blocks", seed)
        model = OMFBImputer(max_iter=2, random_state=0).fit(problem.X)
        errors.append(problem.error(model.transform(problem.X)))
        shares.append(held(model, problem))
    assert np.mean(errors) <= 0.0750
    assert 0.87 <= np.mean(shares) <= 0.93


def test_intervals_of_traffic_hold(panel):
    problem = panel("METR-LA traffic")
    model = OMFBImputer(max_iter=1, random_state=0).fit(problem.X)
    assert 0.87 <= held(model, problem) <= 0.93


def test_traffic_is_filled_better_in_time(panel):
    """Errors differ by 5 % from one mask to the next, so each is beside another of the same."""
    problem = panel("METR-LA traffic", size="quick")
    errors = [problem.error(filled(problem.X, temporal=temporal)) for temporal in (False, True)]
    by_means = np.sqrt(np.mean(problem.truth[problem.hidden] ** 2))  # columns are standardised
    assert errors[1] < errors[0] < 0.8 * by_means


# -- complete rows ----------------------------------------------------------------------------


def outside(X, mean, components):
    """‖X − mean − projection‖ on the span of the components."""
    centred = X - mean
    Q = np.linalg.qr(np.asarray(components, float).T)[0]
    return np.linalg.norm(centred - (centred @ Q) @ Q.T)


def best(X, r):
    """The same of the centred SVD."""
    centred = X - X.mean(axis=0)
    return np.sqrt(np.linalg.eigvalsh(centred @ centred.T)[:-r].sum())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_faces_are_learned_in_one_pass_nearly_as_by_the_svd(faces, seed):
    X = faces.astype(float)
    model = OnlineFactorAnalysis(30, max_iter=1, random_state=seed).fit(X)
    assert 1.0 <= outside(X, model.mean_, model.components_) / best(X, 30) <= 1.006


@pytest.mark.parametrize("passes", [None, 1])
@pytest.mark.parametrize("name", ["digits", "breast cancer"])
def test_a_table_of_some_1000_rows_is_learned_no_worse_than_by_incremental_pca(name, passes):
    X = load_digits().data if name == "digits" else scale(load_breast_cancer().data)
    model = OnlineFactorAnalysis(10, max_iter=passes, random_state=0).fit(X)
    peer = IncrementalPCA(10).fit(X)
    theirs = outside(X, peer.mean_, peer.components_)
    assert outside(X, model.mean_, model.components_) <= theirs


@pytest.mark.parametrize(("seed", "state"), [(1, 1), (4, 0), (10, 0), (14, 0)])
def test_copies_of_a_column_keep_their_component_in_short_tables(seed, state):
    """What 50 rows hide may all be of the other columns, which would do better without it."""
    rng = np.random.default_rng(seed)
    one, noise, others = (rng.standard_normal((50, columns)) for columns in (1, 4, 4))
    X = np.hstack([one + 0.01 * noise, others])
    missing = rng.random(X.shape) < 0.15
    model = OMFBImputer(random_state=state).fit(np.where(missing, np.nan, X))
    error = (model.complete(np.where(missing, np.nan, X)) - X)[:, :4][missing[:, :4]]
    assert model.n_components_ > 0
    assert np.sqrt(np.mean(error**2)) < 0.1
