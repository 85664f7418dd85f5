"""`omfb info`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ._errors import UsageError, guarded, say
from ._images import write_png

# What reading a header that means nothing can raise.
FAULTS = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


@guarded
def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file or checkpoint.")],
    atoms: Annotated[
        tuple[str, Path] | None,
        typer.Option(
            metavar="SHAPE FILE",
            help="Draw the dictionary, each atom an image of SHAPE (64x64), to a .png FILE.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a model is, what it has seen, and its running error.

    For example:

        omfb info model.omfb

        omfb info faces.omfb --atoms 64x64 atoms.png
    """
    from ..persistence import ModelFileError, read_model

    header, tensors = read_model(model)
    try:
        facts = _facts(header, tensors)
    except FAULTS as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelFileError(
            f"{model}: not a model that omfb can have written ({reason})."
        ) from error
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:<{width}}  {_shown(value)}")
    if atoms is not None:
        state = _state(header, tensors)
        _draw(state.C.T * state.scale, *atoms)


def _state(header: dict[str, Any], tensors: dict[str, Any]) -> Any:
    """The state of the model, found good. No engine is needed for that, nor what it compiles."""
    from ..core.state import State, check_state
    from ..persistence.records import unflatten

    state = unflatten(State, header["state"], tensors, "state")
    check_state(state)
    return state


def _facts(header: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    from ..core.state import Info

    state, learner, totals = _state(header, tensors), header["learner"], header["totals"]
    names, parameters = learner["feature_names"], header["parameters"]
    _demand(names is None or isinstance(names, list), "feature names")
    _demand(isinstance(parameters, dict), "parameters")
    error = Info(float(totals["residual"]), float(totals["energy"])).error
    training, pipe = header.get("training"), header.get("pipe")
    kind = "model" if training is None and pipe is None else "checkpoint"
    facts = {
        "kind": f"{header['class']} {kind}, format {header['version']}",
        "components": state.C.shape[1],
        "features": state.C.shape[0],
        "type": str(state.C.dtype),
        "rows seen": state.n_seen,
        "running error": error,
        "parameters": parameters,
        "feature names": names,
    }
    if training is not None:
        _demand(isinstance(training, dict) and type(training["pass"]) is int, "its training")
        where = "finished" if training["finished"] is True else f"in pass {training['pass']}"
        facts["fit"] = f"{where} of {parameters['max_iter']}"
    if pipe is not None:
        _demand(isinstance(pipe, dict) and type(pipe["rows"]) is int, "its pipe")
        facts["pipe"] = f"{pipe['rows']} rows filled and learned"
    return facts


def _demand(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(reason)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list):
        shown = [str(item) for item in value[:8]]
        return ", ".join(shown) + (f", … ({len(value)})" if len(value) > 8 else "")
    return f"{value:.6g}" if isinstance(value, float) else "–" if value is None else str(value)


def _draw(atoms: Any, shape: str, path: Path) -> None:
    try:
        height, width = (int(side) for side in shape.lower().split("x"))
    except ValueError:
        raise UsageError(f"--atoms needs a shape like 64x64, not {shape!r}") from None
    n_features = atoms.shape[1]
    if height < 1 or width < 1 or height * width != n_features:
        raise UsageError(f"--atoms {shape}: {height * width} pixels, but atoms have {n_features}")
    if path.suffix.lower() != ".png":
        raise UsageError(f"{path}: give it the ending .png")
    write_png(path, atoms.reshape(-1, height, width))
    say(f"{path}: {len(atoms)} atoms")
