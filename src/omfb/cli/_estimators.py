"""The estimators that `omfb fit` makes, and which options each of them has."""

from typing import TYPE_CHECKING, Any

from ._errors import UsageError, option_of, usage_errors

if TYPE_CHECKING:
    from ..estimators.base import BaseFactorizer

DEFAULT = "imputer"


def estimators() -> "dict[str, type[BaseFactorizer]]":
    """The classes, by the values of ``--estimator``."""
    from .. import OMFB, OMFBImputer, OnlineFactorAnalysis

    return {"imputer": OMFBImputer, "factor-analysis": OnlineFactorAnalysis, "omfb": OMFB}


def new_estimator(name: str, options: dict[str, Any]) -> "BaseFactorizer":
    """An estimator with the options that were given; each must be a parameter of it.

    Parameters
    ----------
    name : str
        The value of ``--estimator``.
    options : dict
        Parameters by name; None is an option that was not given.
    """
    classes = estimators()
    if name not in classes:
        raise UsageError(f"--estimator must be {_listed(list(classes))}, not {name!r}")
    given = {parameter: value for parameter, value in options.items() if value is not None}
    for parameter in given:
        owners = [other for other, cls in classes.items() if parameter in cls().get_params()]
        if name not in owners:
            raise UsageError(
                f"--estimator {name} has no option {option_of(parameter)}: it is one of "
                f"--estimator {_listed(owners)}"
            )
    model = classes[name](**given)
    with usage_errors():
        model.checked_config()
    return model


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
