"""What `omfb fit` finds, and what `omfb complete` tells besides the filled values."""

import json

import numpy as np
import pandas as pd
import pytest

from omfb import OMFB, OMFBImputer
from omfb.persistence import read_model

from ..commands import RULE, low_rank, one_line, succeeded, write_csv

NAMES = [f"f{i}" for i in range(6)]
N_ROWS = 300


@pytest.fixture(scope="module")
def folder(server, tmp_path_factory):
    """A table in all formats, with and without dates, and models of it."""
    folder = tmp_path_factory.mktemp("data")
    X = np.round(low_rank(N_ROWS, 6) + 10.0 * np.arange(6), 4)
    write_csv(folder / "x.csv", X)
    write_csv(folder / "x.tsv", X, mark="\t")
    frame = pd.DataFrame(X, columns=NAMES)
    frame.to_json(folder / "x.ndjson", orient="records", lines=True)
    frame.to_parquet(folder / "x.parquet")
    frame.to_feather(folder / "x.arrow", compression="uncompressed")
    np.save(folder / "x.npy", X)
    dated = frame.assign(when=pd.date_range("2020", periods=N_ROWS, freq="h"), text="a")
    dated.to_csv(folder / "dated.csv", index=False)
    dated.set_index("when").to_parquet(folder / "dated.parquet")
    for data, options in {"x.csv": [], "dated.csv": []}.items():
        words = ["fit", data, "--seed", 0, "-q", "-o", f"{data}.omfb", *options]
        succeeded(server.run(*words, cwd=folder))
    return folder


def _table(path):
    if path.suffix == ".ndjson":
        return pd.read_json(path, lines=True)
    if path.suffix in (".csv", ".tsv"):
        return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_feather(path)


# -- fit ------------------------------------------------------------------------------------


def test_nothing_needs_to_be_given_and_the_model_fills_tables(server, folder, tmp_path):
    header = read_model(folder / "x.csv.omfb")[0]
    assert header["class"] == "OMFBImputer"
    assert header["state"]["config"]["scale"] is True
    assert header["state"]["config"]["noise"] == "diagonal"
    for name in ("n_components", "max_iter", "temporal"):
        assert header["parameters"][name] is None
    words = ["fit", folder / "x.csv", "--seed", 0, "-q", "-o", "d.omfb", "--estimator"]
    succeeded(server.run(*words, "factor-analysis", cwd=tmp_path))
    header = read_model(tmp_path / "d.omfb")[0]
    assert header["class"] == "OnlineFactorAnalysis"
    assert header["state"]["config"]["scale"] is False
    assert header["state"]["config"]["noise"] == "isotropic"
    succeeded(server.run(*words, "omfb", cwd=tmp_path))
    assert read_model(tmp_path / "d.omfb")[0]["class"] == "OMFB"


