"""Run the paper's experiments and write their results: all of `omfb reproduce` but the terminal."""

from html import escape
from pathlib import Path
from typing import Any

from ..report.folder import write_report
from ..report.outcome import Outcome, Track, untracked
from ..report.page import Part
from .experiments import EXPERIMENTS
from .experiments.images import Images
from .report import PAPER, PAPER_ADDRESS, part_of

HEADING = "The paper, reproduced"
QUICK = (
    "A quick run: 3 passes instead of 30 in the first experiment, 1 mask instead of 5 in the "
    "second. Only claims that it can decide are listed; run without --quick for the others."
)


def reproduce(
    names: list[str],
    images: Images,
    folder: Path,
    *,
    quick: bool = False,
    seed: int = 0,
    track: Track[Any] = untracked,
) -> list[Outcome]:
    """Run the experiments and write their results to a folder.

    Parameters
    ----------
    names : list of str
        Keys of `EXPERIMENTS`.
    images : Images
    folder : Path
        It exists; `write_report` tells what is written to it.
    quick : bool, default=False
        Fewer passes and masks.
    seed : int, default=0
    track : callable, default=untracked
        Shows progress.

    Returns
    -------
    outcomes : list of Outcome
    """
    parts = parts_of(names, images, quick=quick, seed=seed, track=track)
    height, width = images.shape
    kind = "quick run" if quick else "full run"
    words = f"{kind} · seed {seed} · {len(images.rows)} images of {height} × {width} pixels"
    subtitle = f'<a href="{PAPER_ADDRESS}">{escape(PAPER)}</a><br>{escape(words)}'
    heading = "The paper's experiments on other images" if images.warning else HEADING
    notices = [*filter(None, [images.warning]), *([QUICK] if quick else [])]
    about = {**about_images(images), "quick": quick, "seed": seed}
    write_report(folder, heading, subtitle, parts, about, notices)
    return [part.outcome for part in parts]


def parts_of(
    names: list[str],
    images: Images,
    *,
    quick: bool = False,
    seed: int = 0,
    track: Track[Any] = untracked,
) -> list[Part]:
    """Run the experiments; what they add to a report."""
    return [
        part_of(EXPERIMENTS[name](images, quick=quick, seed=seed, track=track), images)
        for name in names
    ]


def about_images(images: Images) -> dict[str, Any]:
    """What the images were, for `results.json`."""
    return {
        "data": images.name,
        "warning": images.warning,
        "images": len(images.rows),
        "shape": list(images.shape),
    }
