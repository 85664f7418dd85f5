"""Mosaics and their PNG files, without matplotlib but read back by it."""

import io
import subprocess
import sys

import numpy as np
import pytest

from omfb.plots.mosaic import enlarged, png, stretched, tiled, turned_bright


@pytest.mark.parametrize("channels", [(), (4,)])
def test_every_image_is_where_it_belongs(rng, channels):
    images = rng.random((5, 3, 2, *channels))
    mosaic = tiled(images, 2, gap=2, background=0.5)
    assert mosaic.shape == (3 * (3 + 2) - 2, 2 * (2 + 2) - 2, *channels)
    inside = np.zeros(mosaic.shape[:2], bool)
    for number, image in enumerate(images):
        top, left = number // 2 * 5, number % 2 * 4
        np.testing.assert_array_equal(mosaic[top : top + 3, left : left + 2], image)
        inside[top : top + 3, left : left + 2] = True
    assert (mosaic[~inside] == 0.5).all()


@pytest.mark.parametrize(("n", "shape"), [(1, (4, 4)), (12, (8, 8)), (30, (3, 12)), (7, (20, 2))])
def test_without_columns_the_grid_is_about_square(n, shape):
    height, width = tiled(np.zeros((n, *shape))).shape
    assert height * width >= n * shape[0] * shape[1]
    assert abs(height - width) <= shape[0] + shape[1] + n


def test_atoms_are_stretched_and_turned_bright():
    atoms = np.array([[-3.0, -1.0, 0.0], [5.0, 5.0, 5.0]])
    np.testing.assert_allclose(
        stretched(turned_bright(atoms)), [[1.0, 1 / 3, 0.0], [0.0, 0.0, 0.0]]
    )
    np.testing.assert_allclose(stretched(atoms)[0], [0.0, 2 / 3, 1.0])


def test_enlarging_repeats_pixels_and_makes_no_new_ones(rng):
    pixels = rng.random((3, 5, 4))
    large = enlarged(pixels, 12)
    assert large.shape == (9, 15, 4)
    np.testing.assert_array_equal(large[1::3, 1::3], pixels)
    assert set(np.unique(large)) == set(np.unique(pixels))
    np.testing.assert_array_equal(enlarged(pixels, 2), pixels)


@pytest.mark.parametrize("channels", [(), (4,)])
def test_a_png_file_holds_the_image(rng, channels):
    imread = pytest.importorskip("matplotlib.image").imread
    pixels = rng.integers(0, 256, (7, 11, *channels)) / 255
    np.testing.assert_allclose(imread(io.BytesIO(png(pixels))), pixels, atol=1e-6)
    assert png(np.array([[-1.0, 2.0]])) == png(np.array([[0.0, 1.0]]))  # clipped


def test_neither_mosaics_nor_importing_plots_needs_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy, omfb.plots\n"
        "from omfb.plots.mosaic import png, tiled\n"
        "assert png(tiled(numpy.zeros((2, 3, 3))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
