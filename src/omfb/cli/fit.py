"""`omfb fit`."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ._checkpoints import check_options, usage_errors
from ._cluster import at_scheduler
from ._errors import (
    StoppedError,
    StopSignal,
    UsageError,
    guarded,
    in_options,
    refuse_overwriting,
    say,
)
from ._options import Checkpoint, DataFiles, Every, Quiet, ReadingOptions, open_data, reads_data


def _found(help: str, *names: str) -> Any:
    """An option whose value is found from the data unless it is given."""
    return typer.Option(*names, help=f"{help} Found from the data.", show_default=False)


@guarded
@reads_data
def fit(
    data: DataFiles,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write.", show_default=False)
    ],
    components: Annotated[int | None, _found("Components, at most.", "--components", "-r")] = None,
    lam: Annotated[float | None, _found("How stiffly the dictionary stays.")] = None,
    memory: Annotated[float, typer.Option(help="From 0 (the paper's rule) to 1.")] = 1.0,
    ridge: Annotated[float | None, _found("Pull of a code towards zero.")] = None,
    smooth: Annotated[float | None, _found("Pull of a code towards the one before.")] = None,
    shrink: Annotated[float | None, _found("Pull of the dictionary towards zero.")] = None,
    inner_iter: Annotated[int | None, _found("Alternations for each update.")] = None,
    batch_size: Annotated[int | None, _found("Rows that share an update.")] = None,
    max_iter: Annotated[int | None, _found("Passes over the data.")] = None,
    decompose: Annotated[
        bool,
        typer.Option(
            "--decompose",
            help="Fit a decomposition (OMFB: least squares in the data's own units) instead of a "
            "model to fill tables with (OMFBImputer: all columns treated alike).",
        ),
    ] = False,
    center: Annotated[
        bool | None,
        typer.Option("--center/--no-center", help="Learn a mean; yes.", show_default=False),
    ] = None,
    scale: Annotated[
        bool | None,
        typer.Option(
            "--scale/--no-scale",
            help="Measure columns in deviations of their own; yes, unless --decompose.",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="shared|feature",
            help="Whether columns share one noise; feature, unless --decompose.",
            show_default=False,
        ),
    ] = None,
    outliers: Annotated[
        bool, typer.Option("--outliers/--no-outliers", help="Whether outliers count as missing.")
    ] = True,
    in_time: Annotated[
        bool | None,
        typer.Option(
            "--in-time/--no-in-time",
            help="Whether neighbouring rows belong together; found from a column of dates.",
            show_default=False,
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="Stop when a pass gains less than this share.")] = 0.0,
    shuffle: Annotated[bool, typer.Option(help="Take the rows in random order.")] = True,
    init: Annotated[str, typer.Option(help="First atoms: data, random, or a .npy file.")] = "data",
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**32 - 1, help="Seed of what is random.", show_default=False),
    ] = None,
    checkpoint: Checkpoint = None,
    every: Every = "30s",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a JSON line per second.", show_default=False),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Let a Dask cluster learn, whose workers can read the files: tcp://host:8786.",
            show_default=False,
        ),
    ] = None,
    lanes: Annotated[
        int | None,
        typer.Option(help="With --scheduler, how many learn side by side; 32.", show_default=False),
    ] = None,
    quiet: Quiet = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Learn a model from files of any size, or from a pipe. Nothing needs to be set.

    Files larger than memory are read block by block. Shuffled passes over a .npy file are true
    permutations; of other files, groups of rows come in random order and are shuffled in a buffer
    of 32 MB. A pipe is read once, in the order it comes.

    With --checkpoint the fit can be killed at any moment: the same command with --resume goes on,
    and ends with the very same model.

    For example:

        omfb fit ratings.csv -o model.omfb

        omfb fit faces.npy --decompose -r 5 -o faces.omfb --checkpoint faces.ckpt --resume

        omfb fit data/*.parquet -o model.omfb --scheduler tcp://10.0.0.1:8786

        cat ratings.csv | omfb fit - --columns 1-12 -o model.omfb
    """
    from ..persistence import check_replaceable

    parameters = {
        "n_components": components, "lam": lam, "memory": memory, "ridge": ridge,
        "smooth": smooth, "shrink": shrink, "inner_iter": inner_iter, "batch_size": batch_size,
        "center": center, "scale": scale, "noise": noise, "outliers": outliers,
        "in_time": in_time, "max_iter": max_iter, "tol": tol, "shuffle": shuffle,
        "init": _init(init), "random_state": seed,
    }  # fmt: skip
    check_options(checkpoint, resume, every)
    model = _model(parameters, decompose)
    with StopSignal() as stop:
        start = init if init.endswith(".npy") else None
        refuse_overwriting([*data, start], [output, checkpoint, log])
        check_replaceable(output)
        source = open_data(data, reading, on_idle=stop.check, quiet=quiet)
        _check_source(model, source)
        if scheduler is not None:
            source = at_scheduler(data, reading, model, scheduler, lanes)
        elif lanes is not None:
            raise UsageError("--lanes is for a cluster: add --scheduler ADDRESS, or drop it")
        if source.time_column is not None and _goes_by_time(model) and not quiet:
            column = f"column {source.time_column!r}"
            say(f"omfb: {source.name}: rows are in time, by {column} (--in-time/--no-in-time)")
        if resume and checkpoint is not None and not checkpoint.exists() and not quiet:
            say(f"{checkpoint}: no checkpoint yet; starting from the beginning")
        unseen = _learn(model, source, stop, quiet, log, checkpoint, resume, every)
    _save(model, output)
    if not quiet:
        _report(model, source, unseen, output)


