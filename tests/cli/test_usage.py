"""How the command treats files, terminals and those who call it: nothing is lost or garbled."""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omfb import OnlineFactorAnalysis, __version__

from ..commands import command, low_rank, one_line, run, start, succeeded, write_csv

NAMES = [f"f{i}" for i in range(6)]


@pytest.fixture
def folder(tmp_path):
    X = np.round(low_rank(200, 6), 4)
    write_csv(tmp_path / "x.csv", X)
    OnlineFactorAnalysis(2, random_state=0).fit(pd.DataFrame(X, columns=NAMES)).save(
        tmp_path / "m.omfb"
    )
    return tmp_path


def _shell(script, folder, **options):
    words = " ".join(f"'{word}'" for word in command("$@")[:-1])
    script = f'omfb() {{ {words.replace("$@", "")} "$@"; }}\n{script}'
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, timeout=120, check=False, **options
    )


def test_input_files_are_never_overwritten(server, folder):
    os.link(folder / "x.csv", folder / "hard.csv")
    os.symlink("x.csv", folder / "soft.csv")
    before = (folder / "x.csv").read_bytes(), (folder / "m.omfb").read_bytes()
    for target in ("x.csv", "hard.csv", "soft.csv", "./x.csv"):
        for words in (
            ["fit", "x.csv", "-o", target],
            ["fit", "x.csv", "-o", "n.omfb", "--log", target],
            ["fit", "x.csv", "-o", "n.omfb", "--checkpoint", target, "--resume"],
            ["complete", "x.csv", "-m", "m.omfb", "-o", target],
            ["transform", "x.csv", "-m", "m.omfb", "-o", target],
            ["inverse", "x.csv", "-m", "m.omfb", "-o", target],
        ):
            message = one_line(server.run(*words, cwd=folder), 2)
            assert "would be overwritten" in message
    x = folder / "x.csv"
    for words in (["fit", "-", "-o", "x.csv"], ["complete", "-", "-m", "m.omfb", "-o", "x.csv"]):
        message = one_line(server.run(*words, cwd=folder, stdin=x), 2)
        assert "x.csv: would be overwritten, but it is standard input" in message
    done = _shell("omfb complete x.csv -m m.omfb >> x.csv", folder)
    assert "standard output: would be overwritten, but it is x.csv" in one_line(done, 2)
    os.symlink("m.omfb", folder / "atoms.png")
    message = one_line(server.run("info", "m.omfb", "--atoms", "2x3", "atoms.png", cwd=folder), 2)
    assert "would be overwritten" in message
    np.save(folder / "start.npy", np.ones((2, 6)))
    words = [
        "fit",
        "x.csv",
        "-r",
        2,
        "--estimator",
        "omfb",
        "--init",
        "start.npy",
        "-o",
        "start.npy",
    ]
    assert "would be overwritten" in one_line(server.run(*words, cwd=folder), 2)
    words = ["fit", "x.csv", "-o", "new", "--log", "new"]
    assert "two purposes" in one_line(server.run(*words, cwd=folder), 2)
    (folder / "other").write_bytes(b"PAR1")
    words = ["fit", "x.csv", "-o", "new", "--log", "other"]
    assert "is no log" in one_line(server.run(*words, cwd=folder), 2)
    assert (folder / "other").read_bytes() == b"PAR1"
    words = ["fit", "m.omfb", "-o", "new", "--log", "new.log"]
    one_line(server.run(*words, cwd=folder), 1)
    assert not (folder / "new.log").exists()
    os.link(folder / "m.omfb", folder / "model.csv")
    words = ["complete", "x.csv", "-m", "m.omfb", "-o", "model.csv"]
    one_line(server.run(*words, cwd=folder), 2)
    assert ((folder / "x.csv").read_bytes(), (folder / "m.omfb").read_bytes()) == before


