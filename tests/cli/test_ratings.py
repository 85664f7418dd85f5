"""`omfb fit --ratings`, `omfb recommend`, and what `omfb info` says of such models, as typed."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from omfb import OMFBRecommender
from omfb.cli import app
from omfb.datasets import make_ratings

RUNNER = CliRunner()


def run(line, **more):
    done = RUNNER.invoke(app, line.split(), **more)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    users, items, ratings = make_ratings(40, 30, 500, random_state=0)
    frame = pd.DataFrame({"who": users, "film": [f"film {i}" for i in items], "stars": ratings})
    frame.to_csv("ratings.csv", index=False)
    frame.assign(when=range(500), more="x").to_csv("wide.csv", index=False)
    return tmp_path


def test_a_model_of_ratings_is_fitted_asked_and_described(folder):
    done = run("fit ratings.csv --ratings who,film,stars -o model.omfb --seed 0 -r 3")
    assert done.exit_code == 0
    assert "model.omfb: 500 ratings of 30 items by 40 users, error 1." in done.stderr
    model = OMFBRecommender.load("model.omfb")
    items, scores = model.recommend(7, 4)
    done = run("recommend model.omfb --user 7 -n 4")
    lines = done.stdout.splitlines()
    assert lines[0] == "item,score"
    assert [line.split(",")[0] for line in lines[1:]] == items.tolist()
    told = json.loads(run("recommend model.omfb --user 7 -n 4 --json").stdout)
    np.testing.assert_allclose([each["score"] for each in told], scores)
    facts = json.loads(run("info model.omfb --json").stdout)
    assert (facts["users"], facts["items"], facts["ratings"]) == (40, 30, 500)
    assert "OMFBRecommender model" in run("info model.omfb").stdout


def test_columns_by_number_time_and_pipes_are_the_same_ratings(folder):
    run("fit ratings.csv --ratings who,film,stars -o a.omfb --seed 0")
    run("fit wide.csv --ratings 1,2,3,when -o b.omfb --seed 0 -q")
    text = (folder / "ratings.csv").read_bytes()
    done = run("fit - --ratings 1,2,3 -o c.omfb --seed 0", input=text)
    assert done.exit_code == 0
    said = [run(f"recommend {name}.omfb --user 3").stdout for name in "abc"]
    assert said[0] == said[1] == said[2]


def test_an_unknown_user_gets_what_the_average_one_likes(folder):
    run("fit ratings.csv --ratings who,film,stars -o model.omfb --seed 0")
    done = run("recommend model.omfb --user nobody -n 2")
    assert done.exit_code == 0
    assert (
        done.stderr == "omfb: no ratings by nobody: these are what the average user rates highest\n"
    )
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit ratings.csv --ratings who,film -o m.omfb", "--ratings needs the columns of user"),
        ("fit ratings.csv --ratings who,film,who -o m.omfb", "--ratings needs the columns"),
        ("fit ratings.csv --ratings who,film,x -o m.omfb", "no column 'x'"),
        ("fit ratings.csv --ratings who,stars,film -o m.omfb", "'film "),
        ("fit ratings.csv ratings.csv --ratings 1,2,3 -o m.omfb", "takes one file"),
        ("fit ratings.csv --ratings 1,2,3 --lam 3 -o m.omfb", "--lam is not for --ratings"),
        ("fit ratings.csv --ratings 1,2,3 --no-header -o m.omfb", "--header is not for --ratings"),
        ("fit ratings.csv --ratings 1,2,3 --checkpoint c -o m.omfb", "--checkpoint is not for"),
        ("fit ratings.csv --ratings 1,2,3 --estimator omfb -o m.omfb", "--estimator is not for"),
        ("fit ratings.csv --ratings 1,2,3 -r 0 -o m.omfb", "--n-components must be 1 or more"),
        ("fit ratings.csv --ratings 1,2,3 -o ratings.csv", "would be overwritten"),
        ("fit none.csv --ratings 1,2,3 -o m.omfb", "none.csv: no such file"),
        ("recommend ratings.csv --user 1", "not an omfb model file"),
        ("recommend model.omfb --user 1 -n 0", "n must be 1 or more"),
        ("info model.omfb --atoms 2x2 a.png", "--atoms draws a dictionary"),
        ("complete ratings.csv -m model.omfb -o out.csv", "a model of ratings"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(folder, words, message):
    run("fit ratings.csv --ratings who,film,stars -o model.omfb -q")
    before = sorted(path.name for path in folder.iterdir())
    done = run(words)
    assert done.exit_code in (1, 2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_table_that_looks_like_ratings_gets_a_hint(folder):
    done = run("fit ratings.csv -o m.omfb")
    assert "add --ratings who,film,stars" in done.stderr
    assert "--ratings" not in run("fit ratings.csv -o m.omfb -q").stderr
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame.to_csv("table.csv", index=False)
    assert "--ratings" not in run("fit table.csv -o m.omfb").stderr
    pd.DataFrame({"day": range(60), "n": rng.integers(0, 9, 60), "rain": frame.c}).to_csv(
        "counts.csv", index=False
    )
    assert "--ratings" not in run("fit counts.csv -o m.omfb").stderr


def test_the_help_shows_how_to_fit_ratings():
    text = " ".join(run("fit --help").stdout.split())
    assert "omfb fit ratings.csv --ratings user,item,rating -o ratings.omfb" in text
