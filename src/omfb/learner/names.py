"""`Names`: the names of features, of which a stream may bring more."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any


class Names:
    """Names in their order, and where each stands. More of them cost O(1) each.

    Parameters
    ----------
    names : sequence of str
    """

    def __init__(self, names: Sequence[str]) -> None:
        # Shared with those that came of this object; what is beyond `_count` is not in it.
        self._all = list(names)
        self._position = {name: at for at, name in enumerate(self._all)}
        self._count = len(self._all)

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and self.listed == other.listed

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Names, (self.listed,)

    def position(self, name: object) -> int | None:
        """Which feature has a name; None if there is none."""
        at = self._position.get(name)  # type: ignore[call-overload]
        return at if at is not None and at < self._count else None

    def has_all(self, names: AbstractSet[object]) -> bool:
        """Whether all of these are names of features."""
        if len(self._all) == self._count:
            return names <= self._position.keys()
        return all(self.position(name) is not None for name in names)

    @cached_property
    def listed(self) -> list[str]:
        """The names in a list."""
        return self._all[: self._count]

    def with_more(self, names: Sequence[str]) -> "Names":
        """These names and more; this object stays as it is."""
        if len(self._all) > self._count:  # another object has gone on from here
            return Names([*self.listed, *names])
        more = object.__new__(Names)
        more._all, more._position = self._all, self._position
        for at, name in enumerate(names, self._count):
            self._position[name] = at
            self._all.append(name)
        more._count = self._count + len(names)
        return more
