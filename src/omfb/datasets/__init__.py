"""Data that come with the package, to try things on."""

from .air import load_air

__all__ = ["load_air"]
