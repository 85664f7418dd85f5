"""Data sets that come with the package, and generated ones."""

from .air import load_air
from .ratings import make_ratings

__all__ = ["load_air", "make_ratings"]
