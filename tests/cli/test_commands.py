"""What the commands say: help, progress, logs, information, and errors in one line."""

import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from omfb import OMFB, OnlineFactorAnalysis
from omfb.cli import app
from omfb.datasets import make_ratings
from omfb.persistence import read_model, write_model

from ..commands import COMMAND, RULE, low_rank, run, start, succeeded, write_csv

RUNNER = CliRunner()
COMMANDS = ["fit", "complete", "transform", "inverse", "score", "info"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of the names that the help's examples use, and a model."""
    folder = tmp_path_factory.mktemp("data")
    write_csv(folder / "table.csv", low_rank(300, 12))
    rng = np.random.default_rng(0)
    np.save(folder / "faces.npy", rng.random((70, 64 * 64), dtype=np.float32))
    model = OnlineFactorAnalysis(5, max_iter=1, random_state=0)
    model.fit(folder / "table.csv").save(folder / "model.omfb")
    faces = OnlineFactorAnalysis(5, random_state=0).fit(folder / "faces.npy")
    faces.save(folder / "faces.omfb")
    return folder


def _invoke(*words):
    return RUNNER.invoke(app, [str(word) for word in words])


def _error(result, code):
    """The message of a command that must have failed with one line."""
    assert result.exit_code == code, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("omfb: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def _examples():
    for name in COMMANDS:
        text = _invoke(name, "--help").stdout
        for line in text.splitlines():
            line = line.strip(" │")
            if "--scheduler" in line:
                continue  # there is no cluster here: see tests/distributed
            if line.startswith("omfb ") or " | omfb " in line:
                yield line


def test_the_examples_of_the_help_work_as_printed(folder, tmp_path):
    folder = shutil.copytree(folder, tmp_path / "copy")
    users, items, ratings = make_ratings(60, 20, 400, random_state=0)
    pd.DataFrame({"user": users, "item": items, "rating": ratings}).to_csv(
        folder / "ratings.csv", index=False
    )
    hours = pd.Series(pd.date_range("2024-01-01", periods=100, freq="h"), name="time")
    waves = pd.DataFrame(np.sin(np.arange(300.0).reshape(100, 3)), columns=list("abc"))
    waves["holiday"], waves["temperature"] = np.arange(100) // 24 % 7 == 0, np.arange(100.0) % 24
    waves["holiday"] = waves["holiday"].astype(float)
    pd.concat([hours, waves], axis=1).to_csv(folder / "sensors.csv", index=False)
    examples = list(_examples())
    assert len(examples) >= 8
    code = shlex.quote(COMMAND)
    script = [f'omfb() {{ {shlex.quote(sys.executable)} -c {code} "$@"; }}', "set -e -o pipefail"]
    done = subprocess.run(
        ["bash", "-c", "\n".join([*script, *examples])],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "filled.csv").stat().st_size > 0
    assert (folder / "atoms.png").read_bytes().startswith(b"\x89PNG")


def test_help_is_quick_and_lists_all_commands():
    """Nothing heavy is imported before it is needed."""
    heavy = ("sklearn", "numba", "scipy", "pyarrow")
    code = f"import sys, omfb.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    listed = _invoke("--help").stdout
    assert all(re.search(rf"^│ {name} ", listed, re.M) for name in [*COMMANDS, "demo", "reproduce"])
    assert "--install-completion" in listed


def test_info_tells_what_a_model_is(folder):
    text = _invoke("info", folder / "model.omfb").stdout
    assert re.search(r"components +5\n", text)
    assert re.search(r"rows seen +300\n", text)
    facts = json.loads(_invoke("info", folder / "model.omfb", "--json").stdout)
    assert facts["features"] == 12
    assert facts["feature names"][:2] == ["f0", "f1"]
    assert 0.0 < facts["running error"] < 1.0
    assert facts["parameters"]["n_components"] == 5


def test_info_imports_neither_scikit_learn_nor_pyarrow(folder):
    code = (
        "import sys, omfb.cli; "
        f"sys.argv = ['omfb', 'info', {str(folder / 'model.omfb')!r}]; "
        "__import__('atexit').register(lambda: print([m for m in "
        "('sklearn', 'pyarrow', 'pandas') if m in sys.modules])); omfb.cli.app()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "rows seen" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("value", [5, "x", [], {}, True, {"pass": None}, {"rows": 1.5}])
@pytest.mark.parametrize("name", ["training", "pipe", "parameters", "learner", "totals", "state"])
def test_info_of_a_header_of_the_wrong_kind_is_one_line(folder, tmp_path, name, value):
    header, tensors = read_model(folder / "model.omfb")
    write_model(tmp_path / "m.omfb", {**header, name: value}, tensors)
    result = _invoke("info", tmp_path / "m.omfb")
    if result.exit_code != 0:
        assert "m.omfb: not a model that omfb can have written" in _error(result, 1)
    else:
        assert name == "parameters"
        assert isinstance(value, dict)  # what it may hold is for those who use them


def test_a_fit_does_not_replace_its_own_data(folder, tmp_path):
    data = tmp_path / "x.csv"
    data.write_bytes((folder / "table.csv").read_bytes())
    (tmp_path / "link.csv").symlink_to(data)
    for name in ("x.csv", "link.csv"):
        words = ["fit", data, "-r", 2, "-q"]
        assert "would be overwritten" in _error(_invoke(*words, "-o", tmp_path / name), 2)
        words = [*words, "-o", tmp_path / "m", "--checkpoint", tmp_path / name, "--resume"]
        assert "would be overwritten" in _error(_invoke(*words), 2)
        words = ["fit", data, "-r", 2, "-q", "-o", tmp_path / "m", "--log", tmp_path / name]
        assert "would be overwritten" in _error(_invoke(*words), 2)
    assert data.read_bytes() == (folder / "table.csv").read_bytes()


def test_atoms_are_drawn_as_an_image(folder, tmp_path):
    from matplotlib.image import imread

    words = ["info", folder / "faces.omfb", "--atoms"]
    assert _invoke(*words, "64x64", tmp_path / "a.png").exit_code == 0
    image = imread(tmp_path / "a.png")
    assert image.shape[0] * image.shape[1] >= 5 * 64 * 64
    atom = OnlineFactorAnalysis.load(folder / "faces.omfb").components_[0].reshape(64, 64)
    assert np.corrcoef(image[:64, :64].ravel(), atom.ravel())[0, 1] > 0.999
    assert "4096" in _error(_invoke(*words, "60x60", tmp_path / "b.png"), 2)
    assert "64x64" in _error(_invoke(*words, "big", tmp_path / "b.png"), 2)


def test_a_log_has_json_lines(folder, tmp_path):
    words = ["fit", folder / "table.csv", "-r", 3, "--max-iter", 3, "-o", tmp_path / "m.omfb"]
    assert _invoke(*words, "--log", tmp_path / "log", "-q").stderr == ""
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    last = lines[-1]
    assert last["done"] == 1.0
    assert last["pass"] == last["passes"] == 3
    assert last["observations"] == 900
    assert last["error"] == OnlineFactorAnalysis.load(tmp_path / "m.omfb").prequential_error_


def test_a_log_has_a_line_per_second_also_beside_a_bar(folder, tmp_path, monkeypatch):
    from omfb.cli import _progress as progress
    from omfb.learner.fit_stream import Progress

    seconds = [0.0]
    bar = MagicMock()
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    monkeypatch.setattr(progress, "bar_where_seen", lambda max_iter: bar)
    at = Progress(number=1, max_iter=1, n_rows=30, error=0.5, done=0.1, finished=False)
    log = tmp_path / "log"
    with progress.Shown(1, False, log) as shown:
        for _ in range(16):
            shown.update(at)
            seconds[0] += 0.25
    assert bar.update.call_count == 16
    assert log.read_text().count("\n") == 3


def test_a_terminal_sees_a_bar_and_a_file_does_not(folder, tmp_path):
    words = ["fit", folder / "table.csv", "-r", 3, "--max-iter", 1, "-o", tmp_path / "m.omfb"]
    assert b"pass" not in succeeded(run(*words)).stderr
    ours, theirs = pty.openpty()
    process = start(*words, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        shown += part
    assert process.wait() == 0
    os.close(ours)
    assert b"pass 1 of 1" in shown
    assert b"rows/s" in shown


def test_fits_of_one_seed_are_equal_and_options_arrive(folder, tmp_path):
    words = ["fit", folder / "table.csv", "-r", 3, "--seed", 4, "--lam", 2]
    words += ["--estimator", "omfb", "--forget-factor", 0.5, "--ridge", 0.1, "--batch-size", 5]
    words += ["--max-iter", 2, "--columns", "f1,3-5,f11", "-q"]
    for name in "ab":
        assert _invoke(*words, "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    model = OMFB.load(tmp_path / "a")
    assert list(model.feature_names_in_) == ["f1", "f2", "f3", "f4", "f11"]
    expected = {"lam": 2.0, "forget_factor": 0.5, "ridge": 0.1, "batch_size": 5, "max_iter": 2}
    assert expected.items() <= model.get_params().items()


USAGE = {
    "no atoms": (["-r", "0"], "--n-components must be 1 or more"),
    "forgetting": (["--forget-factor", "2"], "--forget-factor must be between 0.5 and 1"),
    "no such": (["--estimator", "pca"], "--estimator must be imputer, factor-analysis or omfb"),
    "of omfb": (["--lam", "2"], "imputer has no option --lam: it is one of --estimator omfb"),
    "of the others": (
        ["--estimator", "omfb", "--no-center"],
        "omfb has no option --center: it is one of --estimator imputer or factor-analysis",
    ),
    "smooth and shuffle": ([*map(str, RULE), "--smooth", "1"], "--no-shuffle"),
    "noise": (["--noise", "loud"], "noise must be 'isotropic' or 'diagonal'"),
    "no number": (["--every", "soon", "--checkpoint", "c"], "--every must be like 30s"),
    "resume what": (["--resume"], "--resume needs --checkpoint FILE"),
    "shrink what": (["--estimator", "omfb", "--shrink", "3"], "shrink=3.0 needs forget_factor"),
    "too many": (
        ["--estimator", "omfb", "--inner-iter", "1" + "0" * 20],
        "--inner-iter must be at most",
    ),
    "too long": (["--every", "9" * 400, "--checkpoint", "c"], "--every must be like 30s"),
    "start": (
        ["--estimator", "omfb", "--init", "best"],
        "--init must be data, random or a .npy file",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_usage_errors_are_one_line_and_exit_code_2(folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    options, message = USAGE[name]
    words = ["fit", folder / "table.csv", "-o", tmp_path / "m.omfb", *options]
    assert message in _error(_invoke(*words), 2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00v\x00{'descr': (" + b" " * 105],
)
def test_a_start_that_is_no_array_is_a_usage_error(folder, tmp_path, content):
    (tmp_path / "init.npy").write_bytes(content)
    words = ["fit", folder / "table.csv", "-o", tmp_path / "m"]
    words += ["--estimator", "omfb", "--init", tmp_path / "init.npy"]
    assert "init.npy" in _error(_invoke(*words), 2)


def test_unknown_options_and_missing_ones_are_usage_errors(folder):
    assert "'--output'" in _error(_invoke("fit", folder / "table.csv"), 2)
    words = ["fit", folder / "table.csv", "-o", "m"]
    assert "Try: omfb fit --help" in _error(_invoke(*words, "--colour"), 2)
    assert "--n-components" in _error(_invoke(*words, "-r", "two"), 2)
    assert "'frobnicate'" in _error(_invoke("frobnicate"), 2)
    words = ["complete", folder / "table.csv", "-m", folder / "model.omfb", "-o", "out.xyz"]
    assert "out.xyz: use one of these extensions: .csv" in _error(_invoke(*words), 2)
    for words in (["--resume"], ["--checkpoint", "c"]):
        words = ["complete", folder / "table.csv", "-m", folder / "model.omfb", *words]
        _error(_invoke(*words), 2)


def test_data_errors_are_one_line_and_exit_code_1(folder, tmp_path):
    model, table = folder / "model.omfb", folder / "table.csv"
    (tmp_path / "narrow.csv").write_text("1,2\n3,4\n")
    (tmp_path / "other.csv").write_text("a,b\n3,4\n")
    cases = [
        (["complete", tmp_path / "narrow.csv", "-m", model], "2 columns, but the model has 12"),
        (
            ["complete", tmp_path / "other.csv", "-m", model],
            "the model's feature 'f0' is not there",
        ),
        (["complete", table, "-m", table], "not an omfb model file"),
        (["complete", tmp_path / "no.csv", "-m", model], "no.csv: no such file or directory"),
        (["info", tmp_path / "no.omfb"], "no.omfb: no such file or directory"),
        (["score", tmp_path, "-m", model], "a folder. Give one of the files in it"),
        (["fit", table, "-o", tmp_path / "no" / "m.omfb", "-q"], "no such file or directory"),
        (["fit", table, "-o", tmp_path / "m", "--columns", "f99"], "column 'f99' is not there"),
        (["fit", table, "-o", tmp_path / "m", "--columns", "1-99"], "no columns 1-99"),
        (["inverse", table, "-m", model], "12 columns, but the model has 5 components"),
    ]
    for words, message in cases:
        assert message in _error(_invoke(*words), 1), words
    done = run("info", tmp_path / "no.omfb")
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1


def test_a_fit_that_could_not_be_written_is_not_begun(folder, tmp_path):
    words = ["fit", folder / "table.csv", "-r", 2, "--checkpoint", tmp_path / "c"]
    output = tmp_path / "no" / "m.omfb"
    assert f"{output}: no such file" in _error(_invoke(*words, "-o", output), 1)
    assert f"{tmp_path}: is a directory" in _error(_invoke(*words, "-o", tmp_path), 1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["npy", "npz", "parquet", "arrow"])
def test_what_is_too_large_is_told_by_its_file_and_infinity_by_its_row(folder, tmp_path, ending):
    X = low_rank(300, 12)
    for name, value in (("infinite", np.inf), ("large", 1e250)):
        X[217, 4] = value
        _write(tmp_path / f"{name}.{ending}", X)
    column = "'f4'" if ending in ("parquet", "arrow") else "5"
    # The seed: a large row among the first few would set the model's scale, and be learned.
    fit = ["fit", "-r", 2, "-q", "--seed", 0, *RULE]
    for words in (fit, ["complete", "-m", folder / "model.omfb"]):
        words = [*words, "-o", tmp_path / f"out.{ending}"]
        message = _error(_invoke(*words, tmp_path / f"infinite.{ending}"), 1)
        assert f"infinite.{ending} contains infinity at row 218, column {column}" in message
        assert f"large.{ending} contains values" in _error(
            _invoke(*words, tmp_path / f"large.{ending}"), 1
        )
    words = ["score", tmp_path / f"infinite.{ending}", "-m", folder / "model.omfb"]
    assert "infinity at row 218" in _error(_invoke(*words), 1)
    assert not (tmp_path / f"out.{ending}").exists()


def _write(path, X):
    columns = {f"f{i}": column for i, column in enumerate(X.T)}
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez_compressed(path, X)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, row_group_size=100)
    else:
        with pa.ipc.new_file(str(path), pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns), max_chunksize=100)
    return path


@pytest.fixture(scope="module")
def whole_files(folder):
    endings = ["npy", "npz", "parquet", "arrow"]
    return [_write(folder / f"whole.{ending}", low_rank(300, 12)) for ending in endings]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(data=st.data())
def test_damaged_files_are_read_or_refused_in_one_line(folder, whole_files, data):
    path = data.draw(st.sampled_from(whole_files))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=9)):
            content[at] ^= data.draw(st.integers(1, 255))
    bad = folder / f"bad{path.suffix}"
    bad.write_bytes(content)
    for words in (["score"], ["complete", "-o", folder / f"out{path.suffix}"]):
        result = _invoke(*words, bad, "-m", folder / "model.omfb")
        if result.exit_code != 0:
            assert bad.name in _error(result, 1)


# -- text that is not what it should be -------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(
        ["1", "2.5", "-3e2", "", "NA", "inf", "nan(1)", "1_0", '"', '"1', "x", "é", "\0"]
    ),
    st.text(max_size=4),
    st.floats().map(repr),
)
LINES = st.lists(CELLS, min_size=1, max_size=5).map(",".join)


@settings(max_examples=700, deadline=None, derandomize=True)
@given(
    header=st.sampled_from(["a,b,c", "1,2,3", "", "a;b;c", "a\tb\tc"]),
    lines=st.lists(LINES, max_size=6),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    name=st.sampled_from(["x.csv", "x.tsv", "x.ndjson"]),
)
def test_fuzzed_text_is_fitted_or_refused_in_one_line(folder, header, lines, ending, name):
    text = ending.join([header, *lines])
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    result = _invoke("fit", folder / name, "-r", 1, "-q", "-o", folder / "fuzz.omfb")
    if result.exit_code == 0:
        OnlineFactorAnalysis.load(folder / "fuzz.omfb")
    else:
        assert name in _error(result, 1)


@settings(max_examples=700, deadline=None, derandomize=True)
@given(
    content=st.binary(max_size=80), name=st.sampled_from(["x.csv", "x.ndjson", "x.npy", "x.npz"])
)
def test_fuzzed_bytes_are_refused_in_one_line(folder, content, name):
    (folder / name).write_bytes(content)
    words = ["score", folder / name, "-m", folder / "model.omfb"]
    assert name in _error(_invoke(*words), 1)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(at=st.integers(0, 2000), byte=st.integers(0, 255))
def test_fuzzed_model_files_are_refused_in_one_line(folder, at, byte):
    whole = (folder / "model.omfb").read_bytes()
    at %= len(whole)
    bad = whole[:at] + bytes([byte]) + whole[at + 1 :]
    (folder / "bad.omfb").write_bytes(bad)
    result = _invoke("info", folder / "bad.omfb")
    if result.exit_code != 0:
        assert "bad.omfb" in _error(result, 1)
    else:
        assert re.search(r"rows seen +300\n", result.stdout)


def test_numbers_that_look_like_codes_are_told_and_named_ones_are_kept(tmp_path):
    import numpy as np
    import pandas as pd
    from typer.testing import CliRunner

    from omfb import OMFBImputer
    from omfb.cli import app

    rng = np.random.default_rng(0)
    level = rng.normal(size=(300, 1))
    X = pd.DataFrame(level @ rng.normal(size=(1, 4)) + 0.1 * rng.normal(size=(300, 4)))
    X.columns = list("abcd")
    hidden = rng.random(X.shape) < 0.05
    X.mask(hidden, -999.0).to_csv(tmp_path / "x.csv", index=False)
    run = CliRunner().invoke
    given = [str(tmp_path / "x.csv"), "-o", str(tmp_path / "m.omfb"), "--seed", "0"]
    told = run(app, ["fit", *given])
    assert told.exit_code == 0
    assert f"-999 in column 'a' ({hidden[:, 0].sum()} times)" in told.stderr
    assert "--missing=-999" in told.stderr
    silent = run(app, ["fit", *given, "--missing=-999"])
    assert "look like codes" not in silent.stderr
    model = OMFBImputer.load(tmp_path / "m.omfb")
    assert model.missing_values == [-999.0]
    filled = model.complete(X.mask(hidden, -999.0))
    assert (filled.to_numpy() > -100.0).all()
    OMFBImputer(missing_values=-999.0, random_state=0).fit(X.mask(hidden, -999.0)).save(
        tmp_path / "m.omfb"
    )
    done = run(
        app,
        ["complete", given[0], "-m", str(tmp_path / "m.omfb"), "-o", str(tmp_path / "out.csv")],
    )
    assert done.exit_code == 0, done.output
    assert np.allclose(pd.read_csv(tmp_path / "out.csv"), filled, rtol=0.2, atol=0.2)
    codes = {"a": -999.0}
    OMFBImputer(missing_values=codes, random_state=0).fit(X).save(tmp_path / "m.omfb")
    refused = run(app, ["complete", given[0], "-m", str(tmp_path / "m.omfb")])
    assert refused.exit_code == 2
    assert "missing_values for single columns" in refused.stderr
