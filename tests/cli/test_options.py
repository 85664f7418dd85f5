"""Every option of every command changes something, or is refused in one line that says why."""

import os
import shutil
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from typer.main import get_command
from typer.testing import CliRunner

from omfb import OMFBImputer, OMFBRecommender, OnlineFactorAnalysis
from omfb.cli import app
from omfb.cli._models import load_estimator
from omfb.datasets import make_ratings
from omfb.persistence import read_model
from omfb.persistence.modelfile import is_model_file

from ..commands import low_rank, write_csv

RUNNER = CliRunner()
NAMES = [f"f{i}" for i in range(6)]
# What each command is given besides the option that is tried.
BASES = {
    "fit": ["table.csv", "--seed", "0", "-o", "new.omfb"],
    "complete": ["table.csv", "-m", "a.omfb", "-o", "out.csv"],
    "transform": ["table.csv", "-m", "a.omfb", "-o", "out.csv"],
    "inverse": ["codes.csv", "-m", "a.omfb", "-o", "out.csv"],
    "score": ["table.csv", "-m", "a.omfb"],
    "merge": ["a.omfb", "b.omfb", "--start", "start.omfb", "-o", "new.omfb"],
    "info": ["a.omfb"],
    "demo": [],
    "reproduce": [],
    "recommend": ["ratings.omfb", "--user", "3"],
    "forecast": ["cycles.omfb"],
}


class Case(NamedTuple):
    """How an option is tried.

    Attributes
    ----------
    values : str
        The values of the option, between spaces.
    beside : str
        Options that are given in both runs, with it and without.
    data : str
        The data, if they are not those of `BASES`.
    refused : str
        What the error says, if there must be one.
    """

    values: str = ""
    beside: str = ""
    data: str = ""
    refused: str = ""


READING = {
    "--columns": Case("f0,f1"),
    "--exclude": Case("f0"),
    "--header": Case(data="table.npy", refused="--header/--no-header is for CSV files"),
    "--no-header": Case(data="numbered.csv"),
    "--format": Case("csv", refused="--format is for standard input"),
    "--missing": Case("-999", data="marked.csv"),
    "--decimal": Case(",", data="european.csv"),
    "--thousands": Case("'", data="grouped.csv"),
    "--quiet": Case(beside="-m marked.omfb", data="marked.csv"),
}
OF_OMFB = "--estimator omfb -r 3"
CASES = {
    "fit": {
        **READING,
        "--quiet": Case(),
        "--output": Case("other.omfb"),
        "--estimator": Case("factor-analysis"),
        "--checkpoint": Case("run.ckpt"),
        "--every": Case("1m", refused="--every says how often to write --checkpoint"),
        "--resume": Case(refused="--resume needs --checkpoint"),
        "--log": Case("log.ndjson"),
        "--force": Case(beside="-o notes.txt"),
        "--n-components": Case("1"),
        "--forget-factor": Case("0.9"),
        "--max-iter": Case("1"),
        "--tol": Case("0.9", beside="--max-iter 5"),
        "--shuffle": Case(beside="--no-shuffle"),
        "--no-shuffle": Case(),
        "--seed": Case("1"),
        "--center": Case(beside="--no-center"),
        "--no-center": Case(),
        "--scale": Case(beside="--estimator factor-analysis"),
        "--no-scale": Case(),
        "--noise": Case("isotropic"),
        "--robust": Case(beside="--no-robust", data="spikes.csv"),
        "--no-robust": Case(data="spikes.csv"),
        "--temporal": Case(data="walks.csv"),
        "--no-temporal": Case(beside="--temporal", data="walks.csv"),
        "--seasons": Case("7", beside="--temporal", data="cycles.csv"),
        "--covariates": Case(
            "f5",
            beside="--temporal",
            data="walks.csv",
        ),
        "--min-value": Case("0"),
        "--max-value": Case("0"),
        "--integers": Case(data="integers.csv"),
        "--lam": Case("9", beside=OF_OMFB),
        "--ridge": Case("9", beside=OF_OMFB),
        "--smooth": Case("9", beside=f"{OF_OMFB} --no-shuffle"),
        "--shrink": Case("9", beside=f"{OF_OMFB} --forget-factor 1"),
        "--inner-iter": Case("5", beside=OF_OMFB),
        "--batch-size": Case("8", beside=OF_OMFB),
        "--positive": Case(beside=OF_OMFB),
        "--alpha": Case("0.5", beside=OF_OMFB),
        "--l1-ratio": Case("0.5", beside=f"{OF_OMFB} --alpha 0.5"),
        "--absent": Case("zero", beside=OF_OMFB, data="sparse.npz"),
        "--init": Case("random", beside=OF_OMFB),
        "--weights": Case("f0", data="positive.csv"),
        "--scheduler": Case("tcp://127.0.0.1:1", data="-", refused="--scheduler needs files"),
        "--n-tasks": Case("4", refused="--n-tasks is for a cluster"),
        "--ratings": Case("user,item,rating", data="ratings.csv"),
        "--new-features": Case("add", refused="--new-features is for objects with keys"),
        "--drop-after": Case("9", refused="add --new-features add"),
    },
    "complete": {
        **READING,
        "--new-features": Case("add", refused="--new-features is for --learn and a pipe"),
        "--model": Case("b.omfb"),
        "--output": Case("other.csv"),
        "--std": Case(),
        "--interval": Case("0.9"),
        "--report": Case("report.txt"),
        "--max-gap": Case("1", data="walks.csv"),
        "--max-std": Case("0.1"),
        "--no-robust": Case(beside="-m spikes.omfb", data="spikes.csv"),
        "--learn": Case(),
        "--checkpoint": Case("run.ckpt", refused="--checkpoint keeps what --learn learns"),
        "--every": Case("1m", refused="--every says how often to write --checkpoint"),
        "--resume": Case(refused="--resume continues a pipe"),
    },
    "transform": {**READING, "--model": Case("b.omfb"), "--output": Case("other.csv")},
    "inverse": {
        **READING,
        "--model": Case("b.omfb"),
        "--output": Case("other.csv"),
        "--columns": Case("1,2"),
        "--exclude": Case("1"),
        "--no-header": Case(data="codes_numbered.csv"),
        "--missing": Case("0"),
        "--decimal": Case(",", data="codes_european.csv"),
        "--thousands": Case("'", data="codes_grouped.csv"),
        "--quiet": Case(data="codes_numbered.csv"),
    },
    "score": {**READING, "--model": Case("b.omfb")},
    "merge": {
        "--start": Case("a.omfb"),
        "--output": Case("other.omfb"),
        "--force": Case(beside="-o notes.txt"),
        "--quiet": Case(),
    },
    "recommend": {
        "--user": Case("4"),
        "--number": Case("3"),
        "--include-seen": Case(),
        "--json": Case(),
        "--quiet": Case(beside="--user nobody"),
    },
    "forecast": {
        "--steps": Case("3"),
        "--interval": Case("0.9"),
        "--covariates": Case("table.csv", refused="cycles.omfb was fitted without any"),
        "--report": Case("ahead.txt"),
        "--output": Case("ahead.csv"),
    },
    "info": {"--atoms": Case("2x3 atoms.png"), "--json": Case()},
    "demo": {"--out": Case("folder"), "--seed": Case("1")},
    "reproduce": {"--out": Case("folder"), "--seed": Case("1"), "--quick": Case()},
}