OPTIONS = {
    "n_components": (["-r", 2], 2),
    "forget_factor": (["--forget-factor", 0.99], 0.99),
    "center": (["--no-center"], False),
    "scale": (["--no-scale"], False),
    "noise": (["--noise", "isotropic"], "isotropic"),
    "robust": (["--no-robust"], False),
    "temporal": (["--temporal"], True),
}
OF_OMFB = {
    "lam": (["--lam", 3], 3.0),
    "forget_factor": (["--forget-factor", 0.99], 0.99),
    "ridge": (["--ridge", 0.5], 0.5),
    "smooth": (["--smooth", 0.5, "--no-shuffle"], 0.5),
    "shrink": (["--shrink", 2, "--forget-factor", 1], 2.0),
    "inner_iter": (["--inner-iter", 3], 3),
    "batch_size": (["--batch-size", 8], 8),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_given_is_obeyed(server, folder, tmp_path, name):
    options, value = OPTIONS[name]
    words = ["fit", folder / "x.csv", "--seed", 0, "-q", "-o", "m.omfb", *options]
    succeeded(server.run(*words, cwd=tmp_path))
    header = read_model(tmp_path / "m.omfb")[0]
    assert header["parameters"][name] == value
    assert header["state"]["config"][name] == value
    expected = OMFBImputer(random_state=0, **{name: value}).fit(folder / "x.csv")
    np.testing.assert_array_equal(
        OMFBImputer.load(tmp_path / "m.omfb").components_, expected.components_
    )


@pytest.mark.parametrize("name", OF_OMFB)
def test_what_is_given_to_the_papers_algorithm_is_obeyed(server, folder, tmp_path, name):
    options, value = OF_OMFB[name]
    words = ["fit", folder / "x.csv", "--estimator", "omfb", "-r", 3, "--seed", 0, "-q"]
    succeeded(server.run(*words, "-o", "m.omfb", *options, cwd=tmp_path))
    given = {name: value}
    if "--no-shuffle" in options:
        given["shuffle"] = False
    if name == "shrink":
        given["forget_factor"] = 1.0
    expected = OMFB(3, random_state=0, **given).fit(folder / "x.csv")
    np.testing.assert_array_equal(OMFB.load(tmp_path / "m.omfb").components_, expected.components_)


def test_the_papers_algorithm_has_no_uncertainty(server, folder, tmp_path):
    words = ["fit", folder / "x.csv", "-r", 3, "--seed", 0, "-q", "-o", "m.omfb", *RULE]
    succeeded(server.run(*words, cwd=tmp_path))
    words = ["complete", folder / "x.csv", "-m", "m.omfb"]
    succeeded(server.run(*words, cwd=tmp_path))
    for option in (["--std"], ["--interval", 0.9], ["--report", "r.txt"]):
        message = one_line(server.run(*words, *option, "-o", "y.csv", cwd=tmp_path), 2)
        assert "estimates no noise" in message
    message = one_line(server.run(*words, "--no-robust", "-o", "y.csv", cwd=tmp_path), 2)
    assert "takes nothing for outliers" in message


@pytest.mark.parametrize("data", ["dated.csv", "dated.parquet"])
def test_a_column_of_dates_tells_that_rows_are_in_time(server, folder, tmp_path, data):
    words = ["fit", folder / data, "--seed", 0, "-o", "m.omfb"]
    told = succeeded(server.run(*words, cwd=tmp_path)).stderr.decode()
    assert "rows are in time, by column 'when' (--temporal/--no-temporal)" in told
    state = read_model(tmp_path / "m.omfb")[0]["state"]
    assert state["config"]["temporal"] is True
    assert state["temporal"] is not None
    told = succeeded(server.run(*words, "--no-temporal", cwd=tmp_path)).stderr.decode()
    assert "in time" not in told
    assert read_model(tmp_path / "m.omfb")[0]["state"]["config"]["temporal"] is False
    assert b"in time" not in succeeded(server.run(*words, "-q", cwd=tmp_path)).stderr


@pytest.mark.parametrize("dates", [["2020-01-02", "2020-01-01"], ["2020-01-01", "soon"], ["a"]])
def test_dates_that_do_not_rise_tell_nothing(server, folder, tmp_path, dates):
    frame = pd.read_csv(folder / "x.csv").assign(when=(dates * N_ROWS)[:N_ROWS])
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = succeeded(server.run("fit", "t.csv", "-o", "m.omfb", cwd=tmp_path)).stderr.decode()
    assert "in time" not in told
    assert read_model(tmp_path / "m.omfb")[0]["state"]["config"]["temporal"] is False


def test_info_tells_what_was_found(server, folder):
    done = succeeded(server.run("info", "dated.csv.omfb", "--json", cwd=folder))
    facts = json.loads(done.stdout)
    model = OMFBImputer.load(folder / "dated.csv.omfb")
    assert facts["active components"] == model.n_components_
    assert facts["temporal"] is True
    assert facts["recent error"] == pytest.approx(model.recent_error_)
    assert facts["running error"] == pytest.approx(model.prequential_error_)
    assert facts["outliers"] == model.outliers_.sum()
    noise = np.sqrt(model.noise_variance_)
    assert facts["noise (median of the features)"] == pytest.approx(np.median(noise))
    assert facts["rows seen"] == model.n_samples_seen_


def test_info_of_a_stream_that_has_just_begun(server, folder, tmp_path):
    OMFBImputer().partial_fit(low_rank(5, 6)).save(tmp_path / "m.omfb")
    facts = json.loads(succeeded(server.run("info", "m.omfb", "--json", cwd=tmp_path)).stdout)
    assert (facts["rows seen"], facts["features"]) == (5, 6)


# -- complete -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["x.csv.omfb", "dated.csv.omfb"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "ndjson", "parquet", "arrow"])
def test_deviations_and_bounds_are_columns_after_the_table(server, folder, tmp_path, ending, model):
    words = ["complete", folder / f"x.{ending}", "-m", folder / model, "-o", f"y.{ending}"]
    succeeded(server.run(*words, "--std", "--interval", 0.8, cwd=tmp_path))
    written = _table(tmp_path / f"y.{ending}")
    further = [f"{name}_{what}" for name in NAMES for what in ("std", "low", "high")]
    assert list(written.columns) == NAMES + further
    frame = pd.read_csv(folder / "x.csv")
    fitted = OMFBImputer.load(folder / model)
    filled, deviations = fitted.complete(frame, return_std=True)
    low, high = fitted.interval(frame, level=0.8)
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(written[NAMES], filled, **close)
    missing = frame.isna().to_numpy()
    low, high = (np.where(missing, side, np.nan) for side in (low, high))
    for what, expected in (("std", deviations), ("low", low), ("high", high)):
        columns = [f"{name}_{what}" for name in NAMES]
        np.testing.assert_allclose(written[columns], expected, **close)
    # Without them, the same values in a table as it was.
    succeeded(server.run(*words, cwd=tmp_path))
    np.testing.assert_allclose(_table(tmp_path / f"y.{ending}")[NAMES], filled, **close)


def test_only_features_get_further_columns_and_all_else_stays(server, folder, tmp_path):
    words = ["complete", folder / "dated.csv", "-m", folder / "dated.csv.omfb", "--std"]
    lines = succeeded(server.run(*words, cwd=tmp_path)).stdout.decode().splitlines()
    assert lines[0] == ",".join([*NAMES, "when", "text", *(f"{name}_std" for name in NAMES)])
    for before, after in zip((folder / "dated.csv").read_text().splitlines(), lines, strict=True):
        old, new = before.split(","), after.split(",")
        assert len(new) == 14
        assert all(a in ("", b) for a, b in zip(old, new[:8], strict=True))
    # From an array into a table.
    words = ["complete", folder / "x.npy", "-m", folder / "x.csv.omfb", "--std", "-o", "y.parquet"]
    succeeded(server.run(*words, cwd=tmp_path))
    assert len(pd.read_parquet(tmp_path / "y.parquet").columns) == 12


def test_tables_without_names_and_lists_get_further_cells(server, folder, tmp_path):
    X = np.load(folder / "x.npy")
    write_csv(tmp_path / "bare.csv", X, header=False)
    rows = [[None if np.isnan(value) else value for value in row] for row in X]
    (tmp_path / "lists.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = ["-m", folder / "x.csv.omfb", "--std"]
    text = succeeded(server.run("complete", "bare.csv", *model, cwd=tmp_path)).stdout.decode()
    table = np.array([[float(cell) for cell in line.split(",")] for line in text.splitlines()])
    text = succeeded(server.run("complete", "lists.ndjson", *model, cwd=tmp_path)).stdout.decode()
    lists = np.array([json.loads(line) for line in text.splitlines()])
    frame = pd.DataFrame(X, columns=NAMES)
    expected = OMFBImputer.load(folder / "x.csv.omfb").complete(frame, return_std=True)
    np.testing.assert_allclose(table, np.hstack(expected), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(lists, np.hstack(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("temporal", ["--temporal", "--no-temporal"])
def test_bounds_near_the_end_of_a_types_range_are_finite(server, tmp_path, temporal):
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (200, 2)) @ rng.normal(size=(2, 6))
    X = np.where(rng.random(X.shape) < 0.3, np.nan, 3.3e38 * (X / np.abs(X).max()))
    pd.DataFrame(X.astype(np.float32), columns=NAMES).to_parquet(tmp_path / "x.parquet")
    words = ["fit", "x.parquet", "--seed", 0, "-q", "-o", "m.omfb", temporal]
    succeeded(server.run(*words, cwd=tmp_path))
    for learn in ([], ["--learn", "-q"]):
        words = ["complete", "x.parquet", "-m", "m.omfb", "-o", "y.parquet", "--std", *learn]
        succeeded(server.run(*words, "--interval", 0.99, cwd=tmp_path))
        table = _table(tmp_path / "y.parquet")
        assert table.shape == (200, 24)
        bounds = [name for name in table.columns if name.endswith(("_low", "_high"))]
        assert np.isfinite(table.drop(columns=bounds).to_numpy()).all()
        assert np.isfinite(table[bounds].to_numpy()[np.isnan(X).repeat(2, axis=1)]).all()


@pytest.mark.parametrize("target", ["y.npy", "y.npz"])
def test_arrays_have_no_place_for_further_columns(server, folder, tmp_path, target):
    for source in ("x.npy", "x.csv"):
        words = ["complete", folder / source, "-m", folder / "x.csv.omfb", "--std", "-o", target]
        message = one_line(server.run(*words, cwd=tmp_path), 2)
        assert "write .csv, .tsv, .ndjson, .parquet or .arrow" in message
    assert not (tmp_path / target).exists()


def test_what_cannot_be_told_is_refused(server, folder, tmp_path):
    words = ["complete", folder / "x.csv", "-m", folder / "x.csv.omfb", "-o", "y.csv"]
    for level in (0, 1, 90, -1, "nan"):
        message = one_line(server.run(*words, "--interval", level, cwd=tmp_path), 2)
        assert "--interval must be between 0 and 1" in message
    message = one_line(server.run(*words[:-2], "--report", "-", cwd=tmp_path), 2)
    assert "cannot both be printed" in message
    frame = pd.read_csv(folder / "x.csv").assign(f3_std="mine")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["complete", "t.csv", "-m", folder / "x.csv.omfb", "-o", "y.csv", "--std"]
    assert "column 'f3_std' already" in one_line(server.run(*words, cwd=tmp_path), 2)
    words = ["complete", "t.csv", "-m", folder / "x.csv.omfb", "-o", "y.csv", "--report", "t.csv"]
    assert "would be overwritten" in one_line(server.run(*words, cwd=tmp_path), 2)
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    words = ["complete", folder / "x.csv", "-m", folder / "x.csv.omfb", "-o", "y.csv"]
    message = one_line(server.run(*words, "--report", "mine.csv", cwd=tmp_path), 2)
    assert "mine.csv: is no report" in message
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2\n"


@pytest.fixture(scope="module")
def spoiled(server, tmp_path_factory):
    """A table with entries far off what the rest of their rows says, and a model of it."""
    folder = tmp_path_factory.mktemp("spoiled")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 50))
    X += 0.1 * rng.standard_normal(X.shape)
    wrong = rng.random(X.shape) < 0.01
    X[wrong] += 10.0 * rng.choice([-1.0, 1.0], wrong.sum())
    X[rng.random(X.shape) < 0.1] = np.nan
    write_csv(folder / "x.csv", X)
    succeeded(server.run("fit", "x.csv", "--seed", 0, "-q", "-o", "m.omfb", cwd=folder))
    return folder, X, wrong & ~np.isnan(X)


def _report(text):
    head, *lines = [line.split() for line in text.splitlines()]
    assert head[:4] == ["column", "missing", "filled", "outliers"]
    return {line[0]: line[1:] for line in lines}


def test_a_report_counts_what_was_filled_and_taken_for_outliers(server, spoiled):
    folder, X, wrong = spoiled
    words = ["complete", "x.csv", "-m", "m.omfb", "-o", "y.csv", "--report"]
    told = _report(succeeded(server.run(*words, "-", cwd=folder)).stdout.decode())
    assert list(told) == [f"f{i}" for i in range(50)]
    frame = pd.read_csv(folder / "x.csv")
    low, high = OMFBImputer.load(folder / "m.omfb").interval(frame, level=0.9)
    for at, (missing, filled, outliers, width, rows) in enumerate(told.values()):
        gone = np.isnan(X[:, at])
        assert int(missing) == int(filled) == gone.sum()
        expected = np.mean((high - low).to_numpy()[gone, at])
        assert float(width) == pytest.approx(expected, rel=1e-3)
        assert 0.8 * wrong[:, at].sum() <= int(outliers) <= 1.2 * wrong[:, at].sum() + 3
        named = [int(row) for row in rows.removesuffix(",…").split(",")]
        assert len(named) == min(5, int(outliers))
        assert np.mean(wrong[np.array(named) - 1, at]) > 0.5
    succeeded(server.run(*words, "r.txt", cwd=folder))
    assert _report((folder / "r.txt").read_text()) == told


def test_outliers_can_be_left_in(server, spoiled):
    folder, _, _ = spoiled
    words = ["complete", "x.csv", "-m", "m.omfb", "--report", "-", "-o"]
    succeeded(server.run(*words, "y.csv", cwd=folder))
    told = _report(
        succeeded(server.run(*words, "z.csv", "--no-robust", cwd=folder)).stdout.decode()
    )
    assert all(line[2] == "0" for line in told.values())
    assert (folder / "y.csv").read_bytes() != (folder / "z.csv").read_bytes()


@pytest.mark.parametrize("learn", [[], ["--learn", "-q"]])
def test_what_the_model_may_fill_in_is_bounded_as_in_python(server, folder, tmp_path, learn):
    frame = pd.read_csv(folder / "x.csv")
    bounds = {"min_value": 20.0, "max_value": [21.0, 22.0, 23.0, 24.0, 25.0, 26.0]}
    OMFBImputer(random_state=0, **bounds).fit(frame).save(tmp_path / "m.omfb")
    words = ["complete", folder / "x.csv", "-m", "m.omfb", "--interval", 0.9, "-o", "y.csv"]
    succeeded(server.run(*words, *learn, cwd=tmp_path))
    written, gone = pd.read_csv(tmp_path / "y.csv"), frame.isna().to_numpy()
    for what in ("", "_low", "_high"):
        values = written[[f"{name}{what}" for name in NAMES]].to_numpy()
        assert (values >= 20.0)[gone].all()
        assert (values <= np.array(bounds["max_value"]))[gone].all()
        if what:
            assert np.isnan(values[~gone]).all()
        else:
            np.testing.assert_allclose(values[~gone], frame.to_numpy()[~gone], rtol=1e-12)


# -- pipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["x.csv.omfb", "dated.csv.omfb"])
@pytest.mark.parametrize("learn", [[], ["--learn", "-q"]])
def test_a_filter_gives_further_columns_line_by_line(server, folder, tmp_path, learn, model):
    words = ["complete", "-", "-m", folder / model, "--interval", 0.9, *learn]
    done = succeeded(server.run(*words, stdin=folder / "x.csv", cwd=tmp_path))
    (tmp_path / "y.csv").write_bytes(done.stdout)
    written = pd.read_csv(tmp_path / "y.csv")
    gone = pd.read_csv(folder / "x.csv").isna().to_numpy()
    values, low, high = (
        written[[f"{name}{what}" for name in NAMES]].to_numpy() for what in ("", "_low", "_high")
    )
    assert not np.isnan(values).any()
    assert (low[gone] < values[gone]).all()
    assert (values[gone] < high[gone]).all()
    assert np.isnan(low[~gone]).all()
    assert np.isnan(high[~gone]).all()
    plain = succeeded(server.run(*words[:4], *learn, stdin=folder / "x.csv", cwd=tmp_path)).stdout
    (tmp_path / "z.csv").write_bytes(plain)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "z.csv"), values, rtol=1e-9, atol=1e-9)


