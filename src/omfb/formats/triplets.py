"""Ratings from delimited text: lines of user, item, rating and, optionally, time."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from ..streams.base import DataError
from .compression import compression_of, open_compressed

SEPARATORS = ("::", "\t", ";", "|", ",")
CHUNK = 1 << 20
# What `columns_of_ratings` looks at, and which numbers are few.
SAMPLE, FEWEST_ROWS, MOST_DIFFERENT = 500, 10, 20
RATING_NAMES = ("rating", "ratings", "score", "stars", "vote")
PARTS = ("user", "item", "rating", "time")


class Triplets(NamedTuple):
    """Columns of ratings, as they were written; `times` is None if there are none."""

    users: list[Any]
    items: list[Any]
    ratings: list[Any]
    times: list[Any] | None


def id_of(text: str) -> int | str:
    """An identifier in text: a whole number, if it is written as one is, or the text."""
    digits = text[1:] if text[:1] == "-" else text
    is_whole = digits.isascii() and digits.isdigit() and (digits[0] != "0" or text == "0")
    return int(text) if is_whole and len(digits) < 19 else text


def read_triplets(path: Path, columns: Sequence[str | int] | None = None) -> Triplets:
    """The ratings in a CSV or TSV file, which may be compressed.

    Parameters
    ----------
    path : Path
        Cells are separated by commas, semicolons, tabs, ``|`` or ``::``.
    columns : sequence of str or int, or None
        User, item, rating and, optionally, time: names of the header, or numbers from 1. None is
        the first three columns, and the fourth if that is the last.
    """
    stream: Any = open_compressed(path) if compression_of(path) else path.open("rb")
    with closing(stream):
        return triplets_of(_lines(stream), str(path), columns)


def triplets_of(
    lines: Iterable[bytes], name: str, columns: Sequence[str | int] | None = None
) -> Triplets:
    """See `read_triplets`; `name` is what errors call the file."""
    rows = _rows(lines, name)
    number, first = next(rows, (0, None))
    if first is None:
        raise DataError(f"{name}: no ratings: the file is empty.")
    header, places = _places(first, columns, name)
    parts: list[list[Any]] = [[] for _ in places]
    width = len(first)
    if not header:
        _add(parts, places, first, width, name, number)
    for number, row in rows:
        _add(parts, places, row, width, name, number)
    if not parts[0]:
        raise DataError(f"{name}: no ratings: there is a header only.")
    users, items = ([id_of(text) for text in part] for part in parts[:2])
    return Triplets(users, items, parts[2], parts[3] if len(parts) == 4 else None)


def columns_of_ratings(path: Path) -> list[str] | None:
    """The columns of user, item and rating, if the first lines of a text file look like these.

    The first two columns are whole numbers or text, in pairs that are there once, of which one
    side repeats; the third has numbers, and is called so or has few different ones.
    """
    if "".join(path.suffixes[:1]).lower() not in (".csv", ".tsv", ".dat", ".txt", ".data"):
        return None
    try:
        stream: Any = open_compressed(path) if compression_of(path) else path.open("rb")
        with closing(stream):
            rows = [row for _, row in islice(_rows(_lines(stream), str(path)), SAMPLE)]
    except (DataError, OSError):
        return None
    if len(rows) < FEWEST_ROWS or {len(row) for row in rows} not in ({3}, {4}):
        return None
    header = None if _is_number(rows[0][2]) else rows.pop(0)
    pairs = {(row[0], row[1]) for row in rows}
    sides = [{row[at] for row in rows} for at in (0, 1)]
    are_ids = not any(
        _is_number(cell) and isinstance(id_of(cell), str) for cell in sides[0] | sides[1]
    )
    repeated = min(map(len, sides)) < len(rows) == len(pairs)
    if not are_ids or not repeated or not all(_is_number(row[2]) for row in rows):
        return None
    few = len({row[2] for row in rows}) <= MOST_DIFFERENT
    named = header is not None and header[2].lower() in RATING_NAMES
    if not (named or few):
        return None
    return header[:3] if header is not None else ["1", "2", "3"]


def _lines(stream: Any) -> Iterator[bytes]:
    """The lines of a stream that can only `read`."""
    rest = b""
    while chunk := stream.read(CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _rows(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the numbers of their lines."""
    texts = (line.decode() for line in lines)
    try:
        first = next(texts, "").removeprefix("\ufeff")
        separator = separator_of(first)
        everything = chain([first], texts)
        if separator == "::":  # the csv module takes single characters only
            rows: Any = (line.rstrip("\r\n").split("::") for line in everything)
        else:
            rows = csv.reader(everything, delimiter=separator)
        for number, row in enumerate(rows, 1):
            if any(cell.strip() for cell in row):
                yield number, [cell.strip() for cell in row]
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not a text file ({error.reason}); save it as UTF-8.") from None
    except csv.Error as error:
        raise DataError(f"{name}: cannot be read as CSV ({error}).") from None


def separator_of(line: str) -> str:
    """The first separator that makes three cells of a line, or a comma."""
    return next((mark for mark in SEPARATORS if line.count(mark) >= 2), ",")


def _places(
    first: list[str], columns: Sequence[str | int] | None, name: str
) -> tuple[bool, list[int]]:
    """Whether the first row is a header, and the places of user, item, rating and time."""
    if columns is None:
        if not 3 <= len(first) <= 4:
            raise DataError(
                f"{name}: {len(first)} columns: say which are user, item, rating and, optionally, "
                f"time", "columns",
            )  # fmt: skip
        places = list(range(len(first)))
    else:
        places = [_place(column, first, name) for column in columns]
    by_name = columns is not None and any(str(column) in first for column in columns)
    return by_name or not _is_number(first[places[2]]), places


def _place(column: str | int, first: list[str], name: str) -> int:
    if isinstance(column, str) and first.count(column) == 1:
        return first.index(column)
    number = int(column) if str(column).isdecimal() else 0
    if not 1 <= number <= len(first):
        among = ", ".join(first[:8]) + (", …" if len(first) > 8 else "")
        raise DataError(f"{name}: no column {column!r}; its first line is: {among}.")
    return number - 1


def _add(
    parts: list[list[Any]], places: list[int], row: list[str], width: int, name: str, number: int
) -> None:
    if len(row) != width:
        raise DataError(f"{name}: line {number} has {len(row)} cells instead of {width}.")
    for which, (part, place) in enumerate(zip(parts, places, strict=True)):
        cell = row[place]
        if which == 2 and not _is_number(cell):
            raise DataError(f"{name}: line {number}: {cell[:40]!r} is not a rating.")
        if not cell:
            raise DataError(f"{name}: line {number}: no {PARTS[which]}.")
        part.append(float(cell) if which == 2 else cell)


def _is_number(text: str) -> bool:
    try:
        return float(text) - float(text) == 0.0 and "_" not in text
    except ValueError:
        return False
