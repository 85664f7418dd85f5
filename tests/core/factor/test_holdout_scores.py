"""Scores are the errors of held-out entries, predicted by the naive equations."""

import numpy as np
import pytest

from omfb.core.conformal import binned
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.holdout import hold_out
from omfb.core.factor.holdout_scores import rescore, score
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch
from omfb.core.linalg.rows import Rows

from ... import reference_factor as reference
from .making import assert_identical, learned, table


@pytest.fixture
def state():
    return end_batch(learned(table(0, 400, 9, 0.2), FactorConfig(n_components=3)))


def naive_scores(state, rows):
    """Standardised errors, weights, and squared errors of each row, in the order of time."""
    params, shares = state.params, 1.0 / state.batch.inverse_coverage
    found = []
    for at in np.argsort(rows.position):
        shown, hidden = rows.shown.part(at, at + 1), rows.held_out.part(at, at + 1)
        y = np.full(len(params.C), np.nan)
        y[shown.features] = shown.values
        mean, variance = reference.predictive(params.C, state.batch.Sigma, shares, 1.0, y)
        which = hidden.features
        unit = (params.noise_std / params.scale)[which]
        errors, of_mean = hidden.values - mean[which], hidden.values - params.C[which, -1]
        sizes = np.abs(errors) / np.sqrt(variance[which])
        found.append((sizes, np.mean((errors * unit) ** 2), np.mean((of_mean * unit) ** 2)))
    return found


def test_scores_are_errors_of_the_naive_predictions(state):
    fresh = evolve(state, n_scored=0, sse=np.zeros((2, 2)), histogram=0.0 * state.holdout.histogram)
    _, rows = hold_out(fresh, table(0, 400, 9, 0.2), np.arange(400))
    scored = score(fresh, rows)
    expected = naive_scores(fresh, rows)
    assert scored.holdout.n_scored == len(expected) > 20
    total = np.sum([squares for _, *squares in expected], axis=0)
    np.testing.assert_allclose(scored.holdout.sse[0], total, rtol=1e-7)
    histogram = np.zeros_like(state.holdout.histogram)
    for number, (sizes, *_) in enumerate(expected):
        histogram *= 1.0 - 2.0 / (number + 50.0)
        histogram += binned(sizes, np.full(len(sizes), 1.0 / len(sizes)))
    np.testing.assert_allclose(scored.holdout.histogram, histogram, rtol=1e-7)


def test_scoring_in_parts_is_scoring_at_once(state):
    X = table(0, 400, 9, 0.2)
    in_parts = state = evolve(state, detect=True)
    for start in range(0, 400, 50):
        numbers = np.arange(start, start + 50)
        in_parts = score(in_parts, hold_out(state, X[numbers], numbers, score_all=True)[1])
    at_once = score(state, hold_out(state, X, np.arange(len(X)), score_all=True)[1])
    for name in ("histogram", "sse", "n_scored"):
        one, other = getattr(at_once.holdout, name), getattr(in_parts.holdout, name)
        np.testing.assert_allclose(one, other, rtol=1e-7, err_msg=name)
    np.testing.assert_allclose(at_once.outliers.votes, in_parts.outliers.votes, rtol=1e-7)


def test_scoring_changes_nothing_but_scores_and_votes(state):
    X = table(0, 400, 9, 0.2)
    scored = score(state, hold_out(state, X, np.arange(len(X)))[1])
    for group in ("params", "batch", "stats", "schedule", "features"):
        assert_identical(getattr(scored, group), getattr(state, group))
    assert score(state, None) is state


def test_rescoring_forgets_scores_before(state):
    X = table(0, 400, 9, 0.2)
    spoiled = evolve(state, n_scored=99, sse=np.full((2, 2), 1e9))
    assert_identical(rescore(spoiled, X).holdout, rescore(state, X).holdout)
    held_out, _ = hold_out(state, X, np.arange(len(X)), score_all=True)
    assert rescore(state, X).holdout.n_scored == len(held_out)


def test_held_out_entries_vote_for_dropping_where_spikes_spoil_codes(state, rng):
    """A spike among the entries that a row shows makes the plain prediction worse."""
    clean = table(0, 400, 9, 0.1)
    spiked = clean.copy()
    at = rng.integers(0, 9, 400)
    spiked[np.arange(400), at] += 11.0 * state.params.noise_std[at]
    votes = []
    for X in (clean, spiked):
        looking = evolve(state, detect=True, votes=np.zeros(3))
        rows = hold_out(looking, X, np.arange(len(X)), score_all=True)[1]
        votes.append(score(looking, rows).outliers.votes)
    assert votes[0][0] > 10
    assert abs(votes[0][1]) < 0.1 * votes[0][0]
    assert votes[1][1] > 0.1 * votes[1][0]


def test_held_out_outliers_do_not_count_where_outliers_are_dropped(state):
    X = table(0, 400, 9, 0.2)
    rows = hold_out(state, X, np.arange(len(X)), score_all=True)[1]
    where = {"drop": True, "sse": np.zeros((2, 2)), "n_scored": 0}
    values = rows.held_out.values.copy()
    values[rows.held_out.starts[:-1]] += 50.0
    starts, features, _ = rows.held_out
    spoiled = rows._replace(held_out=Rows(starts, features, values))
    plain, dropping = (
        score(evolve(state, **{**where, "drop": drop}), spoiled).holdout.sse[0, 0]
        for drop in (False, True)
    )
    honest = score(evolve(state, **where), rows).holdout.sse[0, 0]
    assert dropping <= 1.01 * honest
    assert plain > 10 * honest
