"""Experiment 1: its numbers and its claims."""

import numpy as np
import pytest

from omfb.metrics import projection_error
from omfb.paper.experiments import faces_online, tuning
from omfb.report.outcome import Outcome


@pytest.fixture(scope="module")
def online(tiles) -> Outcome:
    return faces_online.run(tiles, quick=True, seed=1)


def test_online_measures_every_method(online, tiles):
    (optimum,) = online.values(faces_online.OPTIMUM, "error")
    for name in faces_online.METHODS:
        errors, seconds = online.curve(name, "error"), online.curve(name, "seconds")
        assert list(errors) == list(seconds)
        assert max(errors) == faces_online.QUICK_PASSES
        assert min(min(errors.values())) >= optimum
        assert (np.diff([s[0] for s in seconds.values()]) > 0).all()
        last = projection_error(tiles.rows, online.atoms[name])  # of any unit: the same span
        assert errors[faces_online.QUICK_PASSES][0] == pytest.approx(last, rel=1e-4)


def test_online_own_codes_are_never_better_than_the_best(online):
    for name in (faces_online.SGMF_RANDOM, faces_online.SGMF_DATA):
        own = online.curve(name, faces_online.OWN_ERROR)
        assert all(own[at][0] >= online.curve(name, "error")[at][0] for at in own)


def test_online_halves_steps_that_diverge(tiles, monkeypatch):
    wild = {**tuning.SGMF_BEST_START, "step": 1e5}
    monkeypatch.setattr(faces_online, "SGMF_BEST_START", wild)
    monkeypatch.setattr(
        faces_online, "METHODS", {"wild": faces_online.METHODS[faces_online.SGMF_DATA]}
    )
    outcome = Outcome("x", "x", faces_online._settings(tiles, 3, 0))
    faces_online._learned(outcome, "wild", tiles, 3, 0, lambda items, part, total: iter(items))
    assert outcome.settings["wild"]["step"] < 1e5
    assert len(outcome.curve("wild", "error")) == 3


def test_same_seed_same_errors(tiles, online):
    again = faces_online.run(tiles, quick=True, seed=1)
    same = [n for n in online.numbers if n.measure != "seconds"]
    assert same == [n for n in again.numbers if n.measure != "seconds"]


def test_photographs_decide_our_claim_alone(online):
    """SGMF was tuned on the faces: elsewhere it would lose to no fair judgement."""
    assert [claim.text for claim in online.claims] == [
        "OMF-B with forget_factor=1 is within 1 % of the optimum after 3 passes (ours)"
    ]


@pytest.mark.parametrize(("passes", "decided"), [(faces_online.QUICK_PASSES, 1), (30, 5)])
def test_a_short_run_leaves_out_what_it_cannot_decide(online, passes, decided):
    claims = faces_online._claims(online, passes, on_faces=True)
    assert len(claims) == decided
    assert {type(claim.confirmed) for claim in claims} == {bool}
    assert any("ends lower" in claim.text for claim in claims) == (passes == 30)


def test_verdicts_follow_from_the_numbers():
    outcome = Outcome("x", "x", {})
    errors = dict(zip(faces_online.METHODS, (5.0, 6.0, 4.0, 1.02, 2.0, 2.0), strict=True))
    outcome.add(faces_online.OPTIMUM, "error", 0, 1.0)
    for name, error in errors.items():
        outcome.add(name, "error", 1, error)
        outcome.add(name, "seconds", 1, error)
    claims = faces_online._claims(outcome, 30, on_faces=True)
    # Lower than SGMF's 6; so also in its 6 seconds; SGMF took longer; 4 is lower; 2 % above.
    assert [claim.confirmed for claim in claims] == [True, True, False, False, False]
