"""Drift: errors of every row before it is learned, alarms, and what they make a model forget."""

from itertools import pairwise

import numpy as np
import pytest

from omfb.core.factor.config import FactorConfig
from omfb.core.factor.drift import end_fit, follow_rows, forget, is_alarmed, rescaled
from omfb.core.factor.e_step import encode_rows
from omfb.core.factor.init import init
from omfb.core.factor.robust import clip_rows
from omfb.core.factor.state import Drift, evolve
from omfb.core.factor.step import end_batch, step
from omfb.core.linalg.drift import COUNT, MEAN, MEMORY, UNIT, page

from ...reference_factor import leave_one_out_errors, page_alarms
from .making import assert_same, learned, table

AUTO = FactorConfig(n_components=3, forget_factor="auto")


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_leave_one_out_errors_are_those_of_codes_without_the_entry(missing, noise):
    X = table(0, 300, 8, missing)
    state = learned(X, FactorConfig(n_components=3, noise=noise))
    state = evolve(end_batch(state), Sigma=np.zeros_like(state.batch.Sigma))
    rows = clip_rows(state, X[:20])
    found = encode_rows(state, rows, leave_out=True).left_out
    params = state.params
    for t, y in enumerate((X[:20] - params.center) / params.noise_std):
        errors = leave_one_out_errors(params.C, state.one, y)
        seen = ~np.isnan(y)
        unit = (params.noise_std / params.scale)[seen]
        deviations = y[seen] - state.one * params.C[seen, -1]
        expected = [np.mean((unit * e) ** 2) for e in (errors[seen], deviations)]
        np.testing.assert_allclose(found[t], expected, rtol=1e-6)


def test_some_entries_of_wide_rows_are_left_out_in_turns():
    X = table(1, 300, 400, 0.1)
    config = FactorConfig(n_components=100)
    state = init(X, config)
    rows = clip_rows(state, X[:40])
    here = encode_rows(state, rows, leave_out=True).left_out
    later = encode_rows(evolve(state, n_seen=7), rows, leave_out=True).left_out
    assert (here > 0.0).all()
    assert not np.allclose(here[:, 0], later[:, 0])
    assert 0.5 < here[:, 0].mean() / later[:, 0].mean() < 2.0


def test_the_test_is_that_of_page():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(0.3, 1.4, 600), rng.normal(3.0, 1.0, 50), rng.normal(0, 1, 300)])
    memory, alarms = np.zeros(MEMORY), []
    for t, value in enumerate(z):
        if page.py_func(memory, value, 2.0, 1000.0, 100.0, 3.0, 0.5, 10.0):
            alarms.append(t)
    assert alarms == page_alarms(z, 1000.0, 100.0, 3.0, 0.5, 10.0)
    assert 600 < alarms[0] < 620


CHANGES = {
    "subspace": lambda rng, X: X @ rng.normal(size=(8, 8)),
    "mean": lambda rng, X: X + 1.5 * rng.choice([-1.0, 1.0], 8),
    "noise": lambda rng, X: X + 1.5 * rng.normal(size=X.shape),
}


def stream(change, missing, n=700):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2 * n, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(2 * n, 8))
    X[n:] = change(rng, X[n:])
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_are_noticed_within_50_rows(change, missing):
    X = stream(change, missing)
    alarms = learned(X, FactorConfig(n_components=3)).drift.alarms
    assert 700 < alarms[0] <= 750


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_rows_that_stay_alike_raise_no_alarm(missing):
    X = table(5, 4000, 8, missing)
    assert len(learned(X, FactorConfig(n_components=3)).drift.alarms) == 0


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_auto_does_not_depend_on_how_the_stream_is_cut(missing):
    X = stream(CHANGES["subspace"], missing)
    at_once = step(init(X, AUTO), X)[0]
    assert len(at_once.drift.alarms) > 0
    assert at_once.drift.origin == at_once.drift.alarms[-1]
    cut = init(X, AUTO)
    bounds = [0, 1, 50, 400, 699, 700, 701, 703, 704, 705, 706, 720, 1100, 1400]
    for start, stop in pairwise(bounds):
        cut = step(cut, X[start:stop])[0]
    np.testing.assert_array_equal(cut.drift.alarms, at_once.drift.alarms)
    assert_same(cut, at_once, 1e-5)


def test_an_alarm_makes_auto_forget_and_others_go_on():
    X = stream(CHANGES["subspace"], 0.2)
    auto, never = (learned(X, config) for config in (AUTO, FactorConfig(n_components=3)))
    assert auto.stats.n_rows < 0.7 * never.stats.n_rows
    assert auto.holdout.sse[1, 0] < 0.9 * never.holdout.sse[1, 0]
    before = learned(X[:700], AUTO)
    after = forget(before)
    assert after.age == 0
    assert after.stats.n_rows == pytest.approx(AUTO.hyper.drift_rows_left)
    assert not is_alarmed(before)


def test_a_rescaled_noise_changes_what_is_usual_with_it():
    """The same rows are as usual after an M-step has changed their unit."""
    memory = np.zeros(MEMORY)
    memory[[COUNT, UNIT]] = 500.0, 4.0
    memory[MEAN] = 4.0 * (1.3 ** (1.0 / 3.0) - 1.0)  # energies of 1.3 in place of 1
    changed = rescaled(Drift(memory), np.full(5, 2.0)).memory
    assert changed[MEAN] == pytest.approx(4.0 * ((1.3 / 4.0) ** (1.0 / 3.0) - 1.0))
    assert rescaled(Drift(), np.full(5, 2.0)).memory[MEAN] == 0.0


def test_passes_over_the_same_rows_are_not_followed():
    X = table(0, 600, 8, 0.2)
    state = evolve(learned(X, AUTO), pass_rows=600)
    again = step(state, X)[0]
    np.testing.assert_array_equal(again.holdout.sse[1], state.holdout.sse[1])
    np.testing.assert_array_equal(again.drift.memory[: COUNT + 1], state.drift.memory[: COUNT + 1])


def test_a_long_fit_knows_what_is_usual_and_a_short_one_does_not():
    short, long = (end_fit(learned(table(0, n, 6, 0.1), AUTO)) for n in (600, 2000))
    assert not short.drift.memory.any()
    assert long.drift.memory[COUNT] == AUTO.hyper.drift_burn_in
    nothing = np.zeros(40)
    energies = np.full(40, 100.0)
    flags = follow_rows(long, energies, np.full(40, 4.0), np.zeros((40, 2)))[2].alarms
    assert len(flags) == 1
    quiet = follow_rows(long, nothing, nothing, np.zeros((40, 2)))[2]
    assert len(quiet.alarms) == 0
