"""The images, and what is missing in them."""

import numpy as np
import pytest
from sklearn.datasets import load_sample_images

from omfb.paper.experiments.images import Images, load_images, missing_block, photographs


@pytest.fixture
def no_faces(monkeypatch, tmp_path):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing listens: no download anywhere


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
    assert np.linalg.norm(singular[30:]) == pytest.approx(72.25, abs=0.01)


def test_without_faces_there_are_photographs_and_a_warning(no_faces):
    images = load_images()
    assert images.warning.startswith("NOT THE PAPER'S DATA")
    assert "photographs" in images.name
    assert images.rows.shape == (2080, 256)
    assert images.rows.dtype == np.float32
    assert 0.0 <= images.rows.min() < 0.01
    assert 0.99 < images.rows.max() <= 1.0


def test_tiles_are_cut_out_of_the_photographs():
    images = photographs()
    china, flower = load_sample_images().images
    for number, tile in ((41, china[16:32, 16:32]), (26 * 40, flower[:16, :16])):
        red, green, blue = np.moveaxis(tile / 255, 2, 0)
        grey = images.rows[number].reshape(images.shape)
        np.testing.assert_allclose(grey, 0.299 * red + 0.587 * green + 0.114 * blue, atol=1e-6)
