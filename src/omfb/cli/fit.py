"""`omfb fit`."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._checkpoints import checked_every, checkpoint_errors
from ._cluster import at_scheduler, check_cluster
from ._errors import (
    StoppedError,
    StopSignal,
    UsageError,
    guarded,
    refuse_overwriting,
    refuse_replacing,
    say,
    usage_errors,
)
from ._estimators import DEFAULT, new_estimator
from ._named import check_named, learn_named, report_named
from ._options import (
    Checkpoint,
    DataFiles,
    Every,
    Force,
    Quiet,
    ReadingOptions,
    as_reading,
    open_files,
    reads_data,
)
from ._ratings import fit_ratings, hint_at_ratings
from ._saving import save_model

if TYPE_CHECKING:
    from ..adapters.dask.by_rows import RoundSource
    from ..estimators.base import BaseFactorizer
    from ..estimators.diagnostics import Findings
    from ..formats import MultiFileSource, TableSource
    from ..learner.fit_stream import Progress

    FitSource = TableSource | MultiFileSource | RoundSource

MODEL, PREDICTIVE = "Model", "Model: --estimator imputer or factor-analysis"
IMPUTER, PAPER = "Model: --estimator imputer", "Model: --estimator omfb"
CLUSTER = "Cluster"


def _option(help: str, *names: str, panel: str = MODEL, **more: Any) -> Any:
    """An option that is a parameter of the estimator; None is the estimator's default."""
    return typer.Option(*names, help=help, show_default=False, rich_help_panel=panel, **more)


