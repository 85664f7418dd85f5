"""Who fills panels: each method is one small function, with twelve settings to choose from.

A method learns from `problem.X`, where NaN is missing, and returns a function that fills.
"""

import contextlib
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse
from data import Holes
from peers import OURS, Peer, tracker
from psmf import psmf
from scipy.special import ndtri
from tables import biases_of, soft_impute

SETTINGS = 12  # for each method that has any
HALF = float(ndtri(0.95))  # of a 90 % interval of the normal distribution, in deviations


@dataclass(frozen=True)
class Filled:
    """A panel filled; if a method knows them, deviations of the entries and their 90 % intervals.

    Intervals are made when they are asked for, which is outside the clock.
    """

    values: np.ndarray
    deviations: np.ndarray | None = None
    bounds: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None

    @staticmethod
    def normal(values: np.ndarray, deviations: np.ndarray) -> "Filled":
        """Intervals of normal distributions."""
        half = HALF * deviations
        return Filled(values, deviations, lambda: (values - half, values + half))


Fill = Callable[[], Filled]


def kept(values: np.ndarray) -> Fill:
    """What was filled while learning."""
    return lambda: Filled(np.asarray(values))


# -- omfb -------------------------------------------------------------------------------------


def omfb(problem: Holes, **settings: Any) -> Fill:
    from omfb import OMFBImputer, OnlineFactorAnalysis

    X: Any = problem.X
    if problem.name == "ratings":  # a sparse matrix of numbers that share one unit
        X = scipy.sparse.csr_array(np.nan_to_num(X))
        model: Any = OnlineFactorAnalysis(random_state=0, **settings).fit(X)
    else:
        # As a DatetimeIndex would tell.
        model = OMFBImputer(random_state=0, temporal=problem.in_time, **settings).fit(X)

    def fill() -> Filled:
        values, deviations = model.complete(X, return_std=True)
        return Filled(values, deviations, lambda: model.interval(X, 0.9))

    return fill


# -- factorisations ---------------------------------------------------------------------------


def cmfrec(problem: Holes, k: int, lambda_: float) -> Fill:
    from cmfrec import CMF

    X = problem.X
    if problem.name == "ratings":
        users, items = np.nonzero(~np.isnan(X))
        X = scipy.sparse.coo_matrix((X[users, items], (users, items)), X.shape)
    model = CMF(k, lambda_=lambda_, use_float=False, nthreads=1, verbose=False,
                precompute_for_predictions=False).fit(X)  # fmt: skip
    offsets = model.user_bias_[:, None] + model.item_bias_ + model.glob_mean_
    return lambda: Filled(offsets + model.A_ @ model.B_.T)


def soft(problem: Holes, threshold: float) -> Fill:
    return kept(soft_impute(problem.X, threshold))


def statsmodels_em(problem: Holes, ncomp: int) -> Fill:
    from statsmodels.multivariate.pca import PCA

    n, m = problem.X.shape
    result = PCA(problem.X, ncomp=ncomp, missing="fill-em", standardize=False,
                 method="eig" if n > m else "svd", max_em_iter=100, tol_em=1e-6)  # fmt: skip
    return lambda: Filled(np.asarray(result.projection))


def variational_pca(problem: Holes, rank: int) -> Fill:
    from vbpca_py import VBPCA

    model = VBPCA(rank, maxiters=200, random_state=0, num_cpu=1, runtime_tuning="off",
                  verbose=0).fit(problem.X)  # fmt: skip
    values = model.inverse_transform(model.scores_)
    deviations = np.sqrt(np.maximum(model.predictive_variance_, 0.0))
    return lambda: Filled.normal(values, deviations)


def nonneg_mfpy(problem: Holes, rank: int, rounds: int) -> Fill:
    from NonnegMFPy import nmf

    least = np.minimum(np.nanmin(problem.X, axis=0), 0)  # columns with negative values are shifted
    seen = ~np.isnan(problem.X)
    np.random.seed(0)
    model = nmf.NMF(np.where(seen, problem.X - least, 0), M=seen, n_components=rank)
    with contextlib.redirect_stdout(io.StringIO()):
        model.SolveNMF(maxiters=rounds, tol=1e-6)
    return lambda: Filled(model.W @ model.H + least)


