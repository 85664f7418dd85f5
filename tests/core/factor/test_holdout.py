"""What rows hide is the same however it is listed."""

import numpy as np
import pytest
import scipy.sparse

from omfb.core.factor.config import Settings
from omfb.core.factor.holdout import hide
from omfb.core.factor.init import start
from omfb.core.factor.step import learn


@pytest.mark.parametrize("m", [7, 300, 2000])
def test_complete_rows_hide_what_the_same_rows_hide_as_a_list(rng, m):
    X = rng.standard_normal((200, 3)) @ rng.standard_normal((3, m)) + rng.standard_normal((200, m))
    model = learn(start(X, Settings(), 0), X[:100])[0]
    assert not model.gappy
    for look_at_all in (True, False):
        _, dense = hide(model, X, look_at_all=look_at_all)
        _, listed = hide(model, scipy.sparse.csr_array(X), look_at_all=look_at_all)
        assert dense is not None
        assert listed is not None
        np.testing.assert_array_equal(dense.turn, listed.turn)
        for one, other in ((dense.shown, listed.shown), (dense.away, listed.away)):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
