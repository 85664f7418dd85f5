"""Rows with their holes filled, with or without learning from them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..learner.learner import Learner


class Filler:
    """Fills the holes of rows by a model; with `learn`, the model learns from each row.

    Row by row, a learning filler gives what it gives block by block: each row is filled by the
    dictionary that has learned from all rows up to it.
    """

    def __init__(self, model: "Learner", learn: bool) -> None:
        self.model, self.learn = model, learn
        self.dtype = model.dtype

    def fill(self, rows: Any) -> Any:
        """The rows, filled; the rows given are not changed."""
        import numpy as np

        holes = np.isnan(rows)
        filled = rows.copy()
        if self.learn:
            for number in range(len(rows)):
                made = self.one(rows[number : number + 1])
                filled[number, holes[number]] = made[0, holes[number]]
        elif holes.any():
            filled[holes] = self.model.fill(rows)[holes]
        return filled

    def one(self, row: Any) -> Any:
        """What the model makes of one row (1, n_features), observed entries included."""
        row = row.astype(self.dtype, copy=False)
        if self.learn:
            return self.model.learn_and_fill(row)
        return self.model.decode(self.model.encode(row)[0])
