"""Gaps are hidden as it is said, and judged as they were hidden."""

import numpy as np
import pytest

from omfb.demo import air


def test_every_hidden_entry_is_known_and_in_one_kind_of_gap():
    table = air.table_with_gaps(0)
    assert sum(mask.astype(int) for mask in table.hidden.values()).max() == 1
    assert not np.isnan(table.truth[table.all_hidden]).any()
    assert np.isnan(table.seen[table.all_hidden]).all()
    kept = ~table.all_hidden
    np.testing.assert_array_equal(table.seen[kept], table.truth[kept])


def test_a_station_that_is_off_has_no_value():
    table = air.table_with_gaps(0)
    hours, columns = np.nonzero(table.hidden[air.OUTAGES])
    for hour, column in list(zip(hours, columns, strict=True))[::500]:
        station = table.names[column].split()[-1]
        others = [name.endswith(station) for name in table.names]
        assert np.isnan(table.seen[hour, others]).all()


def test_the_seed_decides_what_is_hidden():
    once, again, other = (air.table_with_gaps(seed).all_hidden for seed in (1, 1, 2))
    assert (once == again).all()
    assert (once != other).any()


def test_omfb_is_ahead_of_mean_and_line_and_its_intervals_are_honest(small, monkeypatch):
    monkeypatch.setattr(air, "METHODS", {air.LINEAR: air._linear, air.MEAN: air._mean})
    outcome, filled = air.run(small)
    assert [claim.confirmed for claim in outcome.claims] == [True, True, True]
    assert (filled.low <= filled.values).all()
    assert (filled.values <= filled.high).all()
    known = ~np.isnan(small.seen)
    np.testing.assert_array_equal(filled.values[known], small.seen[known])


@pytest.mark.parametrize(("theirs", "confirmed"), [(0.1, False), (0.3, True)])
def test_a_verdict_needs_both_errors_to_be_lower(monkeypatch, theirs, confirmed):
    monkeypatch.setattr(air, "METHODS", {"peer": air._mean})
    outcome = air.Outcome("x", "x", {})
    for method, errors in ((air.OURS, (0.5, 0.2)), ("peer", (0.6, theirs))):
        for measure, error in zip((air.RMSE, air.MAE), errors, strict=True):
            outcome.add(method, measure, 0, error)
    outcome.add(air.OURS, air.COVERAGE, 0, 0.8)
    assert [claim.confirmed for claim in air._claims(outcome)] == [confirmed, False]


def test_interpolation_is_linear_and_flat_at_the_ends():
    column = np.array([[np.nan], [1.0], [np.nan], [np.nan], [4.0], [np.nan]])
    np.testing.assert_allclose(air._linear(column, 0)[:, 0], [1, 1, 2, 3, 4, 4])
