"""Mosaics of small images, and PNG files of them, without a plotting package."""

import math
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def tiled(
    images: NDArray[Any], columns: int | None = None, *, gap: int = 1, background: Any = 0
) -> NDArray[Any]:
    """Lay images side by side in a grid.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width) or (n_images, height, width, n_channels)
    columns : int, optional
        Images per line of the grid; by default the grid is about square.
    gap : int, default=1
        Pixels between two images.
    background : scalar or sequence of n_channels, default=0
        The value of the gaps, and of the unused rest of the last line.

    Returns
    -------
    mosaic : ndarray of shape (height, width) or (height, width, n_channels)

    Examples
    --------
    >>> import numpy as np
    >>> tiled(np.array([[[1]], [[2]], [[3]]]), columns=2)
    array([[1, 0, 2],
           [0, 0, 0],
           [3, 0, 0]])
    """
    n, height, width = images.shape[:3]
    if columns is None:
        columns = max(1, round(math.sqrt(n * height / width)))
    lines = -(-n // columns)
    shape = (lines * (height + gap) - gap, columns * (width + gap) - gap, *images.shape[3:])
    mosaic = np.full(shape, background, images.dtype)
    for number, image in enumerate(images):
        top, left = number // columns * (height + gap), number % columns * (width + gap)
        mosaic[top : top + height, left : left + width] = image
    return mosaic


def stretched(atoms: NDArray[Any]) -> NDArray[np.float64]:
    """Scale each atom so that it runs from 0 to 1; a constant atom becomes 0.

    Parameters
    ----------
    atoms : ndarray of shape (n_atoms, ...)

    Returns
    -------
    stretched : ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> stretched(np.array([[-1.0, 0.0, 3.0]]))
    array([[0.  , 0.25, 1.  ]])
    """
    atoms = np.asarray(atoms, np.float64)
    pixels = tuple(range(1, atoms.ndim))
    low, high = atoms.min(axis=pixels, keepdims=True), atoms.max(axis=pixels, keepdims=True)
    return (atoms - low) / np.where(high > low, high - low, 1.0)


def turned_bright(atoms: NDArray[Any]) -> NDArray[np.float64]:
    """Flip the sign of each atom so that its sum is positive; factorisations do not fix it.

    Parameters
    ----------
    atoms : ndarray of shape (n_atoms, n_features)

    Returns
    -------
    turned : ndarray of shape (n_atoms, n_features)
    """
    atoms = np.asarray(atoms, np.float64)
    return atoms * np.where(atoms.sum(axis=1) < 0, -1.0, 1.0)[:, None]


def enlarged(pixels: NDArray[Any], width: int) -> NDArray[Any]:
    """Repeat each pixel an integer number of times, until the image has at least this width.

    Viewers that enlarge small images blur them, or make pixels of uneven size.

    Parameters
    ----------
    pixels : ndarray of shape (height, width, ...)
    width : int

    Returns
    -------
    enlarged : ndarray of shape (factor * height, factor * width, ...)
    """
    factor = max(1, -(-width // pixels.shape[1]))
    return pixels.repeat(factor, axis=0).repeat(factor, axis=1)


def png(pixels: NDArray[Any]) -> bytes:
    """Encode an image as a PNG file.

    Parameters
    ----------
    pixels : ndarray of shape (height, width), grey, or (height, width, 4), RGBA
        Values from 0 to 1.

    Returns
    -------
    file : bytes
    """
    levels = np.round(np.clip(pixels, 0.0, 1.0) * 255).astype(np.uint8)
    height, width = levels.shape[:2]
    colour_type = 0 if levels.ndim == 2 else 6
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in levels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(lines, 6))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
