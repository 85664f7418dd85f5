"""Patches of images: cut them out, gaps included, and put them back together.

>>> import numpy as np
>>> from omfb.images import extract_patches, reconstruct_from_patches
>>> image = np.arange(30.0).reshape(5, 6)
>>> image[1, 2] = np.nan
>>> patches = extract_patches(image, 3, step=2)
>>> patches.shape
(6, 9)
>>> same = reconstruct_from_patches(patches, image.shape, step=2)
>>> np.array_equal(same, image, equal_nan=True)
True
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .core.checks import checked_count

__all__ = ["extract_patches", "reconstruct_from_patches"]


def extract_patches(image: ArrayLike, patch_size: int, *, step: int = 1) -> NDArray[Any]:
    """Cut an image into square patches that overlap, one in a row.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        NaN is a missing pixel, and stays one. float32 stays float32; whole numbers become float64.
    patch_size : int
        Pixels of a side.
    step : int, default=1
        Pixels from one patch to the next, at most `patch_size`. The last patches of a row and of
        a column end at the edge, so that every pixel is in some patch.

    Returns
    -------
    patches : ndarray of shape (n_patches, patch_size * patch_size * channels)
        From left to right, then from top to bottom.
    """
    pixels = np.asarray(image)
    if pixels.dtype not in (np.float32, np.float64):
        pixels = pixels.astype(np.float64)
    corners = list(_corners(pixels.shape, patch_size, step))
    patches = [pixels[y : y + patch_size, x : x + patch_size].ravel() for y, x in corners]
    return np.array(patches)


def reconstruct_from_patches(
    patches: ArrayLike, image_shape: tuple[int, ...], *, step: int = 1
) -> NDArray[Any]:
    """Put patches back together: a pixel is the mean over the patches that have it.

    Parameters
    ----------
    patches : array of shape (n_patches, patch_size * patch_size * channels)
        As `extract_patches` cuts them, in that order. NaN does not enter a mean.
    image_shape : tuple of int
        Shape of the image, (height, width) or (height, width, channels).
    step : int, default=1
        As it was given to `extract_patches`.

    Returns
    -------
    image : ndarray of shape image_shape
        NaN where all patches have NaN.
    """
    rows = np.asarray(patches)
    channels = int(np.prod(image_shape[2:], dtype=int))
    size = round((rows.shape[-1] / max(channels, 1)) ** 0.5) if rows.ndim == 2 else 0
    if rows.ndim != 2 or size < 1 or size * size * channels != rows.shape[1]:
        raise ValueError(
            f"patches has shape {rows.shape}, which are no square patches of an image of shape "
            f"{tuple(image_shape)}: give what extract_patches returned."
        )
    corners = list(_corners(image_shape, size, step))
    if len(corners) != len(rows):
        raise ValueError(
            f"patches has {len(rows)} rows, but an image of shape {tuple(image_shape)} has "
            f"{len(corners)} patches of {size} x {size} pixels with step={step}."
        )
    total, count = np.zeros(image_shape), np.zeros(image_shape)
    for (y, x), row in zip(corners, rows, strict=True):
        patch = row.reshape(size, size, *image_shape[2:])
        known = ~np.isnan(patch)
        total[y : y + size, x : x + size] += np.where(known, patch, 0.0)
        count[y : y + size, x : x + size] += known
    kind = rows.dtype if rows.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    mean = np.divide(total, count, out=np.full(image_shape, np.nan), where=count > 0)
    return mean.astype(kind)


def _corners(shape: tuple[int, ...], patch_size: int, step: int) -> Iterator[tuple[int, int]]:
    """The upper left corners of the patches of an image."""
    patch_size = checked_count("patch_size", patch_size, "pixels of a side")
    step = checked_count("step", step, "pixels from one patch to the next")
    if step > patch_size:
        raise ValueError(
            f"step={step} is larger than patch_size={patch_size}: no patch has the pixels between."
        )
    if len(shape) not in (2, 3):
        raise ValueError(
            f"image must have the shape (height, width) or (height, width, channels), not {shape}."
        )
    if min(shape[:2]) < patch_size or min(shape) < 1:
        raise ValueError(f"patch_size={patch_size} is larger than the image, {shape[:2]}.")
    for y in _starts(shape[0] - patch_size, step):
        for x in _starts(shape[1] - patch_size, step):
            yield y, x


def _starts(last: int, step: int) -> list[int]:
    starts = list(range(0, last + 1, step))
    return starts if starts[-1] == last else [*starts, last]
