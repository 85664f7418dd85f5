"""Detection of a text table's header, index, numeric and text columns from its first lines."""

import math
import re
from datetime import datetime
from typing import NamedTuple

from ..streams.base import DataError, Note
from ._cells import Cells, Kind, unquoted
from ._dates import date_of, rising
from .columns import Columns, choose
from .reading import Reading

_OTHER_DATE = re.compile(rb"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})\b")
# With fewer rows it is not clear whether a column is a row counter.
ENOUGH_TO_COUNT = 3


class Layout(NamedTuple):
    """The names of all columns, if there are any, the features, and notes about guesses."""

    names: list[str] | None
    chosen: list[int]
    notes: tuple[Note, ...]
    time_column: str | None = None
    time_at: int | None = None
    zoned: bool = False


def layout_of(
    first: list[bytes], rows: list[list[bytes]], table: str, cells: Cells, reading: Reading
) -> Layout:
    """The layout of a table, from the cells of its first line and of some rows."""
    notes: list[Note] = []
    header = reading.header
    if header is None:
        header, note = has_header(first, rows, cells)
        notes += [Note(f"{table}: {note}", "header")] if note else []
    names = None
    if header:
        names, repeated = distinct_names([unquoted(c).decode("utf-8", "replace") for c in first])
        notes += [Note(f"{table}: {note}") for note in repeated]
    columns = Columns(table, len(first), names)
    below = rows if header else [first, *rows]
    usual = None
    if reading.columns is None and not (reading.model_features is not None and names is not None):
        usual, more = features_of(columns, below, cells, reading.model_width)
        if below and not usual:
            raise DataError(f"{table}: no column holds numbers: {_examples(columns, below[0])}.")
        notes += [Note(f"{table}: {note}", "columns") for note in more]
    chosen = choose(columns, reading, usual)
    at = time_at(columns, below, chosen, reading)
    if at is None and (odd := _other_dates(columns, below, chosen)) is not None:
        notes.append(Note(
            f"{table}: column {odd} seems to hold dates; only those such as 2024-01-31 12:00 tell "
            f"which rows are neighbours in time", "temporal",
        ))  # fmt: skip
    time = None if at is None else names[at] if names else str(at + 1)
    first_date = date_of_cell(below[0][at]) if below and at is not None else None
    zoned = first_date is not None and first_date.tzinfo is not None
    return Layout(names, chosen, tuple(notes), time, at, zoned)


def _examples(columns: Columns, row: list[bytes]) -> str:
    """What the first columns hold, for a message."""
    names = columns.names or [str(number + 1) for number in range(columns.n_columns)]
    shown = [cell[:20].decode("utf-8", "backslashreplace") for cell in row[:3]]
    listed = [f"column {name!r} has {cell!r}" for name, cell in zip(names, shown, strict=False)]
    return ", ".join(listed) + (", …" if len(row) > 3 else "")


def distinct_names(names: list[str]) -> tuple[list[str], list[str]]:
    """The names with ".1", ".2" … after repeated ones, as pandas does, and notes about these.

    Examples
    --------
    >>> distinct_names(["a", "b", "a"])
    (['a', 'b', 'a.1'], ["column 3 is called 'a' as well: it is 'a.1' here"])
    """
    distinct: list[str] = []
    notes = []
    taken, seen, repeats = set(names), set(), dict.fromkeys(names, 0)
    for number, name in enumerate(names, start=1):
        shown = name
        if name in seen:
            while shown in taken:
                repeats[name] += 1
                shown = f"{name}.{repeats[name]}"
            taken.add(shown)
            notes.append(f"column {number} is called {name!r} as well: it is {shown!r} here")
        seen.add(name)
        distinct.append(shown)
    more = [f"{len(notes) - 3} more columns have the name of another one"] if notes[3:] else []
    return distinct, notes[:3] + more


def time_at(
    columns: Columns, rows: list[list[bytes]], chosen: list[int], reading: Reading
) -> int | None:
    """The column that says when rows came: that of the model, or the first that holds dates.

    Its dates must rise from row to row, with few exceptions.
    """
    others = sorted(set(range(columns.n_columns)) - set(chosen))
    if columns.names is not None and reading.model_times in columns.names:
        at = columns.names.index(str(reading.model_times))
        return at if at in others else None
    for at in others:
        if rows and date_of_cell(rows[0][at]) is not None:
            return at if rising([date_of_cell(row[at]) for row in rows]) else None
    return None


def _other_dates(columns: Columns, rows: list[list[bytes]], chosen: list[int]) -> str | None:
    """The first column of dates whose order of day, month and year may be one or another."""
    for at in sorted(set(range(columns.n_columns)) - set(chosen)):
        if rows and all(_OTHER_DATE.match(unquoted(row[at])) for row in rows):
            return repr(columns.names[at]) if columns.names else str(at + 1)
    return None


def date_of_cell(text: bytes) -> datetime | None:
    """The date in a cell; None if there is none."""
    return date_of(unquoted(text).decode("ascii", "replace"))


