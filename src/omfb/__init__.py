"""Factorise data that keeps arriving and has holes in it: Y ≈ C X, one observation at a time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimator import OMFB, OMFBImputer
    from .state import Info, Rule, State
    from .updates import init, step

__version__ = "0.1.0"

# Names are imported on first use: `import omfb` is instant, and `omfb --help` too.
_HOME = {
    "OMFB": "estimator",
    "OMFBImputer": "estimator",
    "Info": "state",
    "Rule": "state",
    "State": "state",
    "init": "updates",
    "step": "updates",
}

__all__ = ["OMFB", "Info", "OMFBImputer", "Rule", "State", "init", "step"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'omfb' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
