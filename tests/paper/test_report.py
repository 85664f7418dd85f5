"""The report and its figures: self-contained, described in words, right in a real browser."""

import base64
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the report needs omfb[plot]")

from omfb.paper import figures as plots
from omfb.paper.experiments import EXPERIMENTS, faces_online
from omfb.paper.reproduce import reproduce
from omfb.report.drawing import INK, inline_svg, render
from omfb.report.outcome import Claim, Outcome
from omfb.report.page import Part, page

from .. import browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiles) -> Path:
    """Both experiments, quick, on photographs, with a warning that could do harm."""
    images = replace(tiles, warning="No faces <b>&</b> why")
    folder = tmp_path_factory.mktemp("results")
    reproduce(list(EXPERIMENTS), images, folder, quick=True)
    return folder


class Page(HTMLParser):
    """The elements of a page, and whether all were closed."""

    VOID = ("meta", "link", "img", "br", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html(folder) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_every_element_is_closed_and_ids_are_unique(html):
    parsed = Page(html)
    assert parsed.open == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_report_needs_no_network(html):
    for tag, attributes in Page(html).elements:
        for name in ("src", "href", "xlink:href", "srcset"):
            address = attributes.get(name) or "#"
            # A link that somebody may follow is the only thing outside.
            assert address.startswith(("data:", "#")) or (tag, name) == ("a", "href"), address
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []
    assert "<script" not in html


def test_every_picture_has_words(html):
    elements = Page(html).elements
    pictures = [attributes for tag, attributes in elements if tag == "img"]
    charts = [a for tag, a in elements if tag == "svg"]
    assert len(pictures) >= 10
    assert len(charts) == 2
    assert all(len(attributes["alt"]) > 10 for attributes in pictures)
    assert all(len(attributes["aria-label"]) > 50 for attributes in charts)
    assert "omfb, forget_factor=1" in charts[0]["aria-label"]


def test_charts_take_the_colours_of_the_page(html):
    assert INK not in html.split("</style>")[1]
    assert html.count("currentColor") > 20
    assert "prefers-color-scheme: dark" in html


def test_notices_come_first_and_are_escaped(html):
    body = html.split("<body>")[1]
    assert body.index("No faces &lt;b&gt;&amp;&lt;/b&gt; why") < body.index("<table")
    assert body.index("A quick run") < body.index("<table")
    assert "<h1>The paper&#x27;s experiments on other images</h1>" in body
    assert ">in the paper</th>" not in body


@pytest.mark.parametrize(("confirmed", "words"), [(True, "confirmed"), (False, "not confirmed")])
def test_verdicts_are_those_of_the_claims(confirmed, words):
    outcome = Outcome("x", "x", {})
    outcome.claims = [Claim("It <works>", "1", "2", confirmed)]
    text = page("A page", "", [Part(outcome, "", [])], {})
    row = re.search(r"<tr><td>It &lt;works&gt;</td>.*?</tr>", text).group()
    assert f">{words}</span>" in row
    assert 'class="notice"' not in text
    assert "<h1>A page</h1>" in text


def test_figures_are_files_with_labelled_axes(folder):
    names = ["faces-online", "faces-online-atoms", "faces-missing", "faces-missing-atoms",
             "faces-missing-snr"]  # fmt: skip
    for name in names:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text(encoding="utf-8")
    online = (folder / "faces-online.svg").read_text(encoding="utf-8")
    for label in ("seconds of learning", "rows processed", "error", "optimum, by SVD"):
        assert label in online
    snr = (folder / "faces-missing-snr.svg").read_text(encoding="utf-8")
    assert "SNR in dB" in snr
    assert "passes over the data" in snr


def test_mosaic_shows_what_is_missing_and_gaps():
    images = np.array([[0.0, np.nan, 0.5, 2.0], [1.0, 1.0, 1.0, 1.0]])
    canvas = plots.mosaic(images, (2, 2), 2)
    assert canvas.shape == (2, 5, 4)
    np.testing.assert_allclose(canvas[0, 1, :3], plots.MISSING)
    np.testing.assert_allclose(canvas[1, :2, 0], [0.5, 1.0])  # clipped
    assert (canvas[:, 2, 3] == 0).all()
    assert (canvas[:, [0, 1, 3, 4], 3] == 1).all()


def test_images_are_large_enough_to_stay_sharp(html):
    """At least two of a file's pixels for each of the page's, which is at most 62rem wide."""
    widths = [
        int.from_bytes(base64.b64decode(attributes["src"].split(",")[1])[16:20], "big")
        for tag, attributes in Page(html).elements
        if tag == "img"
    ]
    assert min(widths) >= 1900


def test_legends_are_text_beside_the_charts(html):
    """Text wraps; a legend within a chart is cut off where the page is narrow."""
    names = re.findall(r'<li><span style="border-top[^"]*"></span>([^<]*)</li>', html)
    assert set(faces_online.METHODS) <= set(map(unescape, names))
    charts = re.findall(r'<div class="chart".*?</div>', html, re.S)
    assert len(charts) == 2
    assert not any("MiniBatchDictionaryLearning" in text_of(chart) for chart in charts)


def text_of(svg: str) -> str:
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_legends_lie_within_the_files():
    curves = {name: plots.Curve([1, 2], [1, 2], [3, 2]) for name in faces_online.METHODS}
    figure = plots.error_figure(curves, 1.0)
    inline_svg(figure, "x")  # without the legend, which is there again afterwards
    assert "MiniBatchDictionaryLearning" in render(figure, "svg").decode()
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, page = legend.get_window_extent(), figure.bbox
    assert page.x0 <= box.x0 < box.x1 <= page.x1
    assert page.y0 <= box.y0 < box.y1 <= page.y1


@browser.needed
@pytest.mark.parametrize("width", [360, 1200])
def test_report_opens_in_a_browser(folder, tmp_path, width):
    across, images, *others = browser.told(folder, width, tmp_path)
    assert int(across) <= width  # nothing sticks out, so a phone does not scroll sideways
    assert int(images) >= 10
    assert others == ["0", "0", "omfb: The paper's experiments on other images"]


@browser.needed
def test_report_is_dark_where_the_reader_wants_it_dark(folder, tmp_path):
    from matplotlib.image import imread

    brightness = []
    for scheme in (1, 0):
        shot = tmp_path / f"{scheme}.png"
        browser.browse(
            folder / "report.html", tmp_path / str(scheme), f"--screenshot={shot}",
            "--window-size=800,900", f"--blink-settings=preferredColorScheme={scheme}",
        )  # fmt: skip
        pixels = imread(shot)[..., :3]
        assert pixels.std() > 0.05  # not blank
        brightness.append(np.median(pixels))
    assert brightness[0] > 0.9
    assert brightness[1] < 0.2
