"""Merging: states that went on from the same start, each with rows of its own, become one.

C S is the sum of y xᵀ, so what rows tell adds up. With S₀ and C₀ the start, of which part l has
kept k_l, n_l its rows and n all of them, and a_l, K as in `omfb.core.evidence`,

    S = K S₀ + Σ a_l (S_l − k_l S₀),   C = C₀ + Σ a_l (C_l − C₀) S_l S⁻¹
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..evidence import Evidence, Fading, MergeError, check_start, merge_states
from ..linalg.rows import gram, inverse_of
from .state import State


def merge(start: State, parts: Sequence[State]) -> State:
    """One state of the rule from states that went on from the same start.

    Parameters
    ----------
    start : State
        With ``forget_factor=1`` and ``shrink=0``: others keep nothing that adds up.
    parts : sequence of State
        What `step` made of it, each with rows of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import omfb
    >>> from omfb.core.broyden.merge import merge
    >>> Y = np.random.default_rng(0).random((100, 20))
    >>> start = omfb.init(Y, n_components=3, seed=0)
    >>> merge(start, [omfb.step(start, rows)[0] for rows in (Y[:50], Y[50:])]).n_seen
    100
    """
    return merge_states(start, parts, gather, merged)


def gather(start: State, part: State) -> Evidence:
    """What a part has learned since its start."""
    _check_rule(start)
    n_rows = part.n_seen - start.n_seen
    check_start(
        n_rows >= 0
        and part.C.shape == start.C.shape
        and part.C.dtype == start.C.dtype
        and part.config == start.config
        and (part.scale, part.least_ridge) == (start.scale, start.least_ridge)
        and 0.0 < part.kept <= start.kept
    )
    kept = part.kept / start.kept
    fading = Fading.of(start.weight, kept, n_rows)
    change = (part.C.astype(np.float64) - start.C) @ part.S
    return Evidence(
        n_rows,
        n_rows * fading.exponent,
        {"S": (part.S - kept * start.S) / fading.mean, "change": change / fading.mean},
        {},
    )


def merged(start: State, evidence: Evidence) -> State:
    """The start with what its parts have learned."""
    n_rows = evidence.n_rows
    fading = Fading(start.weight, evidence.fading / max(n_rows, 1), n_rows)
    S = fading.kept * start.S + fading.mean * evidence.weighted["S"]
    C = start.C + fading.mean * evidence.weighted["change"] @ inverse_of(S)
    C = C.astype(start.C.dtype)
    return replace(
        start, C=C, G=gram(C), S=S, code=None, n_seen=start.n_seen + n_rows, drift=0,
        kept=fading.kept * start.kept,
    )  # fmt: skip


def _check_rule(start: State) -> None:
    if start.config.forget_factor != 1.0:
        raise MergeError(
            f"forget_factor={start.config.forget_factor:g} keeps nothing that adds up: only models with forget_factor=1 "
            f"can be merged"
        )
    if start.config.shrink > 0.0:
        raise MergeError(
            f"shrink={start.config.shrink:g} would count once for each model: only models with "
            f"shrink=0, or with none given, can be merged"
        )
