"""The panels that methods fill: each is made by a function, from packages of PyPI or by formula.

Three come from files that few have, and say so; whoever lacks them measures the others.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import tables
from data import AbsentError, Holes, standardised, with_holes

FIRST_MASK = 20263001  # seed of the first mask; nothing was ever chosen by what these hide


@dataclass(frozen=True)
class Panel:
    """A panel by its name: where it is from, and how a mask makes a problem of it.

    `large` ones are for the fast methods only.
    """

    name: str
    origin: str
    problem: Callable[[int], Holes]
    large: bool = False

    def masked(self, mask: int) -> Holes:
        """The problem that the mask of this number makes."""
        return self.problem(FIRST_MASK + mask)


# -- from packages ----------------------------------------------------------------------------


def _statsmodels(name: str, drop: tuple[str, ...] = ()) -> np.ndarray:
    try:
        import statsmodels.api
    except ImportError as error:
        raise AbsentError("statsmodels is not installed") from error
    frame = getattr(statsmodels.api.datasets, name).load_pandas().data.drop(columns=list(drop))
    return frame.select_dtypes("number").to_numpy(float)


def _fertility() -> np.ndarray:
    """Countries by years; those that have ten values at least."""
    X = _statsmodels("fertility")
    X = X[:, np.isfinite(X).sum(axis=0) > 0]
    return X[np.isfinite(X).sum(axis=1) >= 10]


def _river(name: str) -> np.ndarray:
    try:
        from river import datasets
    except ImportError as error:
        raise AbsentError("river is not installed") from error
    return np.array([list(x.values()) for x, _ in getattr(datasets, name)()], float)


def _employment() -> np.ndarray:
    """Employees of industries in the United States, month by month."""
    try:
        from vega_datasets import local_data
    except ImportError as error:
        raise AbsentError("vega_datasets is not installed") from error
    return local_data.us_employment().select_dtypes("number").to_numpy(float)


def _sklearn(name: str) -> np.ndarray:
    from sklearn import datasets

    X = getattr(datasets, f"load_{name}")().data
    return X[:, X.std(axis=0) > 0]


def _air() -> np.ndarray:
    try:
        from omfb.datasets import load_air
    except ImportError as error:
        raise AbsentError("this version of omfb has no omfb.datasets.load_air") from error
    return np.asarray(load_air().data, float)


def _from(
    name: str, origin: str, load: Callable[[], np.ndarray], pattern: str, in_time: bool = False
) -> Panel:
    loaded = cache(load)

    def problem(seed: int) -> Holes:
        return standardised(name, loaded(), pattern, seed, in_time)

    return Panel(name, origin, problem)


# -- generated --------------------------------------------------------------------------------


def _low_rank(seed: int) -> Holes:
    return standardised("rank 5", tables.low_rank(seed, missing=0.0).truth, "points", seed)


def _spiked(seed: int) -> Holes:
    """1 % of the seen entries are off by ten deviations; what is hidden has no spikes."""
    clean = _low_rank(seed)
    rng = np.random.default_rng(seed + 500)
    struck = rng.random(clean.X.shape) < 0.01
    spikes = np.where(struck, rng.choice([-10.0, 10.0], clean.X.shape), 0.0)
    return Holes("spikes", clean.X + spikes, clean.truth, clean.hidden, "points")


def _mostly_missing(seed: int) -> Holes:
    """Nine in ten entries cannot be seen, and a quarter of the rest is hidden."""
    truth = tables.low_rank(seed, missing=0.0).truth
    unseen = np.random.default_rng(seed + 500).random(truth.shape) < 0.87
    return standardised("mostly missing", np.where(unseen, np.nan, truth), "points", seed)


def _walks(seed: int) -> Holes:
    """Random walks of five factors and of each column: levels drift."""
    return standardised("random walks", tables.drifting(seed).truth, "runs", seed, in_time=True)


def _seasons(seed: int) -> Holes:
    """Sixty sensors, forty days by the hour: a daily and a weekly cycle, and weather."""
    rng = np.random.default_rng(seed)
    hours = np.arange(960)[:, None]
    daily = np.sin(2 * np.pi * (hours / 24 + 0.1 * rng.standard_normal(60)))
    weekly = np.sin(2 * np.pi * (hours / 168 + 0.3 * rng.standard_normal(60)))
    weather = np.cumsum(0.3 * rng.standard_normal((960, 3)), axis=0)
    X = (1 + rng.random(60)) * daily + 0.5 * weekly + weather @ rng.standard_normal((3, 60)) / 2
    noisy = X + 0.3 * rng.standard_normal(X.shape)
    return standardised("seasons", noisy, "runs", seed, in_time=True)


def _ratings(seed: int) -> Holes:
    """Stars from 1 to 5, in stars: users and items have levels of their own."""
    known = tables.ratings(seed)
    truth = np.full(known.shape, np.nan)
    truth[known.users, known.items] = known.values
    hidden = np.zeros(known.shape, bool)
    hidden[known.users[known.test], known.items[known.test]] = True
    return Holes("ratings", np.where(hidden, np.nan, truth), truth, hidden, "ratings")


def _million(seed: int) -> Holes:
    """A million rows of rank 5 in float32, a tenth missing, of which part is looked at."""
    n, m, block = 1_000_000, 200, 10_000
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((5, m), np.float32)
    truth, X = np.empty((n, m), np.float32), np.empty((n, m), np.float32)
    hidden = np.empty((n, m), bool)
    for start in range(0, n, block):
        now = slice(start, start + block)
        noise = np.float32(0.3) * rng.standard_normal((block, m), np.float32)
        truth[now] = rng.standard_normal((block, 5), np.float32) @ loadings + noise
        hidden[now] = rng.random((block, m), np.float32) < 0.1
        X[now] = np.where(hidden[now], np.float32(np.nan), truth[now])
    scale = truth[:block].std(axis=0)
    truth /= scale
    X /= scale
    return Holes("a million rows", X, truth, hidden, "ratings")


def _tiny(seed: int) -> Holes:
    return standardised("tiny", tables.drifting(seed, 60, 8).truth, "runs", seed, in_time=True)


def _shared(name: str) -> Panel:
    def problem(seed: int) -> Holes:
        found = with_holes(name, "full", seed)
        return replace(found, X=found.X.astype(float), truth=found.truth.astype(float))

    return Panel(name, "a file that this repository does not have", problem)


STATSMODELS, RIVER, SKLEARN = "statsmodels' data", "river's data", "scikit-learn's data"
GENERATED = "generated"

PANELS = (
    _from("macro", STATSMODELS, lambda: _statsmodels("macrodata", ("year", "quarter")), "runs",
          in_time=True),
    _from("employment", "vega_datasets' data", _employment, "runs", in_time=True),
    _from("stock returns", RIVER, lambda: _river("SP500Stocks"), "runs", in_time=True),
    _from("air", "omfb.datasets", _air, "runs", in_time=True),
    Panel("random walks", GENERATED, _walks),
    Panel("seasons", GENERATED, _seasons),
    _from("diabetes", SKLEARN, lambda: _sklearn("diabetes"), "points"),
    _from("schools", STATSMODELS, lambda: _statsmodels("star98"), "points"),
    _from("fertility", STATSMODELS, _fertility, "spans"),
    _from("breast cancer", SKLEARN, lambda: _sklearn("breast_cancer"), "spans"),
    _from("digits", SKLEARN, lambda: _sklearn("digits"), "spans"),
    _from("image segments", RIVER, lambda: _river("ImageSegments"), "points"),
    _from("yeast", RIVER, lambda: _river("Yeast"), "points"),
    _from("shuttle", RIVER, lambda: _river("Shuttle"), "points"),
    Panel("rank 5", GENERATED, _low_rank),
    Panel("spikes", GENERATED, _spiked),
    Panel("mostly missing", GENERATED, _mostly_missing),
    Panel("ratings", GENERATED, _ratings),
    Panel("a million rows", GENERATED, _million, large=True),
    *(_shared(name) for name in ("METR-LA traffic", "Beijing air", "faces, blocks",
                                 "faces, pixels")),
)  # fmt: skip
TINY = (Panel("tiny", GENERATED, _tiny),)
