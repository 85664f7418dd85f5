"""Every format in and out by the real command: the holes are filled, and nothing else changes."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from omfb import OMFBImputer, OnlineFactorAnalysis

from ..commands import csv_line, low_rank, one_line, succeeded, write_csv

NAMES = [f"f{i}" for i in range(6)]
N_ROWS = 400


@pytest.fixture(scope="module")
def X():  # noqa: N802
    return np.round(low_rank(N_ROWS, 6), 4)


@pytest.fixture(scope="module")
def model(tmp_path_factory, X):
    """A model whose features have names."""
    path = tmp_path_factory.mktemp("model") / "m.omfb"
    OnlineFactorAnalysis(3, random_state=0).fit(pd.DataFrame(X, columns=NAMES)).save(path)
    return path


def _filled(model, X):
    loaded = OnlineFactorAnalysis.load(model)
    return loaded.complete(pd.DataFrame(X, columns=NAMES)).to_numpy()


def _complete(server, folder, model, source, target, **options):
    words = ["complete", source, "-m", model, "-o", target]
    return succeeded(server.run(*words, cwd=folder, **options))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_text_keeps_every_observed_character(server, tmp_path, X, model, ending):
    mark = "\t" if ending == "tsv" else ","
    odd = ["1", "+1.50", "1e0", " 2 ", '"3.0"', "0.100000000000000000001"]
    with (tmp_path / f"x.{ending}").open("w", newline="") as stream:
        stream.write("\ufeff" + mark.join(["id", *NAMES[::-1], '"a ""note"""']) + "\r\n")
        for number, row in enumerate([*X, [float(i) for i in range(6)]]):
            cells = csv_line(row[::-1], mark).rstrip("\n").split(mark)
            cells = odd if number == N_ROWS else [cell or "NA" for cell in cells]
            stream.write(mark.join([f"row {number}", *cells, f'"x{mark} y"']) + "\r\n")
            if number == 7:
                stream.write("\r\n")
    _complete(server, tmp_path, model, f"x.{ending}", f"y.{ending}")
    before = (tmp_path / f"x.{ending}").read_bytes().split(b"\r\n")
    after = (tmp_path / f"y.{ending}").read_bytes().split(b"\r\n")
    assert len(before) == len(after)
    expected = _filled(model, X)
    rows = 0
    for old, new in zip(before, after, strict=True):
        if b"NA" not in old:
            assert new == old
            rows += old.startswith(b"row")
            continue
        old_cells, new_cells = old.split(mark.encode()), new.split(mark.encode())
        for at, (a, b) in enumerate(zip(old_cells, new_cells, strict=True)):
            if a == b"NA":
                np.testing.assert_allclose(float(b), expected[rows, 6 - at], rtol=1e-9)
            else:
                assert a == b
        rows += 1
    assert rows == N_ROWS + 1


def test_ndjson_keeps_every_observed_character(server, tmp_path, X, model):
    lines = []
    for number, row in enumerate(X):
        pairs = [
            f'"{name}":  {"null" if np.isnan(value) else f"{value:.5e}"}'
            for name, value in zip(NAMES, row, strict=True)
            if not (np.isnan(value) and number % 2)  # absent instead of null
        ]
        lines.append('{ "id": [null, "null}"], ' + ", ".join(pairs) + " }")
    (tmp_path / "x.ndjson").write_text("\n".join(lines) + "\n")
    _complete(server, tmp_path, model, "x.ndjson", "y.ndjson")
    expected = _filled(model, X)
    for old, new, row in zip(
        lines, (tmp_path / "y.ndjson").read_text().splitlines(), expected, strict=True
    ):
        loaded = json.loads(new)
        assert loaded["id"] == [None, "null}"]
        np.testing.assert_allclose([loaded[name] for name in NAMES], row, rtol=1e-9)
        for part in old.strip("{} ").split(", "):
            if "null" not in part:
                assert part in new


def test_lists_of_json_are_filled_in_place(server, tmp_path, X, model):
    lines = ["[" + ", ".join("null" if np.isnan(v) else f"{v}" for v in row) + "]" for row in X]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    _complete(server, tmp_path, model, "x.jsonl", "y.jsonl")
    text = (tmp_path / "y.jsonl").read_text()
    np.testing.assert_allclose(
        [json.loads(line) for line in text.split("\n")], _filled(model, X), rtol=1e-9
    )


@pytest.mark.parametrize("dtype", ["<f8", "<f4", ">f8"])
def test_arrays_keep_their_type_and_bits(server, tmp_path, X, model, dtype):
    np.save(tmp_path / "x.npy", X.astype(dtype))
    np.savez_compressed(tmp_path / "x.npz", rows=X.astype(dtype))
    for name in ("npy", "npz"):
        _complete(server, tmp_path, model, f"x.{name}", f"y.{name}")
    arrays = [np.load(tmp_path / "y.npy"), np.load(tmp_path / "y.npz")["rows"]]
    for array in arrays:
        assert array.dtype == np.dtype(dtype)
        observed = ~np.isnan(X)
        np.testing.assert_array_equal(array[observed], X.astype(dtype)[observed])
        np.testing.assert_allclose(array, _filled(model, X), rtol=1e-3, atol=1e-3)


