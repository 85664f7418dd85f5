"""The error of predictions over the rows, as a fitted model remembers it."""

import numpy as np
import pytest

from omfb import OMFB, OnlineFactorAnalysis
from omfb.core.info import Info
from omfb.estimators.error_trace import MAX_POINTS, MIN_ROWS, ErrorTrace
from omfb.learner.snapshot import Learned


class State:
    def __init__(self, n_seen):
        self.n_seen = n_seen


def test_points_are_errors_of_the_rows_since_the_point_before():
    trace = ErrorTrace()
    for n_seen, residual, energy in [(20, 4.0, 16.0), (40, 5.0, 32.0), (60, 9.0, 36.0)]:
        trace.note(Learned(State(n_seen), Info(residual, energy)))
    np.testing.assert_allclose(trace.points(), [[20, 0.5], [40, 0.25], [60, 1.0]])
    trace.note(Learned(State(80), Info(1.0, 4.0)))  # another pass
    np.testing.assert_allclose(trace.points()[-1], [80, 0.5])
    trace.note(Learned(State(100), Info(1.0, 4.0)))  # rows that were not scored
    assert len(trace.points()) == 4


@pytest.mark.parametrize("n", [MAX_POINTS, MAX_POINTS + 1, 5000])
def test_a_long_history_keeps_all_energy_in_few_points(n):
    trace = ErrorTrace()
    for i in range(1, n + 1):
        trace.note(Learned(State(MIN_ROWS * i), Info(0.25 * i, float(i))))
    points = trace.points()
    assert len(points) <= MAX_POINTS
    np.testing.assert_allclose(points[:, 1], 0.5)
    assert (np.diff(points[:, 0]) > 0).all()
    assert points[-1, 0] > MIN_ROWS * (n - n // 100 - 2)


@pytest.mark.parametrize("make", [OnlineFactorAnalysis, lambda **p: OMFB(3, forget_factor=1, **p)])
def test_a_stream_ends_with_a_lower_error(make, rng):
    atoms = rng.standard_normal((3, 20))
    model = make(random_state=0)
    for _ in range(60):
        model.partial_fit(rng.standard_normal((20, 3)) @ atoms)
    points = model.error_history_
    assert points.shape == (len(points), 2)
    assert 1000 < points[-1, 0] <= 1200
    assert points[-1, 1] < points[0, 1]
    before = points.copy()
    model.transform(rng.standard_normal((5, 20)))
    np.testing.assert_array_equal(model.error_history_, before)


def test_a_fit_starts_a_new_history_and_files_have_none(rng, tmp_path):
    X = rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 20))
    model = OMFB(3, random_state=0)
    for _ in range(3):
        model.partial_fit(X)
    assert len(model.error_history_) == 3
    model.fit(X[:1000])
    assert model.error_history_[-1, 0] == 1000
    model.save(tmp_path / "m.omfb")
    assert OMFB.load(tmp_path / "m.omfb").error_history_.shape == (0, 2)
