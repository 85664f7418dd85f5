"""Unusual rows, and the entries that make them so.

A row is unusual if the energy ‖y − C x̃‖² of its residuals is large beside its degrees of freedom,
on the scale of `linalg/drift.py`, where it is about normal; recent rows say what is usual. An entry
is to blame if it is far from what the rest of its row predicts: e_i / √(1 − h_i) has variance 1.
"""

from typing import Any

import numpy as np
from scipy.stats import norm

from ..linalg.drift import COUNT, MEAN, VARIANCE
from .e_step import encode_rows
from .predict import parts
from .rank import drop_empty
from .state import State
from .stats import Matrix, Vector
from .step import end_batch

# Largest leverage that is taken out of an entry's own prediction: what is left is divided by.
MOST_LEVERAGE = 0.98


def p_values(state: State, X: Any) -> Vector:
    """How probable residuals as large as those of each row are; 1 if it observes nothing."""
    state, _ = drop_empty(end_batch(state))
    memory, hyper = state.drift.memory, state.config.hyper
    mean, deviation = 0.0, 1.0
    if memory[COUNT] >= hyper.drift_burn_in:
        mean, deviation = float(memory[MEAN]), float(np.sqrt(max(memory[VARIANCE], 1.0)))
    found = np.ones(X.shape[0])
    for here, rows in parts(state, X):
        codes = encode_rows(state, rows)
        k = np.maximum(codes.dof, 1e-9)
        spread = 2.0 / (9.0 * k)
        z = (np.cbrt(codes.residual / k) - 1.0 + spread) / np.sqrt(spread + hyper.drift_floor**2)
        values = norm.sf((z - mean) / deviation)
        found[here] = np.where(np.diff(rows.entries.starts) > 0, values, 1.0)
    return found


def entry_scores(state: State, X: Any) -> Matrix:
    """Leave-one-out residuals in units of their standard deviations; 0 where X misses entries."""
    state, _ = drop_empty(end_batch(state))
    C, r = state.params.C.astype(np.float64), state.n_components
    found = np.zeros(X.shape)
    for here, rows in parts(state, X):
        codes = encode_rows(state, rows, keep_covariances=True)
        starts, features, values = rows.entries
        owner = np.repeat(np.arange(len(rows)), np.diff(starts))
        errors = values - np.einsum("ij,ij->i", C[features], codes.X[owner])
        for t in range(len(rows)):
            own = slice(starts[t], starts[t + 1])
            c = C[features[own], :r]
            H = codes.covariances[min(t, len(codes.covariances) - 1)]
            leverage = np.minimum(np.sum((c @ H) * c, axis=1), MOST_LEVERAGE)
            errors[own] /= np.sqrt(1.0 - leverage)
        found[here][owner, features] = errors
    return found
