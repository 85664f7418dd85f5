"""When codes get a new dictionary, and when everything else is found anew.

Codes of a *batch* of rows come from the dictionary at its start: so a batch is a few products. A
dictionary that is younger changes faster, so batches begin short. After a *period* the noise, the
components' variances and the basis are revised; that takes many rows, as what is found from few is
worse than what was there.
"""

from .config import FactorConfig

FIRST_BATCH, LAST_BATCH, LONGEST_BATCH = 16, 256, 1024
# A batch is at most this share of the rows before it, a period at most that.
BATCH_SHARE, PERIOD_SHARE = 32, 4
# Of the rows before it, a period is at least this share: what changes slowly is revised seldom.
LONG_PERIOD = 16
# Rows of the first period and of the last, for each component.
FIRST_PERIOD, LAST_PERIOD = 4, 16
LEAST_PERIOD = 64
# Of the rows that a memory which fades holds, at most so many in a batch.
BATCH_OF_WINDOW = 0.25


def batch_rows(n_seen: int, gappy: bool, config: FactorConfig) -> int:
    """Rows of a batch that begins after so many.

    Complete rows learn so fast from any dictionary that their batches need not begin short.
    """
    least, most = (FIRST_BATCH, LAST_BATCH) if gappy else (LAST_BATCH, LONGEST_BATCH)
    rows = min(max(n_seen // BATCH_SHARE // FIRST_BATCH * FIRST_BATCH, least), most)
    if config.forget_factor < 1.0:
        rows = min(rows, max(1, round(BATCH_OF_WINDOW / (1.0 - config.forget_factor))))
    return rows


def period_rows(n_seen: int, n_components: int, whole: int, memory: float) -> int:
    """Rows of a period that begins after so many, in whole batches of a length."""
    first = max(LEAST_PERIOD, FIRST_PERIOD * n_components)
    last = max(LEAST_PERIOD, LAST_PERIOD * n_components)
    rows = min(max(n_seen // PERIOD_SHARE, first), last)
    if memory == 1.0:
        rows = max(rows, n_seen // LONG_PERIOD)
    return -(-rows // whole) * whole


def fading(missing: float, n_components: int) -> tuple[float, float]:
    """How fast early rows lose their weight, and how many must come before they begin to.

    Missing entries slow the alternation between codes and dictionary down, so what was learned at
    first is worse, and should be forgotten faster.
    """
    gappy = min(1.0, 10.0 * missing)
    return 1.0 + gappy, max((5.0 - 4.0 * gappy) * n_components, 50.0)
