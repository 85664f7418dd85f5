"""The model without components that are not there: they would cost as much as those that are."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .state import Model


def with_components(model: Model, which: NDArray[np.int64]) -> Model:
    """The model with these components only, the mean among them, to make codes with."""
    square = np.ix_(which, which)
    C = np.ascontiguousarray(model.C[:, which])
    return replace(
        model, C=C, C_codes=None, G=model.G[square], S=model.S[square], Sigma=model.Sigma[square],
        v=model.v[which], unsure=model.unsure[np.ix_(which[:-1], which[:-1])],
        turn=np.eye(len(which)),
    )  # fmt: skip


def slim(model: Model) -> tuple[Model, NDArray[np.int64]]:
    """The model without components that were spared, and which it has; the mean is the last.

    These have no loadings, and that is sure (`sparing`): their codes are zero, and what is said of
    a row is the same without them.
    """
    there = (np.diagonal(model.G) > 0.0) | (np.diagonal(model.Sigma) > 0.0)
    there[-1] = True
    which = np.flatnonzero(there)
    return (model if there.all() else with_components(model, which)), which
