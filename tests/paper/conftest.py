"""Images for the tests of the paper."""

from dataclasses import replace

import pytest

from omfb.paper.experiments.images import Images, load_images, photographs


@pytest.fixture(scope="session")
def tiles() -> Images:
    """Some of the tiles of the photographs: enough to learn from, and quick."""
    images = photographs()
    return replace(images, rows=images.rows[::5], n_components=10, warning="only photographs")


@pytest.fixture
def images(faces) -> Images:
    """The faces, or the test is skipped."""
    return load_images()
