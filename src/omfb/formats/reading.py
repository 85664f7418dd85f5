"""How to read a table: the options of `open_stream` and the command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..streams.base import DataError

Names = str | Sequence[str | int] | None


@dataclass(frozen=True)
class Reading:
    """The options of `open_stream`, validated.

    Attributes
    ----------
    columns : tuple of str or None
        The columns that are features: names, patterns (``temp_*``), numbers from 1 or ranges.
    exclude : tuple of str
        Columns that are not, in the same notation.
    header : bool or None
        Whether the first line of a text file holds names; None detects it.
    missing : tuple of str
        Further values that stand for a missing one.
    decimal : str
        The decimal mark of text.
    thousands : str
        The mark between groups of digits in text; empty if there is none.
    model_features : list of str or None
        The features of a model, which are looked up by name if there are names.
    model_width : int or None
        Number of features of the model.
    model_times : str or None
        The column that held the times of the model's rows.
    on_idle : callable or None
        Called from time to time while a pipe is silent; it may raise to end the wait.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    header: bool | None = None
    missing: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    model_features: list[str] | None = None
    model_width: int | None = None
    model_times: str | None = None
    on_idle: Callable[[], None] | None = None

    @classmethod
    def of(
        cls, *, columns: Names = None, exclude: Names = None, missing: Any = None,
        decimal: str = ".", thousands: str | None = None, **more: Any,
    ) -> "Reading":  # fmt: skip
        """Options as a user writes them."""
        thousands = thousands or ""
        if len(decimal) != 1 or decimal.isdigit() or decimal in '+-"':
            raise DataError(f"a decimal mark is one character, not {decimal!r}.", "decimal")
        if len(thousands) > 1 or thousands.isdigit() or thousands in ('"', "+", "-", decimal):
            raise DataError(
                f"digits can be grouped by one character other than the decimal mark, not by "
                f"{thousands!r}.", "thousands",
            )  # fmt: skip
        return cls(
            columns=None if columns is None else _parts(columns),
            exclude=() if exclude is None else _parts(exclude),
            missing=() if missing is None else _parts(missing),
            decimal=decimal,
            thousands=thousands,
            **more,
        )

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The numbers that stand for a missing value, so that -999 also matches -999.0."""
        return tuple(number for text in self.missing if (number := _number(text)) is not None)

    @property
    def cells(self) -> list[str]:
        """The options that change the values of cells, as a JSON value."""
        return [self.decimal, self.thousands, *self.missing]

    @property
    def chooses(self) -> bool:
        """Whether the user chooses columns."""
        return self.columns is not None or bool(self.exclude)


def _parts(given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        given = given.split(",")
    elif isinstance(given, int | float):
        given = [given]
    return tuple(str(part).strip() for part in given)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