@guarded
@reads_data
def fit(
    data: DataFiles,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write.", show_default=False)
    ],
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What to fit. imputer: a model that fills tables, whose columns may have any "
            "units. factor-analysis: the same model in the data's own units, for codes. omfb: the "
            "paper's algorithm, which estimates nothing else.",
        ),
    ] = DEFAULT,
    checkpoint: Checkpoint = None,
    every: Every = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint, if it exists.")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a JSON line per second.", show_default=False),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    n_components: Annotated[
        int | None,
        _option(
            "Number of components; for imputer and factor-analysis the largest number, of which "
            "they use those that the data need.",
            "--n-components",
            "-r",
        ),
    ] = None,
    forget_factor: Annotated[
        float | None,
        _option(
            "Weight that the past keeps with each row. 1 forgets nothing (default; 0 for omfb), "
            "0.99 remembers about 100 rows."
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        _option("Passes over the data. Default: 1; 2 over short tables, except for omfb."),
    ] = None,
    tol: Annotated[
        float | None, _option("Stop when a pass lowers the error by less than this share.")
    ] = None,
    shuffle: Annotated[
        bool | None,
        _option("Whether rows are taken in random order (default).", "--shuffle/--no-shuffle"),
    ] = None,
    seed: Annotated[
        int | None, _option("Seed of the random numbers.", metavar="SEED", min=0, max=2**32 - 1)
    ] = None,
    center: Annotated[
        bool | None,
        _option("Whether a mean is learned (default).", "--center/--no-center", panel=PREDICTIVE),
    ] = None,
    scale: Annotated[
        bool | None,
        _option(
            "Whether each column is measured in its own standard deviation (default for imputer).",
            "--scale/--no-scale",
            panel=PREDICTIVE,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        _option(
            "Whether all columns share one noise variance (default for factor-analysis), or have "
            "one each (default for imputer).",
            metavar="isotropic|diagonal",
            panel=PREDICTIVE,
        ),
    ] = None,
    robust: Annotated[
        bool | None,
        _option(
            "Whether values far from what the rest of their row predicts count as missing, where "
            "that helps (default).",
            "--robust/--no-robust",
            panel=PREDICTIVE,
        ),
    ] = None,
    temporal: Annotated[
        bool | None,
        _option(
            "Whether consecutive rows are neighbours in time. Default: if a column of dates "
            "ascends.",
            "--temporal/--no-temporal",
            panel=PREDICTIVE,
        ),
    ] = None,
    seasons: Annotated[
        str | None,
        _option(
            "Lengths of cycles in time, between commas: numbers of rows. auto finds them "
            "(default), none looks for none.",
            metavar="LIST",
            panel=PREDICTIVE,
        ),
    ] = None,
    covariates: Annotated[
        str | None,
        _option(
            "Columns that are always known, also in the rows of a forecast, such as holidays or "
            "the weather: names, between commas. Only for rows in time.",
            metavar="LIST",
            panel=PREDICTIVE,
        ),
    ] = None,
    min_value: Annotated[
        float | None, _option("Filled values are not below this.", panel=IMPUTER)
    ] = None,
    max_value: Annotated[
        float | None, _option("Filled values are not above this.", panel=IMPUTER)
    ] = None,
    integers: Annotated[
        bool,
        _option("Round filled values of columns of integers.", "--integers", panel=IMPUTER),
    ] = False,
    lam: Annotated[
        float | None,
        _option("How stiffly the dictionary stays where it is. Default: 1.", panel=PAPER),
    ] = None,
    ridge: Annotated[
        float | None, _option("Penalty on the size of codes. Default: 0.", panel=PAPER)
    ] = None,
    smooth: Annotated[
        float | None,
        _option("Penalty on the change of a code from the one before. Default: 0.", panel=PAPER),
    ] = None,
    shrink: Annotated[
        float | None, _option("Pull of the dictionary towards zero. Default: 0.", panel=PAPER)
    ] = None,
    inner_iter: Annotated[
        int | None,
        _option("Alternations between code and dictionary. Default: 2.", panel=PAPER),
    ] = None,
    batch_size: Annotated[
        int | None, _option("Rows that share an update. Default: 1.", panel=PAPER)
    ] = None,
    positive: Annotated[
        bool,
        _option("Nonnegative codes and dictionary.", "--positive", panel=PAPER),
    ] = False,
    alpha: Annotated[
        float | None,
        _option("Penalty on codes, which makes them sparse. Default: 0.", panel=PAPER),
    ] = None,
    l1_ratio: Annotated[
        float | None,
        _option("Share of the l1 norm in that penalty. Default: 1.", panel=PAPER),
    ] = None,
    absent: Annotated[
        str | None,
        _option(
            "What a sparse .npz matrix does not hold: unknown values (default), or zeros.",
            metavar="missing|zero",
            panel=PAPER,
        ),
    ] = None,
    init: Annotated[
        str | None,
        _option("First dictionary: data (default), random, or a .npy file.", panel=PAPER),
    ] = None,
    ratings: Annotated[
        str | None,
        typer.Option(
            metavar="USER,ITEM,RATING[,TIME]",
            help="DATA has a rating in each line: names, or numbers from 1, of its columns. Fits a "
            "model of ratings, for `omfb recommend`.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that holds the weights of the rows, and is not learned: 2 is the same "
            "row twice. Not with --estimator omfb.",
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Let a Dask cluster learn, whose workers can read the files: tcp://host:8786.",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    n_tasks: Annotated[
        int | None,
        typer.Option(
            help="With --scheduler, how many tasks learn at the same time. Default: 32.",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    new_features: Annotated[
        str | None,
        typer.Option(
            metavar="add|error|ignore",
            help="Learn the objects of NDJSON, of a file or a pipe, one by one in their order: a "
            "key that none had before is a new feature, an error, or left out.",
            show_default=False,
        ),
    ] = None,
    drop_after: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            help="With --new-features, drop features that no row has for so many rows.",
            show_default=False,
        ),
    ] = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Learn a model from files of any size, or from a pipe.

    The default is a model that fills tables (`omfb complete`); nothing needs to be set.

    Files larger than memory are read block by block. Shuffled passes over a .npy file are true
    permutations; of other files, groups of rows come in random order and are shuffled in a buffer
    of 32 MB. A pipe is read once, in the order it comes.

    With --checkpoint the fit can be killed at any moment: the same command with --resume continues,
    and ends with the very same model.

    For example:

        omfb fit table.csv -o model.omfb

        omfb fit faces.npy --estimator factor-analysis -r 5 -o faces.omfb

        omfb fit ratings.csv --ratings user,item,rating -o ratings.omfb

        omfb fit sensors.csv -o sensors.omfb --covariates holiday,temperature

        omfb fit table.csv -o model.omfb --checkpoint table.ckpt --resume

        omfb fit data/*.parquet -o model.omfb --scheduler tcp://10.0.0.1:8786

        cat table.csv | omfb fit - --columns 1-12 -o model.omfb
    """
    from ..persistence import check_replaceable

    options = {
        "n_components": n_components, "forget_factor": forget_factor, "max_iter": max_iter,
        "tol": tol, "shuffle": shuffle, "random_state": seed, "center": center, "scale": scale,
        "noise": noise, "robust": robust, "temporal": temporal, "seasons": _seasons(seasons),
        "covariates": None if covariates is None else [x.strip() for x in covariates.split(",")],
        "min_value": min_value, "max_value": max_value,
        "integers": integers or None, "lam": lam, "ridge": ridge,
        "smooth": smooth, "shrink": shrink, "inner_iter": inner_iter, "batch_size": batch_size,
        "positive_code": positive or None, "positive_dict": positive or None, "alpha": alpha,
        "l1_ratio": l1_ratio, "absent": absent, "init": _init(init),
        "new_features": new_features, "drop_after": drop_after,
    }  # fmt: skip
    if ratings is not None:
        others = {
            "--estimator": estimator != DEFAULT, "--checkpoint": checkpoint, "--every": every,
            "--resume": resume, "--log": log, "--scheduler": scheduler, "--n-tasks": n_tasks,
            "--weights": weights,
        }  # fmt: skip
        fit_ratings(data, output, ratings, options, others, reading, force, quiet)
        return
    if drop_after is not None and new_features is None:
        raise UsageError("--drop-after is for rows whose keys come and go: add --new-features add")
    every = checked_every(checkpoint, resume, every)
    model = new_estimator(estimator, options)
    check_cluster(data, model, scheduler, n_tasks)
    if weights is not None and (estimator == "omfb" or scheduler is not None):
        raise UsageError(
            f"--weights cannot be used with {'--scheduler' if scheduler else '--estimator omfb'}"
        )
    if "missing_values" in model.get_params() and (numbers := as_reading(reading).missing_numbers):
        model.set_params(missing_values=list(numbers))
    with StopSignal() as stop:
        start = init if init is not None and init.endswith(".npy") else None
        refuse_overwriting([*data, start], [output, checkpoint, log])
        refuse_replacing(output, force)
        check_replaceable(output)
        source: FitSource = open_files(data, reading, stop.check, quiet)
        if weights is not None:
            source = _weighted(source, weights)
        if new_features is not None:
            unused: dict[str, Any] = {
                "--checkpoint": checkpoint, "--log": log, "--scheduler": scheduler,
                "--weights": weights, "--max-iter": max_iter, "--tol": tol, "--shuffle": shuffle,
            }  # fmt: skip
            check_named(source, model, unused)
            learn_named(model, source, stop)
            save_model(model, output, reading.missing, source.path)
            if not quiet:
                report_named(model, output)
            return
        _check_source(model, source, options)
        hint_at_ratings(data, quiet)
        if scheduler is not None:
            source = at_scheduler(data, reading, scheduler, n_tasks)
        if not quiet:
            _tell(checkpoint if resume else None)
        in_time = _by_times(model, source, quiet)
        _check_covariates(model, source, in_time)
        findings = _learn(model, source, in_time, stop, quiet, log, checkpoint, resume, every)
    save_model(model, output, reading.missing, source.path)
    if not quiet:
        _report(model, source, findings, output)


def _weighted(source: Any, column: str) -> Any:
    """The source without the column that holds the weights of its rows."""
    from ..streams.weight_column import WeightColumnSource

    return WeightColumnSource(source, column)


def _seasons(given: str | None) -> str | list[float | str] | None:
    """The parameter `seasons` from the option; no seasons are an empty list."""
    if given in (None, "auto"):
        return given
    if given == "none":
        return []
    words = [word.strip() for word in given.split(",")]
    return [float(word) if word.replace(".", "", 1).isdigit() else word for word in words]


def _init(init: str | None) -> Any:
    if init in (None, "data", "random"):
        return init
    if not init.endswith(".npy"):
        raise UsageError(f"--init must be data, random or a .npy file, not {init!r}")
    import numpy as np

    from ..formats.npy import HEADER_FAULTS

    try:
        return np.load(init, allow_pickle=False)
    except HEADER_FAULTS as error:
        raise UsageError(f"--init {init}: not a whole .npy file ({error})") from None


def _check_source(model: "BaseFactorizer", source: "FitSource", options: dict[str, Any]) -> None:
    """Refuse options that the data cannot obey, or that would do nothing with them."""
    from ..estimators.parameters import checked_init

    with usage_errors():
        checked_init(model.get_params().get("init", "data"), model.n_components, source.n_features)
    if not source.rereadable:
        if (model.max_iter or 1) > 1:
            raise UsageError(f"{source.name} can be read once only: drop --max-iter, or save it")
        if options["shuffle"]:
            raise UsageError(f"{source.name} is read in the order it comes: drop --shuffle")
    if options["absent"] is not None and not source.is_sparse:
        raise UsageError(f"--absent is about sparse matrices (.npz), and {source.name} is none")
    if options["tol"] and model.n_passes(source) == 1:
        raise UsageError("--tol compares passes, but there is only one: add --max-iter")


def _by_times(model: "BaseFactorizer", source: "FitSource", quiet: bool) -> bool:
    """Whether rows are in time by a column of dates, unless the option says otherwise."""
    from ..estimators.times import column_problems

    given = model.get_params().get("temporal", False)
    if source.time_column is None or given is False:
        return False
    times = source.row_times()
    for problem in () if quiet else column_problems(times, source.time_column):
        say(f"omfb: {source.name}: {problem}")
    if times is not None and times.fault is not None:
        return False
    if given is None and not quiet:
        column = f"column {source.time_column!r}"
        say(f"omfb: {source.name}: rows are in time, by {column} (--temporal/--no-temporal)")
    return True


def _check_covariates(model: "BaseFactorizer", source: "FitSource", in_time: bool) -> None:
    """Refuse columns that are always known where there are none, or where they have no use."""
    from ..estimators.covariates import checked_covariates, positions_of

    given = model.get_params()
    with usage_errors():
        covariates = checked_covariates(given.get("covariates"))
        positions_of(covariates, source.feature_names, source.n_features)
    if covariates and not (given["temporal"] or in_time):
        raise UsageError(
            f"--covariates is for rows in time, and {source.name} has no column of dates that "
            f"ascend: add --temporal, or leave it out, as each column helps to fill the others"
        )


def _tell(resumed: Path | None) -> None:
    if resumed is not None and not resumed.exists():
        say(f"{resumed}: no checkpoint yet; starting from the beginning")


def _learn(
    model: "BaseFactorizer", source: "FitSource", in_time: bool, stop: StopSignal, quiet: bool,
    log: Path | None, checkpoint: Path | None, resume: bool, every: str,
) -> "Findings":  # fmt: skip
    """Fit the model; return what was found in the rows."""
    from ..learner.fit_stream import StopFitting
    from ._progress import Shown

    last: Progress | None = None
    with Shown(model.n_passes(source), quiet, log) as shown, checkpoint_errors():

        def on_block(progress: "Progress") -> None:
            nonlocal last
            if progress.n_rows:
                last = progress
                shown.update(progress)
            if stop.requested and not progress.finished:
                raise StopFitting

        try:
            return model.fit_source(
                source, temporal=in_time, checkpoint=checkpoint,
                resume=resume, every=every, on_block=on_block,
            )  # fmt: skip
        except StopFitting:
            raise StoppedError(_how_to_continue(source, checkpoint, last)) from None


def _how_to_continue(source: "FitSource", checkpoint: Path | None, last: "Progress | None") -> str:
    if checkpoint is None or last is None:
        hint = "" if checkpoint is not None else "; with --checkpoint FILE it could continue"
        return f"interrupted, nothing is saved{hint}"
    command = [word for word in sys.argv[1:] if word != "--resume"]
    again = shlex.join(["omfb", *command, "--resume"])
    how = "Continue with" if source.rereadable else "Pipe the same input into"
    several = last.max_iter > 1
    place = f"in pass {last.number} of {last.max_iter}" if several else f"after {last.n_rows} rows"
    return f"interrupted {place}; {checkpoint} keeps what was learned. {how}: {again}"


def _missing_option(values: list[str]) -> str:
    return f"--missing={','.join(values)}"


def _report(
    model: "BaseFactorizer", source: "FitSource", findings: "Findings", output: Path
) -> None:
    from ..estimators.diagnostics import diagnostics
    from ..estimators.times import column_problems

    for message in diagnostics(findings, source.feature_names, _missing_option):
        say(f"omfb: {message}")
    if not source.rereadable and getattr(model.learner_.config, "temporal", False):
        for problem in column_problems(source.row_times(), source.time_column):
            say(f"omfb: {source.name}: {problem}")
    totals = model.learner_.learned.totals
    error = (
        f", running error {model.prequential_error_:.4g}"
        if totals.energy > 0.0
        else "; nothing could be held out to tell the error"
    )
    passes = model.n_iter_
    several = f" in {passes} passes" if passes > 1 else ""
    say(
        f"{output}: {model.n_components_} components of {source.n_features} features, from "
        f"{model.n_samples_seen_ // passes} rows{several}"
        f"{error}"
    )
