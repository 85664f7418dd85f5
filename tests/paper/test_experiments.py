"""The experiments: their data, their measures, and the paper's numbers."""

import itertools

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from omfb.metrics import projection_error, relative_error, snr
from omfb.paper import faces_missing, faces_online, tuning
from omfb.paper.baselines import NMF
from omfb.paper.data import Images, digits, load_images, missing_block
from omfb.paper.results import Outcome, environment, mean_and_spread


@pytest.fixture(scope="module")
def few_digits() -> Images:
    return digits()


@pytest.fixture
def images(faces) -> Images:
    return load_images()


@pytest.fixture
def no_faces(monkeypatch, tmp_path):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing listens: no download anywhere


# -- measures -----------------------------------------------------------------------------------


def test_snr_is_its_formula(rng):
    truth = rng.random((7, 5))
    wrong = truth + 0.1 * rng.standard_normal((7, 5))
    noise = sum((a - b) ** 2 for a, b in zip(truth.flat, wrong.flat, strict=True)) / 35
    signal = sum((a - truth.sum() / 35) ** 2 for a in truth.flat) / 35
    assert snr(truth, wrong) == pytest.approx(10 * np.log10(signal / noise), abs=1e-11)
    assert snr(truth, truth) == np.inf


def test_errors_are_their_formulas(rng):
    rows, atoms = rng.random((9, 6)), rng.random((3, 6))
    codes = np.linalg.lstsq(atoms.T, rows.T, rcond=None)[0].T
    assert projection_error(rows, atoms) == pytest.approx(np.linalg.norm(rows - codes @ atoms))
    twice = np.concatenate([atoms, atoms])  # a dictionary without full rank explains no more
    assert projection_error(rows, twice) == pytest.approx(projection_error(rows, atoms))
    assert relative_error(rows, 0.9 * rows) == pytest.approx(0.1)


def test_values_are_the_last_or_those_asked_for():
    outcome = Outcome("x", {})
    for repeat, passes in itertools.product(range(2), (1, 2)):
        outcome.add("a", "error", passes, 10 * repeat + passes, repeat)
    assert outcome.values("a", "error") == [2, 12]
    assert outcome.values("a", "error", 1) == [1, 11]
    assert outcome.curve("a", "error") == {1: [1, 11], 2: [2, 12]}
    with pytest.raises(KeyError, match="after 3 passes"):
        outcome.values("a", "error", 3)


def test_spread_is_the_standard_deviation():
    assert mean_and_spread([-1.0, -3.0]) == "−2.00 ± 1.41"
    assert mean_and_spread([1.0]) == "1.00"


# -- data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "wide"), [((64, 64), 16), ((8, 8), 2)])
def test_a_quarter_of_each_image_is_missing_in_one_block(rng, shape, wide):
    images = Images("", np.zeros((400, shape[0] * shape[1]), np.float32), shape)
    missing = missing_block(images, rng).reshape(400, *shape)
    assert (missing == missing[:, :1]).all()  # the same columns in every line
    starts = missing[:, 0].argmax(axis=1)
    for line, start in zip(missing[:, 0], starts, strict=True):
        assert np.flatnonzero(line).tolist() == list(range(start, start + wide))
    assert starts.min() == 0
    assert starts.max() == shape[1] - wide


def test_faces_are_grey_levels_over_255(images):
    assert images.rows.shape == (400, 4096)
    assert not images.warning
    levels = images.rows.astype(np.float64) * 255
    np.testing.assert_allclose(levels, levels.round(), atol=1e-4)
    singular = np.linalg.svd(images.rows.astype(np.float64), compute_uv=False)
    assert np.linalg.norm(singular[30:]) == pytest.approx(72.25, abs=0.01)  # design page, 6


def test_without_faces_there_are_digits_and_a_warning(no_faces):
    images = load_images()
    assert images.warning.startswith("NOT THE PAPER'S DATA")
    assert images.rows.shape == (400, 64)
    assert (images.rows.min(), images.rows.max()) == (0.0, 1.0)


def test_environment_tells_versions_and_threads_but_no_name():
    import platform

    facts = environment()
    assert {"python", "omfb", "numpy", "numba", "threads", "cores", "processor"} <= set(facts)
    assert facts["threads"]
    if platform.node() not in ("", "localhost"):
        assert platform.node() not in str(facts)


# -- experiment 1 -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def online(few_digits) -> Outcome:
    return faces_online.run(few_digits, quick=True, seed=1)


def test_online_measures_every_method(online):
    (optimum,) = online.values(faces_online.OPTIMUM, "error")
    for name in faces_online.METHODS:
        errors, seconds = online.curve(name, "error"), online.curve(name, "seconds")
        assert list(errors) == list(seconds)
        assert max(errors) == faces_online.QUICK_PASSES
        assert min(min(errors.values())) >= optimum
        assert (np.diff([s[0] for s in seconds.values()]) > 0).all()
        last = projection_error(digits().rows, online.atoms[name])  # of any unit: the same span
        assert errors[faces_online.QUICK_PASSES][0] == pytest.approx(last, rel=1e-4)


def test_online_own_codes_are_never_better_than_the_best(online):
    for name in (faces_online.SGMF_RANDOM, faces_online.SGMF_DATA):
        own = online.curve(name, faces_online.OWN_ERROR)
        assert all(own[at][0] >= online.curve(name, "error")[at][0] for at in own)


