"""Merging of states that went on from the same start (`omfb.core.evidence`).

M-steps change the basis of the codes and the noise of the features. `Params.basis_change` keeps
track of the former, so what a part has learned is brought back to the basis and units of the start,
where statistics add up; the noise is then the average of the parts'. A feature i has the precision
f_i S, f its coverage:

    c_i = c_i⁰ + Σ a_l f_i^l (c_i^l − c_i⁰) S_l S⁻¹ / f_i

What parts have put into S without rows, their priors, counts once.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..conformal import rescaled
from ..evidence import Evidence, Fading, MergeError, check_start, merge_states
from .features import revert_features
from .holdout_scores import ROWS_BEFORE
from .state import State, evolve, settled
from .stats import Matrix, Stats, Vector, inverse
from .step import coverage_of, next_batch

STATS = tuple(each.name for each in fields(Stats))


def merge(start: State, parts: Sequence[State]) -> State:
    """One state from states that went on from the same start, each with rows of its own.

    Parameters
    ----------
    start : State
        With ``forget_factor=1``: where rows are forgotten their order matters, and parts have none.
    parts : sequence of State
        What `step` made of it.
    """
    return merge_states(start, parts, gather, merged)


def gather(start: State, part: State) -> Evidence:
    """What a part has learned since its start, in the basis and units of the start."""
    start, part = settled(start), settled(part)
    part = revert_features(part, start)
    _check(start, part)
    n_rows = part.n_seen - start.n_seen
    kept = part.stats.start_weight / start.stats.start_weight
    fading = Fading.of(_weight(start), kept, n_rows)
    updated = not np.array_equal(part.params.basis_change, start.params.basis_change)
    before = _certain(start) if updated else start
    stats, C, prior = _in_start_units(part, start) if updated else _own(part)
    weighted: dict[str, Any] = {
        name: getattr(stats, name) - kept * getattr(before.stats, name) for name in STATS
    }
    weighted["prior"] = prior - kept * _own(before)[2]
    weighted["change"] = (C - start.params.C) @ stats.S / coverage_of(part)[:, None]
    weighted = {name: value / fading.mean for name, value in weighted.items()}
    counted = _counted(start, part, updated, n_rows)
    return Evidence(n_rows, n_rows * fading.exponent, weighted, counted)


def _counted(start: State, part: State, updated: bool, n_rows: int) -> dict[str, Any]:
    """Sums in which rows do not fade, or fade by the number of scored rows."""
    left = _left(start.holdout.n_scored, part.holdout.n_scored)
    noise = part.params.noise_std / start.params.noise_std
    histogram = part.holdout.histogram
    if updated:
        histogram = rescaled(histogram, _typical(noise))
    mine, theirs = part.features, start.features
    return {
        "parts": 1,
        "updated": int(updated),
        "has_missing": int(part.schedule.has_missing),
        "n_entries": part.schedule.n_entries - start.schedule.n_entries,
        "n_scored": part.holdout.n_scored - start.holdout.n_scored,
        "n_dropped": part.outliers.n_dropped - start.outliers.n_dropped,
        "fractions": (theirs.integer & ~mine.integer).astype(int),
        "varied": (theirs.constant & (mine.varied | ~mine.constant)).astype(int),
        "histogram": histogram - left * start.holdout.histogram,
        "votes": part.outliers.votes - left * start.outliers.votes,
        "sse": part.holdout.sse[0] - start.holdout.sse[0],
        "recent": part.holdout.sse[1],
        "pending": _raw_moments(mine.pending_moments) - _raw_moments(theirs.pending_moments),
        "log_noise": n_rows * np.log(noise),
    }


def merged(start: State, evidence: Evidence) -> State:
    """The start with what its parts have learned, after an M-step."""
    n_rows, counted = evidence.n_rows, evidence.counted
    if n_rows == 0:
        return start
    start = settled(start)
    fading = Fading(_weight(start), evidence.fading / n_rows, n_rows)
    start = _certain(start) if counted["updated"] else start
    weighted = {name: fading.mean * value for name, value in evidence.weighted.items()}
    kept = start.stats.fade(fading.kept)
    stats = Stats(**{name: getattr(kept, name) + weighted[name] for name in STATS})
    together = evolve(start, stats=stats, last_seen=np.zeros(0, np.int64))
    change = weighted["change"] * coverage_of(together)[:, None]
    S = stats.S - weighted["prior"]
    C = (start.params.C @ stats.S + change) @ inverse(S)
    C = np.ascontiguousarray(C, start.params.C.dtype)
    together = evolve(
        together, C=C, C_batch=None, S=S, prior_weight=kept.prior_weight,
        start_weight=kept.start_weight, update_left=0, temporal=None,
    )  # fmt: skip
    together = _with_counted(together, n_rows, counted)
    together = _with_noise(together, np.exp(counted["log_noise"] / n_rows))
    # After M-steps of their own, codes of the parts tell nothing of the start's components.
    return next_batch(together, shrink=not counted["updated"])


def _with_counted(start: State, n_rows: int, counted: dict[str, Any]) -> State:
    holdout, outliers, features = start.holdout, start.outliers, start.features
    left = _left(holdout.n_scored, holdout.n_scored + counted["n_scored"])
    sse = np.array([holdout.sse[0] + counted["sse"], counted["recent"] / counted["parts"]])
    pending = _raw_moments(features.pending_moments) + counted["pending"]
    return evolve(
        start,
        n_seen=start.n_seen + n_rows,
        n_entries=start.schedule.n_entries + counted["n_entries"],
        has_missing=counted["has_missing"] > 0,
        histogram=np.maximum(left * holdout.histogram + counted["histogram"], 0.0),
        n_scored=holdout.n_scored + counted["n_scored"],
        sse=sse,
        votes=left * outliers.votes + counted["votes"],
        n_dropped=outliers.n_dropped + counted["n_dropped"],
        integer=features.integer & (counted["fractions"] == 0),
        varied=counted["varied"] > 0,
        pending_moments=_central_moments(pending),
    )


def _certain(start: State) -> State:
    """The start as it goes into an M-step: the covariances of codes are part of S."""
    S = start.stats.S.copy()
    S[:-1, :-1] += start.stats.code_cov_sum
    nothing = np.zeros_like(start.stats.code_cov_sum)
    return evolve(start, S=S, code_cov_sum=nothing, code_cov_weight=0.0)


def _own(state: State) -> tuple[Stats, Matrix, Matrix]:
    """Statistics, dictionary and prior of S as they are."""
    stats, params = state.stats, state.params
    return stats, params.C, stats.prior_weight * np.diag(1.0 / params.v)


def _in_start_units(part: State, start: State) -> tuple[Stats, Matrix, Matrix]:
    """Statistics, dictionary and prior of S in the basis and units of a start."""
    params = part.params
    T = np.asarray(np.linalg.solve(start.params.basis_change, params.basis_change), np.float64)
    scale = params.noise_std / start.params.noise_std
    stats = part.stats.rotate(T).rescale(1.0 / scale)
    C = (params.C * scale[:, None]) @ np.linalg.inv(T)
    return stats, C, stats.prior_weight * (T / params.v) @ T.T


def _with_noise(state: State, change: Vector) -> State:
    """The state in units of a noise that has changed."""
    params, typical = state.params, _typical(change)
    histogram = state.holdout.histogram
    return evolve(
        state,
        C=(params.C / change[:, None]).astype(params.C.dtype),
        noise_std=params.noise_std * change,
        stats=state.stats.rescale(change),
        histogram=histogram if typical == 1.0 else rescaled(histogram, 1.0 / typical),
    )


def _typical(change: Vector) -> float:
    return float(np.exp(np.mean(np.log(change))))


def _check(start: State, part: State) -> None:
    forget_factor = start.config.forget_factor
    if forget_factor != 1.0:
        raise MergeError(
            f"with forget_factor={forget_factor!r} old rows are forgotten, and rows of several "
            f"models have no common order: only models with forget_factor=1 can be merged"
        )
    if start.schedule.extra_weight != part.schedule.extra_weight:
        raise MergeError(
            "its rows had weights, and parts of such rows do not add up: learn them one after the "
            "other"
        )
    if not np.array_equal(start.features.known, part.features.known):
        which = int(np.flatnonzero(start.features.known != part.features.known)[0])
        raise MergeError(
            f"feature {which} was first observed after the start, so its units differ: give a "
            f"start that has seen every feature"
        )
    mine, theirs = part.params, start.params
    check_start(
        mine.C.shape == theirs.C.shape
        and mine.C.dtype == theirs.C.dtype
        and part.config == start.config
        and (part.seed, part.schedule.pass_rows) == (start.seed, start.schedule.pass_rows)
        and part.n_seen >= start.n_seen
        and part.holdout.n_scored >= start.holdout.n_scored
        and 0.0 < part.stats.start_weight <= start.stats.start_weight
        and np.array_equal(mine.center, theirs.center)
        and np.array_equal(mine.scale, theirs.scale)
        and np.array_equal(part.holdout.masks, start.holdout.masks)
    )


def _weight(start: State) -> float:
    """What the rows so far count beside the next one."""
    rows, schedule = float(start.n_seen), start.schedule
    if schedule.pass_rows > 0:
        rows = min(rows, start.config.hyper.max_passes_weight * schedule.pass_rows)
    return rows + schedule.head_start


def _left(scored: int, after: int) -> float:
    """What more scored rows leave of a histogram: the product of 1 − 2 / (scored + 50)."""
    a, b = scored + ROWS_BEFORE - 2.0, after + ROWS_BEFORE - 2.0
    return a * (a + 1.0) / (b * (b + 1.0))


def _raw_moments(central: Matrix) -> Matrix:
    """Counts, sums and sums of squares, which add up, from moments about the mean."""
    count, mean, squares = central
    return np.array([count, count * mean, squares + count * mean**2])


def _central_moments(raw: Matrix) -> Matrix:
    """Counts, means and sums of squares about them."""
    count, total, squares = raw
    mean = total / np.maximum(count, 1.0)
    return np.array([count, mean, np.maximum(squares - count * mean**2, 0.0)])
