"""Gaps that are too long are found piece by piece as in the whole table."""

import numpy as np
import pytest

from omfb.estimators.known import Limits, LongGaps


@pytest.mark.parametrize("limit", [1, 4, "3h", "30h"])
@pytest.mark.parametrize("cuts", [[], [1], [7, 8, 9, 40], list(range(1, 60))])
def test_long_gaps_do_not_depend_on_the_cuts(limit, cuts):
    rng = np.random.default_rng(0)
    missing = np.cumsum(rng.normal(size=(60, 5)), axis=0) > 0.0
    missing[:, 3] = True
    missing[:, 4] = rng.random(60) < 0.5
    times = np.cumsum(3600.0 * rng.integers(1, 5, 60))
    limits = Limits(limit, None)
    expected = limits.left(missing, None, np.ones(5), times)
    gaps = LongGaps(limits, 5)
    for part, at in zip(np.split(missing, cuts), np.split(times, cuts), strict=True):
        gaps.add(part, at)
    gaps.end()
    assert expected.any()
    assert not expected.all()
    found = [
        gaps.within(first, len(part))
        for first, part in zip([0, *cuts], np.split(missing, cuts), strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(found), expected)