def test_a_stream_in_time_is_filled_from_the_rows_before(server, tmp_path):
    """A sensor that is off keeps its own level, which no other one tells."""
    rng = np.random.default_rng(0)
    levels = np.cumsum(rng.standard_normal((2000, 4)), axis=0)
    X = levels + 0.01 * rng.standard_normal(levels.shape)
    seen = X.copy()
    seen[rng.random(X.shape) < 0.1] = np.nan
    when = pd.date_range("2020", periods=len(X), freq="h")
    frame = pd.DataFrame(seen, columns=list("abcd")).assign(when=when)
    frame.to_csv(tmp_path / "x.csv", index=False)
    gone = np.isnan(seen)
    errors = {}
    for name, options in {"in time": [], "not": ["--no-temporal"]}.items():
        words = ["fit", "x.csv", "--seed", 0, "-q", "-o", "m.omfb", *options]
        succeeded(server.run(*words, cwd=tmp_path))
        words = ["complete", "-", "-m", "m.omfb", "--learn", "-q"]
        out = succeeded(server.run(*words, stdin=tmp_path / "x.csv", cwd=tmp_path)).stdout
        (tmp_path / "y.csv").write_bytes(out)
        filled = pd.read_csv(tmp_path / "y.csv")[list("abcd")].to_numpy()
        errors[name] = np.sqrt(np.mean((filled - X)[gone] ** 2))
    assert errors["in time"] < 0.5 * errors["not"]


