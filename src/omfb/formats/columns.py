"""Choice of the columns of a table that are features."""

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..streams.base import DataError
from .reading import Reading


class Columns(NamedTuple):
    """The name of a table, and the number and names of its columns."""

    table: str
    n_columns: int
    names: list[str] | None


def choose(columns: Columns, reading: Reading, usual: list[int] | None = None) -> list[int]:
    """The positions of the features, in order.

    Parameters
    ----------
    columns : Columns
    reading : Reading
    usual : list of int or None
        The default: the numeric columns.
    """
    if reading.columns is not None:
        chosen = [i for part in reading.columns for i in _positions(part, columns)]
    elif reading.model_features is not None and columns.names is not None:
        what = "the model's feature"
        chosen = [_position(name, columns, what) for name in reading.model_features]
    else:
        chosen = list(range(columns.n_columns)) if usual is None else usual
    excluded = {i for part in reading.exclude for i in _positions(part, columns)}
    chosen = [i for i in chosen if i not in excluded]
    _check_distinct(chosen, columns)
    return chosen


def matching(pattern: str, names: list[str]) -> list[int]:
    """The positions of the names that a pattern with ``*``, ``?`` or ``[…]`` matches."""
    return [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]


def is_pattern(part: str) -> bool:
    """Whether a name is a pattern."""
    return any(mark in part for mark in "*?[")


def did_you_mean(name: str, names: list[str]) -> str:
    """A hint at the closest name, or an empty string."""
    close = get_close_matches(name, names, 1)
    return f"Did you mean {close[0]!r}? " if close else ""


def _positions(part: str, columns: Columns) -> list[int]:
    names = columns.names or []
    if part in names:
        return [_position(part, columns, "column")]
    if is_pattern(part):
        found = matching(part, names)
        if not found:
            raise DataError(f"{columns.table}: no column matches {part!r}. {_known(columns)}.")
        return found
    first, _, last = part.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or last == ""):
        return [_position(part, columns, "column")]
    low, high = _whole(first), _whole(last or first)
    if not 1 <= low <= high <= columns.n_columns:
        raise DataError(
            f"{columns.table}: no columns {part}; they are numbered from 1 to {columns.n_columns}."
        )
    return list(range(low - 1, high))


def _whole(digits: str) -> int:
    return int(digits[:10])  # longer ones are out of range, and Python refuses the longest


def _position(name: str, columns: Columns, what: str) -> int:
    names = columns.names or []
    if name not in names:
        hint = did_you_mean(name, names)
        raise DataError(f"{columns.table}: {what} {name!r} is not there. {hint}{_known(columns)}.")
    if names.count(name) > 1:
        raise DataError(f"{columns.table}: {what} {name!r} is there twice. Rename one of them.")
    return names.index(name)


def _known(columns: Columns) -> str:
    names = columns.names
    if not names:
        return f"It has numbers 1 to {columns.n_columns} and no header"
    return "It has " + ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _check_distinct(chosen: list[int], columns: Columns) -> None:
    if not chosen:
        raise DataError(f"{columns.table}: no column of numbers is left to learn from.")
    if len(set(chosen)) < len(chosen):
        raise DataError(f"{columns.table}: a column is chosen twice. Name each once.")
    if columns.names is not None:
        names = [columns.names[i] for i in chosen]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{columns.table}: two columns are called {twice!r}. Rename one.")
