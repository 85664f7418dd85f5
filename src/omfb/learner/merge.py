"""Merge learners that continued from the same start."""

from collections.abc import Sequence
from dataclasses import replace

from ..core.evidence import MergeError, merge_states
from ..core.info import Info
from .learner import Learner
from .lineage import Lineage, digest_of, joined


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
    lineage = _checked_lineage(start, parts)
    ends = [part.learned for part in parts]
    states = [end.state for end in ends]
    state = merge_states(learned.state, states, engine.evidence, engine.merge)
    residual, energy = (
        max(before + sum(after - before for after in afters), 0.0)
        for before, *afters in zip(learned.totals, *(end.totals for end in ends), strict=True)
    )
    merged = replace(learned, state=state, totals=Info(residual, energy), last=ends[-1].last)
    return Learner.from_snapshot(replace(start.snapshot(), learned=merged, lineage=lineage))


def _checked_lineage(start: Learner, parts: Sequence[Learner]) -> Lineage:
    """The lineage of the merged model.

    Refuse parts that have not gone on from the start, and rows that would count twice: what two of
    the parts have in common must be in the start.
    """
    origin = start.snapshot().remembered()
    whole = [part.snapshot().remembered() for part in parts]
    digest = digest_of(start.state)
    if digest is not None and any(digest not in lineage for lineage in whole):
        raise MergeError(
            "they have no common start: each must have continued from the very model that is given "
            "as the start, or from a copy of it"
        )
    counted = set(origin)
    for lineage in whole:
        if counted & set(lineage) - set(origin):
            raise MergeError(
                "a model is given twice, or with one that has continued from it, so "
                "that its rows would count twice"
            )
        counted |= set(lineage)
    return joined(origin, *whole)
