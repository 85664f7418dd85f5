"""Merge learners that continued from the same start."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.evidence import MergeError, merge_states
from ..core.info import Info
from .learner import Learner
from .snapshot import Learned


def merge_learners(start: Learner, parts: Sequence[Learner]) -> Learner:
    """A new learner that has learned what all of the parts have.

    Parameters
    ----------
    start : Learner
        The learner that all parts continued from.
    parts : sequence of Learner
    """
    engine, learned = start.engine, start.learned
    if learned.head is not None:
        raise MergeError(
            f"the start has seen {learned.n_seen} rows, too few for its first dictionary to be "
            f"final: let it learn from more rows before parts continue from it"
        )
    for part in parts:
        if (part.engine.name, part.feature_names) != (engine.name, start.feature_names):
            raise MergeError("they have another algorithm, or other features, than the start")
    ends = [part.learned for part in parts]
    states = [end.state for end in ends]
    state = merge_states(learned.state, states, engine.evidence, engine.merge)
    _check_apart(learned, ends)
    residual, energy = (
        max(before + sum(after - before for after in afters), 0.0)
        for before, *afters in zip(learned.totals, *(end.totals for end in ends), strict=True)
    )
    merged = replace(learned, state=state, totals=Info(residual, energy), last=ends[-1].last)
    return Learner.from_snapshot(replace(start.snapshot(), learned=merged))


def _check_apart(start: Learned, ends: Sequence[Learned]) -> None:
    """Refuse parts that are older than the start, and rows that would count twice."""
    for number, end in enumerate(ends):
        if end.n_seen < start.n_seen or (end.n_seen == start.n_seen and not _equal(end, start)):
            raise MergeError(
                "a model has not learned from more rows than the start, and is not the start: all "
                "must have continued from the very model that is given as the start"
            )
        for other in ends[:number]:
            if end.n_seen > start.n_seen and _equal(end, other):
                raise MergeError("a model is given twice, so that its rows would count twice")


def _equal(one: Learned, other: Learned) -> bool:
    if one is other:
        return True
    a, b = one.state, other.state
    if a is None or b is None or a.n_seen != b.n_seen:
        return False
    return bool(np.array_equal(a.C, b.C))
