"""Hostile iterators: blocks of different widths and kinds, endings, errors of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import hostile_array
from .frames import hostile_frame
from .models import WIDTH, content, demand_sound, fresh, good_rows
from .sparse import hostile_sparse
from .trial import ACCEPTED, CHANGED, REFUSED, attempt, demand


class OwnError(Exception):
    """What the user's own code raises: it must come out as it is."""


def try_iterator(rng: np.random.Generator, folder: Path) -> list[str]:
    """Fit a model to what a hostile iterator brings."""
    model = fresh(rng).set_params(max_iter=int(rng.integers(1, 3)))
    if rng.random() < 0.5:
        model.partial_fit(good_rows()[:9])
    before = content(model)
    how = {0: iter, 1: Again}[int(rng.integers(2))]
    try:
        outcome, _ = attempt(lambda: model.fit(how(_blocks(rng))))
    except OwnError:
        outcome = REFUSED
    if outcome is not ACCEPTED:
        demand(content(model) == before, CHANGED, "a fit was refused, and changed the model")
    else:
        demand_sound(model)
    return [outcome]


class Again:
    """Can be asked for its blocks more than once."""

    def __init__(self, blocks: Iterator[Any]) -> None:
        self._blocks = list(_until_error(blocks))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._blocks)


def _until_error(blocks: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from blocks
    except OwnError:
        return


def _blocks(rng: np.random.Generator) -> Iterator[Any]:
    for _ in range(rng.integers(0, 6)):
        kind = rng.random()
        if kind < 0.4:
            yield good_rows()[rng.integers(9) : rng.integers(9, 20)]
        elif kind < 0.5:
            yield good_rows()[rng.integers(9)]
        elif kind < 0.7:
            yield hostile_array(rng)
        elif kind < 0.8:
            yield hostile_sparse(rng)
        elif kind < 0.9:
            yield hostile_frame(rng)
        elif kind < 0.97:
            yield {f"f{i}": float(i) for i in range(WIDTH)}
        else:
            raise OwnError