def _save(model: Any, output: Any) -> None:
    """Save the model, and remove what a process that was killed while it did has left."""
    from ..persistence import LockedError, locked

    try:
        with locked(output):
            model.save(output)
    except LockedError:  # another one writes it, too: the later of both wins
        model.save(output)


def _init(init: str) -> Any:
    if init in ("data", "random"):
        return init
    if not init.endswith(".npy"):
        raise UsageError(f"--init must be data, random or a .npy file, not {init!r}")
    import numpy as np

    from ..formats.npy import HEADER_FAULTS

    try:
        return np.load(init, allow_pickle=False)
    except HEADER_FAULTS as error:
        raise UsageError(f"--init {init}: not a whole .npy file ({error})") from None


def _model(parameters: dict[str, Any], decompose: bool) -> Any:
    from ..estimators.imputer import OMFBImputer
    from ..estimators.omfb import OMFB
    from ..estimators.parameters import check_parameters

    model = (OMFB if decompose else OMFBImputer)(**parameters)
    with _usage_errors():
        check_parameters(model)
    return model


def _check_source(model: Any, source: Any) -> None:
    from ..estimators.parameters import check_init, plan_of

    with _usage_errors():
        check_init(model.init, plan_of(model), source.n_features)
    if not source.rereadable and (model.max_iter or 1) > 1:
        raise UsageError(f"{source.name} can be read once only: drop --max-iter, or save it")


def _goes_by_time(model: Any) -> bool:
    """Whether the model uses that rows are in time, if nobody says anything of it."""
    from ..estimators.parameters import plan_of

    return model.in_time is None and bool(getattr(plan_of(model, True).rule, "in_time", False))


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(in_options(error)) from None


def _learn(
    model: Any, source: Any, stop: StopSignal, quiet: bool, log: Path | None,
    checkpoint: Path | None, resume: bool, every: str,
) -> Any:  # fmt: skip
    """Fit the model; return which features were never observed."""
    from ..estimators.parameters import passes_for, plan_of
    from ..learner.fit_stream import Progress, StopFitting
    from ._progress import Shown

    n_rows, in_time = 0, source.time_column is not None
    max_iter = passes_for(model, plan_of(model, in_time), source)

    with Shown(max_iter, quiet, log) as shown, usage_errors():

        def on_block(progress: Progress) -> None:
            nonlocal n_rows
            n_rows = progress.n_rows
            if n_rows:
                shown.update(progress)
            if stop.requested and not progress.finished:
                raise StopFitting

        try:
            return model.fit_source(
                source, in_time=in_time, checkpoint=checkpoint, resume=resume, every=every,
                on_block=on_block,
            )  # fmt: skip
        except StopFitting:
            raise StoppedError(_how_to_go_on(source, checkpoint, n_rows)) from None


def _how_to_go_on(source: Any, checkpoint: Path | None, n_rows: int) -> str:
    if checkpoint is None or n_rows == 0:
        hint = "" if checkpoint is not None else "; with --checkpoint FILE it could go on"
        return f"interrupted, nothing is kept{hint}"
    command = [word for word in sys.argv[1:] if word != "--resume"]
    again = shlex.join(["omfb", *command, "--resume"])
    how = "Go on with" if source.rereadable else "Pipe the same input into"
    return f"interrupted after {n_rows} rows; {checkpoint} keeps what was learned. {how}: {again}"


def _report(model: Any, source: Any, unseen: Any, output: Path) -> None:
    from ..estimators.diagnostics import doubts

    for doubt in doubts(unseen, source.feature_names):
        say(f"omfb: {doubt}")
    say(
        f"{output}: {model.n_components_} components of {source.n_features} features, from "
        f"{model.n_samples_seen_} rows, running error {model.prequential_error_:.4g}"
    )
