"""Merging of models that went on from the same start: see `omfb.core.merge`.

Revisions turn the codes of a model and change its noise. `Model.turn` knows by how much, so what a
part has learned is brought back to codes and units of the start, where evidence adds up; the noise
is then the parts' average. A feature i has the precision f_i S, f its share of the average count:

    c_i = c_i⁰ + Σ a_l f_i^l (c_i^l − c_i⁰) S_l S⁻¹ / f_i

What parts have put into S without rows, their priors, counts once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..conformal import rescaled
from ..evidence import Evidence, Fading, MergeError, check_start, merge_states
from ..linalg.rows import gram
from .state import MOST_PASSES, Matrix, Model, Vector, inverse, rarity_of
from .step import next_batch

# Sums in which rows fade, and that neither turns nor units change.
FADED = ("counts", "n_rows", "freedom")
# What a histogram loses with each checked row is 2 / (their number + 50): see `check`.
CHECKS_BEFORE = 48.0


def merge(start: Model, parts: Sequence[Model]) -> Model:
    """One model from models that went on from the same start, each with rows of its own.

    Parameters
    ----------
    start : Model
        With ``forget_factor=1``: where rows are forgotten their order matters, and parts have none.
    parts : sequence of Model
        What `learn` made of it.
    """
    return merge_states(start, parts, gather, merged)


def gather(start: Model, part: Model) -> Evidence:
    """What a part has learned since its start, in codes and units of the start."""
    _check(start, part)
    n_rows, kept = part.n_seen - start.n_seen, part.kept / start.kept
    fading = Fading.of(_weight(start), kept, n_rows)
    revised = not np.array_equal(part.turn, start.turn)
    before = _Sums(_certain(start) if revised else start)
    now = _Sums(part, start if revised else None)
    change = (now.C - start.C) @ now.S / rarity_of(part.counts)[:, None]
    weighted = {
        name: getattr(now, name) - kept * getattr(before, name)
        for name in ("S", "prior", "unsure", "weight", "errors", "energy")
    }
    weighted |= {name: getattr(part, name) - kept * getattr(start, name) for name in FADED}
    weighted["change"] = change
    left = _left(start.checked, part.checked)
    counted = {
        name: getattr(part, name) - getattr(start, name)
        for name in ("n_entries", "checked", "outliers")
    }
    counted |= {
        "parts": 1,
        "revised": int(revised),
        "gappy": int(part.gappy),
        "fractions": (start.whole & ~part.whole).astype(int),
        "varied": (start.constant & (part.varied | ~part.constant)).astype(int),
        "histogram": now.histogram - left * start.histogram,
        "trial": part.trial - left * start.trial,
        "judged": part.judged[0] - start.judged[0],
        "recent": part.judged[1],
        "first": _moments(part.first) - _moments(start.first),
        "log_noise": n_rows * np.log(part.noise / start.noise),
    }
    weighted = {name: value / fading.mean for name, value in weighted.items()}
    return Evidence(n_rows, n_rows * fading.exponent, weighted, counted)


def merged(start: Model, evidence: Evidence) -> Model:
    """The start with what its parts have learned, revised: a new period begins."""
    n_rows, counted = evidence.n_rows, evidence.counted
    if n_rows == 0:
        return start
    fading = Fading(_weight(start), evidence.fading / n_rows, n_rows)
    start = _certain(start) if counted["revised"] else start
    kept = fading.kept
    weighted = {name: fading.mean * value for name, value in evidence.weighted.items()}
    S = kept * start.S + weighted["S"]
    counts = kept * start.counts + weighted["counts"]
    change = weighted["change"] * rarity_of(counts)[:, None]
    S_once = S - weighted["prior"]
    C = (start.C @ S + change) @ inverse(S_once)
    C = np.ascontiguousarray(C, start.C.dtype)
    left = _left(start.checked, start.checked + counted["checked"])
    together = replace(
        start, C=C, C_codes=None, G=gram(C), S=S_once, counts=counts,
        **{
            name: kept * getattr(start, name) + weighted[name]
            for name in ("unsure", "weight", "errors", "energy", "n_rows", "freedom")
        },
        held=kept * start.held,
        kept=kept * start.kept,
        n_seen=start.n_seen + n_rows,
        n_entries=start.n_entries + counted["n_entries"],
        period_left=0,
        gappy=counted["gappy"] > 0,
        histogram=np.maximum(left * start.histogram + counted["histogram"], 0.0),
        trial=left * start.trial + counted["trial"],
        checked=start.checked + counted["checked"],
        judged=np.array(
            [start.judged[0] + counted["judged"], counted["recent"] / counted["parts"]]
        ),
        outliers=start.outliers + counted["outliers"],
        whole=start.whole & (counted["fractions"] == 0),
        varied=counted["varied"] > 0,
        first=_about_means(_moments(start.first) + counted["first"]),
        memory=None,
    )  # fmt: skip
    return next_batch(_with_noise(together, np.exp(counted["log_noise"] / n_rows)))


def _certain(start: Model) -> Model:
    """The start, as it goes into a revision: what codes were unsure of is part of S."""
    S = start.S.copy()
    S[:-1, :-1] += start.unsure
    return replace(start, S=S, unsure=np.zeros_like(start.unsure), weight=0.0)


def _with_noise(model: Model, change: Vector) -> Model:
    """The model, its units those of a noise that has changed by so much."""
    usual = _usual(change)
    return replace(
        model,
        C=(model.C / change[:, None]).astype(model.C.dtype),
        noise=model.noise * change,
        errors=model.errors / np.array([change**2, np.ones_like(change)]),
        energy=model.energy / usual**2,
        histogram=model.histogram if usual == 1.0 else rescaled(model.histogram, 1.0 / usual),
    )


def _usual(change: Vector) -> float:
    return float(np.exp(np.mean(np.log(change))))


class _Sums:
    """Sums of a model in the codes and units of a start; in its own if there is none."""

    def __init__(self, model: Model, start: Model | None = None) -> None:
        r = model.n_components
        T, scale = np.eye(r + 1), np.ones(len(model.C))
        if start is not None:
            T[:] = np.linalg.solve(start.turn, model.turn)
            scale = model.noise / start.noise
        usual = _usual(scale)
        self.S: Matrix = T @ model.S @ T.T
        self.C: Matrix = (model.C * scale[:, None]) @ np.linalg.inv(T)
        self.prior: Matrix = model.held * (T / model.v) @ T.T
        self.unsure: Matrix = T[:r, :r] @ model.unsure @ T[:r, :r].T
        self.weight = model.weight
        self.errors: Matrix = model.errors * np.array([scale**2, np.ones_like(scale)])
        self.energy = model.energy * usual**2
        self.histogram: Vector = (
            model.histogram if start is None else rescaled(model.histogram, usual)
        )


def _check(start: Model, part: Model) -> None:
    forget_factor = start.config.forget_factor
    if forget_factor < 1.0:
        raise MergeError(
            f"with forget_factor={forget_factor:g} old rows are forgotten, and rows of several models "
            f"have no common order: only models with forget_factor=1 can be merged"
        )
    if not np.array_equal(start.known, part.known):
        which = int(np.flatnonzero(start.known != part.known)[0])
        raise MergeError(
            f"feature {which} was first observed after the start, so its units differ: give a "
            f"start that has seen every feature"
        )
    check_start(
        part.C.shape == start.C.shape
        and part.C.dtype == start.C.dtype
        and part.config == start.config
        and (part.seed, part.pass_rows) == (start.seed, start.pass_rows)
        and part.n_seen >= start.n_seen
        and part.checked >= start.checked
        and 0.0 < part.kept <= start.kept
        and np.array_equal(part.center, start.center)
        and np.array_equal(part.unit, start.unit)
        and np.array_equal(part.masks, start.masks)
    )


def _weight(start: Model) -> float:
    """What the rows so far count beside the next one."""
    rows = float(start.n_seen)
    if start.pass_rows > 0:
        rows = min(rows, MOST_PASSES * start.pass_rows)
    return rows + start.head_start


def _left(checked: int, after: int) -> float:
    """What more checked rows have left of a histogram: the product of 1 − 2 / (checked + 50)."""
    a, b = checked + CHECKS_BEFORE, after + CHECKS_BEFORE
    return a * (a + 1.0) / (b * (b + 1.0))


def _moments(first: Matrix) -> Matrix:
    """Counts, sums and sums of squares, which add up."""
    count, mean, squares = first
    return np.array([count, count * mean, squares + count * mean**2])


def _about_means(moments: Matrix) -> Any:
    """Counts, means and sums of squares about them."""
    count, total, squares = moments
    mean = total / np.maximum(count, 1.0)
    return np.array([count, mean, np.maximum(squares - count * mean**2, 0.0)])
