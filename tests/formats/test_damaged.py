"""Files that lie about themselves: a clear error, quickly and in little memory."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from omfb import OMFB
from omfb.formats import _columnar, arrow, open_stream
from omfb.formats.registry import Filled
from omfb.streams import DataError


def _npy(shape, data=b"", dtype="<f8"):
    header = str({"descr": dtype, "fortran_order": False, "shape": "?"}).replace("'?'", shape)
    padded = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode() + data


def _zip(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if not isinstance(data, bytes):
                stream = io.BytesIO()
                np.save(stream, data)
                data = stream.getvalue()
            archive.writestr(f"{name}.npy", data)
    return path


def _sparse(path, indices, indptr, shape=(3, 4), kind=b"csr"):
    data = np.ones(len(indices))
    indices, indptr = np.array(indices, np.int32), np.array(indptr, np.int32)
    return _zip(
        path, data=data, indices=indices, indptr=indptr, shape=np.array(shape),
        format=np.array(kind),
    )  # fmt: skip


SPARSE = {
    "an index beyond the width": ([0, 10**6, 2], [0, 1, 2, 3]),
    "a negative index": ([0, -1, 2], [0, 1, 2, 3]),
    "rows that end before they begin": ([0, 1, 2], [0, 3, 1, 3]),
    "rows beyond the data": ([0, 1, 2], [0, 1, 2, 10**6]),
    "a negative start": ([0, 1, 2], [-5, 1, 2, 3]),
}


@pytest.mark.parametrize("case", SPARSE)
@pytest.mark.parametrize("kind", [b"csr", b"csc"])
def test_a_sparse_matrix_that_leads_out_of_itself_is_refused(tmp_path, case, kind):
    indices, indptr = SPARSE[case]
    shape = (3, 4) if kind == b"csr" else (4, 3)
    with pytest.raises(DataError, match=r"x\.npz"):
        open_stream(_sparse(tmp_path / "x.npz", indices, indptr, shape, kind))
    matrix = scipy.sparse.csr_array((3, 4))
    matrix.data = np.ones(3)
    matrix.indices, matrix.indptr = np.array(indices, np.int32), np.array(indptr, np.int32)
    with pytest.raises(ValueError, match="sparse matrix"):
        OMFB(1).fit(matrix)
    with pytest.raises(DataError, match="sparse matrix"):
        open_stream(iter([matrix]))


def test_an_empty_sparse_matrix_of_any_width_is_refused_at_once():
    with pytest.raises(DataError, match="every value is missing"):
        OMFB(2).fit(scipy.sparse.csr_matrix((5, 10**9)))


def test_an_array_that_announces_more_rows_than_it_has_is_refused(tmp_path):
    for name in ("x.npy", "x.npz"):
        content = _npy("(1000000000, 4)", b"\0" * 64)
        if name == "x.npz":
            _zip(tmp_path / name, X=content)
        else:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"not a complete .np[yz] file"):
            open_stream(tmp_path / name)


@pytest.mark.parametrize("shape", ["(-5, 4)", f"({10**20}, 4)", "(True, 4)", "(1000, 0)", "(4,)"])
def test_a_header_with_an_odd_shape_is_refused(tmp_path, shape):
    (tmp_path / "x.npy").write_bytes(_npy(shape, b"\0" * 640))
    _zip(tmp_path / "x.npz", X=_npy(shape, b"\0" * 640))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataError, match=rf"x\{name[1:]}"):
            open_stream(tmp_path / name)


def test_damaged_lzma_in_an_archive_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(0).random((500, 4)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", stream.getvalue())
    content = bytearray(path.read_bytes())
    content[3000:3100] = b"\xff" * 100
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"not a complete .npz file"):
        OMFB(1).fit(path)


@pytest.mark.parametrize("notes", ["[1]", "5", '{"index_columns": 3}', "null", "{", '{"a": [1]}'])
def test_odd_notes_of_pandas_do_no_harm(tmp_path, notes):
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    pq.write_table(table.replace_schema_metadata({"pandas": notes}), tmp_path / "x.parquet")
    if notes == "{":
        with pytest.raises(DataError, match="not a complete Parquet file"):
            open_stream(tmp_path / "x.parquet")
    else:
        assert open_stream(tmp_path / "x.parquet").feature_names == ["a", "b"]


def test_large_decimals_are_read_and_filled(tmp_path):
    from decimal import Decimal

    from omfb.formats import format_of

    values = [Decimal(10) ** 20, None, Decimal("-1.5")]
    table = pa.table({"a": pa.array(values, pa.decimal128(38, 10)), "b": [1.0, 2.0, None]})
    pq.write_table(table, tmp_path / "x.parquet")
    source = open_stream(tmp_path / "x.parquet")

    class Fill:
        dtype = np.dtype(float)
        further_names = ()

        def __call__(self, rows, done=None, times=None):
            return Filled(np.where(np.isnan(rows), 1e300, rows), ())

    with (tmp_path / "y.parquet").open("wb") as stream:
        source.rewrite(stream, format_of("y.parquet"), Fill())
    filled = pq.read_table(tmp_path / "y.parquet")
    assert filled.schema == table.schema
    assert filled["a"].to_pylist()[0] == Decimal(10) ** 20
    assert filled["a"].to_pylist()[1] == Decimal("9" * 28 + "." + "9" * 10)


def test_other_arrays_of_an_archive_are_copied_in_parts(tmp_path):
    """150 MB beside the rows; the process that fills them has no room for that."""
    X = np.random.default_rng(0).random((50, 4))
    X[::3, 1] = np.nan
    np.savez_compressed(tmp_path / "x.npz", X=X, beside=np.zeros(150 << 17))
    code = """
