"""Parameters of the estimators: what is given is obeyed, what is None is found from the stream.

Each error names the parameter and what to do.
"""

import math
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..core.broyden.config import NUMBERS, Rule
from ..core.broyden.engine import BROYDEN
from ..core.checks import checked_count, checked_number, shown
from ..core.engine import Engine
from ..core.factor.config import Settings
from ..core.factor.engine import BAYES
from ..streams.base import HintedError, Source

RULE_NAMES = tuple(field.name for field in fields(Rule))
"""Parameters that are handed to the `Rule` or the `Settings`, which check them."""
FLAGS = ("center", "scale", "outliers", "in_time", "integers")
OF_A_FIT = ("n_components", "center", "scale", "noise")
"""What a model was begun with: another value waits for the next fit."""
MAY_BE_FOUND = ("center", "scale", "in_time")
# Rows that a fit learns from at least, if as many passes suffice, where nobody says how many.
ENOUGH_ROWS, MOST_PASSES = 4000, 3


class Plan(NamedTuple):
    """How to learn: by which engine, and by what it was told."""

    engine: Engine
    rule: Any
    n_components: int | None


def plan_of(model: Any, in_time: bool = False, found: Any = None) -> Plan:
    """How the parameters of an estimator say to learn; refuses those that cannot be used.

    Where there is nothing to find, the rule is followed to the letter: with `memory=0`, which is
    the paper's, or if `lam`, `ridge` and `shrink` are given and nothing is centred or scaled.

    Parameters
    ----------
    model : OMFB or OMFBImputer
    in_time : bool
        Whether the rows are in time, if the parameter does not say.
    found : Settings or None
        What a fitted model goes on with where the parameters do not say.
    """
    for name in FLAGS:
        value = getattr(model, name, False)  # only imputers know of integers
        if not ((value is None and name in MAY_BE_FOUND) or isinstance(value, bool | np.bool_)):
            raise ValueError(f"{name} must be True or False, got {shown(value)}.")
    n_components = model.n_components
    if n_components is not None:
        n_components = checked_count("n_components", n_components, "how many atoms at most")
    elif not isinstance(model.init, str) and len(shape := init_array(model.init).shape) == 2:
        n_components = checked_count("n_components", shape[0], "the atoms of init")
    memory = checked_number("memory", model.memory, *NUMBERS["memory"])
    if memory == 0.0 or not _finds_anything(model):
        return Plan(BROYDEN, _rule(model), n_components)
    return Plan(BAYES, _settings(model, n_components, in_time, found), n_components)


def _finds_anything(model: Any) -> bool:
    given = all(getattr(model, name) is not None for name in ("lam", "ridge", "shrink"))
    as_it_is = model.center is False and (model.scale is False or model.wants_scale is False)
    return not (given and as_it_is)


def _rule(model: Any) -> Rule:
    values = {name: getattr(model, name) for name in RULE_NAMES}
    rule = Rule(**{name: value for name, value in values.items() if value is not None})
    for name in ("center", "scale", "in_time", "noise"):
        value = getattr(model, name)
        if value is not None and (name == "noise" or value):
            raise ValueError(
                f"{name}={shown(value)} needs the model that memory=0 does without: leave {name} "
                f"out, or memory."
            )
    return rule


def _settings(model: Any, n_components: int | None, in_time: bool, found: Any) -> Settings:
    def given(name: str, default: Any) -> Any:
        value = getattr(model, name)
        return default if value is None else value

    smooth = 0.0
    if model.smooth is not None:
        smooth = checked_number("smooth", model.smooth, *NUMBERS["smooth"])
    settings = Settings(
        n_components=n_components,
        **{name: getattr(model, name) for name in RULE_NAMES},
        center=bool(given("center", True)),
        scale=bool(given("scale", model.wants_scale)),
        noise=given("noise", "feature" if model.wants_scale else "shared"),
        outliers=bool(model.outliers),
        in_time=bool(given("in_time", in_time or smooth > 0.0)),
    )
    if not isinstance(found, Settings):
        return settings
    begun = {name: getattr(found, name) for name in OF_A_FIT}
    if model.in_time is None:
        begun["in_time"] = found.in_time
    return replace(settings, **begun)


def check_parameters(model: Any, in_time: bool = False) -> Plan:
    """Raise a TypeError or ValueError for the first parameter that cannot be used."""
    plan = plan_of(model, in_time)
    checked_number("tol", model.tol, "0 or more", "0 runs all passes")
    if model.max_iter is not None:
        checked_count("max_iter", model.max_iter, "passes over the data")
    if not (isinstance(model.shuffle, bool | np.bool_) or _is_text(model.shuffle, "uniform")):
        raise ValueError(f"shuffle must be True, False or 'uniform', got {shown(model.shuffle)}.")
    if plan.engine is BROYDEN and plan.rule.smooth > 0.0 and not _is_false(model.shuffle):
        raise HintedError(
            f"smooth={plan.rule.smooth!r} ties each row to the row before, so rows must keep their "
            f"order.", "shuffle=False",
        )  # fmt: skip
    try:
        check_random_state(model.random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be a seed (from 0 to {2**32 - 1}), a RandomState or None, got "
            f"{shown(model.random_state)}."
        ) from error
    if isinstance(model.init, str) and model.init not in ("data", "random"):
        raise ValueError(
            f"init must be 'data', 'random' or an array of shape (n_components, n_features), "
            f"got {shown(model.init)}."
        )
    return plan


def passes_for(model: Any, plan: Plan, source: Source) -> int:
    """How many passes a fit makes: more over short tables, if nobody says how many.

    Where most is missing, rows tell less of each feature: they count for what they observe.
    """
    if model.max_iter is not None:
        return int(model.max_iter)
    if plan.engine is BROYDEN or not source.n_rows:
        return 1
    n_rows = source.n_rows * min(1.0, max(2.0 * source.share, 1.0 / ENOUGH_ROWS))
    return max(1, min(MOST_PASSES, math.ceil(ENOUGH_ROWS / n_rows)))


def check_init(init: Any, plan: Plan, n_features: int) -> Any:
    """The given first dictionary as a float array, or the name of a way to make it as it is."""
    if isinstance(init, str):
        return init
    init = init_array(init)
    expected = (plan.n_components or len(init), n_features)
    if init.shape != expected:
        raise ValueError(
            f"init has shape {init.shape}, expected (n_components, n_features) = {expected}."
        )
    if plan.engine is BAYES and len(init) > n_features:
        raise ValueError(
            f"init has {len(init)} atoms for {n_features} features. Give no more atoms than "
            f"features, or follow the paper's rule (memory=0)."
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