def test_a_model_replaces_a_model_but_no_other_file_unless_forced(server, folder):
    (folder / "notes.csv").write_text("a,b\n1,2\n")
    (folder / "empty").write_bytes(b"")
    for words in (["fit", "x.csv"], ["merge", "m.omfb", "--start", "m.omfb"]):
        done = server.run(*words, "-q", "-o", "notes.csv", cwd=folder)
        assert "notes.csv: exists and is not a model" in one_line(done, 2)
    assert (folder / "notes.csv").read_text() == "a,b\n1,2\n"
    damaged = (folder / "m.omfb").read_bytes()[:-9]
    (folder / "damaged.omfb").write_bytes(damaged)
    for name in ("m.omfb", "damaged.omfb", "empty"):
        succeeded(server.run("fit", "x.csv", "-q", "-o", name, cwd=folder))
    succeeded(server.run("fit", "x.csv", "-q", "-o", "notes.csv", "--force", cwd=folder))
    assert OnlineFactorAnalysis.load(folder / "notes.csv").n_features_in_ == 6


def test_the_rows_of_a_file_are_counted_once_whatever_the_passes(server, folder):
    words = ["fit", "x.csv", "-o", "n.omfb", "--max-iter", 3]
    told = succeeded(server.run(*words, cwd=folder)).stderr.decode()
    assert "from 200 rows in 3 passes," in told


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_means_missing_is_kept_in_the_model(server, folder, checkpoint):
    text = (folder / "x.csv").read_text().replace(",,", ",-999,").replace(",\n", ",-999\n")
    (folder / "marked.csv").write_text(text)
    words = ["fit", "marked.csv", "--missing", "-999,?", "--seed", 0, "-q", "-o", "n.omfb"]
    succeeded(server.run(*words, "--checkpoint", "n.ckpt", cwd=folder))
    model = "n.ckpt" if checkpoint else "n.omfb"
    words = ["complete", "marked.csv", "-m", model, "-o"]
    told = succeeded(server.run(*words, "y.csv", cwd=folder)).stderr.decode()
    assert told == "omfb: -999,? means missing, as in the fit of the model (--missing)\n"
    succeeded(server.run(*words, "z.csv", "--missing", "-999", "-q", cwd=folder))
    assert (folder / "y.csv").read_bytes() == (folder / "z.csv").read_bytes()
    assert "-999" not in (folder / "y.csv").read_text()
    # Said otherwise, it is a number; and what goes on from the model keeps it.
    succeeded(server.run(*words, "z.csv", "--missing", "?", cwd=folder))
    assert "-999" in (folder / "z.csv").read_text()
    words = ["complete", "marked.csv", "-m", model, "-o", "y.csv", "--learn", "--checkpoint", "c"]
    succeeded(server.run(*words, "-q", cwd=folder))
    words = ["merge", "c", "--start", model, "-o", "merged.omfb", "-q"]
    succeeded(server.run(*words, cwd=folder))
    for name in ("c", "merged.omfb"):
        done = server.run("transform", "marked.csv", "-m", name, "-o", "t.csv", cwd=folder)
        assert b"-999,? means missing" in succeeded(done).stderr


@pytest.mark.parametrize("ending", ["csv.gz", "csv.zst", "ndjson.gz"])
def test_compressed_text_is_filled_into_compressed_text(server, folder, ending):
    X = np.round(low_rank(200, 6), 4)
    frame = pd.DataFrame(X, columns=NAMES).assign(text="as it is")
    plain = f"p.{ending.split('.')[0]}"
    if "csv" in ending:
        frame.to_csv(folder / plain, index=False)
    else:
        frame.to_json(folder / plain, orient="records", lines=True)
    content = (folder / plain).read_bytes()
    if ending.endswith("gz"):
        (folder / f"x.{ending}").write_bytes(gzip.compress(content))
    else:
        import pyarrow as pa

        with pa.output_stream(str(folder / f"x.{ending}"), compression="zstd") as stream:
            stream.write(content)
    here = {"cwd": folder}
    for source, target in ((plain, f"y.{plain[2:]}"), (f"x.{ending}", f"z.{ending}")):
        succeeded(server.run("complete", source, "-m", "m.omfb", "-o", target, **here))
    filled = (folder / f"y.{plain[2:]}").read_bytes()
    assert filled.count(b"as it is") == 200
    if ending.endswith("gz"):
        assert gzip.decompress((folder / f"z.{ending}").read_bytes()) == filled
    else:
        with pa.input_stream(str(folder / f"z.{ending}"), compression="zstd") as stream:
            assert stream.read() == filled
    succeeded(server.run("fit", f"z.{ending}", "-r", 2, "-o", "n.omfb", **here))
    assert list(OnlineFactorAnalysis.load(folder / "n.omfb").feature_names_in_) == NAMES