def _options():
    """All options of all commands, both sides of flags that have two."""
    for name, command in get_command(app).commands.items():
        for parameter in command.params:
            sides = (parameter.opts, parameter.secondary_opts)
            if parameter.param_type_name == "option" and parameter.name != "help":
                yield from ((name, max(side, key=len)) for side in sides if side)


def test_every_option_has_a_case_and_every_case_an_option():
    given = {(command, option) for command, cases in CASES.items() for option in cases}
    assert set(_options()) == given


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data and models of each kind that some option is about."""
    folder = tmp_path_factory.mktemp("data")
    X = low_rank(300, 6)
    write_csv(folder / "table.csv", X)
    np.save(folder / "table.npy", X)
    scipy.sparse.save_npz(folder / "sparse.npz", scipy.sparse.csr_array(X * (X > 0.0)))
    frame = pd.DataFrame(X, columns=NAMES)
    frame.set_axis(range(6), axis=1).to_csv(folder / "numbered.csv", index=False)
    frame.fillna(-999).to_csv(folder / "marked.csv", index=False)
    frame.abs().fillna(1.0).to_csv(folder / "positive.csv", index=False)
    frame.assign(text="a").to_csv(folder / "text.csv", index=False)
    frame.to_csv(folder / "european.csv", index=False, sep=";", decimal=",")
    _write_grouped(folder / "grouped.csv", frame)
    write_csv(folder / "integers.csv", np.round(5 * X))
    spikes = low_rank(1500, 6, r=2)
    rng = np.random.default_rng(1)
    spikes[rng.random(spikes.shape) < 0.02] += 40.0
    write_csv(folder / "spikes.csv", spikes)
    walks = np.cumsum(low_rank(300, 6, missing=0.0), axis=0)
    walks[rng.random(walks.shape) < 0.2] = np.nan
    write_csv(folder / "walks.csv", walks)
    cycle = 5.0 * np.sin(2.0 * np.pi * np.arange(300) / 11.0)[:, None] + low_rank(300, 6)
    write_csv(folder / "cycles.csv", cycle)
    model = OMFBImputer(temporal=True, random_state=0).fit(folder / "cycles.csv")
    model.save(folder / "cycles.omfb")
    users, items, ratings = make_ratings(30, 20, 300, random_state=0)
    frame_of_ratings = pd.DataFrame({"user": users, "item": items, "rating": ratings})
    frame_of_ratings.to_csv(folder / "ratings.csv", index=False)
    OMFBRecommender(2, random_state=0).fit(frame_of_ratings).save(folder / "ratings.omfb")
    (folder / "notes.txt").write_text("not a model\n")
    start = OnlineFactorAnalysis(random_state=0).fit(frame[:200])
    start.save(folder / "start.omfb")
    for name, rows in {"a": frame[200:250], "b": frame[250:]}.items():
        model = OnlineFactorAnalysis.load(folder / "start.omfb").partial_fit(rows)
        model.save(folder / f"{name}.omfb")
    OMFBImputer(random_state=0).fit(folder / "spikes.csv").save(folder / "spikes.omfb")
    codes = model.transform(frame)
    names = [f"c{i}" for i in range(codes.shape[1])]
    pd.DataFrame(codes, columns=names).to_csv(folder / "codes.csv", index=False)
    numbered = pd.DataFrame(codes, columns=range(codes.shape[1]))
    numbered.to_csv(folder / "codes_numbered.csv", index=False)
    numbered.to_csv(folder / "codes_european.csv", index=False, sep=";", decimal=",")
    _write_grouped(folder / "codes_grouped.csv", numbered)
    words = ["fit", folder / "marked.csv", "--missing", "-999", "-o", folder / "marked.omfb"]
    assert RUNNER.invoke(app, [str(word) for word in words]).exit_code == 0
    return folder


def _write_grouped(path, frame):
    def text(value):
        return "" if np.isnan(value) else f"{1000 * value:,.0f}".replace(",", "'")

    pd.DataFrame({name: frame[name].map(text) for name in frame}).to_csv(path, index=False)


@pytest.fixture
def quick_reports(monkeypatch):
    """Commands with a report write what they were asked for instead of running for minutes."""

    def write(folder, **options):
        (folder / "asked.txt").write_text(f"{options['seed']} {options.get('quick')}")
        return []

    monkeypatch.setattr("omfb.demo.demo.demo", lambda images, folder, **o: write(folder, **o))
    monkeypatch.setattr(
        "omfb.paper.reproduce.reproduce", lambda names, images, folder, **o: write(folder, **o)
    )


def _outcome(folder, path, words):
    """What a command prints and writes; of a model, what it predicts and not what it was given."""
    shutil.copytree(folder, path)
    os.chdir(path)
    done = RUNNER.invoke(app, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    new = {}
    for file in sorted(path.rglob("*")):
        before = folder / file.relative_to(path)
        if file.is_file() and not (before.is_file() and before.read_bytes() == file.read_bytes()):
            new[str(file.relative_to(path))] = _content(file)
    return done.exit_code, done.stdout, done.stderr, new


def _content(file):
    if not is_model_file(file):
        return b"a log" if file.name.startswith("log") else file.read_bytes()
    if read_model(file)[0]["class"] == "OMFBRecommender":
        return OMFBRecommender.load(file).predict(3, [1, 2, 3]).tobytes()
    model = load_estimator(file)
    n_features = model.n_features_in_
    rows = low_rank(40, n_features, seed=5)
    if n_features == 6:
        rows[0] = 1000.0  # an outlier: what the model does with it can be seen
        rows[0, 3] = np.nan
    names = model.learner_.feature_names
    filled = model.complete(rows if names is None else pd.DataFrame(rows, columns=names))
    return type(model).__name__, getattr(model, "n_iter_", None), np.asarray(filled).tobytes()


@pytest.mark.parametrize(("command", "option"), list(_options()))
@pytest.mark.usefixtures("quick_reports")
def test_an_option_has_an_effect_or_is_refused(folder, tmp_path, monkeypatch, command, option):
    case = CASES[command][option]
    monkeypatch.chdir(tmp_path)  # and back, at the end
    base = [command, *BASES[command], *case.beside.split()]
    if case.data:
        base[1] = case.data
    given = [*base, option, *case.values.split()]
    code, _, error, new = outcome = _outcome(folder, tmp_path / "with", given)
    if case.refused:
        assert code == 2
        assert case.refused in error
        assert error.count("\n") == 1
        assert new == {}
    else:
        without = _outcome(folder, tmp_path / "without", base)
        assert outcome != without
        assert 0 in (code, without[0]), error
