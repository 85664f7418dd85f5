"""Checks of the estimators' parameters: each error names the parameter and what to do."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_parameters(model: Any) -> None:
    """Raise a TypeError or ValueError for the first parameter that cannot be used."""
    _whole(model, "n_components", "how many atoms to learn")
    _number(model, "lam", "greater than 0", lambda v: v > 0, "try 1.0")
    _number(model, "memory", "between 0 and 1", lambda v: 0 <= v <= 1, "0 is the paper's rule")
    _number(model, "ridge", "0 or more", lambda v: v >= 0, "0 means no ridge")
    _number(model, "smooth", "0 or more", lambda v: v >= 0, "0 means no temporal pull")
    _number(model, "shrink", "0 or more", lambda v: v >= 0, "0 leaves the dictionary alone")
    _number(model, "tol", "0 or more", lambda v: v >= 0, "0 runs all passes")
    _whole(model, "inner_iter", "alternations for each update; the paper uses 2")
    _whole(model, "batch_size", "rows that share an update; 1 is the paper's Algorithm 1")
    _whole(model, "max_iter", "passes over the data")
    if not (isinstance(model.shuffle, bool | np.bool_) or model.shuffle == "uniform"):
        raise ValueError(f"shuffle must be True, False or 'uniform', got {model.shuffle!r}.")
    if model.smooth > 0 and model.shuffle is not False:
        raise ValueError(
            f"smooth={model.smooth!r} ties each row to the row before, so rows must keep their "
            f"order: set shuffle=False (got shuffle={model.shuffle!r})."
        )
    if isinstance(model.init, str) and model.init not in ("data", "random"):
        raise ValueError(
            f"init must be 'data', 'random' or an array of shape (n_components, n_features), "
            f"got {model.init!r}."
        )


def check_init(init: Any, n_components: int, n_features: int) -> Any:
    """The given first dictionary as a float array, or the name of a rule as it is."""
    if isinstance(init, str):
        return init
    try:
        init = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"init must be 'data', 'random' or an array of numbers, got {type(init).__name__}."
        ) from error
    if init.shape != (n_components, n_features):
        raise ValueError(
            f"init has shape {init.shape}, expected (n_components, n_features) = "
            f"({n_components}, {n_features})."
        )
    if not np.isfinite(init).all():
        raise ValueError("init contains NaN or infinity. Give finite numbers only.")
    return init


def _whole(model: Any, name: str, meaning: str) -> None:
    value = getattr(model, name)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number ({meaning}), got {value!r}.")
    if value < 1:
        raise ValueError(f"{name} must be 1 or more ({meaning}), got {value!r}.")


def _number(model: Any, name: str, what: str, holds: Any, hint: str) -> None:
    value = getattr(model, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {what} ({hint}), got {value!r}.")
    if not (math.isfinite(value) and holds(value)):
        raise ValueError(f"{name} must be {what} ({hint}), got {value!r}.")
