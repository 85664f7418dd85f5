"""Hostile parameters: each with odd values, alone and together, before and after a fit."""

import fractions
from pathlib import Path
from typing import Any

import numpy as np

from .models import content, demand_sound, fitted, fresh, good_rows
from .trial import ACCEPTED, CHANGED, attempt, demand, demand_finite

VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3, 7, -1, 0.0, 0.5, 1.0, 1.5, -0.5, 1e-300, 5e-324, 1e300, 1.7e308,
    float("nan"), float("inf"), -float("inf"), 10**30, -(10**30), 2**31 - 1, 2**31, 2**63, "", "x",
    "1", "data", "random", "uniform", "isotropic", "diagonal", b"x", 1j, (), [], {}, [1.0], [[1.0]],
    object(), fractions.Fraction(1, 3), np.float32(0.5), np.float16(0.25), np.longdouble(0.5),
    np.uint8(200), np.int64(2), np.bool_(True), np.str_("data"), np.array(0.5), np.array([0.5]),
    np.ones((3, 6)), np.full((3, 6), 1e300), np.zeros((3, 6)), np.full((3, 6), np.nan),
    np.arange(6.0), np.nan, print,
]  # fmt: skip
# These are obeyed for as long as it takes, and as long as memory lasts; nothing is wrong with that.
PATIENT = {"max_iter", "inner_iter", "n_components"}


def try_parameters(rng: np.random.Generator, folder: Path) -> list[str]:
    """Fit with hostile parameters, or set them afterwards and go on."""
    model = fitted(rng) if rng.random() < 0.6 else fresh(rng)
    if model.__sklearn_is_fitted__():
        _ = model.components_  # a young stream makes its state when somebody asks for it
    names = sorted(set(model.get_params()) - {"verbose"})
    chosen = {}
    for name in rng.choice(names, int(rng.integers(1, 4)), replace=False):
        value = VALUES[rng.integers(len(VALUES))]
        if name in PATIENT and isinstance(value, int | np.integer) and value > 200:
            value = 2
        chosen[str(name)] = value
    model.set_params(**chosen)
    before = content_or_none(model)
    if not model.__sklearn_is_fitted__() or rng.random() < 0.3:
        method = "fit" if rng.random() < 0.6 else "partial_fit"
    else:
        methods = ["partial_fit", "complete", "transform", "score", "save", "interval"]
        methods = [name for name in methods if hasattr(type(model), name)]
        method = methods[rng.integers(len(methods))]
    X = good_rows()[:30].astype(model.learner_.dtype if model.__sklearn_is_fitted__() else float)
    argument: Any = folder / "m.omfb" if method == "save" else X
    outcome, made = attempt(lambda: getattr(model, method)(argument))
    if outcome is not ACCEPTED:
        same = content_or_none(model) == before
        demand(same, CHANGED, f"{method} was refused, and changed the model: {chosen}")
        demand(not any(folder.iterdir()), CHANGED, f"{method} was refused, and left a file")
    elif method == "save":
        type(model).load(argument)
    elif method in ("fit", "partial_fit"):
        demand_sound(model)
    else:
        demand_finite(made, f"what {method} gives with {chosen}")
    return [outcome]


def content_or_none(model: Any) -> Any:
    """What a model is; parameters that cannot be pickled are not looked at."""
    return content(model.__dict__.get("_learner"))
