"""`omfb recommend`."""

import csv
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ._errors import guarded, printable, say
from ._options import Quiet


@guarded
def recommend(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that `omfb fit --ratings` wrote.")
    ],
    user: Annotated[str, typer.Option(metavar="ID", help="The user.", show_default=False)],
    number: Annotated[int, typer.Option("--number", "-n", help="Most items to print.")] = 10,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Also print what the user has rated.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Print the items that a user would rate highest, with predicted ratings.

    A user without ratings gets the items that the average user rates highest.

    For example:

        omfb recommend ratings.omfb --user 42 -n 5
    """
    from ..estimators.recommender import OMFBRecommender
    from ..formats.triplets import id_of
    from ._errors import usage_errors

    fitted = OMFBRecommender.load(model)
    known = fitted.users_.tolist()
    found = next((each for each in (id_of(user), user) if each in known), None)
    with usage_errors():
        items, scores = fitted.recommend(
            user if found is None else found, number, exclude_seen=not include_seen
        )
    if found is None and not quiet:
        say(f"omfb: no ratings by {user}: these are what the average user rates highest")
    pairs = list(zip(items.tolist(), scores.tolist(), strict=True))
    if as_json:
        print(json.dumps([{"item": item, "score": score} for item, score in pairs]))
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["item", "score"])
    writer.writerows([printable(str(item)), f"{score:.6g}"] for item, score in pairs)
