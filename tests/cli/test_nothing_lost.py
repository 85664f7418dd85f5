"""Kill it at will: nothing is lost. Real commands in real processes."""

import itertools
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omfb.cli._models import load_estimator

from ..commands import RULE, leftovers, low_rank, one_line, run, start, succeeded, write_csv

KILLS_PER_FIT = 8
N_ROWS, N_FEATURES = 2000, 20


def _npy(folder, X):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def _parquet(folder, X):
    table = pa.table({f"f{i}": pa.array(column, from_pandas=True) for i, column in enumerate(X.T)})
    pq.write_table(table, folder / "x.parquet", row_group_size=300)
    return folder / "x.parquet"


def _csv(folder, X):
    return write_csv(folder / "x.csv", X)


FITS = {
    "shuffled array with holes": (_npy, 0.2, [*RULE, "--max-iter", 40, "--shrink", 3]),
    "shuffled mini-batches of Parquet": (
        _parquet,
        0.2,
        [*RULE, "--batch-size", 7, "--max-iter", 40],
    ),
    "text in order": (_csv, 0.2, [*RULE, "--no-shuffle", "--max-iter", 40, "--smooth", 0.1]),
    "shuffled text without holes": (_csv, 0.0, [*RULE, "--max-iter", 40, "--forget-factor", 0.99]),
    "nothing given": (_npy, 0.2, ["--max-iter", 20]),
    "nothing given, in time": (_csv, 0.2, ["--max-iter", 20, "--temporal"]),
    "a decomposition without holes": (
        _parquet,
        0.0,
        ["--max-iter", 40, "--estimator", "factor-analysis"],
    ),
}


