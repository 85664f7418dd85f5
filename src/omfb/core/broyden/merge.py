"""Merge states that continued from the same start, each with its own rows.

C S is the sum of y xᵀ, so the rows' contributions add up. With S₀ and C₀ the start, of which part l
retains k_l, n_l its rows and n all of them, and a_l, K as in `omfb.core.evidence`,

    S = K S₀ + Σ a_l (S_l − k_l S₀),   C = C₀ + Σ a_l (C_l − C₀) S_l S⁻¹
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..evidence import Evidence, Fading, MergeError, check_start, merge_states
from ..linalg.rows import gram, inverse_of
from .state import State


def merge(start: State, parts: Sequence[State]) -> State:
    """Merge states that continued from the same start into one.

    Parameters
    ----------
    start : State
        With ``forget_factor=1`` and ``shrink=0``: with other values the sums do not add up.
    parts : sequence of State
        Results of `step` from this start, each with its own rows.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.core.broyden.config import BroydenConfig
    >>> from omfb.core.broyden.merge import merge
    >>> from omfb.core.broyden.step import init, step
    >>> Y = np.random.default_rng(0).random((100, 20))
    >>> start = init(Y, 3, BroydenConfig(forget_factor=1), seed=0)
    >>> merge(start, [step(start, rows)[0] for rows in (Y[:50], Y[50:])]).n_seen
    100
    """
    return merge_states(start, parts, gather, merged)


def gather(start: State, part: State) -> Evidence:
    """The sums that a part has added since its start."""
    _check_config(start)
    n_rows = part.n_seen - start.n_seen
    check_start(
        n_rows >= 0
        and part.C.shape == start.C.shape
        and part.C.dtype == start.C.dtype
        and part.config == start.config
        and (part.scale, part.least_ridge) == (start.scale, start.least_ridge)
        and 0.0 < part.start_weight <= start.start_weight
    )
    retained = part.start_weight / start.start_weight
    fading = Fading.of(start.weight, retained, n_rows)
    change = (part.C.astype(np.float64) - start.C) @ part.S
    return Evidence(
        n_rows,
        n_rows * fading.exponent,
        {"S": (part.S - retained * start.S) / fading.mean, "change": change / fading.mean},
        {},
    )


def merged(start: State, evidence: Evidence) -> State:
    """The start with the evidence of its parts added."""
    n_rows = evidence.n_rows
    fading = Fading(start.weight, evidence.fading / max(n_rows, 1), n_rows)
    S = fading.kept * start.S + fading.mean * evidence.weighted["S"]
    C = start.C + fading.mean * evidence.weighted["change"] @ inverse_of(S)
    C = C.astype(start.C.dtype)
    return replace(
        start, C=C, G=gram(C), S=S, code=None, n_seen=start.n_seen + n_rows,
        entries_since_gram=0, start_weight=fading.kept * start.start_weight,
    )  # fmt: skip


def _check_config(start: State) -> None:
    if start.config.forget_factor != 1.0:
        raise MergeError(
            f"forget_factor={start.config.forget_factor:g} keeps no sums that add up: only models "
            f"with forget_factor=1 can be merged"
        )
    if start.config.shrink > 0.0:
        raise MergeError(
            f"shrink={start.config.shrink:g} would count once per model: only models with shrink=0 "
            f"can be merged"
        )
    if start.config.constrains_dictionary:
        raise MergeError(
            "the sums of models with positive_dict or alpha do not satisfy their constraints: only "
            "models without them can be merged"
        )