def test_whole_numbers_and_other_arrays_stay_as_they_are(server, tmp_path, X, model):
    whole = np.arange(60).reshape(10, 6) + 2**60
    np.save(tmp_path / "x.npy", whole)
    np.savez(tmp_path / "x.npz", X=X, other=np.arange(3))
    observed = ~np.isnan(X)
    matrix = scipy.sparse.csr_matrix((X[observed], np.nonzero(observed)), shape=X.shape)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", matrix)
    for name in ("x.npy", "x.npz", "sparse.npz"):
        _complete(server, tmp_path, model, name, f"y-{name}")
    np.testing.assert_array_equal(np.load(tmp_path / "y-x.npy"), whole)
    np.testing.assert_array_equal(np.load(tmp_path / "y-x.npz")["other"], np.arange(3))
    filled = np.load(tmp_path / "y-sparse.npz")["X"]
    np.testing.assert_array_equal(filled[observed], X[observed])
    np.testing.assert_allclose(filled, _filled(model, X), rtol=1e-6)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_tables_keep_schema_types_and_index(server, tmp_path, X, ending):
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    frame["a"] = (frame["a"] * 10).round().astype("Int16")
    frame["b"] = frame["b"].astype("float32")
    frame["text"] = "as it is"
    frame["when"] = pd.date_range("2020", periods=N_ROWS)
    frame = frame.set_index("when")
    table = pa.Table.from_pandas(frame)
    table = table.append_column("d", pa.array(X[:, 3]))  # NaN and no null
    path = tmp_path / f"x.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=150)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=150)
    words = ["fit", path, "-r", 2, "--seed", 0, "-o", "m.omfb"]
    succeeded(server.run(*words, cwd=tmp_path))
    assert list(OnlineFactorAnalysis.load(tmp_path / "m.omfb").feature_names_in_) == [
        "a",
        "b",
        "c",
        "d",
    ]
    _complete(server, tmp_path, "m.omfb", path, f"y.{ending}")
    if ending == "parquet":
        filled = pq.read_table(tmp_path / "y.parquet")
    else:
        filled = pa.ipc.open_file(str(tmp_path / "y.arrow")).read_all()
    assert filled.schema.equals(table.schema, check_metadata=True)
    for name in table.column_names:
        old, new = table[name].to_pandas(), filled[name].to_pandas()
        assert not new.isna().any(), name
        pd.testing.assert_series_equal(new[old.notna()], old[old.notna()], check_dtype=False)


FORMATS = ["csv", "tsv", "ndjson", "npy", "npz", "parquet", "arrow"]


