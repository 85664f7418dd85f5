"""Rows in time beside simple rules: gaps of all sensors, forecasts, walks, uneven times.

    python benchmarks/seasons.py

Everything is generated; seeds are from 1000 on, and none of them was used to choose a constant. It
prints a table: the error of omfb with nothing set over that of a rule, and the share of the values
that 90 % intervals held. It takes some two minutes.
"""

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


def no_season(seed: int) -> list[float]:
    """Autoregressions without a cycle: with seasons looked for, beside `seasons=None`."""
    rng = np.random.default_rng(seed)
    X = framed(ar(rng, 1500, 3, 0.95) @ rng.standard_normal((3, 10)) + 0.5 * ar(rng, 1500, 10, 0.8))
    missing = np.zeros(X.shape, bool)
    for i in range(10):
        for start in rng.integers(5, 1440, 15):
            missing[start : start + rng.integers(1, 30), i] = True
    Y = X.mask(missing)
    errors = []
    for seasons in ("auto", None):
        filled = OMFBImputer(seasons=seasons, random_state=0).fit(Y).complete(Y)
        errors.append(rms((filled - X).to_numpy()[missing]))
    return [errors[0] / errors[1]]


def main() -> None:
    """Print the table."""
    print("| case | error / rule | 90 % intervals hold |\n|---|---:|---|")
    for case in (week, cycle, walks, uneven, no_season):
        found = np.mean([case(seed) for seed in SEEDS], axis=0)
        held = ", ".join(f"{100 * share:.0f} %" for share in found[1:])
        print(f"| {(case.__doc__ or '').rstrip('.')} | {found[0]:.2f} | {held} |", flush=True)


if __name__ == "__main__":
    main()
