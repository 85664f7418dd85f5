"""`omfb fit`."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ._checkpoints import check_options, usage_errors
from ._errors import StoppedError, StopSignal, UsageError, guarded, refuse_overwriting, say
from ._options import (
    Checkpoint,
    Data,
    Every,
    Quiet,
    ReadingOptions,
    open_data,
    reads_data,
)


@guarded
@reads_data
def fit(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write.", show_default=False)
    ],
    components: Annotated[int, typer.Option("--components", "-r", help="Atoms to learn.")] = 30,
    lam: Annotated[float, typer.Option(help="How stiffly the dictionary stays.")] = 1.0,
    memory: Annotated[float, typer.Option(help="From 0 (the paper's rule) to 1.")] = 1.0,
    ridge: Annotated[float, typer.Option(help="Pull of a code towards zero.")] = 0.0,
    smooth: Annotated[float, typer.Option(help="Pull of a code towards the one before.")] = 0.0,
    shrink: Annotated[float, typer.Option(help="Pull of the dictionary towards zero.")] = 0.0,
    inner_iter: Annotated[int, typer.Option(help="Alternations for each update.")] = 2,
    batch_size: Annotated[int, typer.Option(help="Rows that share an update.")] = 1,
    max_iter: Annotated[int, typer.Option(help="Passes over the data.")] = 1,
    tol: Annotated[float, typer.Option(help="Stop when a pass gains less than this share.")] = 0.0,
    shuffle: Annotated[bool, typer.Option(help="Take the rows in random order.")] = True,
    init: Annotated[str, typer.Option(help="First atoms: data, random, or a .npy file.")] = "data",
    seed: Annotated[
        int | None, typer.Option(help="Seed of what is random.", show_default=False)
    ] = None,
    checkpoint: Checkpoint = None,
    every: Every = "30s",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a JSON line per second.", show_default=False),
    ] = None,
    quiet: Quiet = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Learn a dictionary from a file of any size, or from a pipe.

    Files larger than memory are read block by block. Shuffled passes over a .npy file are true
    permutations; of other files, groups of rows come in random order and are shuffled in a buffer
    of 32 MB. A pipe is read once, in the order it comes.

    With --checkpoint the fit can be killed at any moment: the same command with --resume goes on,
    and ends with the very same model.

    For example:

        omfb fit ratings.csv -r 5 -o model.omfb

        omfb fit faces.npy -o faces.omfb --checkpoint faces.ckpt --resume

        cat ratings.csv | omfb fit - -r 5 --columns 1-12 -o model.omfb
    """
    from ..persistence import check_replaceable

    parameters = {
        "n_components": components, "lam": lam, "memory": memory, "ridge": ridge,
        "smooth": smooth, "shrink": shrink, "inner_iter": inner_iter, "batch_size": batch_size,
        "max_iter": max_iter, "tol": tol, "shuffle": shuffle, "init": _init(init),
        "random_state": seed,
    }  # fmt: skip
    check_options(checkpoint, resume, every)
    model = _model(parameters)
    with StopSignal() as stop:
        refuse_overwriting([data], [output, checkpoint, log])
        check_replaceable(output)
        source = open_data(data, reading, on_idle=stop.check, quiet=quiet)
        _check_source(model, source)
        if resume and checkpoint is not None and not checkpoint.exists() and not quiet:
            say(f"{checkpoint}: no checkpoint yet; starting from the beginning")
        unseen = _learn(model, source, stop, quiet, log, checkpoint, resume, every)
    model.save(output)
    if not quiet:
        _report(model, source, unseen, output)


def _init(init: str) -> Any:
    if init in ("data", "random"):
        return init
    if not init.endswith(".npy"):
        raise UsageError(f"--init must be data, random or a .npy file, not {init!r}")
    import numpy as np

    try:
        return np.load(init, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UsageError(f"--init {init}: not a whole .npy file ({error})") from None


def _model(parameters: dict[str, Any]) -> Any:
    from ..estimators.omfb import OMFB
    from ..estimators.parameters import check_parameters

    model = OMFB(**parameters)
    with _usage_errors():
        check_parameters(model)
    return model


def _check_source(model: Any, source: Any) -> None:
    from ..estimators.parameters import check_init

    with _usage_errors():
        check_init(model.init, model.n_components, source.n_features)
    if not source.rereadable and model.max_iter > 1:
        raise UsageError(f"{source.name} can be read once only: drop --max-iter, or save it")


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def _learn(
    model: Any, source: Any, stop: StopSignal, quiet: bool, log: Path | None,
    checkpoint: Path | None, resume: bool, every: str,
) -> Any:  # fmt: skip
    """Fit the model; return which features were never observed."""
    from ..learner.fit_stream import Progress, StopFitting
    from ._progress import Shown

    n_rows = 0

    with Shown(model.max_iter, quiet, log) as shown, usage_errors():

        def on_block(progress: Progress) -> None:
            nonlocal n_rows
            n_rows = progress.n_rows
            if n_rows:
                shown.update(progress)
            if stop.requested and not progress.finished:
                raise StopFitting

        try:
            return model.fit_source(
                source, checkpoint=checkpoint, resume=resume, every=every, on_block=on_block
            )
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
    from ..estimators.base import unobserved

    warning = unobserved(unseen, source.feature_names)
    if warning is not None:
        say(f"omfb: {warning}")
    say(
        f"{output}: {model.n_components} components of {source.n_features} features, from "
        f"{model.n_samples_seen_} rows, prequential error {model.prequential_error_:.4g}"
    )
