"""Who takes part where rows have holes: each peer is one small generator, at its best settings.

A contestant learns from `problem.X`, where NaN is missing, and yields snapshots: functions that
return the panel filled. A snapshot's seconds are those of learning so far and of filling once.
"""

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from data import Holes
from peers import OURS, RULE, Peer, tracker
from timing import Snapshot


def omfb(problem: Holes, threads: int) -> Iterator[Snapshot]:
    """Nothing set."""
    from omfb import OMFBImputer

    X = problem.X
    rng = np.random.default_rng(0)
    model = OMFBImputer(random_state=0)
    while True:
        for quarter in np.array_split(rng.permutation(len(X)), 4):
            model.partial_fit(X[quarter])
            yield lambda: model.transform(X)


def omfb_by_rule(
    problem: Holes, threads: int, r: int = 1, smooth: float = 0.0, **settings: Any
) -> Iterator[Snapshot]:
    """Learns from rows in random order; only where it fills are their codes tied in time."""
    from omfb import OMFB

    X = problem.X
    rng = np.random.default_rng(0)
    rule = RULE | settings
    model = OMFB(r * problem.n_components, shuffle=False, random_state=0, **rule)

    def filled() -> np.ndarray:
        complete = model.set_params(smooth=smooth).complete(X)
        model.set_params(smooth=0.0)
        return complete

    while True:
        for quarter in np.array_split(rng.permutation(len(X)), 4):
            model.partial_fit(X[quarter])
            yield filled


def our_nmf(problem: Holes, threads: int) -> Iterator[Snapshot]:
    from omfb.paper.competitors import NMF

    X, least = non_negative(problem.X)
    model = NMF(problem.n_components, max_iter=10, warm_start=True, random_state=0)
    while True:
        model.fit(X)
        yield lambda: model.codes_ @ model.components_ + least


def nonneg_mfpy(problem: Holes, threads: int) -> Iterator[Snapshot]:
    from NonnegMFPy import nmf

    X, least = non_negative(problem.X)
    np.random.seed(0)
    seen = ~np.isnan(X)
    model = nmf.NMF(np.where(seen, X, 0), M=seen, n_components=problem.n_components)
    while True:
        with contextlib.redirect_stdout(io.StringIO()):
            model.SolveNMF(maxiters=10, tol=0)
        yield lambda: model.W @ model.H + least


def cmfrec(problem: Holes, threads: int, lambda_: float, r: int) -> Iterator[Snapshot]:
    from cmfrec import CMF

    model = CMF(
        r * problem.n_components, lambda_=lambda_, nthreads=threads, verbose=False,
        precompute_for_predictions=False,
    )  # fmt: skip
    model.fit(problem.X)
    yield (
        lambda: (
            model.A_ @ model.B_.T + model.user_bias_[:, None] + model.item_bias_ + model.glob_mean_
        )
    )


def tracking(problem: Holes, threads: int, name: str, **settings: Any) -> Iterator[Snapshot]:
    n, m = problem.X.shape
    model = tracker(name, m, problem.n_components, **settings)
    rng = np.random.default_rng(0)
    while True:
        order = np.arange(n) if problem.in_time else rng.permutation(n)
        for start in range(0, n, 50):
            for row in problem.X[order[start : start + 50]].astype(float):
                seen = ~np.isnan(row)
                if seen.any():
                    model.consume(np.where(seen, row, 0)[:, None], seen)
            yield lambda: fill(problem.X, model.U)


def statsmodels_em(problem: Holes, threads: int, max_em_iter: int) -> Iterator[Snapshot]:
    from statsmodels.multivariate.pca import PCA

    n, m = problem.X.shape
    result = PCA(
        problem.X.astype(float), ncomp=problem.n_components, missing="fill-em", standardize=False,
        method="eig" if n > m else "svd", max_em_iter=max_em_iter, tol_em=1e-8,
    )  # fmt: skip
    yield lambda: np.asarray(result.projection)


def knn(problem: Holes, threads: int, n_neighbors: int) -> Iterator[Snapshot]:
    from sklearn.impute import KNNImputer

    filled = KNNImputer(n_neighbors=n_neighbors, weights="distance").fit_transform(problem.X)
    yield lambda: filled


