"""A photograph is restored where it is missing, and nowhere else."""

import numpy as np

from omfb.demo import photograph


def test_a_picture_of_few_kinds_of_patches_comes_back(rng):
    waves = np.sin(np.arange(48) / 3)[:, None, None] * np.cos(np.arange(61) / 4)[:, None]
    original = 0.5 + 0.4 * waves * np.array([1.0, 0.8, 0.5])
    missing = rng.random(original.shape[:2]) < 0.5
    incomplete = np.where(missing[..., None], np.nan, original)
    restored = photograph.from_patches(incomplete, 0)
    np.testing.assert_array_equal(restored[~missing], original[~missing])
    error = np.sqrt(np.mean((restored - original)[missing] ** 2))
    assert error < 0.1 * original.std()


def test_patches_reach_the_last_pixel():
    for length in (8, 9, 12, 13, 427):
        starts = photograph._starts(length)
        covered = {start + k for start in starts for k in range(photograph.SIDE)}
        assert covered == set(range(length))


def test_interpolation_leaves_nothing_missing(rng):
    original = rng.random((20, 30, 3))
    incomplete = np.where(rng.random((20, 30, 1)) < 0.7, np.nan, original)
    assert not np.isnan(photograph._interpolated(incomplete, 0)).any()


def test_every_method_is_judged_by_the_missing_pixels_alone():
    original = photograph.photograph()[80:144, 100:180]
    outcome = photograph.run(original)
    missing = np.isnan(outcome.pictures[photograph.INCOMPLETE])
    for method in outcome.methods(photograph.PSNR):
        errors = (outcome.pictures[method] - original)[missing]
        assert outcome.values(method, photograph.PSNR)[0] == photograph._psnr(errors)
