"""`omfb fit`."""

import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from ._checkpoints import Checkpoints, held
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
    with StopSignal() as stop, held(checkpoint, resume) as there:
        refuse_overwriting([data], [output, checkpoint, log])
        check_replaceable(output)
        source = open_data(data, reading, on_idle=stop.check, quiet=quiet)
        model = _model(parameters, source)
        saver = Checkpoints(checkpoint, every, {"source": source.fingerprint()})
        place = None
        if there:
            model, place = _resumed(checkpoint, model, source)
        elif resume and not quiet:
            say(f"{checkpoint}: no checkpoint yet; starting from the beginning")
        _learn(model, source, place, saver, stop, quiet, log)
        _finish(model, source, output, quiet)


def _init(init: str) -> Any:
    if init in ("data", "random"):
        return init
    if not init.endswith(".npy"):
        raise UsageError(f"--init must be data, random or a .npy file, not {init!r}")
    import numpy as np

    return np.load(init, allow_pickle=False)


def _model(parameters: dict[str, Any], source: Any) -> Any:
    from ..estimators.omfb import OMFB
    from ..estimators.parameters import check_init, check_parameters

    model = OMFB(**parameters)
    try:
        check_parameters(model)
        check_init(model.init, model.n_components, source.n_features)
        if not source.rereadable and model.max_iter > 1:
            raise ValueError(f"{source.name} can be read once only: drop --max-iter, or save it.")
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    model.n_features_in_ = source.n_features
    return model


def _resumed(checkpoint: Any, model: Any, source: Any) -> tuple[Any, Any]:
    """The model of a checkpoint and its place, if they are of this very fit."""
    from ..estimators.omfb import OMFB
    from ..learner.snapshot import load_parts, place_of

    old, header, tensors = load_parts(OMFB, checkpoint)
    place = place_of(header, tensors)
    if place is None:
        raise UsageError(f"{checkpoint}: a finished model, no checkpoint to go on from")
    for name, value in model.get_params().items():
        before = getattr(old, name)
        if type(before) is not type(value) or not _same(before, value):
            raise UsageError(
                f"{checkpoint}: began with {name} = {before}, not {value}. "
                f"Give the same options as before, or another --checkpoint"
            )
    same_names = header["feature_names"] == source.feature_names
    if header.get("source") != source.fingerprint() or not same_names:
        raise UsageError(
            f"{checkpoint}: began with other data than {source.name} is now. "
            f"Give the same data, or another --checkpoint"
        )
    old.__dict__.pop("feature_names_in_", None)
    return old, place


def _same(before: Any, value: Any) -> bool:
    import numpy as np

    return bool(np.array_equal(before, value))


def _learn(
    model: Any, source: Any, place: Any, saver: Checkpoints, stop: StopSignal, quiet: bool,
    log: Path | None,
) -> None:  # fmt: skip
    from ..learner.fit_stream import learn_passes
    from ._progress import Progress

    names = source.feature_names

    def between_blocks() -> None:
        if place is not None and saver.is_due(model.n_samples_seen_):
            saver.save(model, names, place)
        stop.check()

    source.on_idle = between_blocks
    try:
        with Progress(model, source, quiet, log) as progress:
            for here in learn_passes(model, source, place):
                place = here
                progress.update(place, last=place.finished)
                if place.finished:
                    saver.save(model, names, place)
                else:
                    between_blocks()
    except StoppedError:
        _leave(model, source, place, saver)
    if place is not None and not quiet:
        _warn_of_unseen(model, names, place.unseen)


def _leave(model: Any, source: Any, place: Any, saver: Checkpoints) -> None:
    """Save what was learned, and say how to go on."""
    if saver.path is None or place is None:
        hint = "" if saver.path is not None else "; with --checkpoint FILE it could go on"
        raise StoppedError(f"interrupted, nothing is kept{hint}")
    saver.save(model, source.feature_names, place)
    command = [word for word in sys.argv[1:] if word != "--resume"]
    again = shlex.join(["omfb", *command, "--resume"])
    how = "Go on with" if source.rereadable else "Pipe the same input into"
    raise StoppedError(
        f"interrupted after {model.n_samples_seen_} rows; {saver.path} keeps what was learned. "
        f"{how}: {again}"
    )


def _warn_of_unseen(model: Any, names: list[str] | None, unseen: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model._warn_of(unseen)
    for warning in caught:
        say(f"omfb: {warning.message}")


def _finish(model: Any, source: Any, output: Path, quiet: bool) -> None:
    import numpy as np

    if source.feature_names is not None:
        model.feature_names_in_ = np.array(source.feature_names, dtype=object)
    model.save(output)
    if not quiet:
        say(
            f"{output}: {model.n_components} components of {source.n_features} features, from "
            f"{model.n_samples_seen_} rows, prequential error {model.prequential_error_:.4g}"
        )
