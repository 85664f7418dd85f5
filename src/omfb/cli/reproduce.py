"""`omfb reproduce`: the paper's experiments, their report, and a table on the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from ._errors import UsageError, guarded, say
from ._report import Out, Seed, new_report, show

ALL = "all"
NAMES = ("faces-online", "faces-missing")


@guarded
def reproduce(
    experiment: Annotated[str, typer.Argument(help="faces-online, faces-missing or all.")] = ALL,
    out: Out = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer passes and masks.")] = False,
    seed: Seed = 0,
) -> None:
    """Run the paper's two experiments and report which results were reproduced."""
    if experiment not in (*NAMES, ALL):
        raise UsageError(f"unknown experiment {experiment!r}: choose {', '.join(NAMES)} or {ALL}")
    names = list(NAMES) if experiment == ALL else [experiment]
    with new_report(out, seed) as (folder, track):
        from ..paper.experiments.images import load_images
        from ..paper.reproduce import reproduce as run

        images = load_images()
        if images.warning:
            say(f"omfb: {images.warning}")
        outcomes = run(names, images, folder, quick=quick, seed=seed, track=track)
    show(outcomes, out, images.warning)
