"""Factorise rows that keep arriving and have missing entries: Y ≈ C X, one row at a time."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from . import broyden, factor
    from .core.info import Info
    from .estimators.factor_analysis import OnlineFactorAnalysis
    from .estimators.imputer import OMFBImputer
    from .estimators.merge import merge
    from .estimators.omfb import OMFB
    from .estimators.recommender import OMFBRecommender
    from .learner.learner import Learner

__version__ = "0.3.0"

# Names are imported on first use: `import omfb` is instant, and `omfb --help` too.
_HOME = {
    "OMFB": "estimators.omfb",
    "OMFBImputer": "estimators.imputer",
    "OMFBRecommender": "estimators.recommender",
    "OnlineFactorAnalysis": "estimators.factor_analysis",
    "Info": "core.info",
    "Learner": "learner.learner",
    "merge": "estimators.merge",
}
_MODULES = ("broyden", "factor", "river")

__all__ = [
    "OMFB",
    "Info",
    "Learner",
    "OMFBImputer",
    "OMFBRecommender",
    "OnlineFactorAnalysis",
    "broyden",
    "factor",
    "merge",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'omfb' has no attribute {name!r}")
    value = getattr(_import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
