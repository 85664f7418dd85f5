"""Hostile command lines: good files, odd options and names."""

from pathlib import Path

import numpy as np

from .files import digests, good_files, good_model, judged
from .processes import run

WORDS = [
    "", "-", "--", "0", "1", "2", "-1", "0.5", "1.5", "nan", "inf", "1e400", "9" * 400, "x", "a b",
    "\x1b[31mred", "../out", "/dev/null", "f0", "f*", "f?", "f0,f1", "1-3", "3-1", "99", "f9",
    "csv", "ndjson", "data", "random", "ä", "\u202e", "-999,?", ",", ";", ".", "diagonal",
    "isotropic", "imputer", "factor-analysis", "omfb", "1rows", "0s", "2m",
    "1e5rows", "true", "no such", "a.csv", "b.csv", "a.npy", "m.omfb",
    "a.parquet", "out.csv", "out.npy", "new.omfb", "[", "f[0-2]", "{}", "%s",
]  # fmt: skip
COMMANDS = ["fit", "complete", "transform", "inverse", "score", "info"]
READING = [
    "--columns",
    "--exclude",
    "--header",
    "--no-header",
    "--format",
    "--missing",
    "--decimal",
    "--thousands",
]
OPTIONS = {
    "fit": [
        "-r", "--estimator", "--lam", "--forget-factor", "--ridge", "--smooth", "--shrink",
        "--positive", "--alpha", "--l1-ratio", "--absent", "--inner-iter", "--batch-size",
        "--center", "--no-center", "--scale", "--no-scale",
        "--noise", "--robust", "--no-robust", "--temporal", "--no-temporal", "--min-value",
        "--max-value", "--integers", "--tol", "--shuffle", "--no-shuffle", "--init", "--seed",
        "--checkpoint", "--every", "--resume", "--log", "--n-tasks", "-q", *READING,
    ],
    "complete": [
        "--std", "--interval", "--report", "--no-robust", "--learn", "--checkpoint", "--every",
        "--resume", "-q", *READING,
    ],
    "transform": ["-q", *READING], "inverse": ["-q", *READING], "score": ["-q", *READING],
    "info": ["--json", "--atoms", "-q"],
}  # fmt: skip
FLAGS = {
    "--center", "--no-center", "--scale", "--no-scale", "--robust", "--no-robust", "--temporal",
    "--no-temporal", "--integers", "--shuffle", "--no-shuffle", "--resume", "-q", "--std",
    "--learn", "--header", "--no-header", "--json", "--positive",
}  # fmt: skip


def try_command(rng: np.random.Generator, folder: Path) -> list[str]:
    """Run a hostile command line on good files."""
    for name, data in good_files().items():
        (folder / name).write_bytes(data)
    (folder / "m.omfb").write_bytes(good_model())
    before = digests(folder)
    # What a command writes has a name of its own, and what it appends to, too.
    return [judged(run(hostile_words(rng), folder), folder, before)]


def hostile_words(rng: np.random.Generator) -> list[object]:
    """A command with some options, not all of which make sense."""
    command = COMMANDS[rng.choice(len(COMMANDS), p=[0.4, 0.3, 0.1, 0.05, 0.1, 0.05])]
    data = ["a.csv", "b.csv", "c.csv", "a.npy", "a.npz", "a.parquet", "a.ndjson", "a.csv.gz", "-"]
    words: list[object] = [command, data[rng.integers(len(data))]]
    if command == "fit":
        words += ["-o", "new.omfb", "--max-iter", 1]
    elif command in ("complete", "transform", "inverse"):
        words += ["-m", "m.omfb", "-o", ["out.csv", "-", "out.npy", "out.parquet"][rng.integers(4)]]
    elif command == "score":
        words += ["-m", "m.omfb"]
    options = OPTIONS[command]
    for _ in range(int(rng.integers(0, 5))):
        option = options[rng.integers(len(options))]
        words.append(option)
        if option not in FLAGS:
            words.append(_value(rng))
    if rng.random() < 0.1:
        words.insert(int(rng.integers(len(words) + 1)), _value(rng))
    return words


def _value(rng: np.random.Generator) -> str:
    return WORDS[rng.integers(len(WORDS))]
