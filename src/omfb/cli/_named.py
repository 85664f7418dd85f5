"""`omfb fit --new-features`: objects whose keys may come and go, learned in one pass."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import StoppedError, StopSignal, UsageError, say

if TYPE_CHECKING:
    from ..estimators.base import BaseFactorizer

# Rows that are learned together.
TOGETHER = 64


def check_named(source: Any, model: "BaseFactorizer", others: dict[str, Any]) -> None:
    """Refuse data without keys, and options that have no meaning for rows that come once."""
    from ..formats.ndjson import JsonLines

    lines = getattr(source, "lines", None)
    if not isinstance(lines, JsonLines) or lines.feature_names is None:
        raise UsageError(
            f"--new-features is for objects with keys (NDJSON), and {source.name} holds none"
        )
    if "new_features" not in model.get_params():
        raise UsageError("--new-features: --estimator omfb has a fixed number of features")
    unused = [name for name, value in others.items() if value not in (None, False, (), [])]
    if unused:
        raise UsageError(f"{unused[0]} is not for --new-features: drop one of them")


def learn_named(model: "BaseFactorizer", source: Any, stop: StopSignal) -> None:
    """Learn from the objects of a file or pipe, in their order."""
    from ..streams import DataError

    done = 0
    waiting: list[dict[str, float]] = []

    def learn() -> None:
        nonlocal done
        try:
            model.partial_fit(waiting)
        except (TypeError, ValueError) as error:
            what = f"rows {done + 1} to {done + len(waiting)}"
            raise DataError(f"{source.name}: {what}: {error}") from None
        done += len(waiting)
        waiting.clear()
        if stop.requested:
            raise StoppedError(f"interrupted after {done} rows; no model was written")

    for row in _objects(source):
        waiting.append(row)
        if len(waiting) == TOGETHER:
            learn()
    if waiting:
        learn()
    if done == 0:
        raise DataError(f"{source.name}: no rows.")


def report_named(model: "BaseFactorizer", output: Any) -> None:
    """Say what the model knows."""
    say(f"{output}: {model.n_features_in_} features of {model.n_samples_seen_} rows")


def _objects(source: Any) -> Iterator[dict[str, float]]:
    """Each line's entries that are numbers."""
    from ..formats._text import RowError, located, whole_lines

    rows = lines = 0
    for chunk in source.chunks():
        for line in whole_lines(chunk):
            if not source.lines.is_blank(line):
                try:
                    yield source.lines.entries(line)
                except RowError as error:
                    raise located(error, source.name, rows, lines) from None
                rows += 1
            lines += 1
