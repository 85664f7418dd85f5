"""NDJSON: in each line an object (`null` or an absent key is missing) or a list of numbers."""

import json
import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError, Note
from ._cells import Kind
from ._dates import date_of, rising, seconds_of, texts_of_times
from ._lines import LineFormat
from ._text import BYTE_ORDER_MARK, RowError, parse_lines, texts_of, whole_lines
from .columns import Columns, choose, did_you_mean, is_pattern, matching
from .reading import Reading
from .registry import TimeColumn, Writer

# The smallest integer that overflows a float; integers are compared exactly.
_TOO_LARGE = 2**1024 - 2**970
_NUMBERS = frozenset([int, float, type(None)])
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class JsonLines:
    """How to read the lines of one stream.

    Attributes
    ----------
    feature_names : list of str or None
        The keys that are features, in the model's order; None if each line is a list.
    n_columns : int
        Keys of the first object, or entries of a list.
    chosen : list of int
        The entries of a list, or the keys, that are features.
    known : frozenset of str or None
        Keys that may hold numbers; others are an error. None if others are ignored.
    missing : frozenset
        Strings and numbers that stand for a missing value, besides null.
    notes : tuple of Note
    time_column : str or None
        The key of the date by which the rows are in time order.
    zoned : bool
        Whether these dates have a time zone.
    """

    feature_names: list[str] | None
    n_columns: int
    chosen: list[int]
    known: frozenset[str] | None = None
    missing: frozenset[Any] = frozenset()
    notes: tuple[Note, ...] = ()

    time_column: str | None = None
    zoned: bool = False

    header_lines = 0

    @property
    def column_names(self) -> list[str] | None:
        """See `Lines.column_names`."""
        return self.feature_names

    def is_blank(self, line: bytes) -> bool:
        """Whether a line is not a row."""
        return not line.strip()

    def parse(self, chunk: bytes) -> NDArray[np.float64]:
        """See `Lines.parse`."""
        return parse_lines(chunk, self)

    def parse_line(self, line: bytes, row: int = 0) -> list[float]:
        """See `Lines.parse_line`."""
        values = self._values(_loaded(line, row), row)
        if self.missing:
            values = [None if self._is_missing(value) else value for value in values]
        if not _NUMBERS.issuperset(map(type, values)):
            raise self._error(values, row)
        try:
            numbers = [math.nan if value is None else float(value) for value in values]
        except OverflowError:
            raise self._error(values, row) from None
        if any(map(math.isinf, numbers)):
            raise self._error(values, row)
        return numbers

    def new_names(self, line: bytes) -> list[str]:
        """Keys of a line that hold numbers and are no features yet; none if it is no object."""
        loaded = _loaded(line, 0)
        if self.feature_names is None or not isinstance(loaded, dict):
            return []
        known = frozenset(self.feature_names)
        return [
            key for key, value in loaded.items()
            if key not in known and kind_of(value) is Kind.NUMBER and not self._is_missing(value)
        ]  # fmt: skip

    def entries(self, line: bytes) -> dict[str, float]:
        """What a line holds under keys of numbers, features or not; NaN is missing.

        Text is left out where no feature of the first lines is meant.
        """
        loaded = _loaded(line, 0)
        if not isinstance(loaded, dict):
            raise RowError(0, None, 'not an object; each line must be one, like {"a": 1.5}')
        features, found = set(self.feature_names or ()), {}
        for key, value in loaded.items():
            kind = kind_of(value)
            if self._is_missing(value) or kind is Kind.MISSING:
                found[key] = math.nan
            elif kind is Kind.NUMBER:
                if abs(value) >= _TOO_LARGE or math.isinf(value):
                    problem = "infinite; use null where a value is missing"
                    raise RowError(0, repr(key), problem)
                found[key] = float(value)
            elif key in features:
                problem = (
                    f"{json.dumps(value)[:40]} is not a number; use null where a value is missing"
                )
                raise RowError(0, repr(key), problem)
        return found

    def with_names(self, names: list[str]) -> "JsonLines":
        """The same for lines that may have more features."""
        features = [*(self.feature_names or ()), *names]
        return replace(
            self, feature_names=features, n_columns=self.n_columns + len(names),
            chosen=list(range(len(features))),
        )  # fmt: skip

    def _values(self, loaded: Any, row: int) -> list[Any]:
        if self.feature_names is None:
            if not isinstance(loaded, list) or len(loaded) != self.n_columns:
                problem = f"not a list of {self.n_columns} numbers; each line must be one"
                raise RowError(row, None, problem)
            return [loaded[i] for i in self.chosen]
        if not isinstance(loaded, dict):
            raise RowError(row, None, 'not an object; each line must be one, like {"a": 1.5}')
        if self.known is not None and not loaded.keys() <= self.known:
            for key, value in loaded.items():
                if key not in self.known and kind_of(value) is Kind.NUMBER:
                    problem = "a key that the first line does not have; name all features"
                    raise RowError(row, repr(key), problem, "columns")
        return [loaded.get(name) for name in self.feature_names]

    def _is_missing(self, value: Any) -> bool:
        if value is None or (type(value) is float and math.isnan(value)):
            return True
        return type(value) in (int, float, str) and value in self.missing

    def _error(self, values: list[Any], row: int) -> RowError:
        for at, value in enumerate(values):
            known = type(value) in _NUMBERS
            if not known or (value is not None and abs(value) >= _TOO_LARGE):
                name = repr(self.feature_names[at]) if self.feature_names else str(at + 1)
                shown = json.dumps(value)[:40]
                kind = "infinite" if known else "not a number"
                problem = f"{shown} is {kind}; use null where a value is missing"
                return RowError(row, name, problem)
        raise AssertionError("no value is at fault")

    def times(self, chunk: bytes) -> NDArray[np.float64] | None:
        """See `Lines.times`."""
        if self.time_column is None:
            return None
        rows = _loadable([line for line in whole_lines(chunk) if not self.is_blank(line)])
        return np.array([seconds_of(_date(row, self.time_column)) for row in rows])

    def fill(self, line: bytes, which: Any, values: Any) -> bytes:
        """See `Lines.fill`; absent keys are added."""
        numbers = [number.decode() for number in texts_of(values)]
        places = [
            self.chosen[i] if self.feature_names is None else self.feature_names[i]
            for i in which.tolist()
        ]
        filled: dict[Any, str] = dict(zip(places, numbers, strict=True))
        text = line.decode()
        parts, at, written = [], 0, set()
        for place, value, start, end in _spans(text):
            if place in filled and self._is_missing(value):
                parts += [text[at:start], filled[place]]
                at = end
                written.add(place)
        text = "".join([*parts, text[at:]])
        absent = [place for place in filled if place not in written]
        return (_with_keys(text, absent, filled) if absent else text).encode()

    def extend(self, line: bytes, names: list[str], values: Any) -> bytes:
        """See `Lines.extend`; a list has no keys, and gets further entries."""
        text = line.decode()
        numbers = [number.decode() for number in texts_of(values, b"null")]
        if self.feature_names is None:
            end = text.rindex("]")
            return (text[:end] + "".join(f", {number}" for number in numbers) + text[end:]).encode()
        return _with_keys(text, names, dict(zip(names, numbers, strict=True))).encode()

    def extend_header(self, preamble: bytes, names: list[str]) -> bytes:
        """See `Lines.extend_header`: there is no header."""
        return preamble