def first_line_tells(first: list[bytes], cells: Cells, reading: Reading) -> bool:
    """Whether the first line alone determines the columns: a pipe may have no more yet."""
    kinds = {cells.kind(text) for text in first}
    mixed = kinds >= {Kind.NUMBER, Kind.TEXT} or _counts_up(first, [[b"0.5"]], cells)
    if reading.header is None and mixed:
        return False
    named = reading.model_features is not None and Kind.TEXT in kinds
    return reading.columns is not None or named or reading.model_width == len(first)


def has_header(
    first: list[bytes], rows: list[list[bytes]], cells: Cells
) -> tuple[bool, str | None]:
    """Whether the first line holds names, with a note if that is a guess."""
    kinds = [cells.kind(text) for text in first]
    below = [kind_of([row[i] for row in rows], cells) for i in range(len(first))]
    # The first cell of a text column decides nothing; that of a numeric column does.
    telling = [kinds[i] for i in range(len(first)) if below[i] is not Kind.TEXT]
    if Kind.TEXT in telling or (Kind.TEXT in kinds and Kind.NUMBER not in telling):
        return True, None
    shown = b",".join(first)[:40].decode("utf-8", "backslashreplace")
    if _counts_up([first[i] for i in range(len(first)) if below[i] is not Kind.TEXT], rows, cells):
        return True, f"took the first line ({shown}) for column names"
    if Kind.TEXT in kinds or _are_numbers_of_columns(first):
        return False, f"took the first line ({shown}) for a row of data"
    return False, None


def kind_of(column: list[bytes], cells: Cells) -> Kind:
    """The kind of a column: text only if none of its cells is a number."""
    kinds = {cells.kind(text) for text in column}
    if Kind.NUMBER in kinds:
        return Kind.NUMBER
    return Kind.TEXT if Kind.TEXT in kinds else Kind.MISSING


def features_of(
    columns: Columns, rows: list[list[bytes]], cells: Cells, model_width: int | None
) -> tuple[list[int], list[str]]:
    """The numeric columns without an index, and notes about the others."""
    everything = list(range(columns.n_columns))
    if model_width == columns.n_columns:
        return everything, []
    notes = []
    by_column = list(zip(*rows, strict=True)) or [()] * columns.n_columns
    text = [i for i in everything if kind_of(list(by_column[i]), cells) is Kind.TEXT]
    index = index_column(columns, list(by_column[0]), cells, model_width)
    if index is not None:
        notes += [index] if index else []
        text = [i for i in text if i > 0]
    if text:
        shown = ", ".join(columns.names[i] if columns.names else str(i + 1) for i in text[:5])
        more = f" and {len(text) - 5} more" if len(text) > 5 else ""
        notes.append(f"not numbers, so not features: column {shown}{more}")
    without = {*text, *([] if index is None else [0])}
    return [i for i in everything if i not in without], notes


def index_column(
    columns: Columns, first_column: list[bytes], cells: Cells, model_width: int | None
) -> str | None:
    """A note (possibly empty) if the first column is an index; None if it is not."""
    if columns.n_columns < 2:
        return None
    if columns.names is not None:
        name = columns.names[0].strip()
        if not name:
            return ""  # as pandas writes an index
        saved = name.startswith("Unnamed: 0") or (name == "index" and _counts(first_column, cells))
        return f"took column {name!r} for an index" if saved else None
    values = [_value(text, cells) for text in first_column]
    if _counts(first_column, cells) and (
        values[0] in (0.0, 1.0) or model_width == columns.n_columns - 1
    ):
        return "took column 1, which counts the rows, for an index"
    return None


def _counts(column: list[bytes], cells: Cells) -> bool:
    """Whether a column counts the rows."""
    values = [_value(text, cells) for text in column]
    return len(values) >= ENOUGH_TO_COUNT and all(
        value == values[0] + i for i, value in enumerate(values)
    )


def _counts_up(first: list[bytes], rows: list[list[bytes]], cells: Cells) -> bool:
    """Whether the first line is 0, 1, 2 … as pandas numbers columns, or years above numbers.

    A line 1, 2, 3 … may also be data: it counts only with four columns, and fractions below.
    """
    names = first[1:] if first and not first[0].strip() else first  # after an index
    values = [_value(text, cells) for text in names]
    if len(values) < 2 or any(value != values[0] + i for i, value in enumerate(values)):
        return False
    if not all(unquoted(text).isdigit() for text in names):
        return False
    below = [_value(text, cells) for row in rows[:20] for text in row]
    fractions = any(math.isfinite(value) and value != int(value) for value in below)
    if values[0] == 0.0:
        return fractions or len(values) >= 4 or len(names) < len(first)
    many = values[0] == 1.0 and len(values) >= 4
    return fractions and (many or 1000.0 <= values[0] <= 9000.0)


def _are_numbers_of_columns(first: list[bytes]) -> bool:
    """Whether the first line is 0, 1, 2 … or 1, 2, 3 …, which might be names."""
    counted = [str(start + at).encode() for start in (0, 1) for at in range(len(first))]
    return len(first) > 2 and first in (counted[: len(first)], counted[len(first) :])


def _value(text: bytes, cells: Cells) -> float:
    try:
        return cells.value(text)
    except ValueError:
        return math.nan
