"""`omfb reproduce` as it is typed."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("typer", reason="the command line needs omfb[cli]")
pytest.importorskip("matplotlib", reason="the report needs omfb[plot]")

from typer.testing import CliRunner

from omfb.cli import app
from omfb.cli.reproduce import NAMES
from omfb.paper import reproduce as reproduce_module
from omfb.paper.experiments import EXPERIMENTS, images

FILES = {
    "faces-missing-atoms.png", "faces-missing-atoms.svg", "faces-missing-snr.png",
    "faces-missing-snr.svg", "faces-missing.png", "faces-missing.svg", "faces-online-atoms.png",
    "faces-online-atoms.svg", "faces-online.png", "faces-online.svg", "report.html",
    "results.csv", "results.json",
}  # fmt: skip


def run(*arguments: str, program: str = "-m omfb", **environment: str):
    """The command in a process of its own, where no faces can be found."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    return subprocess.run(
        [sys.executable, *program.split(" ", 1), *arguments],
        capture_output=True, text=True, env={**os.environ, **nowhere, **environment}, check=False,
    )  # fmt: skip


@pytest.fixture
def in_process(monkeypatch):
    """The command in this process, on a few tiles of photographs."""
    tiles = images.photographs()
    few = replace(tiles, rows=tiles.rows[::5], n_components=10)
    monkeypatch.setattr(images, "load_images", lambda: few)
    return lambda *arguments: CliRunner().invoke(app, ["reproduce", *arguments])


def write_two(names, images, folder, **options):
    """Instead of experiments: two files."""
    for name in ("report.html", "results.json"):
        (folder / name).write_text("new")
    return []


def assert_one_line(result, *words: str) -> None:
    code = getattr(result, "exit_code", None)
    assert (result.returncode if code is None else code) == 2
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("omfb: ")
    for word in words:
        assert word in lines[0]


def test_without_faces_it_runs_on_photographs_and_says_so(tmp_path):
    out = tmp_path / "deep" / "results"
    (tmp_path / "empty").mkdir()
    result = run(
        "reproduce", "--quick", "--seed", "3", "--out", str(out),
        SCIKIT_LEARN_DATA=str(tmp_path / "empty"),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    warning = "NOT THE PAPER'S DATA"
    assert result.stderr.startswith(f"omfb: {warning}")
    assert len(result.stderr.splitlines()) == 1  # no bars where there is no terminal
    assert warning in result.stdout
    assert result.stdout.endswith(f"Report: {out / 'report.html'}\n")
    assert {path.name for path in out.iterdir()} == FILES
    assert {path.name for path in out.parent.iterdir()} == {"results"}

    whole = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert whole["warning"].startswith(warning)
    assert (whole["seed"], whole["quick"], whole["images"]) == (3, True, 2080)
    assert whole["environment"]["omfb"]
    assert whole["environment"]["threads"]
    assert "photographs" in whole["data"]
    assert "not decided" not in result.stdout
    assert "NOT THE PAPER&#x27;S DATA" in (out / "report.html").read_text(encoding="utf-8")

    with (out / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = [n for part in whole["experiments"].values() for n in part["numbers"]]
    assert len(rows) == len(numbers) > 100
    for row, number in zip(rows, numbers, strict=True):
        assert row == {name: str(value) for name, value in number.items()}


def test_every_experiment_can_be_named():
    """The command has the names by heart, so that its help loads no experiment."""
    assert list(EXPERIMENTS) == list(NAMES)


def test_one_experiment_alone(in_process, tmp_path):
    result = in_process("faces-online", "--quick", "--out", str(tmp_path / "r"))
    assert result.exit_code == 0, result.output
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert names == {name for name in FILES if not name.startswith("faces-missing")}
    assert "filling missing pixels" not in result.stdout


def test_new_results_replace_old_ones_and_nothing_else(in_process, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce_module, "reproduce", write_two)
    (tmp_path / "report.html").write_text("old")
    (tmp_path / "mine.txt").write_text("mine")
    result = in_process("--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    contents = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert contents == {"mine.txt": "mine", "report.html": "new", "results.json": "new"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("there", [True, False])
def test_what_breaks_off_leaves_no_trace(in_process, tmp_path, monkeypatch, error, there):
    out = tmp_path / "a" / "b"
    if there:
        out.mkdir(parents=True)
        (out / "report.html").write_text("old")

    def broken(names, images, folder, **options):
        write_two(names, images, folder)
        raise error

    monkeypatch.setattr(reproduce_module, "reproduce", broken)
    assert in_process("--out", str(out)).exit_code != 0
    if there:
        assert [path.name for path in out.iterdir()] == ["report.html"]
        assert (out / "report.html").read_text() == "old"
    else:
        assert list(tmp_path.iterdir()) == []


def test_unknown_experiment(in_process, tmp_path):
    result = in_process("faces-offline", "--out", str(tmp_path / "r"))
    assert_one_line(result, "faces-offline", "faces-online, faces-missing or all")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", ["-1", str(2**32)])
def test_seed_that_is_none(in_process, tmp_path, seed):
    assert_one_line(in_process("--seed", seed, "--out", str(tmp_path / "r")), "--seed", "from 0")


def test_largest_seed(in_process, tmp_path):
    seed = str(2**32 - 1)
    result = in_process("faces-missing", "--quick", "--seed", seed, "--out", str(tmp_path / "r"))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("below", ["", "results"])
def test_out_that_cannot_be_written(in_process, tmp_path, below):
    file = tmp_path / "file"
    file.write_text("mine")
    result = in_process("--quick", "--out", str(file / below))
    assert_one_line(result, str(file), "--out")
    assert file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_out_without_permission(in_process, tmp_path):
    tmp_path.chmod(0o500)
    assert_one_line(in_process("--out", str(tmp_path / "r")), "ermission denied", "--out")


def test_a_folder_in_the_way_of_a_file_is_seen_before_anything_is_moved(
    in_process, tmp_path, monkeypatch
):
    monkeypatch.setattr(reproduce_module, "reproduce", write_two)
    (tmp_path / "results.json").mkdir()
    result = in_process("--out", str(tmp_path))
    assert_one_line(result, "results.json", "--out")
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_without_matplotlib_it_says_what_to_install(tmp_path):
    program = (
        "-c import sys; sys.modules['matplotlib'] = None; "
        "from omfb.__main__ import main; main()"
    )  # fmt: skip
    result = run("reproduce", "--out", str(tmp_path / "r"), program=program)
    assert_one_line(result, "matplotlib", "pip install 'omfb[plot]'")
    assert list(tmp_path.iterdir()) == []


def test_help_loads_neither_figures_nor_experiments():
    code = (
        "import sys, contextlib, omfb.cli\n"
        "with contextlib.suppress(SystemExit): omfb.cli.app(['reproduce', '--help'])\n"
        "assert not {'matplotlib', 'sklearn', 'omfb.paper', 'numba'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "--quick" in result.stdout
