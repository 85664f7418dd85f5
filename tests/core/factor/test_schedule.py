"""How long batches are, when M-steps come, and how fast early rows fade."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omfb.core.factor.config import FactorConfig
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.init import init
from omfb.core.factor.schedule import batch_rows, fading, update_rows
from omfb.core.factor.step import step

from .making import config, table

DEFAULT = FactorConfig()
counts = st.integers(0, 10**9)


@given(counts, st.booleans())
def test_batches_stay_within_their_bounds(n_seen, has_missing):
    least, most = (16, 256) if has_missing else (256, 1024)
    rows = batch_rows(n_seen, has_missing, DEFAULT)
    assert least <= rows <= most
    assert rows % 16 == 0
    assert rows == least or rows <= n_seen / 32  # a small share of the rows before


@given(counts, counts, st.booleans())
def test_batches_never_become_shorter(n_seen, more, has_missing):
    later = batch_rows(n_seen + more, has_missing, DEFAULT)
    assert later >= batch_rows(n_seen, has_missing, DEFAULT)


@given(counts, st.booleans(), st.floats(0.5, 0.99999))
def test_a_batch_is_at_most_a_quarter_of_what_is_remembered(n_seen, has_missing, forget_factor):
    rows = batch_rows(n_seen, has_missing, FactorConfig(forget_factor=forget_factor))
    assert 1 <= rows <= max(1.0, 0.25 / (1.0 - forget_factor) + 0.5)


@given(counts, st.integers(1, 100), st.sampled_from([16, 64, 256, 1024]))
def test_m_steps_come_after_whole_batches(n_seen, n_components, batch):
    for given_ in (DEFAULT, FactorConfig(forget_factor=0.99)):
        rows = update_rows(n_seen, n_components, batch, given_)
        assert rows % batch == 0
        assert rows >= max(64, 4 * n_components)
        if given_.forget_factor < 1.0:
            assert rows < max(64, 16 * n_components) + batch
        else:
            assert rows >= n_seen // 16


def test_without_missing_entries_early_rows_fade_slower():
    slow, few = fading(0.0, 20, DEFAULT), fading(0.05, 20, DEFAULT)
    fast = fading(0.1, 20, DEFAULT)
    assert slow == (1.0, 100.0)
    assert fast == (2.0, 50.0)  # at least 50 rows
    assert few == pytest.approx((1.5, 60.0))
    assert fading(0.9, 20, DEFAULT) == fast


def test_the_schedule_is_read_from_the_config():
    hyper = Hyper(first_batch=4, last_batch=8, fade=(0.5, 3.0), least_update=10)
    given_ = FactorConfig(hyper=hyper)
    assert batch_rows(0, True, given_) == 4
    assert batch_rows(10**6, True, given_) == 8
    assert update_rows(0, 1, 1, given_) == 10
    assert fading(0.0, 1, given_)[0] == 0.5
    assert fading(0.5, 1, given_)[0] == 3.0


def test_a_state_counts_down_to_its_next_batch_and_m_step():
    X = table(0, 300, 6, 0.1)
    state = init(X, config())
    first = state.schedule
    assert first.batch_left == batch_rows(0, True, state.config)
    after = step(state, X[: first.batch_left - 1])[0].schedule
    assert after.batch_left == 1
    assert after.update_left == first.update_left - first.batch_left + 1
    v = state.params.v
    state = step(state, X[: first.update_left - 1])[0]
    assert state.params.v is v  # no M-step yet
    state = step(state, X[:1])[0]
    assert state.params.v is not v
    assert state.schedule.batch_left == batch_rows(first.update_left, True, state.config)
