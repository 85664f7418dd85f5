"""Patches of images with gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.image import extract_patches_2d

from omfb.images import extract_patches, reconstruct_from_patches


@given(
    st.integers(1, 14), st.integers(1, 14), st.sampled_from([(), (1,), (3,)]), st.integers(1, 6),
    st.integers(1, 8), st.integers(0, 2**32), st.sampled_from([np.float64, np.float32]),
)  # fmt: skip
def test_what_is_cut_is_put_back(height, width, channels, size, step, seed, dtype):
    rng = np.random.default_rng(seed)
    image = rng.normal(size=(height, width, *channels)).astype(dtype)
    image[rng.random(image.shape) < 0.2] = np.nan
    step = min(step, size)
    if size > min(height, width):
        with pytest.raises(ValueError, match="patch_size"):
            extract_patches(image, size, step=step)
        return
    patches = extract_patches(image, size, step=step)
    assert patches.dtype == dtype
    assert patches.shape[1] == size * size * np.prod(channels, dtype=int)
    again = reconstruct_from_patches(patches, image.shape, step=step)
    assert again.dtype == dtype
    np.testing.assert_allclose(again, image, rtol=1e-6)


def test_patches_are_those_of_scikit_learn(rng):
    image = rng.integers(0, 255, size=(9, 7, 3))
    ours = extract_patches(image, 4)
    np.testing.assert_array_equal(ours, extract_patches_2d(image, (4, 4)).reshape(len(ours), -1))


def test_a_pixel_is_the_mean_over_its_patches():
    patches = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, np.nan, 30.0, 40.0]])
    image = reconstruct_from_patches(patches, (2, 3))
    np.testing.assert_array_equal(image, [[1.0, 6.0, np.nan], [3.0, 17.0, 40.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: extract_patches(np.ones(5), 2), "image must have"),
        (lambda: extract_patches(np.ones((5, 5)), 0), "patch_size must be 1 or more"),
        (lambda: extract_patches(np.ones((5, 5)), 2, step=0), "step must be 1 or more"),
        (lambda: extract_patches(np.ones((5, 5)), 2, step=3), "step=3 is larger"),
        (lambda: reconstruct_from_patches(np.ones((4, 5)), (5, 5)), "no square patches"),
        (lambda: reconstruct_from_patches(np.ones((4, 4)), (5, 5)), "has 16 patches of 2 x 2"),
        (lambda: reconstruct_from_patches(np.ones(4), (5, 5)), "no square patches"),
    ],
)
def test_what_cannot_be_patches_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
