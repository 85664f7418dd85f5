"""Model files of omfb 0.1: their header in the words of today's."""

from typing import Any

Tensors = dict[str, Any]

STATE_COUNTERS = ("n_seen", "drift", "since", "entries")
STATE_NUMBERS = ("scale", "least_ridge", "residual", "prior")
STATE_TENSORS = ("C", "G", "S", "code")


def upgraded(old: dict[str, Any], tensors: Tensors) -> tuple[dict[str, Any], Tensors]:
    """The header and tensors of a version 1 file as those of a version 2 file."""
    counters, parameters = old["counters"], old["parameters"]
    state = {name: counters[name] for name in STATE_COUNTERS}
    state |= {name: old[name] for name in STATE_NUMBERS}
    state["rule"] = old["rule"]
    renamed = {
        f"state.{name}" if name in STATE_TENSORS else RENAMED.get(name, name): tensor
        for name, tensor in tensors.items()
    }
    if "code" not in tensors:
        state["code"] = None
    new = {name: value for name, value in old.items() if name not in REPLACED}
    new["learner"] = {
        "engine": "broyden",
        "n_components": tensors["C"].shape[1],
        "init": parameters["init"],
        # Of a stream that is no longer young, nothing is drawn any more.
        "seed": 0 if old["seed"] is None else old["seed"],
        "feature_names": old["feature_names"],
    }
    residual, energy = old["energies"]
    new |= {
        "version": 2,
        "state": state,
        "totals": {"residual": residual, "energy": energy},
        "head": old["head"],
        "n_iter": counters["n_iter"],
    }
    return new, renamed


RENAMED = {
    "init": "learner.init",
    "head_data": "head.data",
    "head_indices": "head.indices",
    "head_indptr": "head.indptr",
    "unseen": "training.unseen",
}
REPLACED = (
    "counters", *STATE_NUMBERS, "rule", "energies", "seed", "head", "feature_names", "version",
)  # fmt: skip
