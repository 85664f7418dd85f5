"""`omfb merge`."""

from pathlib import Path
from typing import Annotated

import typer

from ._errors import guarded, refuse_overwriting, refuse_replacing, say
from ._models import header_of, load_estimator, missing_of
from ._options import Force, Quiet
from ._saving import save_model


@guarded
def merge(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL...", help="Models that learned apart.", show_default=False),
    ],
    start: Annotated[
        Path,
        typer.Option(
            metavar="MODEL", help="The model that all of them continued.", show_default=False
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write.", show_default=False)
    ],
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Make one model of several that learned apart, each from rows of its own.

    All must have continued from the same start, each with rows of its own. What they learned
    adds up; the start counts once.

    For example:

        omfb merge oslo.omfb bergen.omfb --start first.omfb -o norway.omfb
    """
    from ..estimators.merge import merge as merge_models
    from ..persistence import check_replaceable

    refuse_overwriting([*models, start], [output])
    refuse_replacing(output, force)
    check_replaceable(output)
    parts = [load_estimator(path) for path in models]
    merged = merge_models(parts, load_estimator(start))
    save_model(merged, output, missing_of(header_of(start)), start)
    if not quiet:
        say(f"{output}: {len(parts)} models, {merged.n_samples_seen_} rows")
