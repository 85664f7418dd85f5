"""Keys that come and go: `omfb fit --new-features`, and `omfb complete - --learn`."""

import json

import numpy as np
import pytest

from omfb import OMFBImputer

from ..commands import one_line, run, succeeded


def objects(n=700, seed=0):
    """Rows by name; after 300 of them, one more name in each hundred."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(2, 12))
    for t in range(n):
        values = rng.normal(size=2) @ loadings + 0.2 * rng.normal(size=12)
        known = 5 + max(0, t - 200) // 100
        seen = [i for i in range(known) if rng.random() < 0.8] or [0]
        yield {f"n{i}": round(float(values[i]), 6) for i in seen}


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.ndjson").write_bytes(lines(objects()))
    return tmp_path


def test_a_file_and_a_pipe_are_learned_as_partial_fit_learns_dicts(folder):
    words = ["--new-features", "add", "-r", 2, "--seed", 0, "--drop-after", 400, "-q"]
    succeeded(run("fit", "x.ndjson", "-o", "file.omfb", *words, cwd=folder))
    succeeded(run("fit", "-", "-o", "pipe.omfb", *words, cwd=folder, input=lines(objects())))
    expected = OMFBImputer(2, random_state=0, new_features="add", drop_after=400)
    for row in objects():
        expected.partial_fit(row)
    for name in ("file.omfb", "pipe.omfb"):
        model = OMFBImputer.load(folder / name)
        assert model.drop_after == 400
        assert set(model.feature_names_in_) == set(expected.feature_names_in_)
        at = [list(model.feature_names_in_).index(name) for name in expected.feature_names_in_]
        np.testing.assert_allclose(abs(model.components_[:, at]), abs(expected.components_),
                                   rtol=1e-3, atol=1e-3)  # fmt: skip


def test_a_filter_learns_names_that_come_and_fills_them_from_then_on(folder):
    rows = list(objects())
    (folder / "head.ndjson").write_bytes(lines(rows[:200]))
    succeeded(run("fit", "head.ndjson", "-o", "m.omfb", "--new-features", "add", "-q", cwd=folder))
    words = ["complete", "-", "-m", "m.omfb", "--learn", "--new-features", "add", "-q"]
    whole = ["--checkpoint", "whole.omfb"]
    done = succeeded(run(*words, *whole, cwd=folder, input=lines(rows[200:])))
    filled = [json.loads(line) for line in done.stdout.splitlines()]
    known = set(OMFBImputer.load(folder / "m.omfb").feature_names_in_)
    for row, given in zip(filled, rows[200:], strict=True):
        known |= set(given)
        assert set(row) == known
        assert {name: row[name] for name in given} == given
    assert known == {f"n{i}" for i in range(9)}
    # In two parts, the second of which goes on from the checkpoint of the first.
    parts = ["--checkpoint", "parts.omfb"]
    first = succeeded(run(*words, *parts, cwd=folder, input=lines(rows[200:450])))
    second = succeeded(run(*words, *parts, "--resume", cwd=folder, input=lines(rows[200:])))
    assert first.stdout + second.stdout == done.stdout
    one, other = (OMFBImputer.load(folder / f"{name}.omfb") for name in ("whole", "parts"))
    assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()
    np.testing.assert_array_equal(one.components_, other.components_)


def test_names_are_refused_or_left_if_the_option_says_so(folder):
    rows = list(objects())
    (folder / "head.ndjson").write_bytes(lines(rows[:200]))
    succeeded(run("fit", "head.ndjson", "-o", "m.omfb", "--new-features", "error", cwd=folder))
    words = ["complete", "-", "-m", "m.omfb", "--learn", "-q"]
    row = lines([{"n0": 1.0, "other": 2.0}])
    done = run(*words, "--new-features", "error", cwd=folder, input=row)
    assert "row 1: 'other' is no feature" in one_line(done, 1)
    done = succeeded(run(*words, "--new-features", "ignore", cwd=folder, input=row))
    assert json.loads(done.stdout)["other"] == 2.0
    done = run("fit", "x.ndjson", "-o", "e.omfb", "--new-features", "error", cwd=folder)
    assert "rows 257 to 320: X has 'n5'" in one_line(done, 1)
    assert not (folder / "e.omfb").exists()


@pytest.mark.parametrize(("words", "problem"), [
    (["fit", "x.csv", "-o", "m", "--new-features", "add"], "objects with keys"),
    (["fit", "x.ndjson", "-o", "m", "--new-features", "often"], "--new-features must be"),
    (["fit", "x.ndjson", "-o", "m", "--new-features", "add", "--max-iter", "3"], "--max-iter"),
    (["fit", "x.ndjson", "-o", "m", "--drop-after", "9"], "add --new-features"),
    (["fit", "x.ndjson", "-o", "m", "--estimator", "omfb", "--new-features", "add"], "omfb"),
    (["complete", "x.ndjson", "-m", "m", "--new-features", "add"], "is for --learn and a pipe"),
])  # fmt: skip
def test_options_without_a_meaning_are_refused_in_one_line(folder, words, problem):
    (folder / "x.csv").write_text("a,b\n1,2\n2,3\n")
    assert problem in one_line(run(*words, cwd=folder), 2)


def test_lines_that_are_no_rows_are_named(folder):
    bad = b'{"a": 1}\n{"a": 2, "b": 1e999}\n'
    done = run("fit", "-", "-o", "m", "--new-features", "add", cwd=folder, input=bad)
    assert "row 2" in one_line(done, 1)
    bad = b'{"a": 1}\n{"a": "x"}\n'
    done = run("fit", "-", "-o", "m", "--new-features", "add", cwd=folder, input=bad)
    assert "row 2" in one_line(done, 1)
