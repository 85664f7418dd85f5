"""Rows as streams bring them: dicts, pandas Series, records, and arrays of one dimension.

Rows by name are matched to the model's features by their keys, in any order. A key that is absent,
or holds None or NaN, is a missing entry.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.checks import shown
from ..learner.names import Names

# Types of values that need no closer look.
PLAIN = frozenset({float, int, np.float64, np.float32, np.int64, np.int32})

PLAIN_OR_NONE = PLAIN | {type(None)}


def is_row(X: Any) -> bool:
    """Whether X is one row of a table, not a table."""
    if type(X) is np.ndarray:
        return X.ndim == 1 and X.dtype.names is None
    return is_named_row(X)


def is_named_row(X: Any) -> bool:
    """Whether X is one row whose entries have names."""
    return isinstance(X, Mapping) or _is_series(X) or _is_record(X)


def are_named_rows(X: Any) -> bool:
    """Whether X is a list of rows by name, or an array of records."""
    if type(X) is np.ndarray:
        return X.ndim == 1 and X.dtype.names is not None
    return isinstance(X, list) and len(X) > 0 and all(map(is_named_row, X))


def has_names(X: Any) -> bool:
    """Whether X is one row or several rows by name."""
    return is_named_row(X) or are_named_rows(X)


def as_table(X: Any) -> Any:
    """A row without names as a table of one row; anything else as it is."""
    return X[None] if type(X) is np.ndarray and is_row(X) else X


def _is_series(X: Any) -> bool:
    return type(X).__name__ == "Series" and type(X).__module__.startswith("pandas")


def _is_record(X: Any) -> bool:
    """Whether X is a record of NumPy, or a named tuple as frames iterate over."""
    return (isinstance(X, np.void) and X.dtype.names is not None) or (
        isinstance(X, tuple) and hasattr(X, "_asdict")
    )


def as_mapping(row: Any) -> Mapping[Any, Any]:
    """A row by name as a mapping from names to values."""
    if isinstance(row, Mapping):
        return row
    if _is_series(row):
        if not row.index.is_unique:
            raise ValueError("X is a Series whose index holds a name twice. Names must be unique.")
        return dict(zip(row.index.tolist(), row.tolist(), strict=True))
    if isinstance(row, np.void):
        return dict(zip(row.dtype.names or (), row.item(), strict=True))
    values: dict[Any, Any] = row._asdict()
    if type(row).__name__ == "Pandas":  # `DataFrame.itertuples` puts the row's label first
        values.pop("Index", None)
    return values


def as_mappings(X: Any) -> list[Mapping[Any, Any]]:
    """One row or several rows by name as mappings."""
    return [as_mapping(X)] if is_named_row(X) else [as_mapping(row) for row in X]


def entry(value: Any) -> float | None:
    """The value of an entry as a float, NaN if it is missing; None if it is not a number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, bool | np.bool_ | complex) or not isinstance(value, Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return np.inf


def numeric_names(rows: Iterable[Mapping[Any, Any]], *, skip_text: bool) -> list[str]:
    """The names of the entries of some rows, in the order in which they come.

    Parameters
    ----------
    rows : iterable of mappings
    skip_text : bool
        Whether entries that are not numbers are left out; otherwise they are refused.
    """
    numeric: dict[str, bool] = {}
    for row in rows:
        for name, value in row.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"X has the key {shown(name)}, but names of features are text. Give str keys."
                )
            is_number = entry(value) is not None
            if not is_number and not skip_text:
                raise not_a_number(name, value)
            numeric[name] = numeric.get(name, True) and is_number
    return [name for name, is_number in numeric.items() if is_number]


def not_a_number(name: Any, value: Any) -> TypeError:
    """The error of an entry that is not a number."""
    return TypeError(
        f"X contains non-numeric values: {name!r} is {shown(value)}. Leave it out or encode it; an "
        f"absent key, None and NaN are missing."
    )


