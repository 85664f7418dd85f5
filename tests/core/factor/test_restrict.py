"""Rows of few entries: learned among their own features as they are among all of them."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import scipy.sparse

from omfb.core.factor import engine, restrict
from omfb.core.factor.check import check_state
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.engine import FACTOR
from omfb.core.factor.init import init
from omfb.core.factor.state import settled
from omfb.core.factor.step import step

M = 300


def table(n, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(9).normal(size=(3, M))
    X = rng.normal(size=(n, 3)) @ loadings + 0.3 * rng.normal(size=(n, M))
    X[rng.random(X.shape) >= share] = np.nan
    X[:, 5] = np.where(np.isnan(X[:, 5]), np.nan, 2.0)  # constant
    X[:, 6] = np.round(X[:, 6])  # whole numbers
    return X


def entries(X):
    """Each row as a sparse matrix."""
    for y in X:
        seen = np.flatnonzero(~np.isnan(y)).astype(np.int32)
        yield scipy.sparse.csr_matrix((y[seen], seen, [0, len(seen)]), shape=(1, M))


def numbers(record, path=""):
    """All numbers of a state, by their names."""
    found = {}
    for each in fields(record):
        value, name = getattr(record, each.name), f"{path}.{each.name}"
        if is_dataclass(value) and each.name != "config":
            found |= numbers(value, name)
        elif isinstance(value, np.ndarray | float | int):
            found[name] = np.array(value)
    return found


def start(**given):
    X = table(500)
    X[:, 7] = np.nan  # nothing is known of it
    return step(init(X, FactorConfig(4, **given)), X)[0]


@pytest.mark.parametrize("given", [
    {}, {"noise": "isotropic"}, {"forget_factor": 0.99}, {"robust": False},
    {"forget_factor": "auto"}, {"center": False, "scale": False},
])  # fmt: skip
def test_a_row_is_learned_among_its_features_as_among_all(given, monkeypatch):
    one = other = start(**given)
    rows = table(150, share=0.1, seed=1)
    rows[40, 10], rows[60:75, 11] = 1e4, 60.0  # far off, once and for a while
    rows[20:, 5] = 3.0 + np.arange(130) % 2  # constant no more
    rows[30:, 6] += 0.5
    for row in entries(rows):
        one = step(one, row)[0]
        with monkeypatch.context() as patch:
            patch.setattr(restrict, "FEWEST_FEATURES", 10**9)
            other = step(other, row)[0]
        check_state(one)
    assert one.n_seen == other.n_seen == 650
    expected = numbers(other)
    for name, value in numbers(settled(one)).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-7, err_msg=name)


def test_a_row_leaves_the_state_as_it_was():
    state = start()
    before = {name: value.copy() for name, value in numbers(state).items()}
    for row in entries(table(20, share=0.1, seed=1)):
        step(state, row)
    for name, value in numbers(state).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_arrays_that_may_be_written_into_are_not_copied():
    state = start()
    at = 0
    for row in entries(table(100, share=0.1, seed=1)):
        begins = state.batch.C_batch is None
        arrays = FACTOR.arrays_of_step(state, row)
        state = step(state, row, reuse=True)[0]
        after = FACTOR.arrays_of_step(state, row)
        if not begins and state.batch.C_batch is not None:
            at += 1
            assert all(after[name] is array for name, array in arrays.items())
    assert at > 50


def test_other_rows_settle_what_rows_of_few_entries_have_left():
    few = next(entries(table(1, share=0.1, seed=1)))
    state = step(start(), few)[0]
    assert state.batch.count_fade < 1.0
    many = table(1, share=0.9, seed=2)
    expected = step(settled(state), many)[0]
    found = step(state, many)[0]
    for name, value in numbers(found).items():
        np.testing.assert_array_equal(value, numbers(expected)[name], err_msg=name)
    likelihoods = [
        engine.FACTOR.predict(each, many, std=True).std for each in (state, settled(state))
    ]
    np.testing.assert_array_equal(*likelihoods)


def test_few_entries_of_few_features_are_no_reason():
    row = next(entries(table(1, share=0.9, seed=1)))
    assert not restrict.has_few_entries(start(), row)
