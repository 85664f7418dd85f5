"""Rows in time beside simple rules: gaps of all sensors, forecasts, walks, prices, late sensors.

    python benchmarks/seasons.py

Everything is generated; seeds are from 1000 on, and none of them was used to choose a constant. It
prints a table: the error of omfb with nothing set over that of a rule, and the share of the values
that 90 % intervals held. It takes some ten minutes, of which prices are half.

    python benchmarks/seasons.py uneven prices    # some of the cases
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from omfb import OMFBImputer

SEEDS = range(1000, 1012)


def ar(rng: np.random.Generator, n: int, m: int, phi: float) -> Any:
    """Stationary AR(1) columns of variance 1."""
    X = rng.standard_normal((n, m))
    for t in range(1, n):
        X[t] = phi * X[t - 1] + np.sqrt(1.0 - phi**2) * X[t]
    return X


def framed(X: Any, index: Any = None) -> pd.DataFrame:
    """Columns with names, hourly unless an index is given."""
    index = pd.date_range("2023-03-01", periods=len(X), freq="h") if index is None else index
    return pd.DataFrame(X, index=index, columns=[f"s{i}" for i in range(X.shape[1])])


def panel(rng: np.random.Generator, weeks: int, m: int, noise: float, weekly: bool) -> pd.DataFrame:
    """Hourly series about a daily and, if wanted, a weekly cycle, with shared and own noise."""
    t = np.arange(168 * weeks)[:, None]
    X = rng.normal(3.0, 1.0, m) + rng.uniform(0.5, 2.0, m) * _wave(rng, t, 24, m)
    X += rng.uniform(0.2, 0.7, m) * _wave(rng, t, 12, m)
    if weekly:
        X += rng.uniform(0.5, 1.5, m) * _wave(rng, t, 168, m)
    shared = ar(rng, len(t), 2, 0.97) @ rng.standard_normal((2, m))
    return framed(X + noise * (shared + ar(rng, len(t), m, 0.5)))


def _wave(rng: np.random.Generator, t: Any, period: int, m: int) -> Any:
    return np.sin(2.0 * np.pi * (t / period + rng.random(m)))


def rms(values: Any) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(np.square(np.asarray(values)))))


def week(seed: int) -> list[float]:
    """A week without any sensor, beside the mean of the same hour."""
    rng = np.random.default_rng(seed)
    X = panel(rng, 10, 8, 0.5, weekly=True)
    Y = X.mask(rng.random(X.shape) < 0.02)
    gone = slice(840, 1008)
    Y.iloc[gone] = np.nan
    model = OMFBImputer(random_state=0).fit(Y)
    hour = Y.groupby(Y.index.hour).transform("mean")
    low, high = model.interval(Y)
    held = ((low <= X) & (high >= X)).iloc[gone].to_numpy().mean()
    return [rms((model.complete(Y) - X).iloc[gone]) / rms((hour - X).iloc[gone]), held]


def ahead(X: pd.DataFrame, origins: Any, steps: int, rule: Callable[[Any], Any], at: Any) -> Any:
    """Error over that of a rule, and what intervals held at some horizons."""
    ours, others, held = [], [], []
    for origin in origins:
        known, truth = X.iloc[:origin], X.iloc[origin : origin + steps].to_numpy()
        model = OMFBImputer(random_state=0).fit(known)
        mean, low, high = (np.asarray(side) for side in model.forecast(steps, level=0.9))
        ours.append(mean - truth)
        others.append(rule(known.to_numpy()) - truth)
        held.append(((low <= truth) & (truth <= high))[np.array(at) - 1].mean(axis=1))
    return [rms(ours) / rms(others), *np.mean(held, axis=0)]


def cycle(seed: int) -> Any:
    """Forecasts of a daily cycle, beside the same hour yesterday."""
    X = panel(np.random.default_rng(seed), 6, 6, 0.4, weekly=False)
    return ahead(X, range(720, 961, 60), 24, lambda known: known[-24:], [1, 6, 24])


def walks(seed: int) -> Any:
    """Forecasts of random walks, beside the last value."""
    X = framed(np.cumsum(np.random.default_rng(seed).standard_normal((1000, 6)), axis=0))
    return ahead(X, range(500, 901, 100), 96, lambda known: known[-1:], [6, 24, 96])


def uneven(seed: int) -> list[float]:
    """Gaps of unevenly spaced random walks, beside interpolation in time."""
    rng = np.random.default_rng(seed)
    n, m = 600, 6
    gaps = 3600.0 * rng.exponential(1.0, n) + 30.0
    index = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.cumsum(gaps), unit="s")
    steps = np.sqrt(gaps / 3600.0)[:, None]
    X = framed(np.cumsum(rng.standard_normal((n, m)) * steps, axis=0), index)
    missing = np.zeros(X.shape, bool)
    for i in range(m):
        for start in rng.integers(5, n - 15, 12):
            missing[start : start + rng.integers(1, 8), i] = True
    Y = X.mask(missing)
    model = OMFBImputer(random_state=0).fit(Y)
    low, high = model.interval(Y)
    held = ((low <= X) & (high >= X)).to_numpy()[missing].mean()
    error = rms((model.complete(Y) - X).to_numpy()[missing])
    return [error / rms((Y.interpolate("time") - X).to_numpy()[missing]), held]


def prices(seed: int, n: int = 750, m: int = 500) -> list[float]:
    """Prices of 500 stocks, runs of 20 missing, beside linear interpolation."""
    rng = np.random.default_rng(seed)
    sector = rng.integers(0, 10, m)
    returns = 0.010 * rng.standard_normal((n, 1)) * rng.uniform(0.6, 1.4, m)
    returns += 0.007 * rng.standard_normal((n, 10))[:, sector] * rng.uniform(0.5, 1.3, m)
    returns += rng.standard_t(4, (n, m)) / np.sqrt(2.0) * rng.uniform(0.008, 0.02, m)
    returns += rng.normal(0.0003, 0.0007, m)  # drifts
    returns += (rng.random((n, m)) < 0.004) * rng.normal(0.0, 0.07, (n, m))  # jumps
    X = pd.DataFrame(rng.uniform(20.0, 150.0, m) * np.exp(np.cumsum(returns, axis=0)))
    Y = X.mask(_runs(rng, n, m, 20, 0.1))
    return _beside(X, Y, Y.interpolate(limit_direction="both"))


def _runs(rng: np.random.Generator, n: int, m: int, length: int, share: float) -> Any:
    """In each column runs of missing entries, a share of it in all."""
    missing = np.zeros((n, m), bool)
    for column in missing.T:
        while column.mean() < share:
            start = rng.integers(n - length + 1)
            column[start : start + length] = True
    return missing


def _beside(X: pd.DataFrame, Y: pd.DataFrame, other: Any) -> list[float]:
    """Error in gaps over that of another method, in units of the columns; what intervals held."""
    missing = Y.isna().to_numpy()
    model = OMFBImputer(temporal=True, random_state=0).fit(Y)
    low, high = (np.asarray(side) for side in model.interval(Y))
    held = ((low <= X.to_numpy()) & (high >= X.to_numpy()))[missing].mean()
    size = Y.std().to_numpy()
    ours, others = (
        rms(((np.asarray(filled) - X.to_numpy()) / size)[missing])
        for filled in (model.complete(Y), other)
    )
    return [ours / others, held]


def late(seed: int, drifts: float = 0.0) -> list[float]:
    """A near-duplicate that begins after 80 %, levels drift, beside IterativeImputer."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    rng, n, m = np.random.default_rng(seed), 1000, 12
    shared = np.cumsum(0.1 * rng.standard_normal((n, 5)), axis=0) @ rng.standard_normal((5, m))
    X = shared + np.cumsum(0.05 * rng.standard_normal((n, m)), axis=0)
    X += 0.1 * rng.standard_normal((n, m))
    X[:, 0] = 1.1 * X[:, 1] + 0.1 * rng.standard_normal(n)
    X[:, 0] += drifts * np.cumsum(rng.standard_normal(n))
    X = framed(X)
    Y = X.copy()
    Y.iloc[:800, 0] = np.nan
    return _beside(X, Y, IterativeImputer(random_state=0).fit_transform(Y))


