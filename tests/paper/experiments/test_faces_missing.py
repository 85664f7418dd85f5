"""Experiment 2: its numbers and its claims."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from omfb.metrics import snr
from omfb.paper.competitors import NMF
from omfb.paper.experiments import faces_missing
from omfb.paper.experiments.images import missing_block, photographs
from omfb.report.outcome import Outcome


def incomplete_rows(images, repeat):
    missing = missing_block(images, np.random.default_rng([0, repeat]))
    return np.where(missing, np.float32(np.nan), images.rows)


def test_the_papers_omfb_is_reproduced(images):
    """Within 0.35 dB of the paper's number, in the mean over five masks as it is reported."""
    ratios = []
    for repeat in range(5):
        incomplete = incomplete_rows(images, repeat) * np.float32(255)
        paper = faces_missing.paper_model(images, repeat)
        *_, filled = faces_missing.fill_by_passes(paper, incomplete, range(30))
        ratios.append(snr(images.rows, filled / 255))
    assert np.mean(ratios) == pytest.approx(11.57, abs=0.35)


def test_memory_is_ahead_of_all_of_nmf_in_three_passes(images):
    """And NMF's 1000 iterations are within 0.35 dB of the paper's."""
    incomplete = incomplete_rows(images, 0)
    *_, filled = faces_missing.fill_by_passes(
        faces_missing.our_model(images, 0), incomplete, range(faces_missing.FEW_PASSES)
    )
    ours = snr(images.rows, filled)
    nmf = NMF(30, warm_start=True, random_state=0)
    with threadpool_limits(1):  # other tests run beside this one
        *_, filled = faces_missing.fill_by_iterations(nmf, incomplete, (1000,))
    assert snr(images.rows, filled) == pytest.approx(12.13, abs=0.35)
    assert ours > snr(images.rows, filled)


@pytest.fixture(scope="module")
def outcome(tiles) -> Outcome:
    return faces_missing.run(tiles, quick=True)


def test_missing_measures_every_method_on_every_mask(outcome):
    for method in (faces_missing.PAPER, faces_missing.OURS):
        curve = outcome.curve(method, "SNR")
        assert list(curve) == list(range(1, faces_missing.PASSES + 1))
        assert {len(values) for values in curve.values()} == {faces_missing.QUICK_MASKS}
    assert max(outcome.curve(faces_missing.MULTIPLICATIVE, "SNR")) == faces_missing.ITERATIONS
    kept = ~np.isnan(outcome.pictures[faces_missing.WITH_MISSING])
    for picture in outcome.pictures.values():
        original = outcome.pictures[faces_missing.ORIGINAL]
        np.testing.assert_allclose(picture[kept], original[kept], rtol=1e-6)


def test_photographs_decide_our_claim_alone(outcome):
    (claim,) = outcome.claims
    assert claim.text.endswith("than NMF after 1000 iterations (ours)")
    assert all("in the paper" not in row for row in outcome.table)


def test_a_full_run_on_the_faces_decides_on_the_papers_numbers_too(outcome):
    claims = faces_missing._claims(outcome, paper_too=True)
    assert len(claims) == 4
    assert {type(claim.confirmed) for claim in claims} == {bool}


def test_verdicts_follow_from_the_numbers():
    outcome = Outcome("x", "x", {})
    for repeat, (nmf, ours) in enumerate([(12.0, 12.5), (12.2, 12.1)]):
        outcome.add(faces_missing.ZERO, "SNR", 0, -4.6, repeat)
        outcome.add(faces_missing.PAPER, "SNR", 30, 11.3, repeat)
        outcome.add(faces_missing.MULTIPLICATIVE, "SNR", 1000, nmf, repeat)
        outcome.add(faces_missing.OURS, "SNR", faces_missing.FEW_PASSES, ours, repeat)
    claims = faces_missing._claims(outcome, paper_too=True)
    assert [claim.confirmed for claim in claims] == [False, True, True, False]
    assert claims[-1].measured == "1 of 2 masks"


def test_filling_beats_the_mean_image_and_does_not_get_worse():
    """Also where there are no faces: the photographs' own rank and ridge suit them."""
    outcome = faces_missing.run(photographs(), quick=True)
    mean = np.mean(outcome.values(faces_missing.MEAN_IMAGE, "SNR"))
    first, last = (np.mean(outcome.values(faces_missing.OURS, "SNR", at)) for at in (1, 4))
    assert first > mean + 10
    assert last > first - 0.02
    assert last > np.mean(outcome.values(faces_missing.MULTIPLICATIVE, "SNR"))
