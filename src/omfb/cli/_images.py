"""Atoms as a grey image, without a plotting package."""

import struct
import zlib
from pathlib import Path
from typing import Any


def write_png(path: Path, atoms: Any) -> None:
    """Draw atoms (n, height, width) side by side, each from its least value to its largest."""
    from ..persistence import replaced

    pixels = _mosaic(atoms)
    height, width = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    with replaced(path) as new:
        new.write_bytes(
            b"\x89PNG\r\n\x1a\n"
            + _chunk(b"IHDR", header)
            + _chunk(b"IDAT", zlib.compress(lines, 6))
            + _chunk(b"IEND", b"")
        )


def _mosaic(atoms: Any) -> Any:
    """The atoms in a grid that is about square, a white line between them."""
    import numpy as np

    n, height, width = atoms.shape
    across = max(1, round(float(np.sqrt(n * height / width))))
    down = -(-n // across)
    pixels = np.full((down * (height + 1) - 1, across * (width + 1) - 1), 255, np.uint8)
    for number, atom in enumerate(atoms):
        top, left = number // across * (height + 1), number % across * (width + 1)
        low, high = float(atom.min()), float(atom.max())
        grey = (atom - low) * (255.0 / (high - low) if high > low else 0.0)
        pixels[top : top + height, left : left + width] = grey.astype(np.uint8)
    return pixels


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
