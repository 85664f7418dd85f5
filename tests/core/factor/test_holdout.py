"""Which entries are held out: the same in every pass and form, and none is ever learned."""

import numpy as np
import pytest

from omfb.core.blocks import sparse_with_holes
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.holdout import hold_out, sample_masks, will_score
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.init import init
from omfb.core.factor.state import evolve
from omfb.core.factor.step import step

from .making import assert_identical, learned, table, whiten


def held_out_entries(state, X, numbers=None):
    """Which entries of X are held out, as flags."""
    gone = np.zeros(X.shape, bool)
    numbers = np.arange(len(X)) if numbers is None else numbers
    for t, features in hold_out(state, X, numbers)[0]:
        gone[t, features] = True
    return gone


@pytest.mark.parametrize("m", [7, 300, 2000])
def test_complete_rows_hold_out_what_the_same_rows_do_as_a_list(rng, m):
    X = rng.standard_normal((200, 3)) @ rng.standard_normal((3, m)) + rng.standard_normal((200, m))
    state = step(init(X), X[:100])[0]
    assert not state.schedule.has_missing
    for score_all in (True, False):
        _, dense = hold_out(state, X, np.arange(len(X)), score_all=score_all)
        _, listed = hold_out(state, sparse_with_holes(X), np.arange(len(X)), score_all=score_all)
        np.testing.assert_array_equal(dense.position, listed.position)
        for one, other in ((dense.shown, listed.shown), (dense.held_out, listed.held_out)):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)


def test_the_same_entries_are_held_out_in_every_pass_and_order(rng):
    X = table(1, 400, 12, 0.2)
    state = init(X, FactorConfig(n_components=3))
    first = held_out_entries(state, X)
    assert 0.05 < first.any(axis=1).mean() < 0.2  # one row in eight
    order = rng.permutation(len(X))
    later = evolve(step(state, X)[0], pass_rows=400)
    for other in (later, step(later, X[order], numbers=order)[0]):
        np.testing.assert_array_equal(held_out_entries(other, X), first)
        np.testing.assert_array_equal(held_out_entries(other, X[order], order), first[order])


def test_what_is_shown_and_what_is_held_out_are_a_row_in_two_parts():
    X = table(2, 300, 10, 0.2)
    state = init(X, FactorConfig(n_components=3))
    gone = held_out_entries(state, X)
    _, rows = hold_out(state, X, np.arange(len(X)))
    holding = np.flatnonzero(gone.any(axis=1))
    assert len(holding) == len(rows.position) > 10
    for t, at in zip(holding, np.argsort(rows.position), strict=True):
        shown, hidden = rows.shown.part(at, at + 1), rows.held_out.part(at, at + 1)
        observed = np.flatnonzero(~np.isnan(X[t]))
        assert sorted([*shown.features, *hidden.features]) == observed.tolist()
        assert np.flatnonzero(gone[t]).tolist() == hidden.features.tolist()
        np.testing.assert_allclose(hidden.values, whiten(state, X[t])[hidden.features])
        assert len(shown.features) > 0


def test_nothing_that_is_held_out_is_learned():
    X = table(3, 300, 14, 0.2)
    given = FactorConfig(n_components=3)
    gone = held_out_entries(init(X, given), X)
    assert gone.sum() > 50
    other = np.where(gone, 1.2 * X + 1.0, X)
    first, second = init(X, given), init(other, given)
    assert_identical(first.params, second.params)
    (one, codes, _), (two, more, _) = step(first, X), step(second, other)
    np.testing.assert_array_equal(codes, more)
    for group in ("params", "stats", "schedule", "features", "batch"):
        assert_identical(getattr(one, group), getattr(two, group))
    assert one.holdout.sse[0, 0] < two.holdout.sse[0, 0]


def test_the_same_change_of_other_entries_is_learned():
    """The test above can fail: what is not held out does change the state."""
    X = table(3, 300, 14, 0.2)
    given = FactorConfig(n_components=3)
    kept = ~held_out_entries(init(X, given), X)
    other = X.copy()
    other[4, np.flatnonzero(kept[4])[:3]] *= 1.2
    assert not np.array_equal(learned(X, given).params.C, learned(other, given).params.C)


def test_complete_rows_are_scored_in_the_first_pass_only_and_learned_whole():
    X = table(4, 300, 9)
    state = init(X, FactorConfig(n_components=3))
    withheld, scored = hold_out(state, X, np.arange(len(X)))
    assert withheld == []
    assert scored is not None
    assert hold_out(evolve(state, pass_rows=300), X, np.arange(len(X))) == ([], None)


