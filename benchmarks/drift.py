"""Drift: error over time on a stream whose subspace stands still, turns and jumps.

A row's error is the share of its noiseless signal outside the span of what was learned from the
rows before it. Step sizes are chosen on another stream of the same kind.

    python benchmarks/drift.py
    python benchmarks/drift.py --quick
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from figures import Panel, draw
from peers import tracker
from timing import limited, measured, options, write

FORGET_FACTORS = (0.0, 0.8, 0.9, 0.99, 0.999, 1.0)
# Features, rank, rows of each phase, rows between two looks at the error.
SIZES = {"tiny": (20, 2, 50, 25), "quick": (40, 4, 400, 25), "full": (100, 5, 2000, 50)}
# Angle by which each direction of the subspace turns in a row, and whether it jumps at the start.
PHASES = {
    "still": (0.0, False),
    "turns slowly": (5e-4, False),
    "after a jump": (0.0, True),
    "turns fast": (1e-2, False),
}
NOISE = 0.1

Learner = Callable[[np.ndarray], np.ndarray]  # learns from rows, returns components


def stream(size: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noiseless rows, and the rows that are seen."""
    m, r, length, _ = SIZES[size]
    rng = np.random.default_rng(seed)
    signal = np.empty((length * len(PHASES), m))
    frame = np.linalg.qr(rng.standard_normal((m, 2 * r)))[0]
    for phase, (angle, jumps) in enumerate(PHASES.values()):
        if jumps:
            frame = np.linalg.qr(rng.standard_normal((m, 2 * r)))[0]
        here, there = frame[:, :r], frame[:, r:]
        for t in range(length):
            U = np.cos(angle * t) * here + np.sin(angle * t) * there
            signal[phase * length + t] = U @ rng.standard_normal(r)
        frame = np.linalg.qr(np.hstack([U, rng.standard_normal((m, r))]))[0]
    return signal, signal + NOISE * np.sqrt(r / m) * rng.standard_normal(signal.shape)


def ours(size: str, estimator: str, forget_factor: float) -> Learner:
    import omfb

    make = getattr(omfb, estimator)
    model = make(SIZES[size][1], forget_factor=forget_factor, random_state=0)
    return lambda rows: model.partial_fit(rows).components_


def incremental_pca(size: str) -> Learner:
    from sklearn.decomposition import IncrementalPCA

    model = IncrementalPCA(SIZES[size][1])
    return lambda rows: model.partial_fit(rows).components_


def tracking(size: str, name: str, **settings: float) -> Learner:
    m, r = SIZES[size][:2]
    model = tracker(name, m, r, **settings)
    seen = np.ones(m, bool)

    def learn(rows: np.ndarray) -> np.ndarray:
        for row in rows:
            model.consume(row[:, None], seen)
        return model.U.T

    return learn


CANDIDATES: dict[str, list[tuple[Callable[..., Learner], dict[str, Any]]]] = {
    **{
        f"omfb, {estimator}(forget_factor={factor:g})": [
            (ours, {"estimator": estimator, "forget_factor": factor})
        ]
        for estimator in ("OnlineFactorAnalysis", "OMFB")
        for factor in FORGET_FACTORS
        if factor > 0.0 or estimator == "OMFB"
    },
    "IncrementalPCA": [(incremental_pca, {})],
    "GROUSE": [(tracking, {"name": "Grouse", "step": s}) for s in (0.03, 0.1, 0.3)],
    "PETRELS": [(tracking, {"name": "Petrels", "forgetting": f}) for f in (0.98, 0.999)],
}


def follow(learn: Learner, signal: np.ndarray, seen: np.ndarray, every: int) -> dict[str, Any]:
    """The error of each stretch of rows before it is learned from, and seconds for a row."""
    errors, seconds = [], 0.0
    components = np.zeros((1, signal.shape[1]))
    for start in range(0, len(seen), every):
        now = slice(start, start + every)
        Q = np.linalg.qr(np.asarray(components, dtype=float).T)[0]
        outside = signal[now] - (signal[now] @ Q) @ Q.T
        errors.append(float(np.linalg.norm(outside) / np.linalg.norm(signal[now])))
        begin = time.process_time()
        components = learn(seen[now])
        seconds += time.process_time() - begin
    return {"errors": errors, "microseconds": 1e6 * seconds / len(seen)}


def compete(name: str, size: str) -> dict[str, Any]:
    """The candidate that is best on another stream, on this one."""
    every = SIZES[size][3]
    trial, judged = stream(size, seed=1), stream(size, seed=2)
    tried, reason = [], ""
    for number, (make, settings) in enumerate(CANDIDATES[name]):
        try:
            error = np.mean(follow(make(size, **settings), *trial, every)["errors"])
            tried.append((error, number))
        except Exception as failure:  # not installed, or failed: say how
            reason = f"{type(failure).__name__}: {failure}"
    if not tried:
        return {"reason": reason}
    make, settings = CANDIDATES[name][min(tried)[1]]
    return {"settings": settings, **follow(make(size, **settings), *judged, every)}


def by_phase(errors: list[float]) -> dict[str, float]:
    """Median error in the second half of each phase, and in the first tenth after the jump."""
    length = len(errors) // len(PHASES)
    found = {}
    for phase, name in enumerate(PHASES):
        of_phase = errors[phase * length : (phase + 1) * length]
        if PHASES[name][1]:
            found["just after a jump"] = float(np.median(of_phase[1 : max(2, length // 8)]))
        found[name] = float(np.median(of_phase[length // 2 :]))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "drift", argv)
    if measured(chosen):
        return
    m, r, length, every = SIZES[chosen.size]
    found = []
    with limited(chosen.threads):
        for name in CANDIDATES:
            entry = {"name": name, **compete(name, chosen.size)}
            if "errors" in entry:
                entry["phases"] = by_phase(entry["errors"])
            found.append(entry)
    about = {"m": m, "r": r, "length": length, "every": every, "noise": NOISE,
             "angles": {name: angle for name, (angle, _) in PHASES.items()}}  # fmt: skip
    write(chosen.out, chosen, {**about, "peers": found})
    times = np.arange(len(PHASES) * length // every) * every
    lines = {e["name"]: (times[1:], e["errors"][1:]) for e in found if "errors" in e}
    starts = [length * k for k in range(1, len(PHASES))]
    title = " | ".join(PHASES)
    draw(chosen.out.with_suffix(".svg"), [
        Panel(title, "rows seen", "share of the signal missed", lines, log_x=False, marks=starts,
              wide=True)
    ])  # fmt: skip


if __name__ == "__main__":
    main()
