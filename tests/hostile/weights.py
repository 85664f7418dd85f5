"""Hostile weights: of rows and of entries, of odd sizes, shapes and types."""

from pathlib import Path
from typing import Any

import numpy as np

from .arrays import hostile_array, typed
from .models import content, demand_sound, fitted, fresh, good_rows
from .trial import ACCEPTED, CHANGED, attempt, demand, demand_finite
from .using import kept, same

SIZES = np.array([
    0.0, -0.0, 1.0, 2.0, 0.5, 5e-324, 1e-310, 1e-200, 1e-9, 1e9, 1e154, 1e200, 1e300, 1.7e308,
    -1.0, np.nan, np.inf, -np.inf,
])  # fmt: skip


def try_weights(rng: np.random.Generator, folder: Path) -> list[str]:
    """Learn from rows that have hostile weights, or fill and code them."""
    model = fresh(rng) if rng.random() < 0.4 else fitted(rng)
    X = good_rows()[: int(rng.choice([1, 2, 5, 40]))].copy()
    if rng.random() < 0.15 and isinstance(odd := hostile_array(rng), np.ndarray):
        X = odd
    learning = "fit" if rng.random() < 0.4 else "partial_fit"
    given: dict[str, Any] = {}
    if rng.random() < 0.6:
        given["sample_weight"] = hostile_weights(rng, np.shape(X)[:1])
    if not given or rng.random() < 0.5:
        given["entry_weight"] = hostile_weights(rng, np.shape(X))
    method = learning
    if model.__sklearn_is_fitted__() and "sample_weight" not in given and rng.random() < 0.5:
        method = "complete" if rng.random() < 0.5 else "transform"
        _ = model.components_  # a young stream makes its state when somebody asks for it
    if type(model).__name__ == "OMFB" and "entry_weight" in given:
        del given["entry_weight"]  # not in its signature
        if not given:
            given["sample_weight"] = hostile_weights(rng, np.shape(X)[:1])
        method = learning
    before, rows, weights = content(model), kept(X), kept(given)
    outcome, made = attempt(lambda: getattr(model, method)(X, **given))
    demand(same(X, rows), CHANGED, f"{method} has changed X")
    for name, value in given.items():
        demand(same(value, weights[name]), CHANGED, f"{method} has changed {name}")
    if outcome is not ACCEPTED or method != learning:
        demand(content(model) == before, CHANGED, f"{method} has changed the model")
    if outcome is ACCEPTED and method == learning:
        demand_sound(model)
    elif outcome is ACCEPTED:
        demand_finite(made, f"what {method} gives")
    return [outcome]


def hostile_weights(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Weights that are fine, of odd sizes, of one odd size, of another shape, or none at all."""
    kind = rng.integers(8)
    weights: Any = rng.random(shape) + 0.1
    if kind == 0:
        weights = rng.choice(SIZES, size=shape)
    elif kind == 1:
        weights = np.full(shape, rng.choice(SIZES))
    elif kind == 2:
        weights = weights * 10.0 ** rng.uniform(-300, 300, size=shape)
    elif kind == 3:
        weights = np.where(rng.random(shape) < 0.1, rng.choice(SIZES, size=shape), weights)
    elif kind == 4:
        weights = weights[..., :-1] if shape and shape[-1] > 1 else weights[..., None]
    elif kind == 5:
        weights = typed(rng, weights)
    elif kind == 6:
        things = [2, 0.0, -1, "x", b"x", {}, [], None, [[1.0]], True, 10**400, np.ones(1)]
        weights = things[rng.integers(len(things))]
    return weights