class NameIndex:
    """Where the features of a model stand, by name.

    Parameters
    ----------
    names : Names
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self._values: Any = None  # made of the names when the first complete row comes

    def array(
        self, rows: Sequence[Mapping[Any, Any]], dtype: Any
    ) -> tuple[NDArray[Any], dict[Any, Any]]:
        """Rows (n, n_features), NaN where a key is absent; and entries that are no features.

        Raises
        ------
        TypeError
            If the value of a feature is not a number.
        """
        out = np.empty((len(rows), len(self.names)), dtype)
        unknown: dict[Any, Any] = {}
        for row, values in zip(rows, out, strict=True):
            if not self._fill_plain(row, values):
                self._fill(row, values, unknown)
        return out, unknown

    def _fill_plain(self, row: Mapping[Any, Any], values: NDArray[Any]) -> bool:
        """Fill in a row of plain numbers that has most features and nothing else, or say False."""
        n, names = len(row), self.names
        if n == len(names) > 1:
            if self._values is None:
                self._values = itemgetter(*names.listed)
            try:
                given = self._values(row)
            except KeyError:
                return False
        elif 2 * n > len(names) and names.has_all(row.keys()):
            given = list(map(row.get, names.listed))
        else:
            return False
        if not PLAIN_OR_NONE.issuperset(map(type, given)):
            return False
        try:
            values[:] = given
        except OverflowError:  # a whole number beyond all floats
            return False
        return True

    def _fill(self, row: Mapping[Any, Any], values: NDArray[Any], unknown: dict[Any, Any]) -> None:
        values.fill(np.nan)
        for at, value in self._entries(row, unknown):
            values[at] = value

    def sparse(self, rows: Sequence[Mapping[Any, Any]], dtype: Any) -> tuple[Any, dict[Any, Any]]:
        """Rows as `array` gives them, as a sparse matrix; absent entries are missing."""
        starts, features, values = [0], [], []
        unknown: dict[Any, Any] = {}
        for row in rows:
            entries = sorted(self._entries(row, unknown))
            features += [at for at, _ in entries]
            values += [value for _, value in entries]
            starts.append(len(features))
        made = scipy.sparse.csr_matrix(
            (np.array(values, dtype), np.array(features, np.int32), np.array(starts, np.int32)),
            shape=(len(rows), len(self.names)),
        )
        made.has_sorted_indices = made.has_canonical_format = True
        return made, unknown

    def _entries(
        self, row: Mapping[Any, Any], unknown: dict[Any, Any]
    ) -> Iterator[tuple[int, float]]:
        """The entries of a row that are numbers, by their features; others go to `unknown`."""
        position = self.names.position
        for name, value in row.items():
            at = position(name)
            if at is None:
                unknown[name] = value
                continue
            number = value if type(value) is float else entry(value)
            if number is None:
                raise not_a_number(name, value)
            if number == number:
                yield at, number


def like_row(X: Any, filled: NDArray[Any], names: list[str] | None) -> Any:
    """One row of predicted values in the form of X: what X observes stays as it is.

    Parameters
    ----------
    X : row
    filled : ndarray of shape (n_features,)
    names : list of str or None
        The features, for rows by name.

    Returns
    -------
    row : ndarray, dict, Series or record
        Dicts and Series also get the features that X does not have; records cannot.
    """
    if type(X) is np.ndarray:
        return filled
    assert names is not None
    given = as_mapping(X)
    made, get = {}, given.get
    for name, value in zip(names, filled.tolist(), strict=True):
        own = get(name)  # None if it is absent
        if own is None or ((own != own) if type(own) is float else _is_missing(own)):
            made[name] = value
    if _is_series(X):
        whole = {**given, **made}
        return type(X)(list(whole.values()), index=list(whole), name=X.name)
    if isinstance(X, np.void):
        record = X.copy()
        for name in set(made) & set(given):
            record[name] = made[name]
        return record
    if isinstance(X, tuple):
        fields: Any = X
        return fields._replace(**{name: made[name] for name in set(made) & set(given)})
    return {**given, **made}


def _is_missing(value: Any) -> bool:
    """Whether an entry of a row by name is missing; None is what an absent key gives."""
    if type(value) in PLAIN:
        return bool(value != value)
    return bool(np.isnan(entry(value) or 0.0))


def values_like(X: Any, values: Any, names: list[str] | None) -> Any:
    """Numbers that belong to entries, such as deviations, (n_rows, n_features), in X's form."""
    if are_named_rows(X):
        return [_values_like_row(row, each, names) for row, each in zip(X, values, strict=True)]
    return _values_like_row(X, values[0], names) if is_row(X) else values


def _values_like_row(X: Any, values: NDArray[Any], names: list[str] | None) -> Any:
    if type(X) is np.ndarray:
        return values
    assert names is not None
    by_name = dict(zip(names, values.tolist(), strict=True))
    return type(X)(by_name, name=X.name) if _is_series(X) else by_name
