"""`omfb info`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.require import require
from ._errors import UsageError, guarded, printable, refuse_overwriting, say
from ._images import write_png

if TYPE_CHECKING:
    from ..learner.records import Parts
    from ..learner.snapshot import Snapshot


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
    """Print what a model is, what it has seen, and its running error.

    For example:

        omfb info model.omfb

        omfb info faces.omfb --atoms 64x64 atoms.png
    """
    from ..learner.records import FAULTS, Parts, snapshot_of
    from ..persistence import ModelFileError, read_model

    refuse_overwriting([model], [None if atoms is None else atoms[1]])
    parts = Parts(*read_model(model))
    of_ratings = parts.header.get("class") == "OMFBRecommender"
    if of_ratings and atoms is not None:
        raise UsageError("--atoms draws a dictionary, but this is a model of ratings")
    try:
        facts = _ratings(model) if of_ratings else _facts(parts, snapshot_of(parts))
    except FAULTS as error:
        reason = " ".join(str(error).split())[:200]
        if not isinstance(error, ModelFileError):
            reason = f"not a model that omfb can have written ({reason})."
        raise ModelFileError(f"{model}: {reason}") from error
    if as_json:
        print(json.dumps(facts))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(printable(f"{name:<{width}}  {_shown(value)}"))
    if atoms is not None:
        from ._models import load_model

        _draw(load_model(model).learner.components, *atoms)


def _ratings(path: Path) -> dict[str, Any]:
    """Facts about a model of ratings."""
    from ..estimators.recommender import OMFBRecommender
    from ..persistence.modelfile import VERSION

    model = OMFBRecommender.load(path)
    return {
        "kind": f"OMFBRecommender model, format {VERSION}",
        "components": model.n_components,
        "users": len(model.users_),
        "items": len(model.items_),
        "ratings": model.n_ratings_,
        "rounds": model.n_iter_,
        "held-out error": model.holdout_rmse_,
        "running error": model.prequential_rmse_,
        "noise": model.noise_variance_**0.5,
        "parameters": model.get_params(),
    }


def _facts(parts: "Parts", snapshot: "Snapshot") -> dict[str, Any]:
    header = parts.header
    learned, parameters = snapshot.learned, header["parameters"]
    assert learned is not None
    require(isinstance(parameters, dict), "parameters")
    passes = header["n_iter"]
    require(passes is None or type(passes) is int, "passes")
    training, pipe = header.get("training"), header.get("pipe")
    kind = "model" if training is None and pipe is None else "checkpoint"
    state = learned.state
    facts = {
        "kind": f"{header['class']} {kind}, format {header['version']}",
        **(_young(snapshot) if state is None else snapshot.engine.describe(state)),
        "passes": passes,
        "running error": learned.totals.error if learned.totals.energy > 0.0 else None,
        "parameters": parameters,
        "feature names": snapshot.feature_names,
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


def _young(snapshot: "Snapshot") -> dict[str, Any]:
    """Facts about a stream that has too few rows for a model yet."""
    assert snapshot.learned is not None
    head = snapshot.learned.head
    n_rows, n_features = head.shape
    return {
        "components": None, "features": n_features, "dtype": str(head.dtype), "rows seen": n_rows,
    }  # fmt: skip


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
