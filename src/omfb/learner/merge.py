"""One learner of several that went on from the same start."""

from collections.abc import Sequence
from dataclasses import replace

from ..core.evidence import MergeError, merge_states
from ..core.info import Info
from .learner import Learner


def merge_learners(start: Learner, parts: Sequence[Learner]) -> Learner:
    """A learner that has learned what all of the parts have; they stay as they are.

    Parameters
    ----------
    start : Learner
        What all parts went on from.
    parts : sequence of Learner
    """
    engine, now = start.engine, start.now
    if now.head is not None:
        raise MergeError(
            f"the start has seen {now.n_seen} rows, too few for its first dictionary to be "
            f"settled: let it learn from more rows before parts go on from it"
        )
    for part in parts:
        if (part.engine.name, part.feature_names) != (engine.name, start.feature_names):
            raise MergeError("they are of another kind, or have other features, than the start")
    nows = [part.now for part in parts]
    state = merge_states(now.state, [each.state for each in nows], engine.gather, engine.merged)
    residual, energy = (
        max(before + sum(after - before for after in afters), 0.0)
        for before, *afters in zip(now.totals, *(each.totals for each in nows), strict=True)
    )
    merged = replace(now, state=state, totals=Info(residual, energy), last=nows[-1].last)
    return Learner.from_snapshot(replace(start.snapshot(), now=merged))
