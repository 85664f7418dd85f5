"""Hostile frames: columns of every kind, names that are twice there, odd indices."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from .arrays import FINITE, numbers
from .models import WIDTH, content
from .trial import ACCEPTED, CHANGED, attempt, demand
from .using import learn, read, use

NAMES: list[Any] = [
    "a",
    "b",
    "",
    " ",
    "a",
    "\x1b[31m",
    "=1+1",
    "ä",
    0,
    1,
    1.5,
    None,
    ("a", "b"),
    "a" * 300,
]


def try_frame(rng: np.random.Generator, folder: Path) -> list[str]:
    """Use a hostile frame, with a model of its own columns or with another."""
    frame = hostile_frame(rng)
    if rng.random() < 0.7:
        return use(rng, frame)
    from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis

    model = (OMFB, OnlineFactorAnalysis, OMFBImputer)[rng.integers(3)](2, random_state=0)
    before = content(model)
    outcome, _ = attempt(lambda: model.fit(frame))
    if outcome is not ACCEPTED:
        demand(content(model) == before, CHANGED, "a fit was refused, and changed the model")
        return [outcome]
    other = frame if rng.random() < 0.6 else hostile_frame(rng)
    if rng.random() < 0.5:
        return [outcome, *learn(model, "partial_fit", other)]
    return [outcome, *read(model, ("transform", "complete", "score")[rng.integers(3)], other)]


def hostile_frame(rng: np.random.Generator) -> Any:
    """A frame of pandas or Polars."""
    n = int(rng.choice([0, 1, 3, 12, 30]))
    m = WIDTH if rng.random() < 0.8 else int(rng.choice([0, 1, 9]))
    odd = rng.random() < 0.5
    columns = [hostile_column(rng, n) if odd else np.asarray(rng.normal(size=n)) for _ in range(m)]
    if rng.random() < 0.3:
        return _polars(columns)
    frame = pd.DataFrame({i: pd.Series(column) for i, column in enumerate(columns)})
    kind = rng.integers(4)
    if kind == 0:
        frame.columns = pd.Index([NAMES[rng.integers(len(NAMES))] for _ in range(m)], dtype=object)
    elif kind == 1:
        frame.columns = [f"f{i}" for i in range(m)]
    elif kind == 2 and m:
        frame.columns = pd.MultiIndex.from_tuples([("x", i % 2) for i in range(m)])
    if rng.random() < 0.3:
        frame.index = _index(rng, len(frame))
    return frame


def hostile_column(rng: np.random.Generator, n: int) -> Any:
    """A column of some kind of things."""
    day = np.datetime64("2020-01-01")
    makers = [
        lambda: numbers(rng, (n,)),
        lambda: rng.normal(size=n).astype("f4"),
        lambda: pd.array(rng.integers(0, 9, n), dtype="Int64"),
        lambda: pd.array([None] * n, dtype="Float64"),
        lambda: rng.random(n) < 0.5,
        lambda: pd.array([None] * n, dtype="boolean"),
        lambda: pd.array(["x"] * n, dtype="string"),
        lambda: np.array(["x", "1", None, 2, 2.5, b"", ()] * n, dtype=object)[:n],
        lambda: np.array([decimal.Decimal("1.5")] * n, dtype=object),
        lambda: np.array([datetime.date(2020, 1, 1)] * n, dtype=object),
        lambda: day + np.arange(n),
        lambda: np.arange(n).astype("m8[s]"),
        lambda: pd.date_range("2020", periods=n, tz="UTC"),
        lambda: pd.Categorical(["a"] * n),
        lambda: pd.Categorical([1.5] * n),
        lambda: pd.arrays.SparseArray(np.zeros(n)),
        lambda: pd.period_range("2020", periods=n, freq="D"),
        lambda: pd.interval_range(0, max(n, 1))[:n],
        lambda: rng.normal(size=n) + 1j,
        lambda: rng.choice(FINITE, n),
    ]
    return makers[rng.integers(len(makers))]()


def _polars(columns: list[Any]) -> Any:
    try:
        return pl.DataFrame({f"f{i}": pl.Series(list(column)) for i, column in enumerate(columns)})
    except Exception:  # Polars cannot hold such a thing; nobody can give it
        return pl.DataFrame({f"f{i}": [None, 1.0] for i in range(len(columns))})


def _index(rng: np.random.Generator, n: int) -> Any:
    kinds = [
        lambda: pd.date_range("2020", periods=n),
        lambda: pd.date_range("2020", periods=n)[::-1],
        lambda: pd.DatetimeIndex([pd.NaT] * n),
        lambda: pd.Index(["x"] * n),
        lambda: pd.MultiIndex.from_arrays([range(n), range(n)]),
        lambda: pd.Index(np.full(n, np.nan)),
    ]
    return kinds[rng.integers(len(kinds))]()