def late_and_drifting(seed: int) -> list[float]:
    """The same, and the two drift apart."""
    return late(seed, drifts=0.02)


def best_known(seed: int, share: float = 0.5) -> list[float]:
    """The best known 50 % of the gaps by `max_std`, beside the shortest by `max_gap`."""
    rng, n, m = np.random.default_rng(seed), 1000, 10
    X = ar(rng, n, 2, 0.97) @ rng.standard_normal((2, m)) + 0.5 * ar(rng, n, m, 0.8)
    X = (X + rng.uniform(0.05, 1.0, m) * rng.standard_normal((n, m))) / X.std(axis=0)
    missing, length = np.zeros(X.shape, bool), np.zeros(X.shape)
    for column, own in zip(missing.T, length.T, strict=True):
        for start in range(20, n - 60, 60):
            gap = int(rng.integers(1, 31))
            column[start : start + gap], own[start : start + gap] = True, gap
    model = OMFBImputer(temporal=True, random_state=0).fit(np.where(missing, np.nan, X))
    filled, std = model.complete(np.where(missing, np.nan, X), return_std=True)
    wrong, count = (filled - X)[missing], round(share * missing.sum())
    by_std, by_gap = (np.argsort(each[missing], kind="stable")[:count] for each in (std, length))
    return [rms(wrong[by_std]) / rms(wrong[by_gap])]