def test_other_marks_are_filled_in_the_same_marks(server, folder):
    text = (folder / "x.csv").read_text()
    european = text.replace(",", ";").replace(".", ",").replace(";;", ";-999;")
    (folder / "e.csv").write_text(european)
    words = ["complete", "e.csv", "-m", "m.omfb", "--decimal", ",", "--missing", "-999"]
    filled = succeeded(server.run(*words, cwd=folder)).stdout.decode()
    assert "-999" not in filled
    assert "." not in filled
    plain = filled.replace(",", ".").replace(";", ",")
    (folder / "back.csv").write_text(plain)
    expected = OnlineFactorAnalysis.load(folder / "m.omfb").complete(pd.read_csv(folder / "x.csv"))
    np.testing.assert_allclose(pd.read_csv(folder / "back.csv"), expected, rtol=1e-9)


def test_the_command_says_what_it_took_for_what_and_quiet_says_nothing(server, folder):
    frame = pd.read_csv(folder / "x.csv").set_axis(range(6), axis=1)
    frame.assign(text="a").to_csv(folder / "n.csv", index=False)
    frame.to_csv(folder / "numbers.csv", index=False)
    words = ["fit", "numbers.csv", "-r", 2, "--max-iter", 1, "-o", "n.omfb"]
    told = succeeded(server.run(*words, cwd=folder)).stderr.decode()
    assert "took the first line (0,1,2,3,4,5) for column names (--header/--no-header)" in told
    assert OnlineFactorAnalysis.load(folder / "n.omfb").n_samples_seen_ == 200
    assert server.run(*words, "-q", cwd=folder).stderr == b""
    told = succeeded(server.run("fit", "n.csv", "-r", 2, "-o", "n.omfb", cwd=folder)).stderr
    assert b"not numbers, so not features: column text (--columns)" in told
    words = ["fit", "x.csv", "-o", "n.omfb", "--columns", "f11"]
    assert "Did you mean 'f1'" in one_line(server.run(*words, cwd=folder), 1)
    words = ["fit", "x.csv", "-r", 2, "-q", "-o", "n.omfb", "--columns", "f*", "--exclude", "f3,1"]
    succeeded(server.run(*words, cwd=folder))
    names = list(OnlineFactorAnalysis.load(folder / "n.omfb").feature_names_in_)
    assert names == ["f1", "f2", "f4", "f5"]


def test_errors_use_the_words_of_the_command_line(server, folder):
    words = ["fit", "x.csv", "-o", "n", "--estimator", "omfb", "--smooth", 1]
    message = one_line(server.run(*words, cwd=folder), 2)
    assert "(--no-shuffle)" in message
    assert "shuffle=" not in message
    for name, value in (("--n-components", 0), ("--seasons", "often"), ("--min-value", "nan")):
        message = one_line(server.run("fit", "x.csv", "-o", "n", name, value, cwd=folder), 2)
        assert message.startswith(f"omfb: {name} ")
    for name, value in (("--max-std", -1), ("--max-gap", "often")):
        words = ["complete", "x.csv", "-m", "m.omfb", name, value]
        assert one_line(server.run(*words, cwd=folder), 2).startswith(f"omfb: {name} ")
    for seed in (-1, 2**32, 10**30):
        words = ["fit", "x.csv", "-o", "n", "--seed", seed]
        assert "'--seed'" in one_line(server.run(*words, cwd=folder), 2)
    (folder / "codes.csv").write_text("1,2\n1,\n")
    message = one_line(server.run("inverse", "codes.csv", "-m", "m.omfb", cwd=folder), 1)
    assert "codes.csv contains NaN or infinity" in message
    (folder / "bad.csv").write_text("a,b\n1,2\n3,x\n")
    assert "(--exclude)" in one_line(server.run("fit", "bad.csv", "-o", "n", cwd=folder), 1)
    (folder / "bad.csv").write_text('a,b\n1,2\n3,"2,5"\n')
    assert "(--decimal)" in one_line(server.run("fit", "bad.csv", "-o", "n", cwd=folder), 1)
    words = ["fit", "x.csv", "-o", "n", "--decimal", ".."]
    assert "(--decimal)" in one_line(server.run(*words, cwd=folder), 1)