def test_online_halves_steps_that_diverge(few_digits, monkeypatch):
    wild = {**tuning.SGMF_BEST_START, "step": 1e5}
    monkeypatch.setattr(faces_online, "SGMF_BEST_START", wild)
    monkeypatch.setattr(
        faces_online, "METHODS", {"wild": faces_online.METHODS[faces_online.SGMF_DATA]}
    )
    outcome = Outcome("x", faces_online._settings(few_digits, 3, 0))
    faces_online._learned(outcome, "wild", few_digits, 3, 0, lambda items, part, total: iter(items))
    assert outcome.settings["wild"]["step"] < 1e5
    assert len(outcome.curve("wild", "error")) == 3


def test_same_seed_same_errors(few_digits, online):
    again = faces_online.run(few_digits, quick=True, seed=1)
    same = [n for n in online.numbers if n.measure != "seconds"]
    assert same == [n for n in again.numbers if n.measure != "seconds"]


def test_a_quick_run_or_other_data_decides_nothing(online):
    assert [claim.holds for claim in online.claims] == [None] * len(online.claims)


# -- experiment 2 -------------------------------------------------------------------------------


def with_holes(images, repeat):
    missing = missing_block(images, np.random.default_rng([0, repeat]))
    return np.where(missing, np.float32(np.nan), images.rows)


def test_the_papers_omfb_comes_back(images):
    """Within 0.35 dB of the paper's number, in the mean over five masks as it is reported."""
    ratios = []
    for repeat in range(5):
        holes = with_holes(images, repeat) * np.float32(255)
        paper = faces_missing.paper_model(images, repeat)
        *_, filled = faces_missing.fill_by_passes(paper, holes, range(30))
        ratios.append(snr(images.rows, filled / 255))
    assert np.mean(ratios) == pytest.approx(11.57, abs=0.35)


def test_memory_is_past_all_of_nmf_in_three_passes(images):
    """And NMF's 1000 iterations are within 0.35 dB of the paper's."""
    holes = with_holes(images, 0)
    *_, filled = faces_missing.fill_by_passes(
        faces_missing.our_model(images, 0), holes, range(faces_missing.FEW_PASSES)
    )
    ours = snr(images.rows, filled)
    nmf = NMF(30, warm_start=True, random_state=0)
    with threadpool_limits(1):  # other tests run beside this one
        *_, filled = faces_missing.fill_by_iterations(nmf, holes, (1000,))
    assert snr(images.rows, filled) == pytest.approx(12.13, abs=0.35)
    assert ours > snr(images.rows, filled)


def test_missing_measures_every_method_on_every_mask(few_digits):
    outcome = faces_missing.run(few_digits, quick=True)
    plan = faces_missing.QUICK
    for method in (faces_missing.PAPER, faces_missing.MEMORY):
        curve = outcome.curve(method, "SNR")
        assert list(curve) == list(range(1, plan.passes + 1))
        assert {len(values) for values in curve.values()} == {plan.masks}
    assert max(outcome.curve(faces_missing.MULTIPLICATIVE, "SNR")) == plan.iterations
    kept = ~np.isnan(outcome.pictures[faces_missing.HOLES])
    for picture in outcome.pictures.values():
        original = outcome.pictures[faces_missing.ORIGINAL]
        np.testing.assert_allclose(picture[kept], original[kept], rtol=1e-6)


# -- tuning -------------------------------------------------------------------------------------


def test_grid_is_sorted_and_knows_what_diverged(few_digits):
    trials = tuning.tune_sgmf(
        few_digits.rows, "data", steps=(1.0, 1e6), code_steps=(0.1, 0.5), decays=(0.51,),
        passes=3, n_components=5,
    )  # fmt: skip
    errors = [trial.error for trial in trials]
    assert errors == sorted(errors)
    assert np.isfinite(errors[0])
    assert errors[-1] == np.inf
    assert trials[-1].parameters["step"] == 1e6


@pytest.mark.parametrize("best", [tuning.SGMF_BEST_START, tuning.SGMF_PAPER_START])
def test_recorded_steps_are_better_than_their_neighbours(images, best):
    near = [
        {"step": best["step"] / 3},
        {"code_step": best["code_step"] / 2},
        {"code_step": best["code_step"] * 2.5},
    ]

    def error(**other):
        at = {**best, **other}
        model = tuning.SGMF(30, batch_size=10, max_iter=30, random_state=0).set_params(**at)
        return tuning._try(model, images.rows, at).error

    reached = error()
    assert all(reached < error(**other) for other in near)


def test_the_ridge_is_chosen_without_looking_at_what_is_missing(few_digits, rng):
    once = {"ridges": (0.1, 1.0), "passes": 1, "repeats": 1, "seed": 5}
    chosen = tuning.choose_ridge(few_digits, **once)
    missing = missing_block(few_digits, np.random.default_rng([5, 0]))
    junk = np.where(missing, np.float32(7.0), few_digits.rows)
    spoiled = Images("junk", junk, few_digits.shape, few_digits.n_components)
    assert tuning.choose_ridge(spoiled, **once) == chosen
    assert tuning.MISSING_RIDGE in tuning.RIDGES
