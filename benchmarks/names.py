"""Names that appear over time: CPU time of a row by decile, and the error in the end.

Each row is a dict of 20 of the names that have appeared so far, in a random order; names appear
evenly over the stream. The error is of entries that were hidden from fresh rows, beside that of a
model that knew all names beforehand. A copy of each array for each new name, or work for each
feature in each row, would show in the later deciles.

    python benchmarks/names.py
    python benchmarks/names.py --quick
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np
from timing import Row, environment, limited, options, report

from omfb import OnlineFactorAnalysis

# Rows, and names in the end.
SIZES = {"tiny": (800, 400), "quick": (20_000, 10_000), "full": (200_000, 100_000)}
KEYS, FIRST, RANK, NOISE, TESTED = 20, 100, 3, 0.3, 1000

Named = dict[str, float | None]


def loadings(n_names: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(n_names, RANK))


def rows(n: int, n_names: int, seed: int, *, grows: bool = True) -> Iterator[Named]:
    """Rows by name; the names that have appeared grow in number, or are all there."""
    rng, L = np.random.default_rng(seed), loadings(n_names)
    for t in range(n):
        known = FIRST + (n_names - FIRST) * (t + 1) // n if grows else n_names
        which = rng.integers(known, size=KEYS)
        values = L[which] @ rng.normal(size=RANK) + NOISE * rng.normal(size=KEYS)
        yield {f"n{i}": v for i, v in zip(which.tolist(), values.tolist(), strict=True)}


def learned(n: int, n_names: int, *, known: bool) -> tuple[OnlineFactorAnalysis, np.ndarray]:
    """A model of the stream, and the CPU seconds of each row."""
    model = OnlineFactorAnalysis(RANK + 1, scale=True, noise="diagonal", random_state=0,
                                 new_features="add")  # fmt: skip
    names = [f"n{i}" for i in range(n_names)]
    seconds = np.empty(n)
    for t, row in enumerate(rows(n, n_names, 0)):
        if known and t == 0:  # the first row names them all
            row = {**dict.fromkeys(names), **row}
        start = time.process_time()
        model.partial_fit(row)
        seconds[t] = time.process_time() - start
    return model, seconds


def error(model: OnlineFactorAnalysis, n_names: int) -> float:
    """Root mean square error of hidden entries of fresh rows."""
    squares = []
    for row in rows(TESTED, n_names, 2, grows=False):
        hidden = {name: row.pop(name) for name in list(row)[: KEYS // 4]}
        filled = model.complete(row)
        squares += [(filled.get(name, 0.0) - value) ** 2 for name, value in hidden.items()]
    return float(np.sqrt(np.mean(squares)))


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "names", argv)
    n, n_names = SIZES[chosen.size]
    learned(500, 300, known=False)  # compiles
    found = []
    with limited(chosen.threads):
        model, seconds = learned(n, n_names, known=False)
        knowing, before = learned(n, n_names, known=True)
        where = f"{model.n_features_in_:,} names in {n:,} rows of {KEYS}"
        deciles = 1e6 * seconds.reshape(10, -1).mean(axis=1)
        for at, value in enumerate(deciles):
            found.append(Row(f"µs a row, {10 * at} to {10 * at + 10} %", where, float(value)))
        steady = float(deciles[-1] / deciles[1])
        found.append(Row("last decile / second", where, steady, most=1.25))
        found.append(Row("µs a row, all names known", where, 1e6 * float(before[n // 10 :].mean())))
        new, old = error(model, n_names), error(knowing, n_names)
        found.append(Row("error, all names known", where, old))
        found.append(Row("error / that", where, new / old, most=1.01))
    report(found, environment(chosen.threads), chosen.out)


if __name__ == "__main__":
    main()
