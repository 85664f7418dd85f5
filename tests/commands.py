"""Run the real command in real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

# Blocks, groups and shuffle buffers so small that a small file has many of each.
SMALL_BLOCKS = """
import omfb.streams.base as base
import omfb.streams.grouped as grouped
import omfb.formats._lines as lines
base.BLOCK_BYTES, grouped.SHUFFLE_BYTES, lines.GROUP_BYTES = 1 << 14, 1 << 16, 1 << 15
base.WIDE_BLOCKS = 1
import omfb.learner.fit_stream as fit_stream
fit_stream.WHOLE_BATCHES = 1
"""
COMMAND = """
import sys
sys.argv[0] = "omfb"
from omfb.__main__ import main
main()
"""
# Imports and loads once what every command needs (it takes seconds), then forks a process for
# each command.
SERVER = """
import contextlib, io, json, os, resource, sys
import numpy as np
import omfb.cli, omfb.estimators.omfb, pyarrow.csv, pyarrow.parquet, rich.console

rows = np.random.default_rng(0).random((40, 5))
for batch_size in (1, 3):
    paper = omfb.OMFB(2, batch_size=batch_size)
    model = omfb.OnlineFactorAnalysis(2)
    for each in (paper, model, omfb.OMFBImputer(temporal=True)):
        each.fit(rows).complete(rows)
    rows[::3, 1] = np.nan
    for each in (paper, model, omfb.OMFBImputer(temporal=True)):
        each.fit(rows).complete(rows)
with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
    omfb.cli.app(["info", "no such file"])

for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        _, status = os.waitpid(asked["wait"], 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    pid = os.fork()
    if pid == 0:
        os.chdir(asked["cwd"])
        for number, (path, flags) in enumerate(zip(asked["files"], (0, 577, 577))):
            os.dup2(os.open(path, flags, 0o666), number)
        if asked["limit"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (asked["limit"], asked["limit"]))
        sys.stdin = open(0, closefd=False)
        sys.argv = ["omfb", *asked["words"]]
        exec(asked["prelude"])
        code = 0
        try:
            from omfb.__main__ import main
            main()
        except SystemExit as ended:
            code = ended.code or 0
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # without the second that taking the interpreter apart needs
    print(pid, flush=True)
"""


# The algorithm that estimates nothing, with all past rows counting.
RULE = ["--estimator", "omfb", "--forget-factor", 1]


class Started:
    """A command in a process of its own."""

    def __init__(self, server: "Server", pid: int, folder: Path) -> None:
        self.pid, self._server, self._folder = pid, server, folder
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """None while it runs; once it has ended, its state is that of a zombie."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except FileNotFoundError:
            return self.returncode
        return 0 if stat.rpartition(")")[2].split()[0] == "Z" else None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> subprocess.CompletedProcess:
        self.returncode = self._server.ask(wait=self.pid)
        out, err = ((self._folder / name).read_bytes() for name in ("out", "err"))
        return subprocess.CompletedProcess([], self.returncode, out, err)


class Server:
    """Starts the real command in real processes, without the seconds that imports take."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=pipe, stdout=pipe, text=True
        )

    def ask(self, **question: object) -> int:
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def start(
        self, *words: object, cwd: Path, stdin: object = os.devnull, limit: int = 0,
        small_blocks: bool = False,
    ) -> Started:  # fmt: skip
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        pid = self.ask(
            words=[str(word) for word in words],
            cwd=str(cwd),
            files=[str(stdin), str(folder / "out"), str(folder / "err")],
            limit=limit,
            prelude=SMALL_BLOCKS if small_blocks else "",
        )
        return Started(self, pid, folder)

    def run(self, *words: object, **options) -> subprocess.CompletedProcess:
        return self.start(*words, **options).wait()

    def close(self) -> None:
        self._process.communicate()


def command(*words: object, small_blocks: bool = False, prelude: str = "") -> list[str]:
    code = prelude + (SMALL_BLOCKS if small_blocks else "") + COMMAND
    return [sys.executable, "-c", code, *map(str, words)]


def run(*words: object, small_blocks: bool = False, **options) -> subprocess.CompletedProcess:
    """Run the command to its end in a fresh interpreter; its output is captured."""
    options.setdefault("timeout", 120)
    return subprocess.run(
        command(*words, small_blocks=small_blocks), capture_output=True, check=False, **options
    )


def start(*words: object, prelude: str = "", **options) -> subprocess.Popen:
    """Start the command in a fresh interpreter with its error output captured."""
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen(command(*words, prelude=prelude), **options)


def succeeded(done: subprocess.CompletedProcess) -> subprocess.CompletedProcess:
    assert done.returncode == 0, done.stderr.decode()
    return done


def one_line(done: subprocess.CompletedProcess, code: int) -> str:
    """The error of a command that must have failed with a code and one line."""
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert text.startswith("omfb: ")
    assert text.count("\n") == 1
    return text


def low_rank(n: int, m: int, seed: int = 0, missing: float = 0.2, r: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, r)) @ rng.standard_normal((r, m))
    X += 0.1 * rng.standard_normal((n, m))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def csv_line(row, mark: str = ",") -> str:
    return mark.join("" if np.isnan(value) else f"{value:.7g}" for value in row) + "\n"


def write_csv(path: Path, X: np.ndarray, mark: str = ",", header: bool = True) -> Path:
    with path.open("w") as stream:
        if header:
            stream.write(mark.join(f"f{i}" for i in range(X.shape[1])) + "\n")
        stream.writelines(csv_line(row, mark) for row in X)
    return path


def leftovers(folder: Path) -> list[str]:
    """Temporary and lock files in a folder."""
    return [name for name in os.listdir(folder) if name.endswith((".tmp", "lock"))]
