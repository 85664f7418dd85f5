"""Fits of the library: checkpoints, resuming, progress; what the command line has, too."""

import gzip
import json
import logging
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

import omfb.streams.base as base
from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.core.blocks import dense_with_holes
from omfb.core.factor.holdout import hold_out
from omfb.core.factor.state import evolve
from omfb.formats import open_stream
from omfb.learner import fit_stream
from omfb.learner.checkpoints import CheckpointError, interval
from omfb.learner.fit_stream import Progress, StopFitting
from omfb.learner.progress import Bar, Pace, shown_progress
from omfb.learner.records import parts_of
from omfb.learner.row_sample import RowSample
from omfb.persistence import ModelFileError, read_model, write_model
from omfb.streams import DataError, digest, grouped, rows_per_block

from ..commands import leftovers, low_rank
from ..making import DECOMPOSITIONS, sparse


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(base, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(base, "WIDE_BLOCKS", 1)
    monkeypatch.setattr(fit_stream, "WHOLE_BATCHES", 1)
    monkeypatch.setattr(grouped, "SHUFFLE_BYTES", 1 << 12)


def _stopped_after(model, source, checkpoint, n_blocks, **how):
    """Fit until so many blocks were learned from, then stop."""
    blocks = [0]

    def on_block(progress):
        blocks[0] += 1
        if blocks[0] == n_blocks:
            raise StopFitting

    with pytest.raises(StopFitting):
        model.fit_source(source, checkpoint=checkpoint, on_block=on_block, **how)


PARAMETERS = {
    "shuffled": {},
    "in order": {"shuffle": False, "smooth": 0.3},
    "uniform": {"shuffle": "uniform", "batch_size": 7},
    "shrinking": {"shrink": 3.0, "forget_factor": 0.99},
    "nonnegative": {"positive_code": True, "positive_dict": True, "forget_factor": 1.0},
    "sparse codes": {"alpha": 0.5, "forget_factor": 1.0, "batch_size": 3},
    "given start": {"init": np.arange(32.0).reshape(4, 8) / 32},
    "larger than a block": {"n_components": 40},
}


@pytest.mark.parametrize("n_blocks", [1, 2, 5, 17])
@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.filterwarnings("ignore:Never observed")
def test_a_fit_that_is_resumed_ends_with_the_same_bits(tmp_path, small_blocks, name, n_blocks):
    X = low_rank(300, 8)
    model = OMFB(**{"n_components": 4, "max_iter": 3, "random_state": 0, **PARAMETERS[name]})
    whole = model.fit(X).components_
    error, seen = model.prequential_error_, model.n_samples_seen_
    checkpoint = tmp_path / "fit.ckpt"
    again = OMFB(**model.get_params())
    _stopped_after(again, open_stream(X), checkpoint, n_blocks)
    with pytest.raises(ValueError, match="not fitted"):
        again.components_  # noqa: B018
    again.fit(X, checkpoint=checkpoint, resume=True)
    assert np.array_equal(again.components_, whole)
    assert (again.prequential_error_, again.n_samples_seen_, again.n_iter_) == (error, seen, 3)
    # What is finished can be asked for once more.
    assert np.array_equal(again.fit(X, checkpoint=checkpoint, resume=True).components_, whole)
    assert leftovers(tmp_path) == []


@DECOMPOSITIONS
def test_an_interrupted_fit_keeps_what_was_learned(tmp_path, small_blocks, estimator):
    """Ctrl-C in a notebook."""
    X = low_rank(300, 8)
    how = {"random_state": 0, "max_iter": 2}
    whole = estimator(3, **how).fit(X).components_
    checkpoint, usual = tmp_path / "c", np.random.RandomState.permutation
    again = estimator(3, **how)
    calls = [0]

    def interrupted(progress):
        calls[0] += 1
        if calls[0] == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        again.fit_source(open_stream(X), checkpoint=checkpoint, every="1h", on_block=interrupted)
    assert usual is np.random.RandomState.permutation
    assert estimator.load(checkpoint).n_samples_seen_ > 0
    assert np.array_equal(again.fit(X, checkpoint=checkpoint, resume=True).components_, whole)


def test_a_checkpoint_is_refused_for_another_fit(tmp_path, small_blocks):
    X, checkpoint = low_rank(300, 8), tmp_path / "c"
    model = OMFB(3, random_state=0)
    with pytest.raises(ValueError, match="resume=True needs a checkpoint"):
        model.fit(X, resume=True)
    _stopped_after(model, open_stream(X), checkpoint, 3)
    with pytest.raises(CheckpointError, match=r"exists already\. Pass resume=True"):
        model.fit(X, checkpoint=checkpoint)
    with pytest.raises(CheckpointError, match=r"began with lam = 1\.0, not 2"):
        OMFB(3, lam=2.0, random_state=0).fit(X, checkpoint=checkpoint, resume=True)
    with pytest.raises(CheckpointError, match="init"):
        OMFB(3, init=np.ones((3, 8)), random_state=0).fit(X, checkpoint=checkpoint, resume=True)
    with pytest.raises(CheckpointError, match="began with another algorithm"):
        OnlineFactorAnalysis(3, random_state=0).fit(X, checkpoint=checkpoint, resume=True)
    model.set_params(verbose=0).fit(X, checkpoint=checkpoint, resume=True)
    model.save(checkpoint)
    with pytest.raises(CheckpointError, match="a finished model"):
        model.fit(X, checkpoint=checkpoint, resume=True)
    with pytest.raises(ValueError, match="every must be like 30s"):
        model.fit(X, checkpoint=tmp_path / "d", every="9" * 400)


OTHERS = {
    "a value": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 1999, 3.5, X),
    "columns reversed": lambda X: np.ascontiguousarray(X[:, ::-1]),
    "rows reversed": lambda X: np.ascontiguousarray(X[::-1]),
    "fewer rows": lambda X: X[:-1],
    "another type": lambda X: X.astype(np.float32),
}


