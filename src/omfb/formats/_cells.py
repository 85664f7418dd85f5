"""Text cells: numbers, missing values, and other text."""

import math
import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from .reading import Reading

MISSING = frozenset([b"", b"NA", b"N/A", b"NaN", b"nan", b"NAN", b"null", b"NULL"])

# What people write into cells that are not known, without other letters and marks around.
WORDS = frozenset(["n/a", "na", "n.a.", "n.a", "nil", "none", "missing", "unknown", "nd", "n.d."])

_MARKED = re.compile(rb"[+-]?(\d+,\d+|\d{1,3}([.,' ]\d{3})+([.,]\d+)?)")


class Kind(Enum):
    """The kind of a cell or a column."""

    MISSING, NUMBER, TEXT = range(3)


@dataclass(frozen=True)
class Cells:
    """How cells are read and written.

    Attributes
    ----------
    missing : frozenset of bytes
        Texts that stand for a missing value.
    missing_numbers : tuple of float
        Numbers that stand for a missing value.
    decimal, thousands : bytes
    """

    missing: frozenset[bytes] = MISSING
    missing_numbers: tuple[float, ...] = ()
    decimal: bytes = b"."
    thousands: bytes = b""

    @classmethod
    def of(cls, reading: Reading) -> "Cells":
        """The cells that the user's options describe."""
        missing = MISSING | {text.encode() for text in reading.missing}
        decimal, thousands = reading.decimal.encode(), reading.thousands.encode()
        return cls(missing, reading.missing_numbers, decimal, thousands)

    @cached_property
    def plain(self) -> bool:
        """Whether numbers are in Python's notation."""
        return self.decimal == b"." and not self.thousands

    def value(self, text: bytes) -> float:
        """The value of a cell, NaN if missing; a ValueError if it is not a finite number."""
        if text in self.missing:
            return math.nan
        bare = unquoted(text)
        if bare in self.missing:
            return math.nan
        value = float(bare if self.plain else self._as_python(bare))
        if math.isinf(value) or b"_" in text:  # Python reads 1_000 as a number; others do not
            raise ValueError
        return math.nan if value in self.missing_numbers else value

    def kind(self, text: bytes) -> Kind:
        """The kind of a cell; infinity and numbers with other marks count as numbers."""
        try:
            return Kind.MISSING if math.isnan(self.value(text)) else Kind.NUMBER
        except ValueError:
            return Kind.NUMBER if is_infinite(text) or has_marks(text) else Kind.TEXT

    def written(self, number: bytes, delimiter: bytes) -> bytes:
        """A number in Python's notation as it is written between delimiters."""
        if self.decimal == b".":
            return number
        text = number.replace(b".", self.decimal)
        return b'"' + text + b'"' if delimiter in text else text

    def without_groups(self, chunk: bytes) -> bytes | None:
        """The chunk without marks between digit groups; None if some mark is not one of these."""
        if not self.thousands or self.thousands not in chunk:
            return chunk
        changed, count = self._group.subn(b"", chunk)
        return changed if count == chunk.count(self.thousands) else None

    @cached_property
    def _group(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?<=\d)%b(?=\d{3}(?!\d))" % re.escape(self.thousands))

    def _as_python(self, text: bytes) -> bytes:
        plain = self.without_groups(text)
        if plain is None or (self.decimal != b"." and b"." in plain):
            raise ValueError
        return plain.replace(self.decimal, b".")


def has_marks(text: bytes) -> bool:
    """Whether a cell looks like a number with other marks, such as 1,5 or 1'000."""
    return _MARKED.fullmatch(unquoted(text)) is not None


def may_mean_missing(text: bytes) -> bool:
    """Whether a cell that is no number looks like a word or mark for a missing value."""
    bare = unquoted(text).decode("utf-8", "replace")
    return not any(map(str.isalnum, bare)) or bare.lower().strip("#<>*") in WORDS


def unquoted(text: bytes) -> bytes:
    """The content of a quoted cell; other cells without surrounding space."""
    text = text.strip()
    if len(text) >= 2 and text.startswith(b'"') and text.endswith(b'"'):
        text = text[1:-1].replace(b'""', b'"').strip()
    return text


def is_infinite(text: bytes) -> bool:
    """Whether a cell is infinity, or a number that overflows to it."""
    try:
        return math.isinf(float(unquoted(text)))
    except ValueError:
        return False