@pytest.mark.parametrize("ending", FORMATS)
def test_each_format_can_be_fitted_written_and_read_again(server, tmp_path, X, ending):
    """csv → fit, complete into the format; transform and inverse through the format."""
    write_csv(tmp_path / "x.csv", X)
    succeeded(server.run("fit", "x.csv", "-r", 3, "--seed", 0, "-o", "m.omfb", cwd=tmp_path))
    _complete(server, tmp_path, "m.omfb", "x.csv", f"full.{ending}")
    for words in (
        ["fit", f"full.{ending}", "-r", 3, "--no-shuffle", "--seed", 0, "-o", "n.omfb"],
        ["transform", f"full.{ending}", "-m", "m.omfb", "-o", f"codes.{ending}"],
        ["inverse", f"codes.{ending}", "-m", "m.omfb", "-o", "back.npy"],
        ["score", f"full.{ending}", "-m", "m.omfb"],
    ):
        done = succeeded(server.run(*words, cwd=tmp_path))
    full = _filled(tmp_path / "m.omfb", X)
    again = OMFBImputer(3, shuffle=False, random_state=0).fit(full)
    fitted = OnlineFactorAnalysis.load(tmp_path / "n.omfb")
    np.testing.assert_allclose(fitted.components_, again.components_, rtol=1e-7)
    model = OnlineFactorAnalysis.load(tmp_path / "m.omfb").set_params(scale=True, noise="diagonal")
    frame = pd.DataFrame(full, columns=NAMES)
    back = model.inverse_transform(model.transform(frame))
    np.testing.assert_allclose(np.load(tmp_path / "back.npy"), back, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(float(done.stdout), model.score(frame), rtol=1e-9)


def test_pipes_in_and_out_of_each_command(server, tmp_path, X, model):
    write_csv(tmp_path / "x.csv", X)
    stdin = {"cwd": tmp_path, "stdin": tmp_path / "x.csv"}
    succeeded(server.run("fit", "-", "-r", 3, "--seed", 0, "-q", "-o", "m.omfb", **stdin))
    assert OnlineFactorAnalysis.load(tmp_path / "m.omfb").n_samples_seen_ == N_ROWS
    codes = succeeded(server.run("transform", "-", "-m", model, **stdin)).stdout
    assert codes.startswith(b"omfb0,omfb1,omfb2\n")
    assert codes.count(b"\n") == N_ROWS + 1
    (tmp_path / "codes.csv").write_bytes(codes)
    words = ["inverse", "-", "-m", model, "-o", "back.csv"]
    succeeded(server.run(*words, cwd=tmp_path, stdin=tmp_path / "codes.csv"))
    assert (tmp_path / "back.csv").read_text().startswith("f0,f1,")
    _complete(server, tmp_path, model, "-", "whole.csv", stdin=tmp_path / "x.csv")
    filtered = succeeded(server.run("complete", "-", "-m", model, **stdin)).stdout
    whole = np.loadtxt(tmp_path / "whole.csv", delimiter=",", skiprows=1)
    lines = filtered.decode().splitlines()[1:]
    np.testing.assert_allclose([[float(c) for c in line.split(",")] for line in lines], whole)


def test_a_file_learns_as_a_pipe_does(server, tmp_path, X, model):
    write_csv(tmp_path / "x.csv", X)
    here = {"cwd": tmp_path}
    words = ["-m", model, "--learn", "--checkpoint"]
    succeeded(server.run("complete", "x.csv", *words, "file.omfb", "-o", "y.csv", **here))
    pipe = server.run("complete", "-", *words, "pipe.omfb", stdin=tmp_path / "x.csv", **here)
    assert (tmp_path / "y.csv").read_bytes() == succeeded(pipe).stdout
    file, piped = (
        OnlineFactorAnalysis.load(tmp_path / "file.omfb"),
        OnlineFactorAnalysis.load(tmp_path / "pipe.omfb"),
    )
    np.testing.assert_array_equal(file.components_, piped.components_)
    assert list(piped.feature_names_in_) == NAMES


@pytest.mark.parametrize("ending", ["csv", "tsv", "ndjson"])
def test_lines_go_to_standard_output_as_they_came(server, tmp_path, X, model, ending):
    if ending == "ndjson":
        pd.DataFrame(X, columns=NAMES).to_json(tmp_path / "x.ndjson", orient="records", lines=True)
    else:
        write_csv(tmp_path / f"x.{ending}", X, mark="\t" if ending == "tsv" else ",")
    _complete(server, tmp_path, model, f"x.{ending}", f"y.{ending}")
    printed = _complete(server, tmp_path, model, f"x.{ending}", "-").stdout
    assert printed == (tmp_path / f"y.{ending}").read_bytes()


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_all_columns_of_a_table_can_be_written_as_text(server, tmp_path, X, model, ending):
    frame = pd.DataFrame(X, columns=NAMES).assign(
        big=2**60 + np.arange(N_ROWS), text='a "b",\tc', when=pd.date_range("2020", periods=N_ROWS)
    )
    frame.to_parquet(tmp_path / "x.parquet")
    _complete(server, tmp_path, model, "x.parquet", f"y.{ending}")
    mark = "\t" if ending == "tsv" else ","
    texts = dict.fromkeys(NAMES, str)  # pandas reads floats almost exactly, Python exactly
    read = pd.read_csv(tmp_path / f"y.{ending}", sep=mark, parse_dates=["when"], dtype=texts)
    read = read.astype(dict.fromkeys(NAMES, float))
    assert list(read) == list(frame)
    for name in ("big", "text", "when"):
        assert (read[name] == frame[name]).all()
    observed = ~np.isnan(X)
    np.testing.assert_array_equal(read[NAMES].to_numpy()[observed], X[observed])
    np.testing.assert_allclose(read[NAMES].to_numpy(), _filled(model, X), rtol=1e-9)
    nested = pa.table({**dict.fromkeys(NAMES, X[:, 0]), "list": [[1]] * N_ROWS})
    pq.write_table(nested, tmp_path / "nested.parquet")
    words = ["complete", "nested.parquet", "-m", model, "-o", f"z.{ending}"]
    assert "column 'list'" in one_line(server.run(*words, cwd=tmp_path), 2)


def test_columns_that_another_format_cannot_keep_are_not_dropped(server, tmp_path, X, model):
    pd.DataFrame(X, columns=NAMES).assign(text="a").to_csv(tmp_path / "x.csv", index=False)
    done = server.run("complete", "x.csv", "-m", model, "-o", "y.npy", cwd=tmp_path)
    assert "would be lost" in one_line(done, 1)
    assert not (tmp_path / "y.npy").exists()
