"""Data sets that come with the package."""

from .air import load_air

__all__ = ["load_air"]