def test_an_error_that_nothing_tells_is_not_called_0(server, folder):
    (folder / "one.csv").write_text("a\n" + "1.5\n2\n4.5\n" * 9)
    done = succeeded(server.run("fit", "one.csv", "-o", "one.omfb", cwd=folder))
    assert b"nothing could be held out" in done.stderr
    facts = json.loads(server.run("info", "one.omfb", "--json", cwd=folder).stdout)
    assert facts["running error"] is None


def test_what_could_steer_a_terminal_is_shown_escaped(server, folder):
    name = "\x1b[31mred\u202e.csv"
    (folder / name).write_text("a\x1b]0;title\x07,b\nx,1\n2,y\n")
    for words in (["fit", name, "-o", "n"], ["fit", "no" + name, "-o", "n"]):
        message = one_line(server.run(*words, cwd=folder), 1)
        assert "\x1b" not in message
        assert "\u202e" not in message
    (folder / "names.csv").write_text("a\x1b[2J,b\u202e\n" + "1,2\n3,5\n" * 9)
    succeeded(server.run("fit", "names.csv", "-q", "-o", "names.omfb", cwd=folder))
    for words in (["info", "names.omfb"], ["info", "names.omfb", "--json"]):
        told = succeeded(server.run(*words, cwd=folder)).stdout.decode()
        assert "2J" in told
        assert told.replace("\n", "").isprintable()
        assert "\\x1b[31mred\\u202e.csv" in message


def test_without_arguments_it_is_the_help_and_flags_have_no_type(server, folder):
    helped = succeeded(server.run(cwd=folder)).stdout.decode()
    assert "complete" in helped
    for words in ([], ["fit", "--help"], ["complete", "--help"]):
        assert "<bool>" not in succeeded(server.run(*words, cwd=folder)).stdout.decode()
    printed = succeeded(server.run("--version", cwd=folder)).stdout.decode()
    assert printed == f"omfb {__version__}\n"
    assert "'fit'? Try: omfb --help" in one_line(server.run("fitt", cwd=folder), 2)
    for every in ("9" * 400, "1" * 400 + "rows"):
        words = ["fit", "x.csv", "-o", "n", "--checkpoint", "c", "--every", every]
        assert "--every must be like" in one_line(server.run(*words, cwd=folder), 2)


CLOSED = {
    "complete x.csv -m m.omfb -o y.csv --learn 2>&-": (0, b""),
    "complete x.csv -m none.omfb -o y.csv 2>&-": (1, b""),
    "complete x.csv -m m.omfb >&-": (2, b"standard output is closed"),
    "complete - -m m.omfb <&-": (2, b"standard input is closed"),
    "fit - -o n.omfb <&- >&-": (2, b"standard input is closed"),
    "--help > /dev/full": (1, b"no space left"),
    "fit --help > /dev/full": (1, b"no space left"),
    "score x.csv -m m.omfb > /dev/full": (1, b"no space left"),
    "complete x.csv -m m.omfb > /dev/full": (1, b"no space left"),
}


@pytest.mark.parametrize("words", CLOSED)
def test_closed_and_full_streams_give_one_line(folder, words):
    code, message = CLOSED[words]
    done = _shell(f"omfb {words}", folder)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert message in done.stderr.lower()
    assert done.stderr.count(b"\n") == (1 if message else 0)
    assert done.stdout == b""  # where messages would end up
    if "-o y.csv" in words and code == 0:
        lines = (folder / "y.csv").read_bytes().splitlines()
        assert len(lines) == 201
        assert all(line.count(b",") == 5 for line in lines)


