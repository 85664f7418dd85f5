"""When codes get a new dictionary (batches), and when everything else is estimated anew (M-steps).

The codes of a *batch* come from the dictionary at its start, so a batch is a few matrix products. A
young dictionary changes fast, so batches begin short. An *M-step* estimates noise, variances and
basis from many rows: estimates from few are worse than what was there.
"""

from .config import FactorConfig

# With a forget factor, a batch is at most this share of the effective window.
BATCH_OF_WINDOW = 0.25


def batch_rows(
    n_seen: int, has_missing: bool, config: FactorConfig, forget_factor: float | None = None,
    share: float = 1.0,
) -> int:  # fmt: skip
    """Rows of a batch that begins after `n_seen`; by default with the config's forget factor.

    They observe this share of the features. Where that is a small one, batches are longer: what is
    done for all features between two of them costs the same for each entry, however many there are.
    """
    if forget_factor is None:
        forget_factor = config.fixed_forget_factor
    hyper = config.hyper
    first, last = hyper.first_batch, hyper.last_batch
    least, most = (first, last) if has_missing else (last, hyper.longest_batch)
    rows = min(max(int(n_seen * hyper.batch_fraction) // first * first, least), most)
    rows = max(rows, _rows_with(hyper.batch_entries, share))
    if forget_factor < 1.0:
        rows = min(rows, max(1, round(BATCH_OF_WINDOW / (1.0 - forget_factor))))
    return rows


def _rows_with(entries: float, share: float) -> int:
    """Rows with so many entries for each feature, on average."""
    return int(entries / max(share, 1e-9))


def least_update_rows(share: float, config: FactorConfig) -> int:
    """Fewest rows between M-steps, if rows observe this share of the features."""
    return max(config.hyper.least_update, _rows_with(config.hyper.update_entries, share))


def update_rows(
    n_seen: int, n_components: int, batch: int, config: FactorConfig, share: float = 1.0
) -> int:
    """Rows until the M-step after the next, in whole batches of a length.

    A quarter of the rows before it, within 4 to 16 rows for each component; where nothing is
    forgotten at least a sixteenth of them, as slow changes need no frequent M-steps.
    """
    hyper = config.hyper
    least, most = (max(hyper.least_update, each * n_components) for each in hyper.update_rows)
    rows = min(max(n_seen // 4, least), most)
    if config.fixed_forget_factor == 1.0:
        rows = max(rows, n_seen // 16)
    rows = max(rows, least_update_rows(share, config))
    return -(-rows // batch) * batch


def fading(missing: float, n_components: int, config: FactorConfig) -> tuple[float, float]:
    """How fast early rows lose weight, and how many must come before they begin to.

    Missing entries slow the alternation between codes and dictionary down, so what was learned at
    first is worse, and is forgotten faster.
    """
    complete, gappy = config.hyper.fade
    share = min(1.0, 10.0 * missing)
    head_start = max((5.0 - 4.0 * share) * n_components, 50.0)
    return complete + (gappy - complete) * share, head_start