class Ndjson(LineFormat):
    """One object or list per line."""

    name = "ndjson"
    endings = (".ndjson", ".jsonl")

    def detect(self, sample: list[bytes], name: str, reading: Reading) -> JsonLines:
        """See `LineFormat.detect`; keys and entries without numbers are not features."""
        try:
            first = _loaded(sample[0].removeprefix(BYTE_ORDER_MARK), 0)
        except RowError as error:
            raise DataError(f"{name}: row 1: {error.problem}.") from None
        rows = [first, *_loadable(sample[1:])]
        missing = frozenset([*reading.missing, *reading.missing_numbers])
        if isinstance(first, dict):
            rows = [row for row in rows if isinstance(row, dict)]
            return _objects(first, rows, name, reading, missing)
        if isinstance(first, list):
            rows = [row for row in rows if isinstance(row, list) and len(row) == len(first)]
            kinds = [_column_kind([row[i] for row in rows], missing) for i in range(len(first))]
            usual = [i for i, kind in enumerate(kinds) if kind is not Kind.TEXT]
            if reading.model_width == len(first):
                usual = list(range(len(first)))
            chosen = choose(Columns(name, len(first), None), reading, usual)
            return JsonLines(None, len(first), chosen, missing=missing)
        raise DataError(f"{name}: row 1 is neither an object nor a list. Each line must be one.")

    def recognises(self, first: bytes) -> bool:
        """See `LineFormat.recognises`."""
        return first.lstrip()[:1] in (b"{", b"[")

    def needs_more(self, first: bytes, reading: Reading) -> bool:
        """See `LineFormat.needs_more`: the first object has all keys."""
        return False

    def writer(
        self, stream: Any, names: list[str], dtype: np.dtype[Any], time: TimeColumn | None = None
    ) -> Writer:
        """See `Format.writer`."""
        return NdjsonWriter(stream, names, time)


