"""A config that is built and checked once, until a parameter changes."""

from collections.abc import Callable
from typing import Any

from ..core.engines import AnyConfig


class ConfigCache:
    """The last config of an estimator, and the objects that it was built from.

    Objects are compared by identity: a parameter that is assigned again counts as changed.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[Any, ...], AnyConfig] | None = None

    def get(self, key: tuple[Any, ...], build: Callable[[], AnyConfig]) -> AnyConfig:
        """The config that belongs to these objects."""
        last = self._last
        if last is None or any(a is not b for a, b in zip(last[0], key, strict=True)):
            self._last = last = key, build()
        return last[1]

    def __reduce__(self) -> tuple[type["ConfigCache"], tuple[()]]:
        return ConfigCache, ()