import sys, numpy as np
from omfb.formats import open_stream, format_of
from omfb.formats.registry import Filled
source = open_stream(sys.argv[1])
class Fill:
    dtype = np.dtype(float)
    further_names = ()
    def __call__(self, rows, done=None, times=None):
        return Filled(np.nan_to_num(rows), ())
peak = lambda: int(next(l for l in open("/proc/self/status") if "VmHWM" in l).split()[1])
before = peak()
with open(sys.argv[2], "wb") as stream:
    source.rewrite(stream, format_of("y.npz"), Fill())
print(peak() - before)
"""
    words = [sys.executable, "-c", code, str(tmp_path / "x.npz"), str(tmp_path / "y.npz")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40_000
    with np.load(tmp_path / "y.npz") as arrays:
        np.testing.assert_array_equal(arrays["X"], np.nan_to_num(X))
        assert arrays["beside"].shape == (150 << 17,)


@pytest.mark.parametrize("codec", [None, "lz4"])
def test_a_large_record_batch_is_read_by_parts(tmp_path, monkeypatch, codec):
    monkeypatch.setattr(arrow, "WHOLE_BYTES", 1 << 13)
    monkeypatch.setattr(arrow, "PART_BYTES", 1 << 13)
    monkeypatch.setattr(_columnar, "BATCH_BYTES", 1 << 13)
    lengths, part = [], arrow.ArrowFile._part

    def watched(self, group, positions, which, n_rows):
        lengths.append(len(which))
        return part(self, group, positions, which, n_rows)

    monkeypatch.setattr(arrow.ArrowFile, "_part", watched)
    X = np.random.default_rng(0).random((3000, 6))
    X[::7, 2] = np.nan
    table = pa.table({f"f{i}": pa.array(c, from_pandas=True) for i, c in enumerate(X.T)})
    table = table.append_column("text", pa.array([f"row {i}" for i in range(3000)]))
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema, options=options) as writer:
        writer.write_table(table)
    source = open_stream(tmp_path / "x.arrow")
    blocks = source.blocks(500, False, np.random.RandomState(0))
    np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), X)
    assert sum(lengths) >= 3000
    assert max(lengths) * 6 * 8 <= 1 << 13

    class Fill:
        dtype = np.dtype(float)
        further_names = ()

        def __call__(self, rows, done=None, times=None):
            return Filled(np.nan_to_num(rows), ())

    with (tmp_path / "y.arrow").open("wb") as stream:
        source.rewrite(stream, source.format, Fill())
    filled = pa.ipc.open_file(str(tmp_path / "y.arrow")).read_all()
    assert filled["text"].to_pylist() == table["text"].to_pylist()
    np.testing.assert_array_equal(filled["f2"].to_numpy(), np.nan_to_num(X[:, 2]))


def test_json_is_filled_wherever_it_says_that_a_value_is_missing(tmp_path):
    lines = ['{"a": 1, "t": "null", "b": -999 , "c": "?"}', '{"a":null,"b":2,"t":[null]}']
    (tmp_path / "x.ndjson").write_text("\n".join(lines) + "\n")
    options = {"columns": "a,b,c", "missing": ["-999", "?"]}
    source = open_stream(tmp_path / "x.ndjson", **options)

    class Fill:
        dtype = np.dtype(float)
        further_names = ()

        def __call__(self, rows, done=None, times=None):
            return Filled(np.where(np.isnan(rows), 7.5, rows), ())

    stream = io.BytesIO()
    source.rewrite(stream, source.format, Fill())
    first, second = stream.getvalue().decode().splitlines()
    assert first == '{"a": 1, "t": "null", "b": 7.5 , "c": 7.5}'
    assert second == '{"a":7.5,"b":2,"t":[null], "c": 7.5}'
    assert json.loads(second)["c"] == 7.5
