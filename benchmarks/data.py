"""The data of the benchmarks: streams of complete rows, and panels with holes."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared"
TRIAL_ROWS = 1000  # at most, of those on which settings are chosen
JUDGED = 20261116  # seed of what is hidden; no setting was ever chosen by looking at it


class AbsentError(Exception):
    """Data that are not here, and why."""


@dataclass(frozen=True)
class Rows:
    """Complete rows, in memory or in a .npy file.

    `chunk` is how many rows the online learners get at a time, where they have no wish.
    """

    name: str
    n_components: int
    chunk: int
    array: np.ndarray | None = None
    path: Path | None = None

    def load(self) -> np.ndarray:
        """All rows, in memory."""
        return np.load(self.path) if self.array is None else self.array

    def chunks(self, length: int | None = None) -> Iterator[np.ndarray]:
        """Rows by the chunk, pass after pass; an array in random order, a file as it lies."""
        rng = np.random.default_rng(0)
        n = len(self.mapped())
        cuts = np.linspace(0, n, max(1, n // (length or self.chunk)) + 1).astype(int)
        for _ in count():
            order = rng.permutation(n) if self.path is None else None
            for start, end in pairwise(cuts):
                if order is None:
                    # The map is opened anew each time: its pages would count as memory of the peer.
                    yield np.array(self.mapped()[start:end])
                else:
                    yield self.mapped()[order[start:end]]

    def mapped(self) -> np.ndarray:
        """The rows, not read yet."""
        return np.load(self.path, mmap_mode="r") if self.array is None else self.array

    def head(self) -> "Rows":
        """A few rows, to warm up with."""
        array = np.array(self.mapped()[: 4 * self.n_components + 8])
        return replace(self, array=array, path=None, chunk=2 * self.n_components)


@dataclass(frozen=True)
class Holes:
    """A panel with holes: `X` is what may be seen, `hidden` what the score looks at."""

    name: str
    X: np.ndarray
    truth: np.ndarray
    hidden: np.ndarray
    pattern: str
    in_time: bool = False

    def error(self, filled: np.ndarray) -> float:
        """RMSE on the hidden entries."""
        difference = filled[self.hidden].astype(float) - self.truth[self.hidden]
        return float(np.sqrt(np.mean(difference**2)))

    def again(self, seed: int) -> "Holes":
        """The same kind of problem made of what may be seen: for choosing settings."""
        rng = np.random.default_rng(seed)
        X = self.X
        if len(X) > TRIAL_ROWS:
            X = X[:TRIAL_ROWS] if self.in_time else X[rng.permutation(len(X))[:TRIAL_ROWS]]
        hidden = PATTERNS[self.pattern](X.shape, rng) & ~np.isnan(X)
        # A feature without any entry left would teach nothing.
        hidden[:, (~np.isnan(X) & ~hidden).sum(axis=0) == 0] = False
        return replace(self, X=np.where(hidden, np.nan, X), truth=X, hidden=hidden)


# -- complete rows ----------------------------------------------------------------------------

STREAMS = {"tiny": (300, 80, 5), "quick": (4000, 1000, 20), "full": (20_000, 5_000, 50)}


def complete_sets(size: str, folder: Path) -> dict[str, Rows]:
    """The sets of complete rows; the stream is written into the folder, unless it is there."""
    n, m, r = STREAMS[size]
    path = folder / "stream.npy"
    if not path.exists():
        write_stream(path, n, m, r)
    sets = {"stream": Rows("generated stream", r, max(n // 20, 4 * r), path=path)}
    if size != "tiny":
        sets = {"faces": Rows("Olivetti faces", 30, 100, array=faces()), **sets}
    return sets


def write_stream(path: Path, n: int, m: int, r: int) -> None:
    """Float32 rows of 4r non-negative factors whose size decays like 1/k, and noise.

    Non-negative, so that the peers that need it can take part.
    """
    rng = np.random.default_rng(0)
    factors = np.abs(rng.standard_normal((4 * r, m), np.float32))
    factors *= rng.random(factors.shape) < 0.3
    factors /= np.arange(1, 4 * r + 1, dtype=np.float32)[:, None]
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, m))
    for start in range(0, n, 1000):
        rows = len(X[start : start + 1000])
        codes = rng.standard_exponential((rows, 4 * r), np.float32)
        noise = np.abs(rng.standard_normal((rows, m), np.float32))
        X[start : start + rows] = codes @ factors + np.float32(0.02) * noise
    X.flush()


def faces() -> np.ndarray:
    """The Olivetti faces, (400, 4096), float32 between 0 and 1."""
    from sklearn.datasets import fetch_olivetti_faces

    if "SCIKIT_LEARN_DATA" not in os.environ and (SHARED / "scikit_learn_data").is_dir():
        os.environ["SCIKIT_LEARN_DATA"] = str(SHARED / "scikit_learn_data")
    try:
        return fetch_olivetti_faces().data
    except OSError as error:
        raise AbsentError(f"the Olivetti faces could not be fetched ({error})") from error


# -- panels with holes ------------------------------------------------------------------------


def blocks(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """In each face adjacent columns of pixels, a quarter (16), at a random place: the paper's."""
    side = round(shape[1] ** 0.5)
    wide = side // 4
    hidden = np.zeros((shape[0], side, side), bool)
    for face, start in zip(hidden, rng.integers(0, side - wide + 1, shape[0]), strict=True):
        face[:, start : start + wide] = True
    return hidden.reshape(shape)


