"""Names of omfb 0.1 that are elsewhere now: importing one says where."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "omfb.baselines": "omfb.paper.competitors",
    "omfb.codes": "omfb.core.encode",
    "omfb.estimator": "omfb.estimators.omfb",
    "omfb.experiments": "omfb.paper.experiments (report: omfb.report; reproducing: omfb.paper)",
    "omfb.factorizer": "omfb.estimators.base",
    "omfb.frames": "omfb.estimators.frames",
    "omfb.parameters": "omfb.estimators.parameters",
    "omfb.pieces": "omfb.core.blocks",
    "omfb.plots.Curve": "omfb.paper.figures.Curve",
    "omfb.plots.atoms_figure": "omfb.paper.figures.atoms_figure",
    "omfb.plots.error_figure": "omfb.paper.figures.error_figure",
    "omfb.plots.inline_svg": "omfb.report.drawing.inline_svg",
    "omfb.plots.pictures_figure": "omfb.paper.figures.pictures_figure",
    "omfb.plots.render": "omfb.report.drawing.render",
    "omfb.plots.snr_figure": "omfb.paper.figures.snr_figure",
    "omfb.saving": "omfb.learner.snapshot",
    "omfb.start": "omfb.core.start",
    "omfb.state": "omfb.core.state (Rule: omfb.core.rule)",
    "omfb.storage": "omfb.persistence",
    "omfb.streams.choosing": "omfb.formats.columns",
    "omfb.streams.columnar": "omfb.formats.parquet",
    "omfb.streams.delimited": "omfb.formats.csv",
    "omfb.streams.is_stream": "omfb.formats.is_stream",
    "omfb.streams.ndjson": "omfb.formats.ndjson",
    "omfb.streams.open_stream": "omfb.formats.open_stream",
    "omfb.streams.opening": "omfb.formats.opening",
    "omfb.training": "omfb.learner.fit_stream",
    "omfb.updates": "omfb.core.step",
}


class _Finder:
    """Comes last: asked only for what no other finder has found."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise an ImportError for what has moved."""
        refuse(name, ModuleNotFoundError)
        return None


def refuse(name: str, error: type[Exception]) -> None:
    """Raise the error, with the new place, if the name has moved."""
    if name in MOVED:
        raise error(f"{name} of omfb 0.1 is now {MOVED[name]}.")


def install() -> None:
    """Let imports of what has moved say where it is."""
    if not any(type(finder).__qualname__ == _Finder.__qualname__ for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
