"""Run the demo and write its report: all of `omfb demo` but the terminal."""

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from ..paper.experiments import EXPERIMENTS
from ..paper.experiments.images import Images
from ..paper.report import PAPER, PAPER_ADDRESS
from ..paper.reproduce import about_images, parts_of
from ..plots.mosaic import enlarged, png
from ..report.folder import write_report
from ..report.outcome import Outcome, Track, untracked
from ..report.page import Part, captioned, chart, notice, table
from . import air, figures, photograph

HEADING = "Missing values, filled"
DETAIL_WIDTH = 480


def demo(
    images: Images, folder: Path, *, seed: int = 0, track: Track[Any] = untracked
) -> list[Outcome]:
    """Fill a table, a photograph and the paper's images, and write one page about all of them.

    Parameters
    ----------
    images : Images
        Of the paper's experiments.
    folder : Path
        It exists; `write_report` tells what is written to it.
    seed : int, default=0
    track : callable, default=untracked
        Shows progress.

    Returns
    -------
    outcomes : list of Outcome
    """
    gaps = air.table_with_gaps(seed)
    # Many small products: where another program runs, threads of BLAS would wait for each other.
    with threadpool_limits(1):
        parts = [
            air_part(gaps, *air.run(gaps, seed, track)),
            photograph_part(photograph.run(photograph.photograph(), seed, track)),
        ]
        first, second = parts_of(list(EXPERIMENTS), images, quick=True, seed=seed, track=track)
    parts += [
        replace(first, section=_about_paper(images) + first.section, cards=[]),
        replace(second, cards=[], hero=""),
    ]
    subtitle = f"omfb beside other methods, on data that come with it · seed {seed}"
    about = {**about_images(images), "quick": True, "seed": seed}
    write_report(folder, HEADING, subtitle, parts, about)
    return [part.outcome for part in parts]


def air_part(gaps: air.Table, outcome: Outcome, filled: air.Filled) -> Part:
    """What the air table adds to the report."""
    drawn = {
        "air-series": figures.series_figure(gaps, filled),
        "air-missing": figures.missing_figure(gaps),
    }
    hours, columns = gaps.truth.shape
    errors = ", ".join(f"{row['method']} {row[air.RMSE]}" for row in outcome.table)
    compiled = outcome.values(air.OURS, air.COMPILING)[0]
    series = chart(
        drawn["air-series"], "air-series",
        f"Three series of station {figures.STATION} around a day on which it was off: what was "
        "seen, what omfb filled in with its 90 % interval, and the truth that was held out",
    )  # fmt: skip
    missing = chart(
        drawn["air-missing"], "air-missing",
        "A map of the table: time across, stations and their variables down; marked is what is "
        f"missing in the source and what was held out. Errors: {errors}",
    )  # fmt: skip
    peers = "; ".join(
        f"{name} with " + ", ".join(f"{key}={value!r}" for key, value in settings.items())
        for name, settings in air.PEERS.items()
    )
    section = f"""<section id="{air.NAME}">
<h2>A table with gaps</h2>
<p>Air quality and weather in Beijing: {hours} hours of {columns} columns (12 stations, 11
variables), with the gaps the stations left. {100 * gaps.all_hidden.mean():.0f} % more was hidden on
purpose: single hours, runs of 2 to 24 hours, and whole stations for a day. Errors are those on
these entries, in standard deviations of each column: root mean square (RMSE), in which a few hours
of heavy rain weigh most, and mean absolute (MAE), in all and by kind of gap. omfb was told nothing
but that rows are in time; the others get standardised columns: {escape(peers)}. Seconds are those
of learning and filling; what omfb compiles before its first fit on a machine, here in
{compiled:.0f} s, is not counted.</p>
{table(outcome.table)}
{missing}
<p>Data: Song Chen, <a href="https://doi.org/10.24432/C5RK5G">Beijing Multi-Site Air Quality</a>,
UCI Machine Learning Repository, <a href="https://creativecommons.org/licenses/by/4.0/">CC BY
4.0</a>; a part of it.</p>
</section>"""
    ours, *others = outcome.table
    best = min(others, key=lambda row: float(row[air.MAE]))
    cards = [
        (ours[air.MAE], "standard deviations off on average in a table's gaps, with nothing set"),
        (best[air.MAE], f"by the best of the others, {best['method']}"),
        (ours[air.COVERAGE], "of the held-out values lie within their 90 % intervals"),
    ]
    return Part(outcome, section, cards, series, drawn)


def photograph_part(outcome: Outcome) -> Part:
    """What the photograph adds to the report."""
    large, small = [], []
    for caption, picture in outcome.pictures.items():
        pixels = figures.coloured(picture)
        words = f"A palace in China: {caption}"
        if caption in (photograph.INCOMPLETE, photograph.OURS):
            large.append(captioned(png(pixels), caption, words))
        detail = enlarged(pixels[figures.DETAIL], DETAIL_WIDTH)
        small.append(captioned(png(detail), caption, f"{words}, a detail"))
    section = f"""<section id="{photograph.NAME}">
<h2>A photograph from half of its pixels</h2>
<p>Each of its patches of {photograph.SIDE} × {photograph.SIDE} pixels is a row of a table in which
half is missing. omfb learns what patches have in common, and fills them; where they overlap, their
mean is taken. Nothing else is known of photographs.</p>
<div class="side">{"".join(large)}</div>
{table(outcome.table)}
<div class="side small">{"".join(small)}</div>
</section>"""
    ours = outcome.table[0]["PSNR of missing pixels"]
    cards = [(ours, "PSNR of the missing half of a photograph")]
    shown = (photograph.ORIGINAL, photograph.INCOMPLETE, photograph.LINEAR, photograph.OURS)
    pictures = {caption: outcome.pictures[caption] for caption in shown}
    drawn = {"photograph": figures.photograph_figure(pictures)}
    return Part(outcome, section, cards, figures=drawn)


def _about_paper(images: Images) -> str:
    """What comes before the paper's experiments."""
    return f"""<section id="paper">
<h2>The paper's experiments{" on other images" if images.warning else ""}</h2>
{notice(images.warning) if images.warning else ""}
<p>omfb began with <a href="{PAPER_ADDRESS}">{PAPER}</a>, and still has its algorithm
(<code>OMFB</code>). Here its experiments are run quickly, and what that cannot decide is not
judged; <code>omfb reproduce</code> runs them in full.</p>
</section>
"""