def pixels(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """A quarter of all entries, at random."""
    return rng.random(shape) < 0.25


def spans(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """In each row adjacent features, a quarter of them, at a random place."""
    wide = max(1, shape[1] // 4)
    first = rng.integers(0, shape[1] - wide + 1, (shape[0], 1))
    at = np.arange(shape[1])
    return (first <= at) & (at < first + wide)


def ratings(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """A tenth of all entries, at random."""
    return rng.random(shape) < 0.1


def runs(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """In each series runs of 20 steps, a tenth of it in all."""
    hidden = np.zeros(shape, bool)
    for series in hidden.T:
        while series.mean() < 0.1:
            start = rng.integers(shape[0] - 19)
            series[start : start + 20] = True
    return hidden


PATTERNS = {"blocks": blocks, "pixels": pixels, "points": pixels, "spans": spans, "runs": runs,
            "ratings": ratings}  # fmt: skip
HOLES = ("faces, blocks", "faces, pixels", "Beijing air", "METR-LA traffic")


def with_holes(name: str, size: str, seed: int = JUDGED) -> Holes:
    """One of the panels by its name in HOLES, or of "tiny"; the seed says what is hidden."""
    if size == "tiny":
        rng = np.random.default_rng(0)
        X = np.cumsum(rng.standard_normal((150, 3)), axis=0) @ rng.standard_normal((3, 24))
        return standardised("tiny", X, "runs", seed, in_time=True)
    if name.startswith("faces"):
        pattern = name.split()[1]
        truth = faces()
        if size == "quick":  # every fourth pixel, each way
            truth = np.ascontiguousarray(truth.reshape(400, 64, 64)[:, ::4, ::4].reshape(400, -1))
        hidden = PATTERNS[pattern](truth.shape, np.random.default_rng(seed))
        return Holes(name, np.where(hidden, np.nan, truth), truth, hidden, pattern)
    if name.startswith("Beijing"):
        X = _shared("beijing_air.npz", "x").reshape(35064, -1)
        X = X[:1500] if size == "quick" else X
    else:
        X = _shared("metr_la_week.npz", "speed")
        X = X[:1000] if size == "quick" else X
    return standardised(name, X, "runs", seed, in_time=True)


def standardised(name: str, X: np.ndarray, pattern: str, seed: int, in_time: bool = False) -> Holes:
    """A panel of which part is hidden, each column in deviations of what may be seen of it."""
    hidden = PATTERNS[pattern](X.shape, np.random.default_rng(seed)) & ~np.isnan(X)
    seen = np.where(hidden, np.nan, X)
    centre, scale = np.nanmean(seen, axis=0), np.nanstd(seen, axis=0)
    truth = (X - centre) / np.where(scale > 0, scale, 1)
    return Holes(name, np.where(hidden, np.nan, truth), truth, hidden, pattern, in_time)


def _shared(file: str, key: str) -> np.ndarray:
    path = SHARED / "data" / file
    if not path.exists():
        raise AbsentError(f"{path.name} is not in {path.parent}")
    return np.load(path)[key]
