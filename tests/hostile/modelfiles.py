"""Hostile model files and checkpoints: bytes changed, or contents, with the digest made right."""

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.learner.fit_stream import StopFitting
from omfb.persistence import read_model, write_model

from .files import digests, judged, mutated
from .models import demand_sound, fitted_models, good_rows
from .processes import run
from .trial import ACCEPTED, CHANGED, attempt, demand, demand_finite

HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e308, -1e308, 5e-324, 2**31, 2**63, -(2**63),
    10**30, 10**400, "", "x", "data", "\x1b[2J", [], {}, [1], [None], {"a": 1}, "nan", [[]],
    "9" * 5000,
]  # fmt: skip


@functools.cache
def good_models() -> list[bytes]:
    """A file of each good model."""
    with tempfile.TemporaryDirectory() as folder:
        path, files = Path(folder) / "m.omfb", []
        for model in fitted_models():
            model.save(path)
            files.append(path.read_bytes())
        return files


@functools.cache
def good_checkpoints() -> list[tuple[dict[str, Any], bytes]]:
    """Checkpoints of fits that were broken off, and the parameters of the fits."""
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for number, more in enumerate(
            ({}, {"forget_factor": 0.9}, {"temporal": True}, {"shuffle": False})
        ):
            path = Path(folder) / str(number)
            parameters = {"n_components": 2, "random_state": 0, "max_iter": 2, **more}

            def stop(progress: Any) -> None:
                if progress.number == 2:
                    raise StopFitting

            model = OnlineFactorAnalysis(**parameters)
            try:
                model.fit_source(
                    model._source(good_rows()), checkpoint=path, every="1rows", on_block=stop
                )
            except StopFitting:
                made.append((parameters, path.read_bytes()))
    return made


def try_model_file(rng: np.random.Generator, folder: Path) -> list[str]:
    """Load a hostile model file; use what was loaded."""
    files = good_models()
    path = hostile_model(rng, folder, files[rng.integers(len(files))])
    if rng.random() < 0.2:
        return [_by_command(rng, folder, path)]
    estimator = (OMFB, OnlineFactorAnalysis, OMFBImputer)[rng.integers(3)]
    outcome, model = attempt(lambda: estimator.load(path))
    if outcome is ACCEPTED:
        attempt(lambda: demand_sound(model))
        X = np.resize(good_rows(), (5, model.n_features_in_))
        for call in (model.complete, model.partial_fit, model.complete):
            used, made = attempt(lambda call=call: call(X))
            if used is ACCEPTED and call != model.partial_fit:
                demand_finite(made, "what a hostile model fills in")
    return [outcome]


def _by_command(rng: np.random.Generator, folder: Path, path: Path) -> str:
    np.save(folder / "x.npy", good_rows()[:9])
    words: list[list[object]] = [
        ["info", path.name],
        ["complete", "x.npy", "-m", path.name, "-o", "out.npy"],
        ["transform", "x.npy", "-m", path.name, "-o", "codes.csv"],
    ]
    before = digests(folder)
    return judged(run(words[rng.integers(3)], folder), folder, before)


def try_checkpoint(rng: np.random.Generator, folder: Path) -> list[str]:
    """Go on from a hostile checkpoint."""
    checkpoints = good_checkpoints()
    parameters, data = checkpoints[rng.integers(len(checkpoints))]
    path = hostile_model(rng, folder, data)
    before = digests(folder)
    model = OnlineFactorAnalysis(**parameters)
    outcome, _ = attempt(lambda: model.fit(good_rows(), checkpoint=path, resume=True))
    if outcome is ACCEPTED:
        attempt(lambda: demand_sound(model))
    else:
        demand(digests(folder) == before, CHANGED, "a refused checkpoint has changed")
        demand(not model.__sklearn_is_fitted__(), CHANGED, "a refused checkpoint has fitted")
    return [outcome]


def hostile_model(rng: np.random.Generator, folder: Path, data: bytes) -> Path:
    """Write the file with a change to its bytes, to its header or to a tensor."""
    path = folder / "hostile.omfb"
    path.write_bytes(data)
    if rng.random() < 0.3:
        path.write_bytes(mutated(rng, data))
        return path
    header, tensors = read_model(path)
    header = json.loads(json.dumps(header))
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        if rng.random() < 0.6 or not tensors:
            _change_header(rng, header)
        else:
            _change_tensor(rng, tensors)
    try:
        write_model(path, header, tensors)
    except (ValueError, TypeError, KeyError):  # nobody can write such a file by these means
        path.write_bytes(mutated(rng, data))
    return path


def _change_header(rng: np.random.Generator, node: Any) -> None:
    """Put something odd somewhere, remove something, or add it."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(node[key], dict | list) and len(node[key]) and rng.random() < 0.85:
            node = node[key]
            continue
        kind = rng.random()
        if kind < 0.1:
            del node[key]
        elif kind < 0.15 and isinstance(node, dict):
            node["more"] = HOSTILE[rng.integers(len(HOSTILE))]
        elif kind < 0.4 and type(node[key]) in (int, float) and abs(node[key]) < 2**53:
            node[key] = node[key] * (-1, 0, 2, 0.5, 1e9)[rng.integers(5)]
        else:
            node[key] = HOSTILE[rng.integers(len(HOSTILE))]
        return


def _change_tensor(rng: np.random.Generator, tensors: dict[str, Any]) -> None:
    name = list(tensors)[rng.integers(len(tensors))]
    tensor, kind = tensors[name].copy(), rng.integers(7)
    with np.errstate(all="ignore"):
        if kind == 0 and tensor.size:
            odd = np.array([0, -1, 1e308, -1e308, 1e-300, 1e150, np.nan, np.inf, 7])
            tensor.flat[rng.integers(tensor.size)] = odd[rng.integers(len(odd))].astype(
                tensor.dtype
            )
        elif kind == 1:
            tensor = tensor * np.array((0, -1, 1e150, 1e-150)[rng.integers(4)]).astype(tensor.dtype)
        elif kind == 2:
            tensor = tensor.astype(("f8", "f4", "i8", "i4", "u1", "?")[rng.integers(6)])
        elif kind == 3:
            tensor = tensor[: len(tensor) // 2] if tensor.ndim else tensor[None]
        elif kind == 4:
            tensor = np.ascontiguousarray(tensor.T)
        elif kind == 5:
            tensor = tensor.reshape(-1)
        else:
            del tensors[name]
            return
    tensors[name] = np.ascontiguousarray(tensor)
