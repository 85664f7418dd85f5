"""`omfb fit --ratings`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import (
    UsageError,
    option_of,
    refuse_overwriting,
    refuse_replacing,
    say,
    usage_errors,
)
from ._options import PIPE, ReadingOptions, standard_input

if TYPE_CHECKING:
    from ..estimators.recommender import OMFBRecommender


def fit_ratings(
    data: list[str], output: Path, columns: str, options: dict[str, Any], others: dict[str, Any],
    reading: ReadingOptions, force: bool, quiet: bool,
) -> None:  # fmt: skip
    """Fit a model of ratings to a file or pipe, and write it.

    Parameters
    ----------
    data : list of str
    output : Path
    columns : str
        What ``--ratings`` was given.
    options : dict
        Parameters of estimators by name; None is an option that was not given.
    others : dict
        Further options by their names, all of which are refused if they were given.
    reading : ReadingOptions
        Refused likewise.
    force, quiet : bool
    """
    from ..persistence import check_replaceable

    names = _columns(columns)
    model = _new_model(options, {**others, **_given(reading)})
    if len(data) > 1:
        raise UsageError("--ratings takes one file: join them first, or pipe them in as one")
    refuse_overwriting([*data], [output])
    refuse_replacing(output, force)
    check_replaceable(output)
    model.fit(_rows(data[0], names))
    model.save(output)
    if not quiet:
        error = model.holdout_rmse_
        tail = "" if error is None else f", error {error:.4g} on ratings that were held out"
        say(
            f"{output}: {model.n_ratings_} ratings of {len(model.items_)} items by "
            f"{len(model.users_)} users{tail}"
        )


def hint_at_ratings(data: list[str], quiet: bool) -> None:
    """Say so if a file looks like ratings, which a fit of its columns would make no sense of."""
    from ..formats.triplets import columns_of_ratings

    if quiet or len(data) > 1 or data[0] == PIPE:
        return
    found = columns_of_ratings(Path(data[0]))
    if found is not None:
        say(
            f"omfb: {data[0]}: looks like ratings of items by users; for a model of these, add "
            f"--ratings {','.join(found)}"
        )


def _columns(columns: str) -> list[str]:
    names = [name.strip() for name in columns.split(",")]
    if len(names) not in (3, 4) or not all(names) or len(set(names)) < len(names):
        raise UsageError(
            f"--ratings needs the columns of user, item, rating and, optionally, time, such as "
            f"user,item,rating or 1,2,3, not {columns!r}"
        )
    return names


def _new_model(options: dict[str, Any], others: dict[str, Any]) -> "OMFBRecommender":
    from ..estimators.recommender import OMFBRecommender

    known = OMFBRecommender().get_params()
    given = {name: value for name, value in options.items() if value is not None}
    unused = [option_of(name) for name in given if name not in known]
    unused += [name for name, value in others.items() if value not in (None, False)]
    if unused:
        raise UsageError(f"{unused[0]} is not for --ratings: drop one of them")
    model = OMFBRecommender(**given)
    with usage_errors():
        model.checked_config()
    return model


def _given(reading: ReadingOptions) -> dict[str, Any]:
    """The options about reading by their names; ``--no-header`` counts as given."""
    return {f"--{name}": True for name, value in reading._asdict().items() if value is not None}


def _rows(data: str, names: list[str]) -> list[tuple[Any, ...]]:
    from ..formats.triplets import read_triplets, triplets_of

    if data == PIPE:
        found = triplets_of(standard_input(), "standard input", names)
    else:
        found = read_triplets(Path(data), names)
    return list(zip(*(part for part in found if part is not None), strict=True))
