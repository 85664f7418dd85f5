"""How a table is to be read: what `open_stream` and the command line can ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..streams.base import DataError

Names = str | Sequence[str | int] | None


@dataclass(frozen=True)
class Reading:
    """The options of `open_stream`, checked.

    Attributes
    ----------
    columns : tuple of str or None
        The columns that are features: names, patterns (``temp_*``), numbers from 1 or ranges.
    exclude : tuple of str
        Columns that are not, in the same words.
    header : bool or None
        Whether the first line of a text file holds names; None is to look.
    missing : tuple of str
        What stands for a missing value besides the usual.
    decimal : str
        The decimal mark of text.
    thousands : str
        What groups digits in text; empty if nothing does.
    model_features : list of str or None
        The features of a model, to be found by name where there are names.
    model_width : int or None
        How many features the model has.
    on_idle : callable or None
        Called every now and then while a pipe is silent; it may raise to end the wait.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    header: bool | None = None
    missing: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    model_features: list[str] | None = None
    model_width: int | None = None
    on_idle: Callable[[], None] | None = None

    @classmethod
    def of(
        cls, *, columns: Names = None, exclude: Names = None, missing: Any = None,
        decimal: str = ".", thousands: str | None = None, **more: Any,
    ) -> "Reading":  # fmt: skip
        """The options as a user gives them."""
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
        """What stands for a missing value and is a number, so that -999 is -999.0, too."""
        return tuple(number for text in self.missing if (number := _number(text)) is not None)

    @property
    def cells(self) -> list[str]:
        """What decides on the values of cells, as JSON can hold it."""
        return [self.decimal, self.thousands, *self.missing]

    @property
    def chooses(self) -> bool:
        """Whether the user asks for certain columns."""
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