def iterative(problem: Holes, threads: int, nearest: int | None) -> Iterator[Snapshot]:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    if nearest is not None and nearest >= problem.X.shape[1]:
        nearest = None
    imputer = IterativeImputer(n_nearest_features=nearest, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = imputer.fit_transform(problem.X)
    yield lambda: filled


def mean_fill(problem: Holes, threads: int) -> Iterator[Snapshot]:
    filled = np.where(np.isnan(problem.X), np.nanmean(problem.X, axis=0), problem.X)
    yield lambda: filled


def last_value(problem: Holes, threads: int) -> Iterator[Snapshot]:
    """The value before in time, and the mean where there is none."""
    at = np.where(np.isnan(problem.X), -1, np.arange(len(problem.X))[:, None])
    at = np.maximum.accumulate(at, axis=0)
    filled = np.take_along_axis(problem.X, np.maximum(at, 0), axis=0)
    filled = np.where(at < 0, np.nanmean(problem.X, axis=0), filled)
    yield lambda: filled


def interpolation(problem: Holes, threads: int) -> Iterator[Snapshot]:
    """A straight line between the values before and after in time."""
    filled, times = problem.X.copy(), np.arange(len(problem.X))
    for series in filled.T:
        holes = np.isnan(series)
        series[holes] = np.interp(times[holes], times[~holes], series[~holes])
    yield lambda: filled


def non_negative(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X less the least value of each series where that is negative, and those values."""
    least = np.minimum(np.nanmin(X, axis=0), 0)
    return X - least, least


def fill(X: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Each row by least squares on what is seen of it; all rows' systems at once."""
    m, r = U.shape
    seen = (~np.isnan(X)).astype(float)
    products = (U[:, :, None] * U[:, None, :]).reshape(m, r * r)
    systems = (seen @ products).reshape(-1, r, r)
    systems += 1e-9 * (np.trace(systems, axis1=1, axis2=2)[:, None, None] + 1) * np.eye(r)
    sides = np.where(np.isnan(X), 0, X) @ U
    return np.linalg.solve(systems, sides[:, :, None])[:, :, 0] @ U.T


# Those that were good on other hidden entries come first, for all: time may end before the list.
FACES = {
    pattern: tuple({"r": r, "ridge": 0.1, "shrink": shrink} for shrink in (100.0, 30.0))
    for pattern, r in {"blocks": 2, "pixels": 3}.items()
}
IN_TIME = tuple(
    {"r": 3, "ridge": ridge, "shrink": shrink, "smooth": smooth}
    for smooth, ridge, shrink in (
        (0.0, 0.1, 100.0), (0.0, 0.3, 100.0), (0.0, 1.0, 10.0),
        (30.0, 0.3, 100.0), (30.0, 1.0, 10.0), (30.0, 3.0, 10.0),
    )
)  # fmt: skip
FEW = tuple(
    {"r": 1, "ridge": ridge, "shrink": shrink}
    for ridge, shrink in ((0.1, 30.0), (0.1, 100.0), (1.0, 10.0), (1.0, 30.0))
)
POSITIVE = "non-negative factors suit sums of positive parts, such as pixels and concentrations"
SHIFTED = "series with negative values are shifted by their least one"

TIMELESS: tuple[Peer, ...] = (
    Peer("masked NMF of omfb", "omfb.paper.competitors", our_nmf,
         settings=f"multiplicative updates; {SHIFTED}",
         strength=POSITIVE),
    Peer("NonnegMFPy", "NonnegMFPy", nonneg_mfpy, settings=f"its defaults; {SHIFTED}",
         strength=POSITIVE),
    Peer("cmfrec", "cmfrec", cmfrec,
         variants=tuple({"lambda_": a, "r": r} for r in (3, 2, 1) for a in (10.0, 30.0, 3.0, 1.0)),
         settings="`CMF`, ALS with biases, 10 rounds (all its defaults); `lambda_` 1, 3, 10, 30 "
         "and r, 2r or 3r components chosen",
         strength="alternating least squares on the whole matrix, with a bias for each row and "
         "each feature"),
    Peer("GROUSE", "subtracking", tracking,
         variants=tuple({"name": "Grouse", "step": s} for s in (1e-3, 1e-2, 1e-1)),
         settings="pysubtracking; `step` 0.001, 0.01, 0.1 chosen",
         strength="one step along the gradient is little work, though in Python"),
    Peer("PETRELS", "subtracking", tracking,
         variants=tuple({"name": "Petrels", "forgetting": f} for f in (0.98, 1.0)),
         settings="pysubtracking; `forgetting` 0.98 (its default) and 1 chosen",
         strength="recursive least squares for each feature on its own observations"),
    Peer("statsmodels PCA, EM", "statsmodels.multivariate.pca", statsmodels_em,
         variants=tuple({"max_em_iter": n} for n in (3, 10)),
         settings='`missing="fill-em"`, `max_em_iter` 3, 10 chosen',
         strength="it solves the whole problem by an SVD in each round"),
    Peer("KNNImputer", "sklearn", knn, apart=True,
         variants=({"n_neighbors": 10},),
         settings='10 neighbours, `weights="distance"`',
         strength="it copies from similar rows, which no low rank can do"),
    Peer("IterativeImputer", "sklearn", iterative, apart=True,
         variants=({"nearest": 30},),
         settings="`BayesianRidge` (its default) on the 30 nearest features",
         strength="a regression for each feature of its own on the others: many more parameters "
         "than a factorisation"),
    Peer("mean", "numpy", mean_fill, learns=False, settings="of the feature"),
)  # fmt: skip


def contestants(problem: Holes) -> tuple[Peer, ...]:
    """Those for this panel; ours first."""
    ours = (
        Peer(OURS, "omfb", omfb, settings="`OMFBImputer()`: nothing set"),
        Peer(f"{OURS}, tuned", "omfb", omfb_by_rule,
             variants=IN_TIME if problem.in_time else FACES[problem.pattern],
             settings="the rule given; faces: `ridge=0.1`, 2r components for blocks and 3r for "
             "pixels; `shrink` chosen; in time: 3r components; `ridge`, `shrink`, `smooth` chosen"),
        Peer(f"{OURS}, tuned, r components", "omfb", omfb_by_rule, variants=FEW,
             settings="the rule given; `ridge` and `shrink` chosen"),
    )  # fmt: skip
    if not problem.in_time:
        return (*ours, *(_for_faces(peer, problem.pattern) for peer in TIMELESS))
    near = "the series hardly move over so few steps"
    return (
        *ours, *TIMELESS,
        Peer("last value", "numpy", last_value, learns=False, strength=near,
             settings="of the series"),
        Peer("interpolation", "numpy", interpolation, learns=False, strength=near,
             settings="linear in time"),
    )  # fmt: skip


def _for_faces(peer: Peer, pattern: str) -> Peer:
    """A peer as it is; of cmfrec's settings, those first that suit faces with such holes."""
    if peer.name != "cmfrec":
        return peer
    first = {"blocks": (3.0, 2), "pixels": (1.0, 3)}[pattern]
    order = sorted(peer.variants, key=lambda v: ((v["lambda_"], v["r"]) != first, v["lambda_"]))
    return replace(peer, variants=tuple(order))
