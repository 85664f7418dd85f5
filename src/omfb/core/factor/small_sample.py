"""At the end of a fit: columns of a short table with few entries are no surer than these allow.

The noise of a feature begins with that of the others, and its loadings follow whatever entries it
has. Beside features that explain each other well, one with three entries then seems as well
explained as they are, though nothing of its own shows it. So a share of its variance counts as
noise: 1 / (1 + (n / 10)³) after n entries, and nothing once it has 40, or half as many as the
others. The deviation itself comes from those n entries, so it is stretched as Student's t is beside
the normal.

Of a stream, and of tables that are not looked at as a whole, nobody knows how many entries there
were: `Model.counts` fade.
"""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..blocks import dense_with_holes
from ..linalg.rows import gram
from .state import State, evolve
from .stats import Vector

# Entries that show half of what there is to show, and those that show all of it.
HALF, ENOUGH = 10.0, 40.0
# Where the tails of Student's t are compared with the normal's: of intervals of 90 %.
TAIL = 0.95


def doubted(state: State, X: Any) -> State:
    """The model, with more noise for features of which its whole table X has few entries."""
    extra = unproven(state, (~np.isnan(dense_with_holes(X))).sum(axis=0))
    if not extra.any():
        return state
    change = np.hypot(1.0, extra / state.params.noise_std)
    C = (state.params.C / change[:, None]).astype(state.params.C.dtype)
    errors = state.stats.residual_sums / np.array([change**2, np.ones_like(change)])
    return evolve(
        state, C=C, G=gram(C), noise_std=state.params.noise_std * change, residual_sums=errors
    )


def unproven(state: State, n: Vector) -> Vector:
    """The deviation of each feature that its own n entries have not shown to be explained."""
    deviation = np.zeros(len(n))
    enough = min(ENOUGH, 0.5 * float(n.mean()))
    few = state.features.known & (n > 0) & (n < enough)
    if state.config.noise != "diagonal" or not few.any():
        return deviation
    n = n[few]
    share = _unshown(n) - _unshown(enough)
    # One entry has no deviation: its size stands for it, and is trusted as that of two.
    stretch = stdtrit(np.maximum(n - 1.0, 1.0), TAIL) / stdtrit(np.inf, TAIL)
    deviation[few] = state.params.scale[few] * stretch * np.sqrt(share * (n + 1.0) / n)
    return deviation


def _unshown(n: Vector | float) -> Vector | float:
    return 1.0 / (1.0 + (n / HALF) ** 3)