def _wait_for(condition, process=None, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        if process is not None and process.poll() is not None:
            return
        time.sleep(0.002)


def _changed(path):
    """A condition: the file is another one than now."""
    before = path.stat().st_mtime_ns if path.exists() else None
    return lambda: path.exists() and path.stat().st_mtime_ns != before


@pytest.mark.parametrize("name", FITS)
def test_a_fit_killed_at_random_moments_ends_with_the_same_model(server, tmp_path, name):
    write, missing, options = FITS[name]
    data = write(tmp_path, low_rank(N_ROWS, N_FEATURES, missing=missing))
    words = ["fit", data, "-r", 4, "--seed", 3, *options]
    whole, resumed = tmp_path / "whole.omfb", tmp_path / "resumed.omfb"
    small = {"small_blocks": True, "cwd": tmp_path}
    succeeded(server.run(*words, "-o", whole, **small))

    checkpoint = tmp_path / "run.ckpt"
    again = [*words, "-o", resumed, "--checkpoint", checkpoint, "--every", "1rows", "--resume"]
    moments = random.Random(f"{name} 5")
    killed = 0
    seen = [0]
    for _ in range(KILLS_PER_FIT):
        changed = _changed(checkpoint)
        process = server.start(*again, **small)
        _wait_for(changed, process)
        time.sleep(moments.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += process.returncode == -signal.SIGKILL
        seen.append(load_estimator(checkpoint).n_samples_seen_)
    assert killed >= KILLS_PER_FIT - 2  # on a busy machine a process may end before it is killed
    assert all(before <= after for before, after in itertools.pairwise(seen))

    succeeded(run(*again, **small))
    assert resumed.read_bytes() == whole.read_bytes()
    assert leftovers(tmp_path) == []
    # What is finished can be asked for once more.
    resumed.unlink()
    succeeded(server.run(*again, **small))
    assert resumed.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupting_a_fit_leaves_a_checkpoint_and_says_how_to_continue(server, tmp_path, number):
    np.save(tmp_path / "x.npy", low_rank(N_ROWS, N_FEATURES))
    small = {"small_blocks": True, "cwd": tmp_path}
    words = ["fit", "x.npy", "-r", 4, "--seed", 3, "--max-iter", 40, "-o", "m.omfb"]
    words += ["--estimator", "omfb", "--lam", 1]
    succeeded(server.run(*words, **small))
    whole = (tmp_path / "m.omfb").read_bytes()
    words = [*words, "--checkpoint", "run.ckpt", "--every", "1rows"]
    process = server.start(*words, **small)
    _wait_for((tmp_path / "run.ckpt").exists, process)
    process.send_signal(number)
    message = one_line(process.wait(), 130)
    assert leftovers(tmp_path) == []
    assert "interrupted in pass" in message
    again = message.partition("Continue with: omfb ")[2].split()
    assert again[-1] == "--resume"
    # A checkpoint is not overwritten by accident, nor used for another fit or other data.
    assert "--resume" in one_line(server.run(*words, **small), 2)
    assert "lam = 1.0" in one_line(server.run(*again, "--lam", 2.0, **small), 2)
    np.save(tmp_path / "y.npy", low_rank(50, N_FEATURES))
    assert "other data" in one_line(server.run("fit", "y.npy", *again[2:], **small), 2)
    succeeded(server.run(*again, **small))
    assert (tmp_path / "m.omfb").read_bytes() == whole


def _filled_pipe(folder, content):
    """A named pipe with some bytes in it that stays open: nobody knows whether more will come."""
    os.mkfifo(folder / "pipe")
    pipe = os.open(folder / "pipe", os.O_RDWR)
    os.write(pipe, content)
    return pipe


@pytest.mark.parametrize(("options", "kept"), [(RULE, 512), ([], 400)])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_fit_to_a_slow_pipe_keeps_what_came_and_ends_with_the_same_model(
    server, tmp_path, number, options, kept
):
    stream = write_csv(tmp_path / "x.csv", low_rank(1000, 5)).read_bytes()
    here = {"cwd": tmp_path}
    words = ["fit", "-", "-r", 2, "--seed", 3, "-q", "-o", "m.omfb", *options]
    succeeded(server.run(*words, stdin=tmp_path / "x.csv", **here))
    whole = (tmp_path / "m.omfb").read_bytes()
    words = [*words, "--checkpoint", "run.ckpt", "--every", "0.5s"]
    pipe = _filled_pipe(tmp_path, stream[: len(stream) * 2 // 3])
    process = server.start(*words, stdin=tmp_path / "pipe", **here)
    # Saved while the pipe is silent: all of the rows that came but for a part of a block.
    _wait_for((tmp_path / "run.ckpt").exists, process)
    _wait_for(lambda: load_estimator(tmp_path / "run.ckpt").n_samples_seen_ == kept, process)
    process.send_signal(number)
    done = process.wait()
    os.close(pipe)
    if number == signal.SIGINT:
        message = one_line(done, 130)
        assert f"interrupted after {kept} rows" in message
        assert "Pipe the same input into: omfb fit - " in message
    succeeded(server.run(*words, "--resume", stdin=tmp_path / "x.csv", **here))
    assert (tmp_path / "m.omfb").read_bytes() == whole


def test_a_second_process_on_a_checkpoint_is_refused_until_the_first_is_dead(server, tmp_path):
    np.save(tmp_path / "x.npy", low_rank(N_ROWS, N_FEATURES))
    small = {"small_blocks": True, "cwd": tmp_path}
    words = ["fit", "x.npy", "-r", 4, "--seed", 3, "--max-iter", 10**6, "-o", "m.omfb"]
    words += ["--checkpoint", "run.ckpt", "--resume", "--every", "1rows"]
    first = server.start(*words, **small)
    try:
        _wait_for((tmp_path / "run.ckpt").exists, first)
        message = one_line(server.run(*words, **small), 1)
        assert f"process {first.pid} is working on this file" in message
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    changed = _changed(tmp_path / "run.ckpt")
    second = server.start(*words, **small)
    _wait_for(changed, second)
    second.send_signal(signal.SIGTERM)
    assert "Continue with" in one_line(second.wait(), 130)
    assert leftovers(tmp_path) == []


def test_a_full_disk_leaves_the_old_files_as_they_were(server, tmp_path):
    np.save(tmp_path / "x.npy", low_rank(300, N_FEATURES))
    here = {"cwd": tmp_path}
    succeeded(server.run("fit", "x.npy", "-r", 2, "-o", "m.omfb", **here))
    succeeded(server.run("complete", "x.npy", "-m", "m.omfb", "-o", "filled.npy", **here))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    full = {"cwd": tmp_path, "limit": 1000}
    words = ["fit", "x.npy", "-r", 10, "-q", "-o", "m.omfb"]
    assert "m.omfb" in one_line(server.run(*words, **full), 1)
    one_line(server.run("complete", "x.npy", "-m", "m.omfb", "-o", "filled.npy", **full), 1)
    words = ["fit", "x.npy", "-o", "n.omfb", "--checkpoint", "m.ckpt", "--every", "1rows"]
    one_line(server.run(*words, **full), 1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture(scope="module")
def live(server, tmp_path_factory):
    """A folder with a model and a stream, and what the learning filter makes of it."""
    folder = tmp_path_factory.mktemp("live")
    X = low_rank(3000, 30)
    np.save(folder / "x.npy", X[:500])
    write_csv(folder / "stream.csv", X)
    words = ["fit", "x.npy", "-r", 3, "--seed", 0, "--max-iter", 1, "-o", "m.omfb"]
    succeeded(server.run(*words, cwd=folder))
    words = ["complete", "-", "-m", "m.omfb", "--learn", "-q"]
    done = server.run(*words, stdin=folder / "stream.csv", cwd=folder)
    return folder, succeeded(done).stdout.splitlines(keepends=True)


@pytest.mark.parametrize("seed", range(6))
def test_a_learning_filter_killed_and_resumed_gives_the_same_lines(server, live, tmp_path, seed):
    folder, lines = live
    header, rows = lines[0], lines[1:]
    words = ["complete", "-", "-m", folder / "m.omfb", "--learn", "--checkpoint", "live.omfb"]
    words += ["--every", "40rows"]
    stream = (folder / "stream.csv").read_bytes()
    moments = random.Random(seed)
    checkpoint = tmp_path / "live.omfb"
    os.mkfifo(tmp_path / "pipe")
    process = server.start(*words, stdin=tmp_path / "pipe", cwd=tmp_path)
    # The pipe stays open until the process is dead: it ends by the signal only.
    with suppress(BrokenPipeError), (tmp_path / "pipe").open("wb", buffering=0) as pipe:
        pipe.write(stream[: 40_000 + moments.randrange(200)])
        _wait_for(checkpoint.exists, process)
        time.sleep(moments.uniform(0.0, 0.2))
        process.send_signal(signal.SIGKILL)
        done = process.wait()
    assert done.returncode == -signal.SIGKILL
    printed = done.stdout.splitlines(keepends=True)
    assert printed == [header, *rows[: len(printed) - 1]]
    learned = load_estimator(checkpoint).n_samples_seen_ - 500
    assert 0 < learned <= len(printed) - 1

    again = server.run(*words, "--resume", stdin=folder / "stream.csv", cwd=tmp_path)
    assert succeeded(again).stdout.splitlines(keepends=True) == rows[learned:]
    assert load_estimator(checkpoint).n_samples_seen_ == 500 + len(rows)


def test_a_filter_answers_each_line_at_once_and_saves_while_the_pipe_is_silent(live, tmp_path):
    folder, lines = live
    stream = (folder / "stream.csv").read_bytes().splitlines(keepends=True)
    words = ["complete", "-", "-m", folder / "m.omfb", "--learn", "--checkpoint", "live.omfb"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": tmp_path}
    process = start(*words, "--every", "0.1s", **pipes)
    for number in range(5):
        process.stdin.write(stream[number])
        process.stdin.flush()
        assert process.stdout.readline() == lines[number]
    _wait_for((tmp_path / "live.omfb").exists, process)
    _wait_for(lambda: load_estimator(tmp_path / "live.omfb").n_samples_seen_ == 504, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    message = process.communicate()[1].decode()
    assert "interrupted after 4 rows" in message
    assert message.rstrip().endswith("--resume")


def test_a_closed_pipe_ends_quietly(live):
    folder, _ = live
    for words in (["complete", "stream.csv"], ["transform", "stream.csv"], ["complete", "-"]):
        pipes = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE, "cwd": folder}
        process = start(*words, "-m", "m.omfb", **pipes)
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.write((folder / "stream.csv").read_bytes())
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(timeout=60)
        assert process.stderr.read() == b""
        assert process.returncode == 0
        process.stderr.close()


# Not the peak that the system tells of a child: that begins with what its parent had.
TELL_PEAK = """
import atexit
status = lambda: dict(line.split(":", 1) for line in open("/proc/self/status"))
atexit.register(lambda: open("peak", "w").write(status()["VmHWM"].split()[0]))
"""


def _peak_memory(folder, n_rows):
    """Peak memory in MB of a fit to so many rows from a pipe."""
    rows = b"".join(b"%d,%d.5,,%d,%d,1,2\n" % (i % 7, i % 11, i % 5, i % 3) for i in range(1000))
    words = ["fit", "-", "-r", 2, "-q", "-o", folder / "m.omfb"]
    process = start(*words, prelude=TELL_PEAK, stdin=subprocess.PIPE, cwd=folder)
    for _ in range(n_rows // 1000):
        process.stdin.write(rows)
    message = process.communicate()[1].decode()
    assert process.returncode == 0, message
    assert load_estimator(folder / "m.omfb").n_samples_seen_ == n_rows
    return int((folder / "peak").read_text()) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nobody knows the peak memory")
def test_a_million_rows_from_a_pipe_take_no_more_memory_than_a_few(tmp_path):
    # As floats they would be 56 MB. The first 300,000 fill all buffers once.
    few, many = _peak_memory(tmp_path, 300_000), _peak_memory(tmp_path, 1_000_000)
    assert many < few + 25


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_what_is_made_of_a_private_file_is_private(tmp_path):
    from typer.testing import CliRunner

    from omfb.cli import app

    table = tmp_path / "x.csv"
    rng = np.random.default_rng(0)
    cells = [
        ["" if rng.random() < 0.1 else f"{x:.3f}" for x in row] for row in rng.normal(size=(60, 4))
    ]
    table.write_text("a,b,c,d\n" + "\n".join(",".join(row) for row in cells) + "\n")
    table.chmod(0o600)
    made = [tmp_path / name for name in ("m.omfb", "y.csv", "y.parquet", "r.txt", "z.csv")]
    model, filled, columnar, report, codes = map(str, made)
    for words in (
        ["fit", str(table), "-o", model],
        ["complete", str(table), "-m", model, "-o", filled, "--report", report],
        ["complete", str(table), "-m", model, "-o", columnar],
        ["transform", str(table), "-m", model, "-o", codes],
    ):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    assert [path.stat().st_mode & 0o777 for path in made] == [0o600] * 5
