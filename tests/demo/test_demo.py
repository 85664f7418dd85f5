"""The page that the demo ends with."""

import csv
import re

import pytest

from omfb.demo import air, photograph
from omfb.paper.experiments import EXPERIMENTS

from .. import browser


def test_the_report_has_every_part(folder):
    html = (folder / "report.html").read_text(encoding="utf-8")
    places = [html.index(f'<section id="{name}">') for name in (
        "claims", air.NAME, photograph.NAME, "paper", *EXPERIMENTS)]  # fmt: skip
    assert places == sorted(places)
    assert "No faces &lt;b&gt;here&lt;/b&gt;" in html
    assert "CC BY\n4.0" in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_the_paper_is_not_judged_by_a_quick_run(folder):
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "11.57" not in html
    assert "12.13" not in html


def test_figures_and_numbers_are_files_too(folder):
    for name in ("air-series", "air-missing", "photograph", "faces-online", "faces-missing"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text(encoding="utf-8")
    series = (folder / "air-series.svg").read_text(encoding="utf-8")
    for label in ("PM2.5 in µg/m³", "temperature in °C", "90 % interval", "truth, held out"):
        assert label in series
    missing = (folder / "air-missing.svg").read_text(encoding="utf-8")
    for label in ("Dongsi", "station, 11 variables each", "held out"):
        assert label in missing
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        experiments = {row["experiment"] for row in csv.DictReader(file)}
    assert experiments == {air.NAME, photograph.NAME, *EXPERIMENTS}


@browser.needed
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_sticks_out_of_a_phone(folder, tmp_path, width):
    across, _, broken, blank, title = browser.told(folder, width, tmp_path)
    assert int(across) <= width
    assert (broken, blank, title) == ("0", "0", "omfb: Missing values, filled")


def test_legends_take_the_colours_of_the_page(folder):
    """What is drawn in ink would not be seen on black."""
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert 'dotted currentColor"></span>truth, held out' in html