def test_a_filter_in_time_goes_on_as_if_it_had_never_stopped(server, folder, tmp_path):
    words = ["complete", "-", "-m", folder / "dated.csv.omfb", "--learn", "-q"]
    whole = succeeded(server.run(*words, stdin=folder / "x.csv", cwd=tmp_path)).stdout
    lines = (folder / "x.csv").read_bytes().splitlines(keepends=True)
    (tmp_path / "half.csv").write_bytes(b"".join(lines[:151]))
    words += ["--checkpoint", "live.omfb"]
    first = succeeded(server.run(*words, stdin=tmp_path / "half.csv", cwd=tmp_path)).stdout
    words += ["--resume"]
    rest = succeeded(server.run(*words, stdin=folder / "x.csv", cwd=tmp_path)).stdout
    assert first + rest == whole


def test_a_table_without_rows_has_further_columns_all_the_same(server, folder, tmp_path):
    header = (folder / "x.csv").read_text().partition("\n")[0]
    (tmp_path / "none.csv").write_text(header + "\n")
    words = ["complete", "none.csv", "-m", folder / "x.csv.omfb", "-o", "y.csv", "--std"]
    succeeded(server.run(*words, "--interval", 0.9, "--report", "r.txt", cwd=tmp_path))
    table = pd.read_csv(tmp_path / "y.csv")
    assert len(table) == 0
    assert [name for name in table if name.startswith("f0")] == [
        "f0",
        "f0_std",
        "f0_low",
        "f0_high",
    ]
