"""Checks of the estimators' parameters: each error names the parameter and what to do."""

from dataclasses import fields
from typing import Any

import numpy as np

from ..core.rule import Rule, checked_count, checked_number, shown

RULE_NAMES = tuple(field.name for field in fields(Rule))
"""Parameters that are handed to the `Rule`, which checks them."""


def rule_of(model: Any) -> Rule:
    """The rule that the parameters of an estimator say; refuses those that cannot be used."""
    return Rule(
        lam=model.lam,
        memory=model.memory,
        ridge=model.ridge,
        smooth=model.smooth,
        shrink=model.shrink,
        inner_iter=model.inner_iter,
        batch_size=model.batch_size,
    )


def check_parameters(model: Any) -> Rule:
    """Raise a TypeError or ValueError for the first parameter that cannot be used."""
    checked_count("n_components", model.n_components, "how many atoms to learn")
    rule = rule_of(model)
    checked_number("tol", model.tol, "0 or more", "0 runs all passes")
    checked_count("max_iter", model.max_iter, "passes over the data")
    if not (isinstance(model.shuffle, bool | np.bool_) or _is_text(model.shuffle, "uniform")):
        raise ValueError(f"shuffle must be True, False or 'uniform', got {shown(model.shuffle)}.")
    if rule.smooth > 0.0 and not _is_false(model.shuffle):
        raise ValueError(
            f"smooth={rule.smooth!r} ties each row to the row before, so rows must keep their "
            f"order: set shuffle=False (got shuffle={model.shuffle!r})."
        )
    if isinstance(model.init, str) and model.init not in ("data", "random"):
        raise ValueError(
            f"init must be 'data', 'random' or an array of shape (n_components, n_features), "
            f"got {shown(model.init)}."
        )
    return rule


def check_init(init: Any, n_components: int, n_features: int) -> Any:
    """The given first dictionary as a float array, or the name of a way to make it as it is."""
    if isinstance(init, str):
        return init
    init = init_array(init)
    if init.shape != (n_components, n_features):
        raise ValueError(
            f"init has shape {init.shape}, expected (n_components, n_features) = "
            f"({n_components}, {n_features})."
        )
    return init


def init_array(init: Any) -> Any:
    """The given first dictionary as an array of finite float64."""
    try:
        init = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"init must be 'data', 'random' or an array of numbers, got {type(init).__name__}."
        ) from error
    if not np.isfinite(init).all():
        raise ValueError("init contains NaN or infinity. Give finite numbers only.")
    return init


def _is_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text


def _is_false(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) and not value
