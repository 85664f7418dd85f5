"""Drift: how soon changes are noticed, false alarms, and errors with forget_factor="auto".

Changes of subspace, mean and noise, abrupt, gradual (over 200 rows) or recurring (every 1000 rows),
with 0, 20 and 50 % of the entries missing. A delay counts from the row at which the change has
reached twice the noise. Errors are of entries that were hidden from the rows to be filled, beside
those of the best fixed forget factor of each phase.

    python benchmarks/drift_detection.py
    python benchmarks/drift_detection.py --quick
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from timing import Row, environment, limited, options, report

from omfb import OMFBImputer

SEEDS = {"tiny": 1, "quick": 3, "full": 10}
# Rows of a stationary stream on which false alarms are counted.
STILL = {"tiny": 1000, "quick": 20_000, "full": 20_000}
FACTORS = (0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
MISSING = (0.0, 0.2, 0.5)
KINDS = ("subspace", "mean", "noise")
SHAPES = ("abrupt", "gradual", "recurring")
M, R, NOISE, PHASE, RAMP, BLOCK = 20, 3, 0.5, 1000, 200, 10


class Stream(NamedTuple):
    """Rows as they are seen, without noise, and how far the change has gone at each of them."""

    seen: np.ndarray
    signal: np.ndarray
    change: np.ndarray


def stream(kind: str, shape: str, missing: float, seed: int, phases: int = 2) -> Stream:
    """Phases of rows; from the second on, the model of the rows changes."""
    rng = np.random.default_rng([seed, KINDS.index(kind), SHAPES.index(shape)])
    n = phases * PHASE
    t = np.arange(n)
    if shape == "gradual":
        change = np.clip((t - PHASE) / RAMP, 0.0, 1.0)
    else:
        change = (t // PHASE % 2).astype(float)
    A, B = rng.standard_normal((2, R, M))
    mean = 2.5 * NOISE * rng.choice([-1.0, 1.0], M)
    X = rng.standard_normal((n, R))
    part = change[:, None]
    signal = X @ A
    if kind == "subspace":
        signal = (1.0 - part) * (X @ A) + part * (X @ B)
    if kind == "mean":
        signal = signal + part * mean
    noise = NOISE * (1.0 + 1.5 * part if kind == "noise" else np.ones((n, 1)))
    seen = signal + noise * rng.standard_normal((n, M))
    seen[rng.random(seen.shape) < missing] = np.nan
    return Stream(seen, signal, change)


def noticed(kind: str) -> float:
    """How far a change must have gone to be above twice the noise."""
    if kind == "subspace":  # the root mean square of X (B − A) is √(2 R)
        return 2.0 * NOISE / np.sqrt(2.0 * R)
    return 2.0 / 2.5 if kind == "mean" else 1.0 / 1.5


def delay(kind: str, shape: str, missing: float, seed: int) -> tuple[float, int]:
    """Rows until the change was noticed, infinite if never, and the alarms before it."""
    seen, _, change = stream(kind, shape, missing, seed)
    alarms = OMFBImputer(random_state=0).partial_fit(seen[:500])
    for row in seen[500:]:
        alarms.partial_fit(row)
    at = alarms.drift_ - 1
    after = at[at >= PHASE]
    start = int(np.argmax(change >= noticed(kind)))
    rows = max(float(after[0] - start + 1), 0.0) if len(after) else np.inf
    return rows, int((at < PHASE).sum())


def errors(factor: Any, rows: Stream, hidden: np.ndarray) -> np.ndarray:
    """Squared error of hidden entries of each block of rows, before it is learned."""
    model = OMFBImputer(random_state=0, forget_factor=factor).partial_fit(rows.seen[:BLOCK])
    found = []
    for start in range(BLOCK, len(rows.seen), BLOCK):
        here = slice(start, start + BLOCK)
        gone = hidden[here]
        filled = model.complete(np.where(gone, np.nan, rows.seen[here]))
        found.append(np.mean((filled - rows.signal[here])[gone] ** 2))
        model.partial_fit(rows.seen[here])
    return np.array(found)


def beside_the_best(kind: str, shape: str, missing: float, seeds: range) -> list[float]:
    """Error with "auto" over that of the best fixed factor, in each phase after the first."""
    phases = 4 if shape == "recurring" else 2
    total: dict[Any, np.ndarray] = {}
    for seed in seeds:
        rows = stream(kind, shape, missing, seed, phases)
        hidden = np.random.default_rng(seed).random(rows.seen.shape) < 0.25
        for factor in (*FACTORS, "auto"):
            total[factor] = total.get(factor, 0.0) + errors(factor, rows, hidden)
    ratios = []
    for phase in range(1, phases):
        part = slice(phase * PHASE // BLOCK - 1, (phase + 1) * PHASE // BLOCK - 1)
        best = min(float(total[factor][part].mean()) for factor in FACTORS)
        ratios.append(float(np.sqrt(total["auto"][part].mean() / best)))
    return ratios


def still(missing: float, seed: int, n: int) -> tuple[int, float]:
    """False alarms of a stationary stream, and the error of "auto" over that of factor 1."""
    rng = np.random.default_rng([seed, 99])
    signal = rng.standard_normal((n, R)) @ rng.standard_normal((R, M))
    seen = signal + NOISE * rng.standard_normal(signal.shape)
    seen[rng.random(seen.shape) < missing] = np.nan
    rows, hidden = Stream(seen, signal, np.zeros(n)), rng.random(seen.shape) < 0.25
    alarms = OMFBImputer(random_state=0)
    for start in range(0, n, 100):
        alarms.partial_fit(seen[start : start + 100])
    ratio = np.sqrt(errors("auto", rows, hidden).mean() / errors(1.0, rows, hidden).mean())
    return len(alarms.drift_), float(ratio)


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "drift_detection", argv)
    seeds, found = range(100, 100 + SEEDS[chosen.size]), []
    few = seeds[: max(1, len(seeds) // 3)]
    n = STILL[chosen.size]
    with limited(chosen.threads):
        for missing in MISSING:
            for kind in KINDS:
                for shape in ("abrupt", "gradual"):
                    delays, false = zip(*(delay(kind, shape, missing, s) for s in seeds),
                                        strict=True)  # fmt: skip
                    where = f"{kind}, {shape}, {missing:.0%} missing"
                    most = float(min(np.max(delays), 1e9))
                    found.append(Row("rows until noticed, median", where, float(np.median(delays))))
                    found.append(Row("rows until noticed, at most", where, most, most=50.0))
                    found.append(Row("false alarms before", where, float(sum(false)), most=0.0))
                for shape in SHAPES:
                    ratio = max(beside_the_best(kind, shape, missing, few))
                    where = f"{kind}, {shape}, {missing:.0%} missing"
                    found.append(Row('"auto" / best factor, worst phase', where, ratio, most=1.1))
            alarms, ratios = zip(*(still(missing, s, n) for s in few), strict=True)
            per_20000 = 20_000 * sum(alarms) / (n * len(few))
            where = f"stationary, {missing:.0%} missing"
            found.append(Row("false alarms in 20,000 rows", where, per_20000, most=1.0))
            found.append(Row('"auto" / factor 1', where, float(np.mean(ratios)), most=1.01))
    report(found, environment(chosen.threads), chosen.out)


if __name__ == "__main__":
    main()