def tracking(problem: Holes, name: str, rank: int, **settings: float) -> Fill:
    """GROUSE or PETRELS, two passes over the rows; in time, as they come."""
    n, m = problem.X.shape
    model = tracker(name, m, rank, **settings)
    rng = np.random.default_rng(0)
    for _ in range(2):
        for row in problem.X if problem.in_time else problem.X[rng.permutation(n)]:
            seen = ~np.isnan(row)
            if seen.any():
                model.consume(np.where(seen, row, 0.0)[:, None], seen)
    return lambda: Filled(least_squares(problem.X, model.U))


def least_squares(X: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Each row from what is seen of it; all rows' systems at once."""
    m, r = U.shape
    seen = (~np.isnan(X)).astype(float)
    systems = (seen @ (U[:, :, None] * U[:, None, :]).reshape(m, r * r)).reshape(-1, r, r)
    systems += 1e-6 * (np.trace(systems, axis1=1, axis2=2)[:, None, None] + 1) * np.eye(r)
    sides = np.where(np.isnan(X), 0, X) @ U
    return np.linalg.solve(systems, sides[:, :, None])[:, :, 0] @ U.T


def sequential(problem: Holes, **settings: Any) -> Fill:
    values, deviations = psmf(problem.X, **settings)
    return lambda: Filled.normal(values, deviations)


# -- one feature from the others --------------------------------------------------------------


def knn(problem: Holes, n_neighbors: int, weights: str) -> Fill:
    from sklearn.impute import KNNImputer

    imputer = KNNImputer(n_neighbors=n_neighbors, weights=weights)
    return kept(imputer.fit_transform(problem.X))


def iterative(problem: Holes, nearest: int | None, alpha: float | None, **given: Any) -> Fill:
    """By BayesianRidge, which is the default, or by Ridge of a given strength."""
    from sklearn.linear_model import BayesianRidge, Ridge

    return by_turns(problem, BayesianRidge() if alpha is None else Ridge(alpha), nearest, **given)


def trees(problem: Holes, max_iter: int, **settings: Any) -> Fill:
    from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(30, random_state=0, **settings)
    return by_turns(problem, forest, 30, max_iter=max_iter)


def chained_forests(problem: Holes, iterations: int, **settings: Any) -> Fill:
    """The mean of five imputations; what is filled is a value that was observed."""
    import pandas as pd
    from miceforest import ImputationKernel

    frame = pd.DataFrame(problem.X).rename(columns=str)
    kernel = ImputationKernel(frame, num_datasets=5, random_state=0)
    kernel.mice(iterations, verbose=False, num_threads=1, **settings)
    return kept(np.mean([kernel.complete_data(k).to_numpy() for k in range(5)], axis=0))


def by_turns(problem: Holes, estimator: Any, nearest: int | None, max_iter: int = 10) -> Fill:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    few = nearest is None or nearest >= problem.X.shape[1]
    imputer = IterativeImputer(estimator, n_nearest_features=None if few else nearest,
                               max_iter=max_iter, random_state=0)  # fmt: skip
    return kept(imputer.fit_transform(problem.X))


# -- without learning -------------------------------------------------------------------------


def column_means(problem: Holes) -> Fill:
    mean, deviation = np.nanmean(problem.X, axis=0), np.nanstd(problem.X, axis=0)
    n = len(problem.X)
    return lambda: Filled.normal(np.tile(mean, (n, 1)), np.tile(deviation, (n, 1)))


def offsets(problem: Holes, strength: float) -> Fill:
    return kept(biases_of(problem.X, strength))


def line(series: np.ndarray) -> np.ndarray:
    """A series with its gaps filled by straight lines."""
    times, seen = np.arange(len(series)), ~np.isnan(series)
    return np.interp(times, times[seen], series[seen])


def interpolation(problem: Holes) -> Fill:
    return kept(np.column_stack([line(series) for series in problem.X.T]))


def seasonal(problem: Holes, period: int) -> Fill:
    """The mean of each phase, and a straight line through what is left."""
    phases = np.arange(len(problem.X)) % period
    filled = []
    for series in problem.X.T:
        sums = np.bincount(phases, np.nan_to_num(series), period)
        counts = np.bincount(phases, ~np.isnan(series), period)
        cycle = (sums + np.nanmean(series)) / (counts + 1)  # a phase that was never seen is average
        filled.append(line(series - cycle[phases]) + cycle[phases])
    return kept(np.column_stack(filled))


# -- the list ---------------------------------------------------------------------------------


def grid(**values: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """All combinations."""
    return tuple(dict(zip(values, one, strict=True)) for one in product(*values.values()))


RANKS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 60)
EACH = "a regression for each feature of its own, with many more parameters than a factorisation"
NEAR = "values next to each other in time hardly differ, and no other feature tells as much"
METHODS = (
    Peer(OURS, "omfb", omfb,
         settings="`OMFBImputer()`, for ratings `OnlineFactorAnalysis()`: nothing set"),
    Peer(f"{OURS}, tuned", "omfb", omfb,
         grid(n_components=(None, 5, 20), max_iter=(None, 10), noise=("diagonal", "isotropic")),
         settings="`n_components` None, 5, 20; `max_iter` None, 10; `noise` None, shared"),
    Peer("cmfrec", "cmfrec", cmfrec, grid(k=(5, 20, 50, 3, 8), lambda_=(10.0, 3.0, 30.0, 1.0)),
         settings="`CMF`, ALS with offsets, float64; `k` 5, 20, 50 (narrow tables: 3, 5, 8); "
         "`lambda_` 1, 3, 10, 30",
         strength="alternating least squares on the whole matrix, with a level for each row too"),
    Peer("SoftImpute", "numpy", soft, grid(threshold=np.geomspace(0.5, 0.002, 12).tolist()),
         settings="threshold from 0.002 to 0.5 of the largest singular value",
         strength="it solves a convex problem on the whole table, at a threshold made for it"),
    Peer("statsmodels PCA, EM", "statsmodels.multivariate.pca", statsmodels_em, grid(ncomp=RANKS),
         settings="100 rounds; `ncomp` 1 to 60",
         strength="EM on the whole table to the end, at a rank made for it"),
    Peer("NonnegMFPy", "NonnegMFPy", nonneg_mfpy, grid(rank=RANKS[2:8], rounds=(100, 1000)),
         settings="rank 3 to 14; 100, 1000 rounds; negative columns shifted",
         strength="non-negative factors suit sums of positive parts"),
    Peer("GROUSE", "subtracking", tracking,
         grid(name=("Grouse",), rank=(3, 5, 10, 20), step=(1e-3, 1e-2, 1e-1)),
         settings="pysubtracking, 2 passes; rank 3 to 20; `step` 0.001 to 0.1"),
    Peer("PETRELS", "subtracking", tracking,
         grid(name=("Petrels",), rank=(3, 5, 10, 20), forgetting=(0.98, 0.999, 1.0)),
         settings="pysubtracking, 2 passes; rank 3 to 20; `forgetting` 0.98, 0.999, 1"),
    Peer("KNNImputer", "sklearn", knn,
         grid(weights=("distance", "uniform"), n_neighbors=(5, 10, 3, 20, 2, 40)),
         settings="2 to 40 neighbours, weighted or not",
         strength="it copies from similar rows, which no low rank can do"),
    Peer("IterativeImputer", "sklearn", iterative,
         grid(nearest=(50, 30, 100, None), alpha=(None, 1.0, 10.0)) + grid(
             nearest=(None,), alpha=(0.1, 0.3, 3.0, 5.0, 20.0, 30.0, 50.0, 100.0, 300.0)),
         settings="`BayesianRidge` or `Ridge` of 1 or 10, on the 30, 50, 100 nearest features "
         "or on all (narrow tables: on all, `Ridge` from 0.1 to 300)",
         strength=EACH),
    Peer("IterativeImputer, ExtraTrees", "sklearn", trees,
         grid(max_iter=(3, 10), max_features=(1.0, 0.3), min_samples_leaf=(1, 3, 10)),
         settings="30 trees, 30 nearest features; leaves of 1, 3, 10; all or 0.3 of the features; "
         "3, 10 rounds",
         strength="the features depend on each other in ways that are not linear"),
    Peer("vbpca_py", "vbpca_py", variational_pca, grid(rank=RANKS),
         settings="`VBPCA`, 200 rounds; 1 to 60 components",
         strength="variational rounds on the whole table, to the end"),
    Peer("miceforest", "miceforest", chained_forests,
         grid(iterations=(3, 6), n_estimators=(50, 20), min_data_in_leaf=(20, 5, 10)),
         settings="five imputations, their mean; 3, 6 rounds; 20, 50 trees; leaves of 5, 10, 20",
         strength="the features depend on each other in ways that are not linear"),
    Peer("mean", "numpy", column_means, settings="of the feature"),
)  # fmt: skip
IN_TIME = (
    Peer("PSMF", "numpy", sequential,
         grid(rank=(10, 5), rho=(10.0, 1.0, 0.1), q=(0.1, 0.01)),
         settings="from its paper's equations; rank 5, 10; `rho` 0.1, 1, 10; `q` 0.01, 0.1"),
    Peer("rPSMF", "numpy", sequential,
         grid(robust=(True,), rank=(10, 5), rho=(10.0, 1.0, 0.1), q=(0.1, 0.01)),
         settings="as PSMF"),
    Peer("interpolation", "numpy", interpolation, settings="linear in time", strength=NEAR),
    Peer("seasonal interpolation", "numpy", seasonal,
         grid(period=(4, 6, 7, 8, 12, 24, 48, 52, 96, 144, 168, 288)),
         settings="12 periods from 4 to 288",
         strength="each feature repeats itself, which the others do not tell"),
)  # fmt: skip
RATINGS = (
    Peer("offsets", "numpy", offsets, grid(strength=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)),
         settings="a level for each row and each feature; ridge 1 to 32"),
)  # fmt: skip
FAST = (OURS, "cmfrec", "mean")
# With a thousand features, and of these mostly nothing, they take hours.
NOT_FOR_RATINGS = (
    "KNNImputer", "IterativeImputer", "NonnegMFPy", "statsmodels PCA, EM", "vbpca_py",
)  # fmt: skip
# Cells of a table for which they end in time.
MOST_CELLS = {trees: 20_000, chained_forests: 20_000, variational_pca: 500_000}


def methods_for(panel: dict[str, Any]) -> Iterator[Peer]:
    """Who takes part: in time those that know of time, and of the large only the fast."""
    is_ratings = panel["name"] == "ratings"
    more = IN_TIME if panel["in_time"] else RATINGS if is_ratings else ()
    for peer in (*METHODS, *more):
        if (
            not (panel["large"] and peer.name not in FAST)
            and not (is_ratings and peer.name in NOT_FOR_RATINGS)
            and panel["n"] * panel["m"] <= MOST_CELLS.get(peer.train, math.inf)
        ):
            yield peer


def possible(peer: Peer, shape: tuple[int, int]) -> list[dict[str, Any]]:
    """The first twelve settings that make sense for a table, those that mean the same once."""
    found: dict[str, dict[str, Any]] = {}
    for settings in peer.variants:
        one = dict(settings)
        if one.get("nearest") is not None and one["nearest"] >= shape[1]:
            one["nearest"] = None
        if any(one.get(name, 0) >= min(shape) for name in ("ncomp", "rank", "k")):
            continue
        if one.get("period", 0) > shape[0] / 2:
            continue
        found.setdefault(repr(sorted(one.items(), key=lambda pair: pair[0])), one)
    return list(found.values())[:SETTINGS]
