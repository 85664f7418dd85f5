"""`omfb merge`."""

from pathlib import Path
from typing import Annotated

import typer

from ._errors import guarded, refuse_overwriting, say
from ._models import load_estimator
from ._options import Quiet


@guarded
def merge(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL...", help="Models that learned apart.", show_default=False),
    ],
    start: Annotated[
        Path, typer.Option(metavar="MODEL", help="What all went on from.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write.", show_default=False)
    ],
    quiet: Quiet = False,
) -> None:
    """Make one model of several that learned apart, each from rows of its own.

    All must have gone on from the same start, each with its own rows. What they learned adds up;
    the start counts once.

    For example:

        omfb merge oslo.omfb bergen.omfb --start first.omfb -o norway.omfb
    """
    from ..estimators.merge import merge as merge_models
    from ..persistence import check_replaceable

    refuse_overwriting([*models, start], [output])
    check_replaceable(output)
    parts = [load_estimator(path) for path in models]
    merged = merge_models(parts, load_estimator(start))
    merged.save(output)
    if not quiet:
        say(f"{output}: {len(parts)} models, {merged.n_samples_seen_} rows")