class NdjsonWriter:
    """One object per line."""

    def __init__(self, stream: Any, names: list[str], time: TimeColumn | None = None) -> None:
        self._stream, self._time = stream, time
        self._keys = [json.dumps(name, ensure_ascii=False).encode() + b": " for name in names]

    def write(self, rows: Any, times: Any = None) -> None:
        """See `Writer.write`."""
        first = [b""] * len(rows)
        if self._time is not None:
            key = json.dumps(self._time.name, ensure_ascii=False)
            texts = texts_of_times(times, self._time.zoned)
            first = [f"{key}: {json.dumps(text)}, ".encode() for text in texts]
        for row, time in zip(rows, first, strict=True):
            pairs = map(operator.add, self._keys, texts_of(row, b"null"))
            self._stream.write(b"{" + time + b", ".join(pairs) + b"}\n")

    def close(self) -> None:
        """See `Writer.close`."""


def _objects(
    first: dict[str, Any], rows: list[Any], name: str, reading: Reading, missing: frozenset[Any]
) -> JsonLines:
    """How to read objects; keys that the user or a model names may be absent at first."""
    there = list(dict.fromkeys(key for row in rows for key in row))
    notes: list[Note] = []
    known = None
    if reading.columns is not None:
        keys = _requested(reading.columns, there, name, notes)
    elif reading.model_features is not None:
        keys = reading.model_features
    elif not first:
        raise DataError(f"{name}: row 1 has no keys. Name the features.", "columns")
    else:
        kinds = {key: _column_kind([row.get(key) for row in rows], missing) for key in first}
        keys = [key for key in first if kinds[key] is not Kind.TEXT]
        known = frozenset(first)
        if len(keys) < len(first):
            others = ", ".join(key for key in first if key not in keys)[:80]
            notes.append(Note(f"{name}: not numbers, so not features: {others}", "columns"))
    excluded = {key for part in reading.exclude for key in _requested((part,), there, name, notes)}
    keys = [key for key in keys if key not in excluded]
    if not keys:
        raise DataError(f"{name}: no key with numbers is left to learn from.")
    n_columns = len({*keys, *first})
    time = _time_key([key for key in first if key not in keys], rows, reading)
    start = None if time is None else _date(rows[0], time)
    zoned = start is not None and start.tzinfo is not None
    chosen = list(range(len(keys)))
    return JsonLines(keys, n_columns, chosen, known, missing, tuple(notes), time, zoned)


def _time_key(others: list[str], rows: list[Any], reading: Reading) -> str | None:
    """The key that says when rows came: that of the model, or the first of a date, if it rises."""
    if reading.model_times in others:
        return reading.model_times
    for key in others:
        if _date(rows[0], key) is not None:
            return key if rising([_date(row, key) for row in rows]) else None
    return None


def _date(row: Any, key: str) -> datetime | None:
    """The date that an object has; None if there is none."""
    text = row.get(key) if isinstance(row, dict) else None
    return date_of(text) if isinstance(text, str) else None


def _requested(parts: tuple[str, ...], there: list[str], name: str, notes: list[Note]) -> list[str]:
    keys = []
    for part in parts:
        if is_pattern(part) and part not in there:
            keys += [there[i] for i in matching(part, there)]
            continue
        if part not in there:
            hint = did_you_mean(part, there)
            notes.append(Note(f"{name}: key {part!r} is in none of the first rows. {hint}".strip()))
        keys.append(part)
    if len(set(keys)) < len(keys) or "" in keys:
        raise DataError(f"{name}: each key must be named once.", "columns")
    return keys


def kind_of(value: Any) -> Kind:
    """The kind of a JSON value; numbers that overflow count as numbers."""
    if value is None or (type(value) is float and math.isnan(value)):
        return Kind.MISSING
    return Kind.NUMBER if type(value) in (int, float) else Kind.TEXT


def _column_kind(values: list[Any], missing: frozenset[Any]) -> Kind:
    kinds = {kind_of(value) for value in values if type(value) is not str or value not in missing}
    if Kind.NUMBER in kinds:
        return Kind.NUMBER
    return Kind.TEXT if Kind.TEXT in kinds else Kind.MISSING


def _loaded(line: bytes, row: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = f"not JSON ({str(error)[:80]}); write each row on a line of its own"
        raise RowError(row, None, problem) from None


def _loadable(lines: list[bytes]) -> Iterator[Any]:
    for line in lines:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):  # an error when the row is read
            continue


def _spans(text: str) -> Iterator[tuple[Any, Any, int, int]]:
    """Each entry of an object or list: its key or index, its value, and the value's position."""
    at = _skip(text, 0)
    is_object = text[at] == "{"
    at = _skip(text, at + 1)
    number = 0
    while text[at] not in "]}":
        place: Any = number
        if is_object:
            place, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        value, end = _DECODER.raw_decode(text, at)
        yield place, value, at, end
        number += 1
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _with_keys(text: str, keys: list[str], numbers: dict[Any, str]) -> str:
    """An object with extra keys at its end."""
    end = text.rindex("}")
    added = ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {numbers[key]}" for key in keys)
    comma = ", " if text[:end].strip() != "{" else ""
    return text[:end] + comma + added + text[end:]
