"""Which columns of a table are the features."""

from typing import NamedTuple

from ..streams.base import DataError


class Columns(NamedTuple):
    """The columns of a table: its name, how many there are, and what they are called."""

    table: str
    n_columns: int
    names: list[str] | None


def choose(columns: Columns, asked: str | None, wanted: list[str] | None) -> list[int]:
    """The positions of the features, in order.

    Parameters
    ----------
    columns : Columns
    asked : str or None
        What the user asks for: names, numbers from 1 or ranges of them, between commas.
    wanted : list of str or None
        The features of a model. They are found by name where there are names.
    """
    if asked is not None:
        chosen = [i for part in asked.split(",") for i in _positions(part.strip(), columns)]
    elif wanted is not None and columns.names is not None:
        chosen = [_position(name, columns, "the model's feature") for name in wanted]
    else:
        chosen = list(range(columns.n_columns))
        if columns.names is not None and len(chosen) > 1 and not columns.names[0].strip():
            del chosen[0]  # pandas writes its index as a first column without a name
    _check_distinct(chosen, columns)
    return chosen


def _positions(part: str, columns: Columns) -> list[int]:
    if columns.names is not None and part in columns.names:
        return [_position(part, columns, "column")]
    first, _, last = part.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or last == ""):
        return [_position(part, columns, "column")]
    low, high = int(first), int(last or first)
    if not 1 <= low <= high <= columns.n_columns:
        raise DataError(
            f"{columns.table}: no columns {part}; they are numbered from 1 to {columns.n_columns}."
        )
    return list(range(low - 1, high))


def _position(name: str, columns: Columns, what: str) -> int:
    names = columns.names or []
    if name not in names:
        known = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        hint = (
            f"It has {known}" if names else f"It has numbers 1 to {columns.n_columns} and no header"
        )
        raise DataError(f"{columns.table}: {what} {name!r} is not there. {hint}.")
    if names.count(name) > 1:
        raise DataError(f"{columns.table}: {what} {name!r} is there twice. Rename one of them.")
    return names.index(name)


def _check_distinct(chosen: list[int], columns: Columns) -> None:
    if not chosen:
        raise DataError(f"{columns.table}: no column is left to learn from.")
    if len(set(chosen)) < len(chosen):
        raise DataError(f"{columns.table}: a column is chosen twice. Name each once.")
    if columns.names is not None:
        names = [columns.names[i] for i in chosen]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{columns.table}: two columns are called {twice!r}. Rename one.")
