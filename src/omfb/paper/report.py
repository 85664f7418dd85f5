"""The report: a self-contained page that reports which results were reproduced."""

import base64
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from statistics import fmean
from string import Template
from typing import Any

from . import figures as plots
from .experiments import faces_missing, faces_online
from .experiments.images import Images
from .experiments.outcome import Claim, Outcome, mean_and_spread

PAPER = "Online Matrix Factorization via Broyden Updates"
TITLE = "the paper, reproduced"
PAPER_ADDRESS = "https://arxiv.org/abs/1506.04389"


def page(
    outcomes: list[Outcome], images: Images, about: Mapping[str, Any], figures: Mapping[str, Any]
) -> str:
    """The report as HTML.

    Parameters
    ----------
    outcomes : list of Outcome
    images : Images
    about : dict
        Facts about the run: data, seed, environment.
    figures : dict of Figure
        By name, as in `reproduce.figures_of`.

    Returns
    -------
    html : str
    """
    sections = {faces_online.NAME: _online, faces_missing.NAME: _missing}
    template = Template(files(__package__).joinpath("report.html").read_text(encoding="utf-8"))
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    title = "the paper's experiments on other images" if about["warning"] else TITLE
    return template.substitute(
        title=escape(title),
        heading=escape(title[0].upper() + title[1:]),
        paper=escape(PAPER),
        address=PAPER_ADDRESS,
        run=_run_line(about),
        notices=_notices(about),
        hero="".join(_hero(outcome, images) for outcome in outcomes),
        cards="".join(_card(*card) for outcome in outcomes for card in _highlights(outcome, about)),
        claims=_claims(claims),
        experiments="".join(
            sections[outcome.experiment](outcome, images, figures) for outcome in outcomes
        ),
        settings="".join(_settings(outcome) for outcome in outcomes),
        environment=_facts(about["environment"]),
    )


def _run_line(about: Mapping[str, Any]) -> str:
    kind = "quick run" if about["quick"] else "full run"
    height, width = about["shape"]
    return escape(
        f"{kind} · seed {about['seed']} · {about['data']}, {about['images']} of {height} × {width} "
        f"pixels · {about['made'][:10]}"
    )


def _notices(about: Mapping[str, Any]) -> str:
    notices = [about["warning"]] if about["warning"] else []
    if about["quick"]:
        notices.append(
            "A quick run: fewer passes, iterations and masks than in the paper. Only claims that "
            "it can decide are listed; run without --quick for the others."
        )
    return "".join(f'<p class="notice" role="note">{escape(notice)}</p>' for notice in notices)


