"""Numbers that stand for missing values: those that the user names, and those that look like it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.checks import shown

Numbers = tuple[float, ...]

# Codes that instruments and databases write where nothing was measured.
NEGATIVE_CODES = frozenset(-(10.0**digits - 1.0) for digits in range(2, 8))
CODES = NEGATIVE_CODES | {-code for code in NEGATIVE_CODES if code < -99.0}
# Other numbers are reported if they repeat, and are this many times as far off as the rest is wide.
FAR_OFF = 10.0
FEWEST, FEWEST_CODES = 3, 2


@dataclass(frozen=True)
class MissingValues:
    """Numbers that stand for a missing value, besides NaN.

    Attributes
    ----------
    everywhere : tuple of float
        In all columns.
    by_column : dict
        In single columns: by their names, or by their numbers from 0 if they have none.
    """

    everywhere: Numbers = ()
    by_column: dict[Any, Numbers] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> Self:
        """What the user gives as `missing_values`: a number, several, or a dict of these."""
        if isinstance(given, Mapping):
            return cls(by_column={column: _numbers(value) for column, value in given.items()})
        return cls(_numbers(given))

    def __bool__(self) -> bool:
        return bool(self.everywhere or self.by_column)

    def marked(self, rows: Any, names: list[str] | None) -> Any:
        """Rows with NaN in place of these numbers; the rows given are not changed."""
        if not self:
            return rows
        if scipy.sparse.issparse(rows):
            columns = rows.indices
            mask = self._mask(rows.data, lambda at: columns == at, names)
            if mask.any():
                rows = rows.copy()
                rows.data[mask] = np.nan
            return rows
        mask = self._mask(rows, lambda at: (slice(None), at), names)
        return np.where(mask, np.asarray(np.nan, rows.dtype), rows) if mask.any() else rows

    def _mask(self, values: NDArray[Any], place: Any, names: list[str] | None) -> NDArray[np.bool_]:
        mask = np.isin(values, np.array(self.everywhere, values.dtype))
        for column, numbers in self.by_column.items():
            at = place(self._position(column, names))
            mask[at] |= np.isin(values[at], np.array(numbers, values.dtype))
        return mask

    def check(self, names: list[str] | None, n_features: int) -> None:
        """Raise a ValueError for a column that is none of the features."""
        for column in self.by_column:
            if not 0 <= self._position(column, names) < n_features:
                raise ValueError(
                    f"missing_values has the column {shown(column)}, but there are {n_features} "
                    f"features, counted from 0."
                )

    def _position(self, column: Any, names: list[str] | None) -> int:
        if names is None and isinstance(column, int | np.integer):
            return int(column)
        if names is None or column not in names:
            raise ValueError(
                f"missing_values has the column {shown(column)}, which is not among the features. "
                f"Name columns of numbers, or count them from 0 if they have no names."
            )
        return names.index(column)

    def replaced(self, row: Mapping[Any, Any]) -> dict[Any, Any]:
        """A row by name with NaN in place of these numbers."""
        marked = dict(row)
        for name, value in row.items():
            numbers = (*self.everywhere, *self.by_column.get(name, ()))
            if isinstance(value, Real) and value in numbers:
                marked[name] = np.nan
        return marked

    def as_json(self) -> Any:
        """These numbers as a file holds them: a list, of which pairs are columns with theirs."""
        if not self.by_column:
            return list(self.everywhere) or None
        names = (int(c) if isinstance(c, np.integer) else c for c in self.by_column)
        return [
            [name, list(each)] for name, each in zip(names, self.by_column.values(), strict=True)
        ]


def of_json(listed: Any) -> Any:
    """`missing_values` as it was given, from how a file holds it."""
    if listed is None:
        return np.nan
    if isinstance(listed, list) and all(isinstance(each, list) for each in listed):
        return dict(listed)
    return listed


def _numbers(given: Any) -> Numbers:
    """A number or several as a tuple without NaN."""
    several = isinstance(given, list | tuple | set | frozenset | np.ndarray)
    values = given.ravel().tolist() if isinstance(given, np.ndarray) else given
    values = list(values) if several else [given]
    numbers = []
    for value in values:
        if value is None or type(value).__name__ == "NAType":
            continue
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise TypeError(
                f"missing_values must be a number, several, or a dict of these by column, got "
                f"{shown(given)}."
            )
        number = float(value)
        if np.isinf(number):
            raise ValueError("missing_values must be finite or NaN, got infinity.")
        if not np.isnan(number):
            numbers.append(number)
    return tuple(numbers)


class Suspect(NamedTuple):
    """A number that looks like a code for missing values."""

    feature: int
    value: float
    n_times: int


class Extremes:
    """The smallest and the largest number of each feature, how often they are there, and the next.

    Those of several blocks of rows are those of all their rows.
    """

    def __init__(self, n_features: int) -> None:
        # Of the negated numbers the largest become the smallest.
        self._sides = [_Smallest(n_features), _Smallest(n_features)]

    def add(self, rows: NDArray[Any]) -> None:
        """Look at rows; NaN is missing."""
        finite = np.where(np.isnan(rows), np.inf, rows)
        self._sides[0].add(finite)
        np.negative(rows, out=finite)
        finite[np.isnan(finite)] = np.inf
        self._sides[1].add(finite)

    @property
    def limits(self) -> NDArray[np.float64]:
        """The smallest and the largest number of each feature; (inf, -inf) if there was none."""
        return np.array([self._sides[0].first, -self._sides[1].first])

    def suspects(self) -> list[Suspect]:
        """Numbers that look like codes for missing values."""
        low, high = self._sides
        found = []
        for at in range(len(low.first)):
            below = [float(side[at]) for side in (low.first, low.second)]
            above = [-float(side[at]) for side in (high.first, high.second)]
            if not np.isfinite([*below, *above]).all():
                continue  # at most one number
            counts = int(low.count[at]), int(high.count[at])
            # Codes on the other side do not belong to the rest.
            top = above[above[0] in CODES and counts[1] >= FEWEST_CODES]
            bottom = below[below[0] in CODES and counts[0] >= FEWEST_CODES]
            if _is_low_code(below[0], below[1], top, above[1], counts[0]):
                found.append(Suspect(at, below[0], counts[0]))
            if _is_far_off(above[0], above[0] - above[1], above[1] - bottom, counts[1]):
                found.append(Suspect(at, above[0], counts[1]))
        return found


def _is_low_code(value: float, then: float, top: float, second: float, count: int) -> bool:
    """Whether the smallest number, before the next one and up to the largest, looks like a code."""
    if _is_far_off(value, then - value, top - then, count):
        return True
    several = then < second  # the rest has more than two numbers, or it may be -1 and 1
    is_code = (value == -1.0 and then > 0.0) or (value in NEGATIVE_CODES and then >= 0.0)
    return is_code and several and count >= FEWEST_CODES


def _is_far_off(value: float, gap: float, width: float, count: int) -> bool:
    if width <= 0.0:
        return False
    if value in CODES:
        return count >= FEWEST_CODES and gap > width
    return count >= FEWEST and gap > FAR_OFF * width


class _Smallest:
    """The two smallest numbers of each feature, and how often the first is there."""

    def __init__(self, n_features: int) -> None:
        self.first = np.full(n_features, np.inf)
        self.second = np.full(n_features, np.inf)
        self.count = np.zeros(n_features, np.int64)

    def add(self, rows: NDArray[Any]) -> None:
        """Look at rows; infinity is missing. The rows are overwritten."""
        first = rows.min(axis=0, initial=np.inf)
        equal = rows == first
        count = np.where(np.isinf(first), 0, equal.sum(axis=0))
        rows[equal] = np.inf
        second = rows.min(axis=0, initial=np.inf)
        smallest = np.minimum(self.first, first)
        others = [
            np.where(one > smallest, one, next_one)
            for one, next_one in ((self.first, self.second), (first, second))
        ]
        self.count = np.where(self.first == smallest, self.count, 0) + np.where(
            first == smallest, count, 0
        )
        self.first, self.second = smallest, np.minimum(*others)


def report(
    suspects: Sequence[Suspect], names: list[str] | None, hint: Callable[[list[str]], str]
) -> str | None:
    """One line about numbers that look like codes for missing values; None if there are none.

    `hint` says how the user declares values as missing.
    """
    if not suspects:
        return None
    listed = ", ".join(
        f"{each.value:g} in column {each.feature if names is None else repr(names[each.feature])} "
        f"({each.n_times} times)"
        for each in suspects[:5]
    )
    more = f" and {len(suspects) - 5} more" if len(suspects) > 5 else ""
    return (
        f"Numbers that look like codes for missing values: {listed}{more}. They are taken as they "
        f"are; if they mean missing, set {hint(_values(suspects))}."
    )


def _values(suspects: Sequence[Suspect]) -> list[str]:
    return [f"{value:g}" for value in sorted({each.value for each in suspects})]


def parameter(values: list[str]) -> str:
    """How the parameter of an estimator is given these values."""
    return f"missing_values={values[0] if len(values) == 1 else '[' + ', '.join(values) + ']'}"
