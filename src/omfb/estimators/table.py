"""What an imputer remembers of the table that it was fitted to."""

from dataclasses import dataclass
from typing import Any, Self

from ..core.require import require


@dataclass(frozen=True, slots=True)
class Table:
    """Facts about a fitted table, replaced as a whole.

    Attributes
    ----------
    columns : tuple or None
        Names of all columns, features or not; None if it had no names.
    """

    columns: tuple[Any, ...] | None = None

    def header(self) -> dict[str, Any]:
        """The facts as JSON can hold them."""
        columns = self.columns
        named = columns is not None and all(type(column) is str for column in columns)
        return {"columns": list(columns or ()) if named else None}

    @classmethod
    def of_header(cls, header: Any) -> Self:
        """The facts from a file; a ValueError if nobody can have written them."""
        columns = header["columns"]
        if columns is not None:
            fit = type(columns) is list and all(type(column) is str for column in columns)
            require(fit, "its columns are not names")
            columns = tuple(columns)
        return cls(columns)
