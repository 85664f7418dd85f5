"""The end of a fit."""

import numpy as np
import pytest

from omfb.core.factor.config import FactorConfig
from omfb.core.factor.drift import end_fit
from omfb.core.factor.finalize import finalize, sample_rows
from omfb.core.factor.init import init
from omfb.core.factor.rank import active_components
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch, step

from .making import assert_identical, config, learned, table

GIVEN = FactorConfig(n_components=3)


def whole(X):
    """What `finalize` is given of a table: its rows, and their numbers."""
    return lambda: (X[:4096], np.arange(len(X))[:4096])


def not_asked():
    pytest.fail("no rows are needed")


def test_a_long_complete_stream_ends_as_it_is():
    X = table(0, 5000, 6)
    state = evolve(learned(X, GIVEN), pass_rows=5000)
    assert sample_rows(6) < 5000
    after = finalize(state, not_asked, not_asked)
    assert_identical(after, end_fit(evolve(end_batch(state), pass_rows=0)))


def test_rows_after_a_fit_are_new_ones():
    for n, missing in ((200, 0.0), (200, 0.2), (5000, 0.2)):
        X = table(1, n, 6, missing)
        state = evolve(learned(X, GIVEN), pass_rows=n)
        after = finalize(state, whole(X), not_asked)
        assert after.schedule.pass_rows == 0
        assert after.batch.C_batch is None


@pytest.mark.parametrize(("n", "refined"), [(300, True), (5000, False)])
def test_tables_that_are_shown_as_a_whole_are_refined_by_feature(n, refined):
    X = table(2, n, 6, 0.2)
    after = finalize(learned(X, GIVEN), whole(X), not_asked)
    assert (after.posterior is not None) == refined


def test_a_refined_table_is_calibrated_by_its_own_gaps():
    X = table(3, 400, 8, 0.2)
    state = learned(X, GIVEN)
    after = finalize(state, whole(X), not_asked)
    assert not np.array_equal(after.holdout.histogram, state.holdout.histogram)


def test_a_short_complete_table_is_refined():
    X = table(4, 200, 6)
    after = finalize(end_batch(learned(X, config(4))), whole(X), not_asked)
    assert after.posterior is not None
    assert active_components(after).sum() == 2


def test_a_wide_complete_table_is_solved_once_more():
    X = table(4, 200, 6)
    state = end_batch(learned(X, config(2, hyper={"refine_work": 0.0})))
    after = finalize(state, whole(X), not_asked)
    assert not np.array_equal(after.params.C, state.params.C)
    assert after.posterior is None
    np.testing.assert_allclose(after.batch.G, after.params.C.T @ after.params.C)


def test_the_first_rows_of_a_stream_end_like_a_table():
    """A stream of which nothing was learned but the head has a state to finalize all the same."""
    X = table(5, 50, 6, 0.2)
    after = finalize(step(init(X, GIVEN), X)[0], whole(X), not_asked)
    assert np.isfinite(after.params.C).all()


def test_a_sample_of_a_wide_table_has_fewer_rows():
    assert sample_rows(1) == sample_rows(100) == 4096
    assert sample_rows(1 << 12) == 512
    assert sample_rows(1 << 20) == 256
