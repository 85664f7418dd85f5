"""`omfb info`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ._errors import UsageError, guarded, say
from ._images import write_png


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
    from ..estimators.omfb import OMFB
    from ..learner.snapshot import load_parts

    fitted, header, _ = load_parts(OMFB, model)
    facts = _facts(fitted, header)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:<{width}}  {_shown(value)}")
    if atoms is not None:
        _draw(fitted, *atoms)


def _facts(model: Any, header: dict[str, Any]) -> dict[str, Any]:
    training, pipe = header["training"], header.get("pipe")
    kind = "model" if training is None and pipe is None else "checkpoint"
    facts = {
        "kind": f"{header['class']} {kind}, format {header['version']}",
        "components": model.n_components,
        "features": model.n_features_in_,
        "type": str(model._state.C.dtype),
        "rows seen": model.n_samples_seen_,
        "running error": model.prequential_error_,
        "parameters": header["parameters"],
        "feature names": header["feature_names"],
    }
    if training is not None:
        state = "finished" if training["finished"] else f"in pass {training['pass']}"
        facts["fit"] = f"{state} of {model.max_iter}"
    if pipe is not None:
        facts["pipe"] = f"{pipe['rows']} rows filled and learned"
    return facts


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(value[:8]) + (f", … ({len(value)})" if len(value) > 8 else "")
    return f"{value:.6g}" if isinstance(value, float) else "–" if value is None else str(value)


def _draw(model: Any, shape: str, path: Path) -> None:
    try:
        height, width = (int(side) for side in shape.lower().split("x"))
    except ValueError:
        raise UsageError(f"--atoms needs a shape like 64x64, not {shape!r}") from None
    if height < 1 or width < 1 or height * width != model.n_features_in_:
        raise UsageError(
            f"--atoms {shape}: {height * width} pixels, but atoms have {model.n_features_in_}"
        )
    if path.suffix.lower() != ".png":
        raise UsageError(f"{path}: give it the ending .png")
    write_png(path, model.components_.reshape(-1, height, width))
    say(f"{path}: {model.n_components} atoms")