def test_after_the_first_rows_fewer_are_scored_but_as_many_held_out():
    X = table(5, 800, 9, 0.2)
    state = init(X, FactorConfig(n_components=3))
    later = evolve(state, n_seen=800)
    (held_out, all_rows), (same, some) = (
        hold_out(state, X, np.arange(len(X))),
        hold_out(later, X, np.arange(len(X))),
    )
    assert [t for t, _ in held_out] == [t for t, _ in same]
    assert 0 < len(some.position) < 0.2 * len(all_rows.position)
    assert len(hold_out(later, X, np.arange(len(X)), score_all=True)[1].position) == len(
        all_rows.position
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_no_row_holds_out_all_it_observes_or_shows_nothing(missing):
    X = table(6, 500, 3, missing)
    state = init(X, FactorConfig(n_components=2))
    _, rows = hold_out(state, X, np.arange(len(X)))
    assert (np.diff(rows.shown.starts) > 0).all()
    assert (np.diff(rows.held_out.starts) > 0).all()


def test_constant_features_are_shown_and_unknown_ones_are_neither(rng):
    X = rng.standard_normal((300, 8))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 2], X[:, 5] = 4.0, np.nan
    state = init(X, FactorConfig(n_components=2))
    assert state.features.constant[2]
    assert not state.features.known[5]
    later = X.copy()
    later[:, 5] = 1.0
    _, rows = hold_out(state, later, np.arange(len(X)))
    assert 2 in rows.shown.features
    assert 2 not in rows.held_out.features
    assert not {5} & {*rows.shown.features, *rows.held_out.features}


def test_masks_follow_the_missing_entries_of_the_head(rng):
    given = FactorConfig()
    seen = np.ones((100, 8), bool)
    seen[::3, 5:] = False
    masks = sample_masks(seen, given, rng)
    assert masks.shape == (16, 8)
    assert masks[:, :5].all()
    assert not masks[:, 5:].any()
    complete = sample_masks(np.ones((100, 8000), bool), given, rng)
    assert len(complete) == 2
    assert complete.mean() == pytest.approx(0.75, abs=0.02)
    half = FactorConfig(hyper=Hyper(holdout_share=0.5))
    sparse = sample_masks(rng.random((100, 8000)) < 0.1, half, rng)
    assert sparse.mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("every", [2, 8, 50])
def test_one_row_in_so_many_holds_out(every):
    X = table(7, 4000, 6, 0.2)
    given = FactorConfig(n_components=2, hyper=Hyper(holdout_every=every))
    states = [init(X, given, seed=seed) for seed in range(5)]
    shares = [held_out_entries(state, X).any(axis=1).mean() for state in states]
    assert np.mean(shares) == pytest.approx(1 / every, rel=0.25)
    assert len(set(shares)) > 1  # which rows they are depends on the seed


def test_equal_rows_do_not_hold_out_alike():
    X = np.tile(table(7, 1, 6), (800, 1))
    X[::50, :2] = np.nan
    gone = held_out_entries(init(X, FactorConfig(n_components=2)), X)
    assert 60 < gone.any(axis=1).sum() < 140
    assert len(np.unique(gone, axis=0)) > 1


def test_rows_of_later_passes_have_the_numbers_of_the_first():
    state = evolve(learned(table(8, 60, 4, 0.2)), pass_rows=60)
    np.testing.assert_array_equal(state.numbers(60), np.arange(60))
    np.testing.assert_array_equal(evolve(state, n_seen=200).numbers(2), [20, 21])
    np.testing.assert_array_equal(evolve(state, pass_rows=0).numbers(2), [60, 61])


def test_an_error_is_reported_where_thirty_rows_will_be_scored():
    X = table(8, 300, 6, 0.2)
    state = learned(X, FactorConfig(n_components=2))
    for rows, n_seen, enough in (
        (8 * 29, 0, False), (8 * 31, 0, True), (8 * 400, 800, False), (8 * 600, 800, True),
    ):  # fmt: skip
        assert will_score(evolve(state, pass_rows=rows, n_seen=n_seen)) == enough
    complete = learned(table(8, 300, 6), FactorConfig(n_components=2))
    assert not will_score(evolve(complete, pass_rows=10**6))
