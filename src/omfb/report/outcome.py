"""The results of an experiment: numbers, claims, pictures."""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")
Track = Callable[[Iterable[T], str, int], Iterator[T]]
"""Shows progress: the items as they are, the name of the part, and how many there are."""


def untracked(items: Iterable[T], part: str, total: int) -> Iterator[T]:
    """Show nothing."""
    return iter(items)


def as_json(value: Any) -> Any:
    """Settings as JSON has them: NaN and infinity, which it does not have, as text."""
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Number(NamedTuple):
    """One measured number: a row of the CSV file."""

    experiment: str
    method: str
    measure: str
    repeat: int
    passes: float
    value: float


class Claim(NamedTuple):
    """A result that the paper or this project states, and whether this run confirmed it."""

    text: str
    expected: str
    measured: str
    confirmed: bool


@dataclass
class Outcome:
    """The results of an experiment.

    Attributes
    ----------
    experiment : str
        Its name on the command line and in files.
    title : str
        What was done, and with which data.
    settings : dict
        Every parameter, by method.
    numbers : list of Number
    table : list of dict
        The summary: a row for each method, text by column.
    claims : list of Claim
        Those that this run is long enough, and has the data, to decide.
    pictures : dict of ndarray
        Rows of images, by caption.
    atoms : dict of ndarray
        Learned dictionaries, by method.
    """

    experiment: str
    title: str
    settings: dict[str, Any]
    numbers: list[Number] = field(default_factory=list)
    table: list[dict[str, str]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    pictures: dict[str, NDArray[Any]] = field(default_factory=dict)
    atoms: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, method: str, measure: str, passes: float, value: float, repeat: int = 0) -> None:
        """Record a number."""
        self.numbers.append(
            Number(self.experiment, method, measure, repeat, float(passes), float(value))
        )

    def values(self, method: str, measure: str, passes: float | None = None) -> list[float]:
        """One value for each repeat: after so many passes, or at the end."""
        found: dict[int, float] = {}
        for number in self.numbers:
            here = passes is None or number.passes == passes
            if here and (number.method, number.measure) == (method, measure):
                found[number.repeat] = number.value
        if not found:
            raise KeyError(f"no {measure} of {method} after {passes} passes")
        return list(found.values())

    def curve(self, method: str, measure: str) -> dict[float, list[float]]:
        """Values by passes, one for each repeat."""
        found: dict[float, list[float]] = {}
        for number in self.numbers:
            if (number.method, number.measure) == (method, measure):
                found.setdefault(number.passes, []).append(number.value)
        return found

    def methods(self, measure: str) -> list[str]:
        """Methods that have this measure, in the order they came."""
        return list(dict.fromkeys(n.method for n in self.numbers if n.measure == measure))


def mean_and_spread(values: list[float]) -> str:
    """Mean ± standard deviation."""
    mean = f"{statistics.fmean(values):.2f}".replace("-", "−")
    return f"{mean} ± {statistics.stdev(values):.2f}" if len(values) > 1 else mean