def test_a_named_pipe_is_read_as_a_pipe_whatever_it_is_called(folder):
    os.mkfifo(folder / "f.csv")
    writer = subprocess.Popen(["bash", "-c", "cat x.csv > f.csv"], cwd=folder)
    words = ["complete", "f.csv", "-m", "m.omfb", "-o", "y.csv"]
    succeeded(run(*words, cwd=folder))
    assert writer.wait() == 0
    succeeded(run("complete", "x.csv", "-m", "m.omfb", "-o", "z.csv", cwd=folder))
    assert (folder / "y.csv").read_bytes() == (folder / "z.csv").read_bytes()
    os.mkfifo(folder / "f.npy")
    message = one_line(run("complete", "f.npy", "-m", "m.omfb", "-o", "y.npy", cwd=folder), 1)
    assert "a pipe or device" in message


def _catches(pid, number):
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nobody knows the handlers")
def test_waiting_for_a_pipe_ends_by_one_signal(folder):
    os.mkfifo(folder / "f.csv")
    process = start("fit", "f.csv", "-o", "n.omfb", cwd=folder)
    while not _catches(process.pid, signal.SIGTERM):  # still importing
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 130
    assert process.communicate()[1].count(b"\n") == 1


@pytest.mark.parametrize("seed", range(4))
def test_interrupting_a_pipe_and_its_writer_gives_one_line(folder, seed):
    """Ctrl-C goes to both: the writer ends amid a line, and pyarrow hears it, too."""
    write = (
        "import sys\nrow = ','.join(f'{i}.25' for i in range(100)) + '\\n'\n"
        "try:\n    while True:\n        sys.stdout.write(row * 50)\n"
        "except KeyboardInterrupt:\n    sys.stdout.write(row[:470])\n    sys.stdout.flush()\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", write], stdout=subprocess.PIPE, start_new_session=True
    )
    words = ["fit", "-", "-r", 2, "-q", "-o", folder / "n.omfb"]
    process = start(*words, stdin=writer.stdout, cwd=folder)
    writer.stdout.close()
    time.sleep(5.0 + 0.37 * seed)
    os.kill(writer.pid, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=60)[1].decode()
    writer.wait(timeout=20)
    assert process.returncode == 130, message
    assert message.startswith("omfb: interrupted")
    assert message.count("\n") == 1


def test_a_terminal_sees_how_far_completing_is(folder):
    ours, theirs = pty.openpty()
    words = ["complete", "x.csv", "-m", "m.omfb", "-o", "y.csv"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = start(*words, stderr=theirs, env=env, cwd=folder)
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
    assert b"filling" in shown
    assert b"200 rows" in shown
    assert b"filling" not in succeeded(run(*words, cwd=folder)).stderr


def test_formulas_of_spreadsheets_pass_as_they_are(server, folder):
    """They are the user's text; SECURITY.md tells what spreadsheets make of it."""
    cells = ["=1+1", "@SUM(A1)", "-2+cmd|' /C calc'!A0", '"=HYPERLINK(""http://a"")"', "\t=x"]
    lines = [
        "name,a,b",
        *(f"{cell},{i}.5,{2 * i}.25" for i, cell in enumerate(cells * 8)),
        "=1+1,,1",
    ]
    (folder / "formulas.csv").write_text("\n".join(lines) + "\n")
    succeeded(server.run("fit", "formulas.csv", "-o", "f.omfb", cwd=folder))
    words = ["complete", "formulas.csv", "-m", "f.omfb", "-o", "filled.csv"]
    succeeded(server.run(*words, cwd=folder))
    filled = (folder / "filled.csv").read_text().splitlines()
    assert filled[:-1] == lines[:-1]
    assert filled[-1].startswith("=1+1,")
    assert filled[-1].endswith(",1")
