"""Checks of the parameters that all estimators share.

Each error names the parameter, what it must be, and what it was.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..core.checks import checked_count, checked_number, shown
from .time_index import checked_seconds


def check_fit_parameters(
    *, max_iter: Any, tol: Any, shuffle: Any, random_state: Any, verbose: Any
) -> None:
    """Raise a TypeError or ValueError for the first parameter of a fit that cannot be used."""
    checked_number("tol", tol, "0 or more", "0 runs all passes")
    if max_iter is not None:
        checked_count("max_iter", max_iter, "passes over the data")
    if not (is_flag(shuffle) or (isinstance(shuffle, str) and shuffle == "uniform")):
        raise ValueError(f"shuffle must be True, False or 'uniform', got {shown(shuffle)}.")
    checked_random_state(random_state)
    if not (is_flag(verbose) or isinstance(verbose, int | np.integer)):
        raise TypeError(f"verbose must be a whole number or a bool, got {shown(verbose)}.")


def checked_random_state(random_state: Any) -> np.random.RandomState:
    """The generator that `random_state` names."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be a seed (from 0 to {2**32 - 1}), a RandomState or None, got "
            f"{shown(random_state)}."
        ) from error
    return generator


def checked_flag(name: str, value: Any) -> bool:
    """The parameter as a plain bool."""
    if not is_flag(value):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def checked_new_features(value: Any) -> str | None:
    """What to do with features that a stream brings; None is to add them and say so once."""
    if value is None or (isinstance(value, str) and value in ("add", "error", "ignore")):
        return value
    raise ValueError(f"new_features must be 'add', 'error', 'ignore' or None, got {shown(value)}.")


def checked_drop_after(value: Any) -> int | None:
    """Rows after which silent features are dropped; None if they stay."""
    return None if value is None else checked_count("drop_after", value, "rows, or None")


def is_flag(value: Any) -> bool:
    """Whether a value is a bool, of Python or NumPy."""
    return isinstance(value, bool | np.bool_)


def checked_init(init: Any, n_components: int | None, n_features: int) -> Any:
    """The given first dictionary as a float array, or the name of a way to make it as it is."""
    if isinstance(init, str):
        return init
    init = init_array(init)
    expected = (n_components or len(init), n_features)
    if init.shape != expected:
        raise ValueError(
            f"init has shape {init.shape}, expected (n_components, n_features) = {expected}."
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


def checked_bounds(low: Any, high: Any, n_features: int | None = None) -> tuple[Any, Any]:
    """`min_value` and `max_value` as arrays or None, with room between them.

    Parameters
    ----------
    low, high : float, array-like of shape (n_features,) or None
    n_features : int or None
        If known, the length that arrays must have.
    """
    low, high = _bound("min_value", low, n_features), _bound("max_value", high, n_features)
    if low is None and high is None:
        return None, None
    least = np.asarray(-np.inf if low is None else low)
    most = np.asarray(np.inf if high is None else high)
    if least.ndim == most.ndim == 1 and len(least) != len(most):
        raise ValueError(
            f"min_value has {len(least)} entries and max_value {len(most)}: give one for each "
            f"feature."
        )
    if not np.all((least <= most) & (least < np.inf) & (most > -np.inf)):
        raise ValueError(
            f"min_value must be below infinity and not above max_value, got "
            f"{_listed(least)} and {_listed(most)}: there is no number between these bounds."
        )
    return low, high


def _listed(bound: NDArray[np.float64]) -> str:
    return shown(bound.tolist())


def _bound(name: str, given: Any, n_features: int | None) -> Any:
    if given is None:
        return None
    try:
        bound = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be a number or an array of them, got {shown(given)}."
        ) from error
    wrong_length = n_features is not None and bound.ndim == 1 and len(bound) != n_features
    if bound.ndim > 1 or wrong_length:
        count = "" if n_features is None else f"{n_features} "
        raise ValueError(
            f"{name} has shape {bound.shape}: give one number, or one for each of the "
            f"{count}features."
        )
    if np.isnan(bound).any():
        raise ValueError(f"{name} contains NaN: use -inf or inf where there is no bound.")
    return bound


def checked_seasons(seasons: Any) -> str | None:
    """Cycles in time as a config has them: "auto", None, or lengths separated by blanks."""
    if seasons is None or (isinstance(seasons, str) and seasons == "auto"):
        return seasons
    wrong = (
        f"seasons must be 'auto', None, or a list of the lengths of cycles: numbers of rows, or "
        f"durations such as '24h' or '7D', got {shown(seasons)}."
    )
    if isinstance(seasons, str) or not np.iterable(seasons):
        raise ValueError(wrong)
    found = []
    for each in seasons:
        if isinstance(each, int | float | np.integer | np.floating) and not is_flag(each):
            if not (np.isfinite(each) and each >= 2):
                raise ValueError(f"seasons must be at least 2 rows long, got {shown(each)}.")
            found.append(f"{float(each):g}" if float(each) % 1 else str(int(each)))
        elif isinstance(each, str | np.timedelta64) or hasattr(each, "total_seconds"):
            found.append(f"{checked_seconds('seasons', each)!r}s")
        else:
            raise ValueError(wrong)
    return " ".join(found) if found else None
