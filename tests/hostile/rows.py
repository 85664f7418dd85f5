"""Hostile rows by name: keys and values of every kind, absent keys, new ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .models import WIDTH, good_rows
from .trial import ACCEPTED
from .using import learn, read

KEYS: list[Any] = ["", " ", "ä", "\x1b[31m", "new", "a" * 300, 0, 1.5, None, ("a", "b")]
VALUES: list[Any] = [
    None, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 10**400, 1, True, "1", b"1", 1j, [], {},
    pd.NA, pd.NaT, np.float32(1.0), np.int8(3), np.array(1.0), np.array([1.0, 2.0]),
]  # fmt: skip
NAMES = [f"f{i}" for i in range(WIDTH)]


def try_row(rng: np.random.Generator, folder: Path) -> list[str]:
    """Learn from hostile rows, or ask about them, with a model of good ones."""
    from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis

    estimator = (OMFB, OnlineFactorAnalysis, OMFBImputer)[rng.integers(3)]
    model = estimator(2, random_state=0)
    if estimator is not OMFB:
        model.set_params(new_features=["add", "error", "ignore"][rng.integers(3)])
    good = good_rows()[: int(rng.choice([3, 60, 450]))].tolist()
    model.partial_fit([dict(zip(NAMES, row, strict=True)) for row in good])
    outcomes = []
    for _ in range(int(rng.integers(1, 4))):
        X = hostile_row(rng)
        if rng.random() < 0.5:
            outcomes += learn_row(model, X)
        else:
            method = ("complete", "score_samples", "interval")[rng.integers(3)]
            outcomes += read(model, method, without_unknown(X))
    return outcomes


def learn_row(model: Any, X: Any) -> list[str]:
    """Learn from a row; models whose features have grown cannot fill the good rows."""
    if model.n_features_in_ == WIDTH and not set(getattr(X, "keys", list)()) - set(NAMES):
        return learn(model, "partial_fit", X)
    try:
        model.partial_fit(X)
    except (TypeError, ValueError):
        return ["refused cleanly"]
    assert np.isfinite(list(model.complete({"f0": 1.0}).values())).all()
    return [ACCEPTED]


def without_unknown(X: Any) -> Any:
    """A row without the keys whose values are missing and that the model may not know.

    An answer leaves them as they are, and so not finite.
    """
    kept = {
        key: value
        for key, value in X.items()
        if key in NAMES or np.ndim(value) or not pd.isna(value)
    }
    return kept if isinstance(X, dict) else pd.Series(kept, dtype=object)


def hostile_row(rng: np.random.Generator) -> Any:
    """A dict, or a Series of one."""
    row: dict[Any, Any] = {name: float(rng.normal()) for name in NAMES if rng.random() < 0.8}
    if rng.random() < 0.6:
        row[NAMES[rng.integers(WIDTH)]] = VALUES[rng.integers(len(VALUES))]
    if rng.random() < 0.4:
        value = float(rng.normal()) if rng.random() < 0.7 else VALUES[rng.integers(len(VALUES))]
        row[KEYS[rng.integers(len(KEYS))]] = value
    if rng.random() < 0.2:
        return pd.Series(list(row.values()), index=list(row), dtype=object)
    return row
