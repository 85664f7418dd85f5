"""`omfb demo` as it is typed."""

import pytest

pytest.importorskip("typer", reason="the command line needs omfb[cli]")
pytest.importorskip("matplotlib", reason="the report needs omfb[plot]")

from typer.testing import CliRunner

from omfb.cli import app
from omfb.demo import demo as demo_module
from omfb.paper.experiments import images
from omfb.report.outcome import Claim, Outcome


@pytest.fixture
def invoke(monkeypatch):
    """The command, with an outcome instead of experiments."""

    def one(given, folder, **options):
        (folder / "report.html").write_text("new")
        claim = Claim("It works", "1", "1", True)
        table = [{"method": "omfb", "error": "0.1"}]
        return [Outcome("air", "gaps", {}, table=table, claims=[claim])]

    monkeypatch.setattr(images, "load_images", images.photographs)
    monkeypatch.setattr(demo_module, "demo", one)
    return lambda *words: CliRunner().invoke(app, ["demo", *words])


def test_it_shows_the_tables_and_where_the_report_is(invoke, tmp_path):
    result = invoke("--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "It works" in result.stdout
    assert result.stdout.endswith(f"Report: {tmp_path / 'out' / 'report.html'}\n")
    assert (tmp_path / "out" / "report.html").read_text() == "new"


def test_a_seed_that_is_none(invoke, tmp_path):
    result = invoke("--seed", "-1", "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert result.stderr.startswith("omfb: --seed -1")
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_no_trace(invoke, tmp_path, monkeypatch):
    def broken(given, folder, **options):
        (folder / "report.html").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "demo", broken)
    assert invoke("--out", str(tmp_path / "out")).exit_code == 130
    assert list(tmp_path.iterdir()) == []
