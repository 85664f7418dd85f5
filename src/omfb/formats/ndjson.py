"""Lines of JSON: an object (`null` or an absent key is missing) or a list of numbers in each."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError
from .columns import Columns, choose
from .delimited import RowError, parse_lines, texts_of

# The first whole number that no float is near; whole numbers are compared exactly.
_TOO_LARGE = 2**1024 - 2**970
_NUMBERS = frozenset([int, float, type(None)])
# The strings of a line, so as to step over them, and what stands for a missing number.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|null|NaN|[\[\]{}]')


@dataclass(frozen=True)
class Ndjson:
    """How the lines of one stream are to be read.

    Attributes
    ----------
    feature_names : list of str or None
        The keys that are features, in the model's order; None if each line is a list.
    n_columns : int
        Entries of a line that is a list.
    chosen : list of int
        The entries of a list that are features.
    strict : bool
        Whether other keys are an error: they are while the features come from the first line.
    """

    feature_names: list[str] | None
    n_columns: int
    chosen: list[int]
    strict: bool

    header_lines = 0

    def is_blank(self, line: bytes) -> bool:
        """Whether a line is no row."""
        return not line.strip()

    def parse(self, chunk: bytes) -> NDArray[np.float64]:
        """The rows of whole lines, NaN where missing."""
        return parse_lines(chunk, self)

    def parse_line(self, line: bytes, row: int = 0) -> list[float]:
        """The chosen values of one line."""
        values = self._values(_loaded(line, row), row)
        if not _NUMBERS.issuperset(map(type, values)):
            raise self._error(values, row)
        try:
            numbers = [math.nan if value is None else float(value) for value in values]
        except OverflowError:
            raise self._error(values, row) from None
        if any(map(math.isinf, numbers)):
            raise self._error(values, row)
        return numbers

    def _values(self, loaded: Any, row: int) -> list[Any]:
        if self.feature_names is None:
            if not isinstance(loaded, list) or len(loaded) != self.n_columns:
                what = f"not a list of {self.n_columns} numbers; each line must be one"
                raise RowError(row, None, what)
            return [loaded[i] for i in self.chosen]
        if not isinstance(loaded, dict):
            raise RowError(row, None, 'not an object; each line must be one, like {"a": 1.5}')
        if self.strict and not loaded.keys() <= set(self.feature_names):
            key = next(key for key in loaded if key not in self.feature_names)
            what = "a key that the first line does not have; name all features by --columns"
            raise RowError(row, repr(key), what)
        return [loaded.get(name) for name in self.feature_names]

    def _error(self, values: list[Any], row: int) -> RowError:
        for at, value in enumerate(values):
            known = type(value) in _NUMBERS
            if not known or (value is not None and abs(value) >= _TOO_LARGE):
                name = repr(self.feature_names[at]) if self.feature_names else str(at + 1)
                shown = json.dumps(value)[:40]
                kind = "infinite" if known else "not a number"
                return RowError(row, name, f"{shown} is {kind}; use null where a value is missing")
        raise AssertionError("no value is at fault")

    def fill(self, line: bytes, which: Any, values: Any) -> bytes:
        """The line with missing numbers written in, and no other character changed."""
        numbers = (number.decode() for number in texts_of(values))
        filled = dict(zip(which.tolist(), numbers, strict=True))
        text = line.decode()
        if self.feature_names is None:
            holes = {self.chosen[feature]: number for feature, number in filled.items()}
            return _fill_list(text, holes, self.n_columns).encode()
        named = {self.feature_names[feature]: number for feature, number in filled.items()}
        return _fill_object(text, named).encode()


def detect(first: bytes, name: str, columns: str | None, wanted: list[str] | None = None) -> Ndjson:
    """How to read a stream, from its first line; `wanted` are the features of a model."""
    try:
        loaded = _loaded(first, 0)
    except RowError as error:
        raise DataError(f"{name}: row 1: {error.what}.") from None
    if isinstance(loaded, dict):
        if columns is not None:
            keys = [key.strip() for key in columns.split(",")]
            if len(set(keys)) < len(keys) or "" in keys:
                raise DataError(f"{name}: --columns must name each key once.")
        elif not loaded and wanted is None:
            raise DataError(f"{name}: row 1 has no keys. Name the features by --columns.")
        else:
            keys = list(loaded) if wanted is None else wanted
        strict = columns is None and wanted is None
        return Ndjson(keys, len(keys), list(range(len(keys))), strict)
    if isinstance(loaded, list):
        chosen = choose(Columns(name, len(loaded), None), columns, None)
        return Ndjson(None, len(loaded), chosen, True)
    raise DataError(f"{name}: row 1 is neither an object nor a list. Each line must be one.")


def _loaded(line: bytes, row: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        what = f"not JSON ({str(error)[:80]}); write each row on a line of its own"
        raise RowError(row, None, what) from None


def _fill_list(text: str, holes: dict[int, str], count: int) -> str:
    """Write numbers over the `holes` of a flat list."""
    start, end = text.index("[") + 1, text.rindex("]")
    parts = text[start:end].split(",")
    if len(parts) != count:  # a string or a list inside: give up its layout, not its contents
        parts = [json.dumps(value, ensure_ascii=False) for value in json.loads(text)]
    for at, number in holes.items():
        bare = parts[at].strip()
        parts[at] = parts[at].replace(bare, number) if bare else number
    return text[:start] + ",".join(parts) + text[end:]


def _fill_object(text: str, named: dict[str, str]) -> str:
    """Write numbers over the nulls of the top level, and add keys that are absent."""
    parts, written, at, depth, key = [], set(), 0, 0, ""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        elif depth == 1 and token[0] == '"':
            key = token
        elif depth == 1 and (name := json.loads(key)) in named:
            parts += [text[at : match.start()], named[name]]
            at = match.end()
            written.add(name)
    parts.append(text[at:])
    absent = [name for name in named if name not in written]
    if not absent:
        return "".join(parts)
    body = "".join(parts)
    end = body.rindex("}")
    added = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {named[name]}" for name in absent)
    comma = ", " if body[:end].strip() != "{" else ""
    return body[:end] + comma + added + body[end:]
