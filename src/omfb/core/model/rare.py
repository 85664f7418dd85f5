"""Features with few entries: how far off a filled value may be, beside what the model says.

The noise of a feature begins with that of the others, and its loadings follow whatever entries it
has. Beside features that explain each other well, one with three entries then seems as well
explained as they are, though nothing of its own shows it. So a share of its variance counts as
unexplained: 1 / (1 + (n / 10)³) after n entries, and nothing once it has 40, or half as many
as the others. The deviation itself comes from those n entries, so it is stretched as Student's t is
beside the normal.
"""

import numpy as np
from scipy.special import stdtrit

from .state import Model, Vector

# Entries that show half of what there is to show, and those that show all of it.
HALF, ENOUGH = 10.0, 40.0
# Where the tails of Student's t are compared with the normal's: of intervals of 90 %.
TAIL = 0.95
# Degrees of freedom of one entry, which has no deviation: its size stands for it.
LEAST_FREEDOM = 1.0


def unproven(model: Model) -> Vector:
    """The deviation of each feature that no entries of its own have shown to be explained."""
    n, deviation = model.counts, np.zeros(len(model.counts))
    enough = min(ENOUGH, 0.5 * float(n.mean()))
    few = model.known & (n > 0.0) & (n < enough)
    if model.settings.noise != "feature" or not few.any():
        return deviation
    n = n[few]
    share = _unshown(n) - _unshown(enough)
    freedom = np.maximum(n - 1.0, LEAST_FREEDOM)
    stretch = stdtrit(freedom, TAIL) / stdtrit(np.inf, TAIL)
    deviation[few] = model.unit[few] * stretch * np.sqrt(share * (n + 1.0) / n)
    return deviation


def _unshown(n: Vector | float) -> Vector | float:
    return 1.0 / (1.0 + (n / HALF) ** 3)
