"""Atoms as a grey image."""

from pathlib import Path
from typing import Any


def write_png(path: Path, atoms: Any) -> None:
    """Draw atoms of shape (n, height, width) side by side, each from its minimum to its maximum."""
    from ..persistence import replaced
    from ..plots.mosaic import png, stretched, tiled

    image = png(tiled(stretched(atoms), background=1.0))
    with replaced(path) as new:
        new.write_bytes(image)
