"""What hidden entries (`hide`) tell of a model.

They are filled from the rest of their rows, and nothing that fills them has seen them. So these
errors are honest. They tell how wide intervals must be (the histogram of |error| over predicted
deviation is a *conformal* one), how large the error is, whether tails are heavy and whether it
helps to drop outliers.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conformal import BINS_PER_OCTAVE, LOWEST, N_BINS, binned
from ..linalg.rows import gram
from .e_step import codes_of, variances_of
from .holdout import Hidden, hide, owners
from .state import Matrix, Model, Vector
from .whiten import Whitened
from .winsorize import hold_back

# Checked rows after which an error has lost most of its weight in what is said of the last rows.
RECENT_ROWS = 50
# Entries beyond so many deviations, and which share of them makes tails heavy (normal: 0.006 %).
FAR, HEAVY_SHARE, FIRST_CHECKS = 4.0, 0.002, 50
# Rows that are judged together where that is done anew.
TOGETHER = 256
# Errors beyond this cannot be squared.
SQUARED = -1e150, 1e150
# Deviations from what the rest of its row says that make an entry an outlier; what dropping them
# must be worth on average, from −1 to 1, and how many standard errors that must be above zero.
OUTLIER, WORTH, SURE = 6.0, 0.03, 2.0


def judge_hidden(model: Model, hidden: Hidden | None) -> Model:
    """The model with what the hidden entries of some rows tell."""
    if hidden is None:
        return model
    C = model.coding.astype(np.float64, copy=False)
    shown, (starts, which, truth), turn = hidden
    n, owner = len(turn), owners(hidden.away)
    rows = Whitened(len(C), None, None, np.diff(shown.starts), hold_back(model, shown))
    codes = codes_of(model, rows, limit=outlier_limit(model), keep_covariances=True)
    variance = variances_of(model, codes.X, codes.covariances, starts, which)
    size, weight = (model.noise / model.unit)[which], 1.0 / np.diff(starts)
    errors = truth - _made(C, which, codes.X[owner])
    of_mean = truth - model.one * C[which, -1]
    if model.drops:  # outliers that were hidden are nobody's fault
        size = np.where(np.abs(errors) > OUTLIER * np.sqrt(variance), 0.0, size)
    fades = 1.0 - 2.0 / (model.checked + np.arange(n) + 50.0)
    left = np.append(np.cumprod(fades[:0:-1])[::-1], 1.0)[turn]  # of a row, after those behind it
    histogram = np.prod(fades) * model.histogram
    histogram += binned(np.abs(errors) / np.sqrt(variance), (left * weight)[owner])
    now = [weight * np.bincount(owner, (e * size) ** 2, n) for e in (errors, of_mean)]
    fade = 1.0 - 1.0 / RECENT_ROWS
    recent = fade**n * model.judged[1] + [float(np.sum(fade ** (n - 1 - turn) * e)) for e in now]
    judged = np.array([model.judged[0] + np.sum(now, axis=1), recent])
    trial = _votes(model, C, hidden, rows, codes.X) if model.looks else model.trial
    return replace(
        model, histogram=histogram, judged=judged, trial=trial, checked=model.checked + n
    )


def _votes(model: Model, C: Matrix, hidden: Hidden, rows: Whitened, X: Matrix) -> Vector:
    """Votes on dropping outliers, with those of more rows, whose codes as it is done now are X."""
    (_, which, truth), turn, owner = hidden.away, hidden.turn, owners(hidden.away)
    size, n = (model.noise / model.unit)[which], len(turn)
    other = codes_of(model, rows, limit=None if model.drops else OUTLIER).X
    plain, dropping = (
        np.bincount(owner, np.clip((truth - _made(C, which, X[owner])) * size, *SQUARED) ** 2, n)
        for X in ((other, X) if model.drops else (X, other))
    )
    vote = (plain - dropping) / np.maximum(plain + dropping, 1e-300)
    fade = 1.0 - 2.0 / (model.checked + 50.0)
    left = fade ** (n - 1 - turn)
    return fade**n * model.trial + [np.sum(left), np.sum(left * vote), np.sum(left * vote**2)]


def _made(C: Matrix, which: NDArray[np.int32], X: Matrix) -> Vector:
    """What codes, one for each of the features `which`, make of them."""
    return np.einsum("ij,ij->i", C[which], X)


def outlier_limit(model: Model) -> float | None:
    """Beyond how many deviations an entry counts as missing; None where none does."""
    return OUTLIER if model.drops else None


def looking(model: Model) -> Model:
    """The model, with what it does about outliers in the batch to come.

    At first they are if the head held spikes. They are looked for where more entries were far off
    than a normal law allows. Heavy tails alone are no reason to drop any: a peak that many features
    share is far from what is usual, too. So entries are dropped only where that fills what was
    hidden better.
    """
    far = float(model.histogram[int(BINS_PER_OCTAVE * (np.log2(FAR) + LOWEST)) :].sum())
    heavy = far > HEAVY_SHARE * float(model.histogram.sum())
    count, votes, squares = model.trial
    worth = votes > max(WORTH * count, SURE * float(np.sqrt(squares)))
    if model.checked < FIRST_CHECKS:  # nothing is known yet but what the head showed
        return model
    asked = model.config.robust
    return replace(model, looks=bool(asked and heavy), drops=bool(asked and worth))


def judged_anew(model: Model, X: Any) -> Model:
    """The model of which only what rows of X hide now was judged."""
    fresh = replace(
        model, histogram=np.zeros(N_BINS), judged=np.zeros((2, 2)), checked=0, C_codes=None,
        G=gram(model.C), looks=False,
    )  # fmt: skip
    for start in range(0, X.shape[0], TOGETHER):
        part = X[start : start + TOGETHER]
        fresh = judge_hidden(fresh, hide(fresh, part, look_at_all=True)[1])
    return fresh
