"""Kills: `kill -9` of real commands at random moments; resumed, they end as if nothing had been."""

import functools
import time
from pathlib import Path

import numpy as np

from omfb.cli._models import load_estimator
from omfb.persistence import read_model

from ..commands import RULE, leftovers, low_rank
from .files import files_of
from .processes import Command, Ended, pipe_with, run
from .trial import ACCEPTED, CHANGED, TRACEBACK, demand

KILLS = 6
OPTIONS: list[list[object]] = [
    [],
    ["--temporal"],
    ["--estimator", "factor-analysis"],
    ["--forget-factor", 0.99],
    ["--estimator", "omfb", "--forget-factor", 0.99, "--batch-size", 5],
    ["--estimator", "omfb"],
    [*RULE, "--shrink", 3],
    [*RULE, "--positive"],
    [*RULE, "--alpha", 0.2, "--l1-ratio", 0.5],
    [*RULE, "--alpha", 0.2, "--batch-size", 7],
    [*RULE, "--batch-size", 7],
    [*RULE, "--no-shuffle", "--smooth", 0.1],
]


@functools.cache
def large_files() -> dict[str, bytes]:
    """Files that take a fraction of a second to fit."""
    return files_of(low_rank(900, 6))


def try_kill(rng: np.random.Generator, folder: Path) -> list[str]:
    """Kill a fit to a file, a fit to a pipe, or a filter that learns, and resume it."""
    tries = (fit_file, fit_file, fit_pipe, learning_filter)
    return tries[rng.integers(len(tries))](rng, folder)


def fit_file(rng: np.random.Generator, folder: Path) -> list[str]:
    """Of any format, with any engine."""
    files = large_files()
    name = list(files)[rng.integers(len(files))]
    (folder / name).write_bytes(files[name])
    options = OPTIONS[rng.integers(len(OPTIONS))]
    words = [
        "fit",
        name,
        "-r",
        3,
        "--seed",
        3,
        "-q",
        *options,
        "--max-iter",
        int(rng.integers(1, 6)),
    ]
    return _killed_and_resumed(rng, folder, words, None)


def fit_pipe(rng: np.random.Generator, folder: Path) -> list[str]:
    """The same input is piped in again."""
    data = large_files()["a.csv"][: 1 << 15].rpartition(b"\n")[0] + b"\n"
    options = OPTIONS[rng.integers(len(OPTIONS))]
    words = ["fit", "-", "-r", 3, "--seed", 3, "-q", *options, "--max-iter", 1]
    return _killed_and_resumed(rng, folder, words, data)


def _killed_and_resumed(
    rng: np.random.Generator, folder: Path, words: list[object], data: bytes | None
) -> list[str]:
    began = time.perf_counter()
    succeeded(run([*words, "-o", "whole.omfb"], folder, None if data is None else pipe_with(data)))
    took = time.perf_counter() - began
    again = [*words, "-o", "new.omfb", "--checkpoint", "c", "--every", "1rows", "--resume"]
    seen, kills = 0, 0
    for _ in range(KILLS):
        kills += _killed(again, folder, data, rng.uniform(0.0, 1.5 * took))
        if (folder / "c").exists():
            now = load_estimator(folder / "c").n_samples_seen_
            demand(now >= seen, CHANGED, f"a checkpoint of {now} rows after one of {seen}")
            seen = now
    succeeded(run(again, folder, None if data is None else pipe_with(data)))
    same = (folder / "new.omfb").read_bytes() == (folder / "whole.omfb").read_bytes()
    demand(same, CHANGED, f"another model: {words}")
    demand(leftovers(folder) == [], CHANGED, f"left behind: {leftovers(folder)}")
    return [ACCEPTED] * kills


def learning_filter(rng: np.random.Generator, folder: Path) -> list[str]:
    """Lines that were printed before and after are those of a filter that was not killed."""
    csv = large_files()["a.csv"].splitlines(keepends=True)
    (folder / "a.csv").write_bytes(b"".join(csv[:300]))
    data = csv[0] + b"".join(csv[300:600])
    options = OPTIONS[rng.integers(len(OPTIONS))]
    succeeded(run(["fit", "a.csv", "-r", 3, "--seed", 3, "-q", "-o", "m", *options], folder))
    words: list[object] = ["complete", "-", "-m", "m", "--learn", "-q", "--every", "20rows"]
    began = time.perf_counter()
    whole = succeeded(run([*words, "--checkpoint", "whole"], folder, pipe_with(data))).out
    took = time.perf_counter() - began
    again = [*words, "--checkpoint", "c", "--resume"]
    printed, kills = b"", 0
    for last in (False, False, False, True):
        done = _rows_in(folder / "c")
        known = b"".join(printed.splitlines(keepends=True)[: done + 1]) if done else b""
        command = Command(again, folder, pipe_with(data))
        if not last:
            time.sleep(rng.uniform(0.0, took))
            command.kill()
        ended = command.wait()
        kills += ended.code == -9
        printed = known + ended.out[: ended.out.rfind(b"\n") + 1]
        demand(whole.startswith(printed), CHANGED, f"other lines: {options}")
        if ended.code == 0:
            break
    demand(printed == whole, CHANGED, f"lines are missing: {options}: {ended.err}")
    same = (folder / "c").read_bytes() == (folder / "whole").read_bytes()
    demand(same, CHANGED, f"another model: {options}")
    return [ACCEPTED] * kills


def _rows_in(checkpoint: Path) -> int:
    """Rows of the pipe that a checkpoint has seen."""
    return int(read_model(checkpoint)[0]["pipe"]["rows"]) if checkpoint.exists() else 0


def _killed(words: list[object], folder: Path, data: bytes | None, seconds: float) -> bool:
    """Whether it was killed, and not done before."""
    command = Command(words, folder, None if data is None else pipe_with(data))
    time.sleep(seconds)
    command.kill()
    ended = command.wait()
    demand(ended.code in (0, -9), TRACEBACK, f"code {ended.code}: {ended.err[:300]}")
    return ended.code == -9


def succeeded(ended: Ended) -> Ended:
    """A command that had no reason to fail."""
    demand(ended.code == 0, TRACEBACK, f"code {ended.code}: {ended.err[:300]}")
    return ended