def _csv(path, X):
    np.savetxt(path, X, delimiter=",", fmt="%.17g" if X.dtype == np.float64 else "%.6g")


def _csv_gz(path, X):
    _csv(path.with_suffix(""), X)
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes(), mtime=0))


def _csv_zst(path, X):
    pyarrow = pytest.importorskip("pyarrow")
    _csv(path.with_suffix(""), X)
    with pyarrow.output_stream(str(path), compression="zstd") as stream:
        stream.write(path.with_suffix("").read_bytes())


def _ndjson(path, X):
    rows = ([None if np.isnan(value) else float(value) for value in row] for row in X)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _parquet(path, X):
    pytest.importorskip("pyarrow")
    pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).to_parquet(path)


def _sparse_npz(path, X):
    scipy.sparse.save_npz(path, sparse(X))


FILES = {
    "npy": np.save, "npz": np.savez, "npz compressed.npz": np.savez_compressed,
    "sparse.npz": _sparse_npz, "csv": _csv, "csv.gz": _csv_gz, "csv.zst": _csv_zst,
    "ndjson": _ndjson, "parquet": _parquet,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", ["array", "sparse", *FILES])
def test_other_data_of_the_same_shape_are_refused(tmp_path, small_blocks, name, kind):
    X = low_rank(300, 8, missing=0.3)

    def source(X):
        if kind in ("array", "sparse"):
            return open_stream(sparse(X) if kind == "sparse" else X)
        FILES[kind](tmp_path / f"x.{kind}", X)
        return open_stream(tmp_path / f"x.{kind}")

    model = OnlineFactorAnalysis(3, random_state=0)
    _stopped_after(model, source(X), tmp_path / "c", 3)
    with pytest.raises(CheckpointError, match="other data"):
        model.fit_source(source(OTHERS[name](X)), checkpoint=tmp_path / "c", resume=True)
    model.fit_source(source(X), checkpoint=tmp_path / "c", resume=True)


def test_other_columns_of_a_file_are_other_data(tmp_path, small_blocks):
    X, path = low_rank(300, 8, missing=0.0), tmp_path / "x.csv"
    np.savetxt(path, X, delimiter=",")
    model = OnlineFactorAnalysis(3, random_state=0)
    _stopped_after(model, open_stream(path, columns="1-4", header=False), tmp_path / "c", 2)
    other = open_stream(path, columns="2,1,3,4", header=False)
    with pytest.raises(CheckpointError, match="other data"):
        model.fit_source(other, checkpoint=tmp_path / "c", resume=True)


@pytest.mark.parametrize("how", [{"missing": -9}, {"thousands": " "}, {"decimal": ","}])
def test_other_words_for_cells_make_other_data(tmp_path, small_blocks, how):
    X, path = low_rank(300, 8, missing=0.0), tmp_path / "x.csv"
    X = X.round()
    X[299] = -9.0  # far beyond the first rows
    np.savetxt(path, X, delimiter=";", fmt="%d")
    model = OnlineFactorAnalysis(3, random_state=0)
    _stopped_after(model, open_stream(path, header=False), tmp_path / "c", 2)
    with pytest.raises(CheckpointError, match="other data"):
        model.fit_source(
            open_stream(path, header=False, **how), checkpoint=tmp_path / "c", resume=True
        )
    model.fit_source(open_stream(path, header=False), checkpoint=tmp_path / "c", resume=True)


@pytest.mark.parametrize("kind", ["array", "npy"])
def test_of_large_data_parts_are_looked_at(tmp_path, small_blocks, monkeypatch, kind):
    monkeypatch.setattr(digest, "DIGEST_BYTES", 1 << 12)
    monkeypatch.setattr(digest, "DIGEST_PARTS", 8)
    X = low_rank(3000, 8)

    def fingerprint(X):
        if kind == "array":
            return open_stream(X).fingerprint()
        np.save(tmp_path / "x.npy", X)
        return open_stream(tmp_path / "x.npy").fingerprint()

    first = fingerprint(X)
    assert fingerprint(X) == first
    assert fingerprint(X[::-1].copy()) != first
    assert fingerprint(X[:, ::-1].copy()) != first
    assert fingerprint(X + 1e-9) != first


WRONG_PLACES = [
    ("pass", 0), ("pass", 9), ("pass", 1.0), ("pass", None), ("position", -1),
    ("position", 10**6), ("position", "x"), ("position", [0, 0]), ("position", True),
    ("finished", 1), ("error_before", "x"), ("error_before", -1.0), ("random", None),
    ("random", {}),
]  # fmt: skip
WRONG_RANDOM = [
    ("pos", 100_000), ("pos", -1), ("pos", 1.5), ("key", [1, 2]), ("key", [2**32] * 624),
    ("key", ["x"] * 624), ("has_gauss", 7), ("gauss", "x"),
]  # fmt: skip


def _with(header, path, value):
    inner = header["training"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [((name,), value) for name, value in WRONG_PLACES]
    + [(("random", name), value) for name, value in WRONG_RANDOM],
)
def test_a_place_that_cannot_be_is_refused(tmp_path, small_blocks, path, value):
    """NumPy takes a random state unchecked: a wrong one ended the process."""
    X, checkpoint = low_rank(300, 8), tmp_path / "c"
    model = OnlineFactorAnalysis(3, random_state=0)
    _stopped_after(model, open_stream(X), checkpoint, 3)
    header, tensors = read_model(checkpoint)
    _with(header, path, value)
    write_model(checkpoint, header, tensors)
    with pytest.raises(ModelFileError, match="cannot have written"):
        model.fit(X, checkpoint=checkpoint, resume=True)


@pytest.mark.parametrize("unseen", [np.ones(7, np.uint8), np.full(8, 2, np.uint8), np.ones(8)])
def test_unseen_features_that_cannot_be_are_refused(tmp_path, small_blocks, unseen):
    X, checkpoint = low_rank(300, 8), tmp_path / "c"
    model = OnlineFactorAnalysis(3, random_state=0)
    _stopped_after(model, open_stream(X), checkpoint, 3)
    header, tensors = read_model(checkpoint)
    write_model(checkpoint, header, {**tensors, "training.unseen": unseen})
    with pytest.raises(ModelFileError, match="cannot have written"):
        model.fit(X, checkpoint=checkpoint, resume=True)


@pytest.mark.parametrize(
    "position", [[[5, 0], 0], [[0, -1], 0], [0, "x"], [0], "ab", 7, [[0, 0], -3], {}]
)
def test_a_position_outside_of_a_file_is_refused(tmp_path, position):
    np.savetxt(tmp_path / "x.csv", low_rank(30, 4, missing=0.0), delimiter=",")
    source = open_stream(tmp_path / "x.csv")
    source.check_position([[0, 3], 2])
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
        source.check_position(position)


def test_intervals():
    assert interval("30s") == interval(" 30 ") == (30.0, None)
    assert interval("5m") == (300.0, None)
    assert interval("1000rows") == (None, 1000)
    for text in ("soon", "-3s", "1e3s", "", "9" * 400):
        with pytest.raises(ValueError, match="every"):
            interval(text)


@pytest.mark.parametrize(
    ("m", "least", "most"),
    [(100, 5000, 6000), (4096, 120, 140), (60_000, 120, 130), (300_000, 40, 64)],
)
def test_a_block_of_wide_rows_holds_many_and_stays_small(m, least, most):
    rows = rows_per_block(m, np.dtype(np.float64), 1)
    assert least <= rows <= most
    assert rows * m * 8 <= 24 << 22
    assert rows_per_block(m, np.dtype(np.float64), 7) % 7 == 0


# -- what is shown ------------------------------------------------------------------------------


def test_progress_is_told_after_each_block(small_blocks):
    X, told = low_rank(300, 8), []
    OnlineFactorAnalysis(3, max_iter=2, random_state=0).fit_source(
        open_stream(X), on_block=told.append
    )
    assert all(isinstance(progress, Progress) for progress in told)
    rows = [progress.n_rows for progress in told]
    assert rows == sorted(rows)
    assert (told[-1].n_rows, told[-1].done, told[-1].finished) == (600, 1.0, True)
    assert [progress.done for progress in told] == sorted(progress.done for progress in told)


SHOWN = """
import logging, sys
import numpy as np
from omfb import OMFB
if "configured" in sys.argv:
    logging.basicConfig(level=logging.INFO, format="log %(message)s")
X = np.random.default_rng(0).random((50, 4))
OMFB(2, max_iter=2, verbose=1, random_state=0).fit(X)
if "later" in sys.argv:
    logging.basicConfig(level=logging.INFO, format="log %(message)s")
    OMFB(2, max_iter=2, verbose=1, random_state=0).fit(X)
"""


@pytest.mark.parametrize(("when", "lines"), [("never", 2), ("configured", 2), ("later", 4)])
def test_verbose_prints_each_pass_once(when, lines):
    done = subprocess.run(
        [sys.executable, "-c", SHOWN, when], capture_output=True, text=True, check=True
    )
    shown = done.stderr.splitlines()
    assert len(shown) == lines
    assert all("pass" in line for line in shown)


def test_without_rich_lines_are_logged(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with caplog.at_level(logging.INFO, logger="omfb"), shown_progress(3, 1) as on_block:
        assert on_block is None


def test_a_bar_shows_pass_rate_and_error():
    import io

    from rich.console import Console

    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with Bar(console, 2) as bar:
        bar.update(Progress(1, 2, 100, 0.25, 0.5, finished=False))
        bar.update(Progress(2, 2, 200, 0.125, 1.0, finished=True))
    assert "pass 2 of 2" in screen.getvalue()
    assert "0.1250" in screen.getvalue()


def test_the_pace_counts_from_where_a_fit_was_resumed():
    pace = Pace()
    pace.note(Progress(1, 1, 1000, 0.5, 0.5, finished=False), 10.0)
    later = Progress(1, 1, 1100, 0.5, 0.75, finished=False)
    assert pace.rows_per_second(later, 20.0) == 10.0
    assert pace.seconds_left(later, 20.0) == 10.0
    assert pace.seconds_left(Progress(1, 1, 1100, 0.5, None, finished=False), 20.0) is None


# -- the end of a fit ---------------------------------------------------------------------------


def content(model):
    """All that a model is, to compare bit by bit."""
    parts = parts_of(model.learner_.snapshot())
    return parts.header, {name: tensor.tobytes() for name, tensor in parts.tensors.items()}


def sources(X, folder):
    """The same rows as an array, a file, and pipes that end."""
    _csv(folder / "x.csv", X)
    yield open_stream(X)
    yield open_stream(folder / "x.csv")
    yield open_stream(iter(np.array_split(X, 7)))
    yield open_stream(iter(X))


ENDS = {
    "paper": OMFB(3),
    "factors": OnlineFactorAnalysis(3),
    "temporal": OMFBImputer(temporal=True),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("n_rows", [300, 5000])  # all of them, or a sample, are seen at the end
def test_arrays_files_and_pipes_end_with_the_same_model(tmp_path, name, missing, n_rows):
    X, model = low_rank(n_rows, 8, missing=missing), clone(ENDS[name])
    model.set_params(shuffle=False, max_iter=1, random_state=0)
    models = [clone(model) for _ in range(4)]
    for each, source in zip(models, sources(X, tmp_path), strict=True):
        each.fit_source(source, block_rows=256)
        each.learner_.names = None  # those of the file
    first = content(models[0])
    assert all(content(each) == first for each in models[1:])
    # Blocks of other lengths: the same up to rounding.
    usual = [clone(model) for _ in range(4)]
    for each, source in zip(usual, sources(X, tmp_path), strict=True):
        each.fit_source(source)
        each.learner_.names = None
        np.testing.assert_allclose(each.complete(X), models[0].complete(X), rtol=1e-6, atol=1e-9)
    assert content(usual[0]) == content(usual[1])


@pytest.mark.parametrize("n_rows", [300, 5000])
def test_a_pipe_that_is_resumed_ends_with_the_same_bits(tmp_path, n_rows):
    X = low_rank(n_rows, 8, missing=0.1)
    model = OMFBImputer(3, random_state=0)
    whole = clone(model)
    whole.fit_source(open_stream(iter(X)), block_rows=64)
    _stopped_after(
        clone(model), open_stream(iter(X)), tmp_path / "c", n_rows // 64 - 1, block_rows=64
    )
    model.fit_source(open_stream(iter(X)), checkpoint=tmp_path / "c", resume=True, block_rows=64)
    assert content(model) == content(whole)


@pytest.mark.parametrize("kind", [np.asarray, sparse])
@pytest.mark.parametrize("n_rows", [7, 20, 21, 500])
def test_a_sample_does_not_depend_on_cuts_or_interrupts(rng, n_rows, kind):
    X = np.arange(3.0 * n_rows).reshape(n_rows, 3) + 1.0
    samples = []
    for cuts in ([], [1, 2, 5, 300], list(range(1, n_rows))):
        sample = RowSample(20)
        for block in np.split(X, [cut for cut in cuts if cut < n_rows]):
            changes = sample.changes(kind(block), block[:, 0].astype(int))
            sample.apply(changes)
            sample.apply(changes)
            sample = RowSample(
                20, sample.rows(), sample.numbers(), sample.n_seen
            )  # as from a checkpoint
        samples.append(dense_with_holes(sample.rows()))
        np.testing.assert_array_equal(sample.numbers(), samples[-1][:, 0])
        assert sample.n_seen == n_rows
    assert all(np.array_equal(sample, samples[0]) for sample in samples)
    assert len(samples[0]) == min(n_rows, 20)
    if n_rows <= 20:
        assert np.array_equal(samples[0], X)


@pytest.mark.parametrize("shuffle", [True, False, "uniform"])
def test_no_pass_learns_what_another_one_holds_out(tmp_path, small_blocks, shuffle):
    """Two tables that differ in held-out entries only give one dictionary, through all passes."""
    X = low_rank(4500, 6, missing=0.2)
    model = OnlineFactorAnalysis(2, max_iter=3, robust=False, shuffle=shuffle, random_state=0)

    def fitted(X, name):
        if name is not None:
            np.savetxt(tmp_path / name, X, delimiter=",")
        return clone(model).fit(X if name is None else tmp_path / name).learner_.state

    for name in (None, "x.csv") if shuffle is True else (None,):
        state = fitted(X, name)
        gone = np.zeros(X.shape, bool)
        start = evolve(state, n_seen=0, pass_rows=0)
        for t, features in hold_out(start, X, np.arange(len(X)))[0]:
            gone[t, features] = True
        assert gone.sum() > 200
        other = fitted(np.where(gone, 1.1 * X + 0.3, X), name)
        assert np.array_equal(other.C, state.C)
        assert np.array_equal(other.params.noise_std, state.params.noise_std)
        rows = X.copy()
        rows[np.flatnonzero(~gone.any(axis=1))] += 0.3
        assert not np.array_equal(fitted(rows, name).C, state.C)  # what is not held out is learned


def test_a_sample_is_uniform():
    """Each row has the same chance, wherever it is."""
    counts = np.zeros(10)
    for first in range(2000):
        sample = RowSample(10)
        numbers = np.arange(100.0)[:, None]
        sample.apply(sample.changes(np.roll(numbers, 7 * first, axis=0)))
        counts += np.bincount(sample.rows()[:, 0].astype(int) // 10, minlength=10)
    assert np.allclose(counts / counts.sum(), 0.1, atol=0.005)


def test_blocks_without_a_row_are_no_data():
    with pytest.raises(DataError, match="no rows"):
        OnlineFactorAnalysis(1).fit(iter([np.empty((0, 3))]))
