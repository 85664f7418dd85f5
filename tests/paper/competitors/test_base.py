"""What both competitors promise."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from omfb.paper.competitors import NMF, SGMF

from .making import low_rank, with_missing


@parametrize_with_checks([NMF(max_iter=20), SGMF()])
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [NMF, SGMF])
def test_warm_start_goes_on_where_it_ended(rng, kind):
    X = with_missing(low_rank(rng), rng)
    whole = kind(3, max_iter=6, random_state=0).fit(X)
    parts = kind(3, max_iter=2, random_state=0, warm_start=True)
    for _ in range(3):
        parts.fit(X)
    np.testing.assert_array_equal(parts.components_, whole.components_)
    np.testing.assert_array_equal(parts.codes_, whole.codes_)
    assert parts.n_iter_ == whole.n_iter_ == 6
    with pytest.raises(ValueError, match="same rows"):
        parts.fit(X[:5])


@pytest.mark.parametrize("kind", [NMF, SGMF])
def test_input_stays_as_it_is_and_float32_stays_float32(rng, kind):
    X = with_missing(low_rank(rng), rng).astype(np.float32)
    before = X.copy()
    model = kind(3, max_iter=3, random_state=0).fit(X)
    np.testing.assert_array_equal(X, before)
    assert model.components_.dtype == model.codes_.dtype == model.complete(X).dtype == np.float32