def best_known_80(seed: int) -> list[float]:
    """The best known 80 %."""
    return best_known(seed, 0.8)


def best_known_95(seed: int) -> list[float]:
    """The best known 95 %."""
    return best_known(seed, 0.95)


def no_season(seed: int) -> list[float]:
    """Autoregressions without a cycle: with seasons looked for, beside `seasons=None`."""
    X, Y = _without_cycle(seed)
    missing, errors = Y.isna().to_numpy(), []
    for seasons in ("auto", None):
        filled = OMFBImputer(seasons=seasons, random_state=0).fit(Y).complete(Y)
        errors.append(rms((filled - X).to_numpy()[missing]))
    return [errors[0] / errors[1]]


def _without_cycle(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    X = framed(ar(rng, 1500, 3, 0.95) @ rng.standard_normal((3, 10)) + 0.5 * ar(rng, 1500, 10, 0.8))
    missing = np.zeros(X.shape, bool)
    for i in range(10):
        for start in rng.integers(5, 1440, 15):
            missing[start : start + rng.integers(1, 30), i] = True
    return X, X.mask(missing)


def seconds(seed: int) -> list[float]:
    """Processor seconds of such a fit, with seasons looked for, beside `seasons=None`."""
    return [_seconds(_without_cycle(seed)[1])]


def seconds_of_a_cycle(seed: int) -> list[float]:
    """The same of a panel with a daily and a weekly cycle."""
    X = panel(np.random.default_rng(seed), 10, 8, 0.5, weekly=True)
    return [_seconds(X.mask(np.random.default_rng(seed).random(X.shape) < 0.02))]


def _seconds(Y: pd.DataFrame) -> float:
    taken = []
    for seasons in ("auto", None) * 2:  # the first two compile
        start = time.process_time()
        OMFBImputer(seasons=seasons, random_state=0).fit(Y)
        taken.append(time.process_time() - start)
    return taken[2] / taken[3]


CASES = (
    week, cycle, walks, uneven, prices, late, late_and_drifting, best_known, best_known_80,
    best_known_95, no_season, seconds, seconds_of_a_cycle,
)  # fmt: skip


def main() -> None:
    """Print the table."""
    print("| case | error / rule | 90 % intervals hold |\n|---|---:|---|")
    wanted = sys.argv[1:] or [case.__name__ for case in CASES]
    for case in (case for case in CASES if case.__name__ in wanted):
        found = np.mean([case(seed) for seed in SEEDS], axis=0)
        held = ", ".join(f"{100 * share:.0f} %" for share in found[1:])
        print(f"| {(case.__doc__ or '').rstrip('.')} | {found[0]:.2f} | {held} |", flush=True)


if __name__ == "__main__":
    main()
