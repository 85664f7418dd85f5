"""The last rounds of a fit solve each feature from the rows that observe it."""

import numpy as np
import pytest

from omfb.core.blocks import sparse_with_holes
from omfb.core.factor import refine
from omfb.core.factor.step import end_batch

from ... import reference_factor as reference
from .making import config, learned, table, whiten


@pytest.mark.parametrize("missing", [0.15, 0.7])
@pytest.mark.parametrize("sparse", [False, True])
def test_each_feature_is_solved_from_the_rows_that_observe_it(missing, sparse):
    X = table(9, 300, 8, missing)
    rows = sparse_with_holes(X) if sparse else X
    state = end_batch(learned(rows, config()))
    shares, C, Y = 1.0 / state.batch.inverse_coverage, state.params.C, whiten(state, X)
    for _ in range(refine.ROUNDS):
        S, right = np.zeros((8, 4, 4)), np.zeros((8, 4))
        for y in Y:
            x, covariance, _, _ = reference.code(C, state.batch.Sigma, shares, 1.0, y)
            for i in np.flatnonzero(~np.isnan(y)):
                S[i] += np.outer(x, x)
                S[i, :3, :3] += covariance
                right[i] += y[i] * x
        prior = np.diag(1 / state.params.v)
        C = np.array([np.linalg.solve(S[i] + prior, right[i]) for i in range(8)])
    np.testing.assert_allclose(refine.polished(state, rows).params.C, C, rtol=1e-6, atol=1e-8)
