"""The images: the Olivetti faces, or digits where the faces cannot be had."""

import contextlib
import io
import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_olivetti_faces, load_digits

# scikit-learn divides by the largest grey level in the file of faces, which is 242 of 255. With
# pixels of [0, 1] that mean grey level / 255 the paper's errors come back.
LARGEST_GREY = 242
GREY_LEVELS = 255
LARGEST_DIGIT = 16
# As many digits as there are faces.
N_IMAGES = 400


@dataclass(frozen=True)
class Images:
    """Images in rows.

    Attributes
    ----------
    name : str
        What they are.
    rows : ndarray of shape (n_images, height * width), float32
        Pixels: grey level / 255.
    shape : (int, int)
        Height and width.
    n_components : int
        Atoms to learn.
    warning : str
        Why these are not the images of the paper; empty if they are.
    """

    name: str
    rows: NDArray[np.float32]
    shape: tuple[int, int]
    n_components: int = 30
    warning: str = ""


def load_images() -> Images:
    """The Olivetti faces; where they can be neither found nor downloaded, digits."""
    try:
        # The download talks on stdout and retries with warnings: one line of ours says it all.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            faces = fetch_olivetti_faces(delay=0.1, n_retries=1)
    except OSError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        warning = (
            f"NOT THE PAPER'S DATA: the Olivetti faces could be neither found nor downloaded "
            f"({reason}). These results are for scikit-learn's digits, 8 × 8 pixels."
        )
        return replace(digits(), warning=warning)
    rows = faces.data.astype(np.float32) * np.float32(LARGEST_GREY / GREY_LEVELS)
    return Images("Olivetti faces", rows, (64, 64))


def digits() -> Images:
    """The digits that scikit-learn brings with it; of 64 pixels, 30 atoms would be too many."""
    rows = load_digits().data[:N_IMAGES].astype(np.float32) / np.float32(LARGEST_DIGIT)
    return Images("scikit-learn's digits", rows, (8, 8), n_components=10)


def missing_block(images: Images, rng: np.random.Generator) -> NDArray[np.bool_]:
    """True where a quarter of each image is missing: a block of adjacent pixel columns.

    The block is as high as the image and lies anywhere within it.
    """
    height, width = images.shape
    wide = width // 4
    starts = rng.integers(0, width - wide + 1, size=len(images.rows))
    columns = np.arange(width)
    missing = (columns >= starts[:, None]) & (columns < starts[:, None] + wide)
    return np.repeat(missing[:, None], height, axis=1).reshape(len(images.rows), -1)
