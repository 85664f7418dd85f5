"""Rows with their holes filled, with or without learning from them."""

from typing import Any


class Filler:
    """Fills the holes of rows by a model; with `learn`, the model learns from each row.

    Row by row, a learning filler gives what it gives block by block: each row is filled by the
    dictionary that has learned from all rows up to it.
    """

    def __init__(self, model: Any, learn: bool) -> None:
        self.model, self.learn = model, learn
        self.dtype = model._state.C.dtype

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
            filled[holes] = self.model.complete(rows)[holes]
        return filled

    def one(self, row: Any) -> Any:
        """What the model makes of one row (1, n_features), observed entries included."""
        from ..learner.fit_stream import learn_and_complete

        row = row.astype(self.dtype, copy=False)
        if self.learn:
            return learn_and_complete(self.model, row)
        return self.model._decode(self.model._encode(row)[0])
