"""What is found from the data at the end of a period and of a fit."""

import numpy as np
import pytest

from omfb import OMFBImputer


def low_rank(m, missing, n=6000):
    rng = np.random.default_rng(m)
    Y = rng.normal(size=(n, 5)) @ rng.normal(size=(5, m)) + 0.3 * rng.normal(size=(n, m))
    Y[rng.random(Y.shape) < missing] = np.nan
    return Y


@pytest.mark.parametrize(("m", "missing"), [(60, 0.1), (60, 0.5), (60, 0.8), (100, 0.9), (12, 0.3)])
def test_the_noise_is_found_however_much_is_missing(m, missing):
    """Also where rows have 10 entries and 5 components: codes take most of the residuals then."""
    model = OMFBImputer(random_state=0, max_iter=1).fit(low_rank(m, missing))
    assert 0.27 < np.sqrt(np.median(model.noise_variance_)) < 0.36


def test_components_that_follow_the_noise_are_spared():
    model = OMFBImputer(random_state=0).fit(low_rank(200, 0.1, 2000))
    assert model.n_components_ == 5
    assert np.count_nonzero(np.any(np.abs(model.components_) > 1e-9, axis=1)) == 5
