"""The look of figures, as files and as parts of a page. Needs matplotlib."""

import io
import re
from typing import Any

from matplotlib import rc_context
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ..plots.mosaic import enlarged, png

# The colour of text and axes; in a page it becomes the page's own, light or dark.
INK = "#1b1f24"
# Of what was seen: readable on white and on black.
OBSERVED = "#3b82f6"
# Images are enlarged to at least this many pixels across, so that no viewer has to blur them.
SHARP_WIDTH = 1920
SETTINGS = {
    "svg.fonttype": "none",
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
}


def sharp_png(pixels: NDArray[Any]) -> bytes:
    """The image as a PNG file, enlarged so that its pixels stay sharp."""
    return png(enlarged(pixels, SHARP_WIDTH))


def render(figure: Figure, kind: str) -> bytes:
    """The figure as an SVG or PNG file, on white."""
    file = io.BytesIO()
    with rc_context({**SETTINGS, "svg.hashsalt": "omfb"}):
        figure.savefig(file, format=kind, dpi=200, facecolor="white", metadata=_dateless(kind))
    return file.getvalue()


def inline_svg(figure: Figure, salt: str) -> str:
    """The figure as an element of a page, in the page's colours; `salt` makes its ids unique.

    Its legend is left out: the page shows `legend_entries` as text, which wraps where it is narrow.
    """
    file = io.StringIO()
    legends = figure.legends[:]
    figure.legends.clear()
    try:
        with rc_context({**SETTINGS, "svg.hashsalt": "omfb"}):
            figure.savefig(file, format="svg", transparent=True, metadata=_dateless("svg"))
    finally:
        figure.legends.extend(legends)
    svg = file.getvalue()
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{salt}-", svg[svg.index("<svg") :])
    return svg.replace(INK, "currentColor")


def legend_entries(figure: Figure) -> list[tuple[str, str, str]]:
    """Name, colour and border, as in CSS, of each curve or area: a border that looks like it."""
    borders = {"-": "3px solid", "--": "3px dashed", ":": "3px dotted"}
    entries = []
    for legend in figure.legends:
        handles: list[Any] = legend.legend_handles
        for handle, text in zip(handles, legend.get_texts(), strict=True):
            area = isinstance(handle, Patch)
            colour = handle.get_facecolor() if area else handle.get_color()
            border = "0.8em solid" if area else borders[handle.get_linestyle()]
            entries.append((text.get_text(), to_hex(colour, keep_alpha=area), border))
    return entries


def _dateless(kind: str) -> dict[str, Any]:
    """Metadata without a date, so that the same run gives the same file."""
    return {"Date": None} if kind == "svg" else {}
