"""`omfb info`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.require import require
from ._errors import UsageError, guarded, printable, refuse_overwriting, say
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

    refuse_overwriting([model], [None if atoms is None else atoms[1]])
    header, tensors = read_model(model)
    try:
        facts = _facts(header, tensors)
    except FAULTS as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelFileError(
            f"{model}: not a model that omfb can have written ({reason})."
        ) from error
    if as_json:
        print(json.dumps(facts))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(printable(f"{name:<{width}}  {_shown(value)}"))
    if atoms is not None:
        from ._models import load_model

        _draw(load_model(model).components, *atoms)


def _state(header: dict[str, Any], tensors: dict[str, Any]) -> Any:
    """The state of the model, found good. No engine is needed for that, nor what it compiles.

    None while the stream is so young that its rows are all that is known.
    """
    from ..core.broyden.state import State, check_state
    from ..core.factor.state import Model, check_model
    from ..persistence.records import unflatten

    engine = header["learner"]["engine"]
    if engine == "bayes" and header["state"] is None:
        require(header["head"] in ("dense", "sparse"), "neither a state nor first rows")
        return None
    if engine == "bayes":
        model = unflatten(Model, header["state"], tensors, "state")
        check_model(model)
        return model
    state = unflatten(State, header["state"], tensors, "state")
    check_state(state)
    return state


def _facts(header: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    from ..core.info import Info

    state, learner, totals = _state(header, tensors), header["learner"], header["totals"]
    names, parameters = learner["feature_names"], header["parameters"]
    require(names is None or isinstance(names, list), "feature names")
    require(isinstance(parameters, dict), "parameters")
    error = Info(float(totals["residual"]), float(totals["energy"])).error
    training, pipe = header.get("training"), header.get("pipe")
    kind = "model" if training is None and pipe is None else "checkpoint"
    facts = {
        "kind": f"{header['class']} {kind}, format {header['version']}",
        **(_young(header, tensors) if state is None else _size(state)),
        "running error": error,
        **_found(state),
        "parameters": parameters,
        "feature names": names,
    }
    if training is not None:
        require(isinstance(training, dict) and type(training["pass"]) is int, "its training")
        where = "finished" if training["finished"] is True else f"in pass {training['pass']}"
        most = parameters["max_iter"]
        facts["fit"] = where if most is None else f"{where} of {most}"
    if pipe is not None:
        require(isinstance(pipe, dict) and type(pipe["rows"]) is int, "its pipe")
        facts["pipe"] = f"{pipe['rows']} rows filled and learned"
    return facts


def _size(state: Any) -> dict[str, Any]:
    n_features, width = state.C.shape
    return {
        "components": getattr(state, "n_components", width),
        "features": n_features,
        "type": str(state.C.dtype),
        "rows seen": state.n_seen,
    }


def _young(header: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """What is known of a stream whose rows so far are too few for a model."""
    if header["head"] == "dense":
        (n_rows, n_features), rows = tensors["head"].shape, tensors["head"]
    else:
        (n_rows, n_features), rows = tensors["head.shape"].tolist(), tensors["head.data"]
    return {
        "components": None, "features": n_features, "type": str(rows.dtype), "rows seen": n_rows,
    }  # fmt: skip


def _found(state: Any) -> dict[str, Any]:
    """What was found from the data; nothing by a rule that was given in full."""
    import math

    import numpy as np

    from ..core.factor.state import Model

    if not isinstance(state, Model):
        return {}
    residual, energy = state.judged[1].tolist()
    shared = state.settings.noise == "shared"
    where = "of all features" if shared else "median of the features"
    return {
        "recent error": math.sqrt(residual / energy) if energy > 0.0 else None,
        "components in use": int(state.used.sum()),
        f"noise, {where}": float(np.median(state.noise)),
        "outliers": int(state.outliers.sum()),
        "outliers are dropped": bool(state.drops),
        "rows in time": bool(state.settings.in_time),
        "rows remember": state.memory is not None
        and bool(state.memory.codes.any() or state.memory.residuals.any()),
    }


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
