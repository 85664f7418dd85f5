"""The paper's experiments as parts of a report."""

from html import escape
from statistics import fmean
from typing import Any

from ..report.drawing import sharp_png
from ..report.outcome import Outcome, mean_and_spread
from ..report.page import Part, captioned, chart, image, table
from . import figures as plots
from .experiments import faces_missing, faces_online
from .experiments.images import Images

PAPER = "Online Matrix Factorization via Broyden Updates"
PAPER_ADDRESS = "https://arxiv.org/abs/1506.04389"


def part_of(outcome: Outcome, images: Images) -> Part:
    """What an experiment adds to a report."""
    sections = {faces_online.NAME: _online, faces_missing.NAME: _missing}
    figures = plots.figures_of(outcome, images)
    return Part(
        outcome,
        sections[outcome.experiment](outcome, images, figures),
        _highlights(outcome, images),
        _hero(outcome, images),
        figures,
    )


def _highlights(outcome: Outcome, images: Images) -> list[tuple[str, str]]:
    """The main numbers, and what they are."""
    if outcome.experiment == faces_online.NAME:
        first = outcome.values(faces_online.OURS, faces_online.ERROR, 1)[0]
        (optimum,) = outcome.values(faces_online.OPTIMUM, faces_online.ERROR)
        above = 100 * (first / optimum - 1)
        return [
            (f"{above:.1f} %", "above the best possible error after one pass, with forget_factor=1")
        ]
    few = outcome.values(faces_missing.OURS, faces_missing.SNR, faces_missing.FEW_PASSES)
    nmf = outcome.values(faces_missing.MULTIPLICATIVE, faces_missing.SNR)
    paper = outcome.values(faces_missing.PAPER, faces_missing.SNR)
    passes, iterations = outcome.settings["passes"], outcome.settings["iterations"]
    # The paper's numbers belong beside runs on its data only.
    by_nmf, by_paper = ("", "") if images.warning else (" (paper: 12.13)", " (paper: 11.57)")
    return [
        (f"{fmean(few):.2f} dB", "SNR of images filled after 3 passes, with forget_factor=1"),
        (f"{fmean(nmf):.2f} dB", f"after {iterations} iterations of NMF{by_nmf}"),
        (f"{fmean(paper):.2f} dB", f"after {passes} passes of OMF-B as in the paper{by_paper}"),
    ]


def _online(outcome: Outcome, images: Images, figures: dict[str, Any]) -> str:
    passes = outcome.settings["passes"]
    last = {name: outcome.values(name, faces_online.ERROR)[0] for name in faces_online.METHODS}
    own = {
        name: outcome.values(name, faces_online.OWN_ERROR)[0]
        for name in outcome.methods(faces_online.OWN_ERROR)
    }
    alternative = (
        f"Two charts of error, against seconds and against rows processed. After {passes} "
    )
    alternative += "passes: " + ", ".join(f"{name} {error:.1f}" for name, error in last.items())
    codes = " and ".join(f"{error:.1f} ({name})" for name, error in own.items())
    return f"""<section id="{faces_online.NAME}">
<h2>The paper's first experiment: learning online</h2>
<p class="run">{escape(images.name)}</p>
<p>A dictionary of {images.n_components} atoms, learned from mini-batches of 10 images over
{passes} passes. Every dictionary is judged in the same way, by the best codes it allows. Time
counts learning alone, on one thread. SGMF's steps were tuned on the faces by a grid search, for
each of its starts; with the codes that its own gradients end at, its errors are {escape(codes)}.
IncrementalPCA has one component fewer, because its mean is an atom too, and learns from
{faces_online.PART} images at a time, because it needs at least as many as it has components.</p>
{chart(figures["faces-online"], "faces-online", alternative)}
{table(outcome.table)}
<h3>Learned atoms</h3>
{_atoms(outcome, images)}
</section>"""


def _missing(outcome: Outcome, images: Images, figures: dict[str, Any]) -> str:
    alternative = "A chart of SNR against passes. At the end: " + ", ".join(
        f"{name} {mean_and_spread(outcome.values(name, faces_missing.SNR))} dB"
        for name in outcome.atoms
    )
    return f"""<section id="{faces_missing.NAME}">
<h2>The paper's second experiment: filling missing pixels</h2>
<p class="run">{escape(images.name)}</p>
<p>In each image one block, a quarter of its pixel columns, is missing at a random place
({outcome.settings["masks"]} {"draw" if outcome.settings["masks"] == 1 else "draws"} of a place
for every image). SNR is
10&nbsp;log₁₀(var(Y)&nbsp;/&nbsp;mean((Y&nbsp;−&nbsp;Ŷ)²)) over all pixels, the observed ones
kept as they are. The paper's algorithm learns from grey levels from 0 to 255, the unit that
reproduces its number. The ridge of forget_factor=1 was chosen on observed pixels that were held
out, never on the missing ones.</p>
{_strips(outcome, images, list(outcome.pictures))}
{chart(figures["faces-missing-snr"], "faces-missing-snr", alternative)}
{table(outcome.table)}
<h3>Learned atoms</h3>
{_atoms(outcome, images)}
</section>"""


def _hero(outcome: Outcome, images: Images) -> str:
    """The second experiment in two lines of images."""
    if not outcome.pictures:
        return ""
    strips = _strips(outcome, images, [faces_missing.WITH_MISSING, faces_missing.OURS])
    return strips.replace('class="strips"', 'class="strips hero"')


def _strips(outcome: Outcome, images: Images, captions: list[str]) -> str:
    """A line of images for each caption."""
    strips = []
    for caption in captions:
        pictures = outcome.pictures[caption]
        score = ""
        if caption in outcome.methods(faces_missing.SNR):
            score = f", {mean_and_spread(outcome.values(caption, faces_missing.SNR)[:1])} dB"
        png = sharp_png(plots.mosaic(pictures, images.shape, len(pictures)))
        words = f"{len(pictures)} images: {caption}{score}"
        strips.append(f"<figcaption>{escape(caption + score)}</figcaption>{image(png, words)}")
    return f'<figure class="strips">{"".join(strips)}</figure>'


def _atoms(outcome: Outcome, images: Images) -> str:
    grids = []
    for name in plots.shown_atoms(outcome):
        atoms = outcome.atoms[name]
        png = sharp_png(plots.atoms_mosaic(atoms, images.shape))
        words = f"{len(atoms)} learned atoms: {name}"
        grids.append(captioned(png, name, words))
    return f'<div class="side">{"".join(grids)}</div>'
