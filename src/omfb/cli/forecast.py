"""`omfb forecast`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._errors import UsageError, guarded, refuse_overwriting, usage_errors
from ._extra_columns import DEFAULT_LEVEL
from ._forecast_report import check_report, write_report
from ._models import Model, load_model, times_column
from ._options import PIPE, Out, ReadingOptions, open_data
from ._writing import output_format, table_to

if TYPE_CHECKING:
    from numpy.typing import NDArray


@guarded
def forecast(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model of rows that are in time.")
    ],
    steps: Annotated[int, typer.Option("--steps", "-n", help="How many rows ahead.")] = 1,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL",
            help="Add bounds that contain a value with this probability (0.9): columns NAME_low "
            "and NAME_high.",
            show_default=False,
        ),
    ] = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The values that the model's covariates will have, in columns of their names: of "
            "the rows to come, or, with a column of dates, of these and others.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Draw the last rows and those to come: a page (.html) or a picture (.png, .svg). "
            "With another ending, or -, it is a line of text for each column.",
            show_default=False,
        ),
    ] = None,
    output: Out = "-",
) -> None:
    """Write the rows that follow the last one that the model has learned from.

    The first column says when they come, as the column of dates did, or how many rows ahead. The
    model must be one of rows in time: of a file with a column of dates that ascend, or of
    `omfb fit --temporal`.

    For example:

        omfb fit sensors.csv -o sensors.omfb

        omfb forecast sensors.omfb --steps 24 --interval 0.9 -o ahead.csv

        omfb forecast sensors.omfb --steps 24 --covariates calendar.csv -o ahead.csv

        omfb forecast sensors.omfb --steps 48 -o ahead.csv --report ahead.html
    """
    import numpy as np

    from ..estimators.forecasts import ForecastingFactorizer
    from ..formats.registry import TimeColumn

    check_report(report, output)
    refuse_overwriting([model, covariates], [output, None if report == PIPE else report])
    loaded = load_model(model)
    estimator, learner = loaded.estimator, loaded.learner
    in_time = getattr(learner.config, "temporal", False)
    if not isinstance(estimator, ForecastingFactorizer) or not in_time:
        raise UsageError(
            f"{model}: rows of this model are not in time, so there is no forecast: "
            f"fit it with --temporal"
        )
    if not output_format(output).names_columns:
        raise UsageError(f"{output}: write .csv, .tsv, .ndjson, .parquet or .arrow")
    known = _known(loaded, model, covariates, steps)
    with usage_errors():
        made = estimator.forecast(steps, level=interval or DEFAULT_LEVEL, covariates=known)
    sides = [np.asarray(side) for side in made]
    names = learner.feature_names or [f"x{i}" for i in range(learner.n_features)]
    columns = list(names)
    if interval is not None:
        columns += [f"{name}_{side}" for name in names for side in ("low", "high")]
    bounds = np.stack(sides[1:], axis=-1).reshape(len(sides[0]), -1)
    written = sides[:1] if interval is None else [sides[0], bounds]
    times, index = estimator.forecast_times(steps), getattr(learner.config, "index", None)
    rows, column = np.hstack(written).astype(np.float64), None
    if times is None:
        ahead = np.arange(1.0, len(rows) + 1.0)[:, None]
        columns, rows = ["ahead", *columns], np.hstack([ahead, rows])
    else:
        zoned = getattr(index, "timezone", None) is not None
        column = TimeColumn(getattr(index, "name", None) or "time", zoned)
    with table_to(output, columns, np.dtype(np.float64), model, column) as writer:
        writer.write(rows) if times is None else writer.write(rows, times)
    if report is not None:
        write_report(report, loaded, model, sides, times, interval or DEFAULT_LEVEL)


def _known(model: Model, path: Path, file: str | None, steps: int) -> "NDArray[Any] | None":
    """The values of the model's covariates in the rows to come."""
    import numpy as np

    from ..core.blocks import dense_with_holes
    from ..estimators.covariates import rows_at
    from ..learner.predictor import known_features
    from ..streams import errors_about

    known = known_features(model.learner.config)
    names = model.learner.feature_names or [str(at) for at in range(model.learner.n_features)]
    wanted = [names[at] for at in known]
    if file is None and not known:
        return None
    if not known:
        raise UsageError(f"--covariates: {path} was fitted without any")
    if file is None:
        raise UsageError(
            f"{path} was fitted with covariates: give their values in the rows to come by "
            f"--covariates FILE, with the columns {', '.join(wanted)}"
        )
    source = open_data(
        file, ReadingOptions(), model_features=wanted, model_times=times_column(model.learner)
    )
    with errors_about(source):
        parts = list(source.timed_blocks())
    values = np.concatenate([dense_with_holes(rows) for rows, _, _ in parts])
    at = [times for _, _, times in parts if times is not None]
    with usage_errors():
        times = model.estimator.forecast_times(steps)
        return values if times is None or not at else values[rows_at(np.concatenate(at), times)]