def _highlights(outcome: Outcome, about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The main numbers, and what they are."""
    if outcome.experiment == faces_online.NAME:
        first = outcome.values(faces_online.MEMORY, faces_online.ERROR, 1)[0]
        (optimum,) = outcome.values(faces_online.OPTIMUM, faces_online.ERROR)
        above = 100 * (first / optimum - 1)
        return [(f"{above:.1f} %", "above the best possible error after one pass, with memory=1")]
    few = outcome.values(faces_missing.MEMORY, faces_missing.SNR, faces_missing.FEW_PASSES)
    nmf = outcome.values(faces_missing.MULTIPLICATIVE, faces_missing.SNR)
    paper = outcome.values(faces_missing.PAPER, faces_missing.SNR)
    passes, iterations = outcome.settings["passes"], outcome.settings["iterations"]
    # The paper's numbers belong beside runs of its data and its length only.
    by_nmf, by_paper = ("", "") if about["quick"] or about["warning"] else (
        " (paper: 12.13)", " (paper: 11.57)"
    )  # fmt: skip
    return [
        (f"{fmean(few):.2f} dB", "SNR of images filled after 3 passes, with memory=1"),
        (f"{fmean(nmf):.2f} dB", f"after {iterations} iterations of NMF{by_nmf}"),
        (f"{fmean(paper):.2f} dB", f"after {passes} passes of OMF-B as in the paper{by_paper}"),
    ]


def _card(number: str, words: str) -> str:
    return f"<li><strong>{escape(number)}</strong> {escape(words)}</li>"


def _claims(claims: list[Claim]) -> str:
    verdicts = {True: ("yes", "reproduced"), False: ("no", "not reproduced")}
    rows = []
    for claim in claims:
        mark, verdict = verdicts[claim.reproduced]
        rows.append(
            f"<tr><td>{escape(claim.text)}</td><td>{escape(claim.expected)}</td>"
            f"<td>{escape(claim.measured)}</td>"
            f'<td><span class="mark {mark}">{verdict}</span></td></tr>'
        )
    return "".join(rows)


def _online(outcome: Outcome, images: Images, figures: Mapping[str, Any]) -> str:
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
<h2>Experiment 1: learning online</h2>
<p>A dictionary of {images.n_components} atoms, learned from mini-batches of 10 images over
{passes} passes. Every dictionary is judged in the same way, by the best codes it allows. Time
counts learning alone, on one thread. SGMF's steps were tuned on the faces by a grid search, for
each of its starts; with the codes that its own gradients end at, its errors are {escape(codes)}.
IncrementalPCA has one component fewer, because its mean is an atom too, and learns from
{faces_online.PART} images at a time, because it needs at least as many as it has components.</p>
{_chart(figures["faces-online"], "faces-online", alternative)}
{_table(outcome.table)}
<h3>Learned atoms</h3>
{_atoms(outcome, images)}
</section>"""


def _missing(outcome: Outcome, images: Images, figures: Mapping[str, Any]) -> str:
    alternative = "A chart of SNR against passes. At the end: " + ", ".join(
        f"{name} {mean_and_spread(outcome.values(name, faces_missing.SNR))} dB"
        for name in outcome.atoms
    )
    return f"""<section id="{faces_missing.NAME}">
<h2>Experiment 2: filling missing pixels</h2>
<p>In each image one block, a quarter of its pixel columns, is missing at a random place
({outcome.settings["masks"]} masks, each with a place for every image). SNR is
10&nbsp;log₁₀(var(Y)&nbsp;/&nbsp;mean((Y&nbsp;−&nbsp;Ŷ)²)) over all pixels, the observed ones
kept as they are. The paper's rule learns from grey levels from 0 to 255, the unit that reproduces
its number. The ridge of memory=1 was chosen on observed pixels that were held out, never on the
missing ones.</p>
{_strips(outcome, images, list(outcome.pictures))}
{_chart(figures["faces-missing-snr"], "faces-missing-snr", alternative)}
{_table(outcome.table)}
<h3>Learned atoms</h3>
{_atoms(outcome, images)}
</section>"""


def _chart(figure: Any, name: str, alternative: str) -> str:
    svg = plots.inline_svg(figure, salt=name)
    label = escape(alternative, quote=True)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    entries = "".join(
        f'<li><span style="border-top: 3px {style} {colour}"></span>{escape(name)}</li>'
        for name, colour, style in plots.legend_entries(figure)
    )
    legend = f'<figcaption><ul class="legend">{entries}</ul></figcaption>'
    return f'<figure><div class="chart" tabindex="0">{svg}</div>{legend}</figure>'


def _hero(outcome: Outcome, images: Images) -> str:
    """The second experiment in two lines of images."""
    if not outcome.pictures:
        return ""
    strips = _strips(outcome, images, [faces_missing.WITH_MISSING, faces_missing.MEMORY])
    return strips.replace('class="strips"', 'class="strips hero"')


def _strips(outcome: Outcome, images: Images, captions: list[str]) -> str:
    """A line of images for each caption."""
    strips = []
    for caption in captions:
        pictures = outcome.pictures[caption]
        score = ""
        if caption in outcome.methods(faces_missing.SNR):
            score = f", {mean_and_spread(outcome.values(caption, faces_missing.SNR)[:1])} dB"
        png = plots.sharp_png(plots.mosaic(pictures, images.shape, len(pictures)))
        words = f"{len(pictures)} images: {caption}{score}"
        strips.append(f"<figcaption>{escape(caption + score)}</figcaption>{_image(png, words)}")
    return f'<figure class="strips">{"".join(strips)}</figure>'


def shown_atoms(outcome: Outcome) -> list[str]:
    """Methods whose atoms are shown: ours first, then the paper's."""
    shown = (faces_online.MEMORY, faces_online.PAPER, faces_missing.MULTIPLICATIVE)
    return [name for name in shown if name in outcome.atoms]


def _atoms(outcome: Outcome, images: Images) -> str:
    grids = []
    for name in shown_atoms(outcome):
        atoms = outcome.atoms[name]
        png = plots.sharp_png(plots.atoms_mosaic(atoms, images.shape))
        words = f"{len(atoms)} learned atoms: {name}"
        grids.append(
            f"<figure><figcaption>{escape(name)}</figcaption>{_image(png, words)}</figure>"
        )
    return f'<div class="atoms">{"".join(grids)}</div>'


def _image(png: bytes, alternative: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" alt="{escape(alternative, quote=True)}">'


def _table(rows: list[dict[str, str]]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(row.get(column, '–'))}</td>" for column in columns) + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _settings(outcome: Outcome) -> str:
    text = json.dumps(outcome.settings, indent=1, ensure_ascii=False)
    return f"<h3>{escape(outcome.experiment)}</h3><pre tabindex='0'>{escape(text)}</pre>"


def _facts(facts: Mapping[str, Any]) -> str:
    return "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_words(fact))}</dd>" for name, fact in facts.items()
    )


def _words(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{name} {value}" for name, value in fact.items())
    return str(fact)
