"""The settings that the paper leaves open were chosen as recorded."""

import numpy as np
import pytest

from omfb.paper.experiments import tuning
from omfb.paper.experiments.images import Images, missing_block, photographs


def test_grid_is_sorted_and_knows_what_diverged(tiles):
    trials = tuning.tune_sgmf(
        tiles.rows, "data", steps=(1.0, 1e6), code_steps=(0.1, 0.5), decays=(0.51,),
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


def test_the_ridge_is_chosen_without_looking_at_what_is_missing(tiles, rng):
    once = {"ridges": (0.1, 1.0), "passes": 1, "repeats": 1, "seed": 5}
    chosen = tuning.choose_ridge(tiles, **once)
    missing = missing_block(tiles, np.random.default_rng([5, 0]))
    junk = np.where(missing, np.float32(7.0), tiles.rows)
    spoiled = Images("junk", junk, tiles.shape, tiles.n_components)
    assert tuning.choose_ridge(spoiled, **once) == chosen


def test_the_recorded_ridges_are_the_best(images):
    for data in (images, photographs()):
        errors = tuning.choose_ridge(data)
        assert min(errors, key=errors.get) == data.ridge
