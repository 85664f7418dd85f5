"""Factorise data that keeps arriving and has holes in it: Y ≈ C X, one observation at a time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core.state import Info, Rule, State
    from .core.step import init, step
    from .estimators.omfb import OMFB, OMFBImputer

__version__ = "0.1.0"

# Names are imported on first use: `import omfb` is instant, and `omfb --help` too.
_HOME = {
    "OMFB": "estimators.omfb",
    "OMFBImputer": "estimators.omfb",
    "Info": "core.state",
    "Rule": "core.state",
    "State": "core.state",
    "init": "core.step",
    "step": "core.step",
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
