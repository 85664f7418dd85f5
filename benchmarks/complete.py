"""Complete rows: seconds until the learned subspace is nearly as good as the SVD's.

The error is the same for all, and outside the clock: ‖X − X Q Qᵀ‖ with Q an orthonormal basis of
what was learned, divided by that of the best subspace, which the SVD gives.

    python benchmarks/complete.py           # some minutes
    python benchmarks/complete.py --quick
"""

import json
import math
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from data import AbsentError, Rows, complete_sets
from figures import Panel, draw
from peers import COMPLETE, OURS, Peer
from scipy.sparse.linalg import eigsh
from timing import (
    Curve,
    Judge,
    Snapshot,
    child,
    limited,
    measured,
    options,
    race,
    reached,
    replay,
    resident,
    say,
    spread,
    write,
)

TARGETS = (0.05, 0.01, 0.005)  # above the optimum
# Seconds for one race, seconds for one peer on one set in all repeats, repeats at most.
BUDGETS = {"tiny": (0.05, 0.05, 2), "quick": (0.4, 0.5, 2), "full": (4.0, 4.0, 5)}


def judge_of(data: Rows) -> Judge:
    """A judge: how far the span of components is above the best possible error, 0 is best."""
    X = data.mapped()
    n, m = X.shape
    if n <= m:
        kept = np.array(X, dtype=float)  # ‖X Q‖² from X
        energy = float(np.sum(kept**2))
        best = eigsh(kept @ kept.T, data.n_components, return_eigenvectors=False).sum()
    else:
        kept = np.zeros((m, m))  # ‖X Q‖² = tr(Qᵀ XᵀX Q)
        for start in range(0, n, 1000):
            rows = np.array(X[start : start + 1000], dtype=float)
            kept += rows.T @ rows
        energy = float(np.trace(kept))
        best = eigsh(kept, data.n_components, return_eigenvectors=False).sum()

    def judge(snapshot: Snapshot) -> float:
        Q = np.linalg.qr(np.asarray(snapshot(), dtype=float).T)[0]
        captured = np.sum((kept @ Q) ** 2) if n <= m else np.sum(Q * (kept @ Q))
        return float(np.sqrt(max(energy - captured, 0) / (energy - best)) - 1)

    return judge


def contest(peers: list[Peer], data: Rows, size: str, threads: int) -> list[dict[str, Any]]:
    """Race all peers in turn, again and again; those that took long, less often."""
    limit, budget, repeats = BUDGETS[size]
    with limited(os.cpu_count() or 1):
        judge = judge_of(data)
    curves: dict[str, dict[int, list[Curve]]] = {peer.name: {} for peer in peers}
    spent = dict.fromkeys(curves, 0.0)
    reasons: dict[str, str] = {}
    for turn in range(repeats):
        say(f"{data.name}: turn {turn + 1} of {repeats}")
        for peer in peers:
            if peer.name in reasons or (turn and spent[peer.name] >= budget):
                continue
            mine = curves[peer.name]
            raced = best_variants(mine) if turn else range(len(peer.variants))
            for variant in raced:
                settings = peer.variants[variant]
                try:
                    if not turn:
                        next(peer.train(data.head(), threads, **settings))
                    steps = peer.train(data, threads, **settings)
                    first = mine.get(variant, [None])[0]
                    curve = (
                        replay(steps, first) if first else race(steps, judge, limit, TARGETS[-1])
                    )
                except Exception as error:  # a peer may fail in any way: say how
                    reasons[peer.name] = f"{type(error).__name__}: {error}"
                    break
                mine.setdefault(variant, []).append(curve)
                spent[peer.name] += curve[-1].seconds / len(raced) if curve else 0.0
    return [result(peer, curves[peer.name], reasons.get(peer.name)) for peer in peers]


def best_variants(curves: dict[int, list[Curve]]) -> list[int]:
    """The variants that are first to some target, or, where none is reached, come nearest."""
    return sorted({best_variant(curves, target) for target in TARGETS})


def best_variant(curves: dict[int, list[Curve]], target: float) -> int:
    return min(
        curves,
        key=lambda v: (reached(curves[v][0], target), min(p.score for p in curves[v][0])),
    )


def result(peer: Peer, curves: dict[int, list[Curve]], reason: str | None) -> dict[str, Any]:
    if reason is not None or not curves:
        return {**peer.about(), "reason": reason or "no result"}
    times = {}
    for target in TARGETS:
        variant = best_variant(curves, target)
        # The first turn, with a judge in between, gives the scores; the others the times.
        timed = curves[variant][1:] or curves[variant]
        taken = spread([reached(curve, target) for curve in timed])
        times[f"{100 * target:g} %"] = {**taken, "variant": peer.variants[variant]}
    shown = best_variants(curves)
    front = sorted(point for variant in shown for point in curves[variant][-1])
    return {
        **peer.about(),
        "times": times,
        "least": min(point.score for point in front),
        "seconds": front[-1].seconds,
        "curve": lower_envelope(front),
        "variant": shown[-1],
    }


def lower_envelope(points: Curve) -> list[list[float]]:
    """What was reached by each time, over all variants."""
    best, kept = math.inf, []
    for point in points:
        if point.score < best and math.isfinite(point.score):
            best = point.score
            kept.append([point.seconds, point.score])
    return kept


def alone(name: str, data: Rows, variant: int, limit: float, threads: int) -> dict[str, float]:
    """In a process of its own: the first call, cold, and the peak memory above the imports."""
    peer = next(peer for peer in COMPLETE if peer.name == name)
    head, settings = data.head(), peer.variants[variant]
    start = time.perf_counter()
    peer.missing()
    with limited(threads):
        next(peer.train(head, threads, **settings))
        cold = time.perf_counter() - start
        before = resident(peak=False)
        steps = peer.train(data, threads, **settings)
        started = time.perf_counter()
        while time.perf_counter() - started < limit and next(steps, None) is not None:
            pass
    return {"cold": cold, "memory": resident(peak=True) - before}


def measure(data: Rows, key: str, folder: str, chosen: Any) -> dict[str, Any]:
    """All contestants on one set."""
    out, here = [], []
    for peer in COMPLETE:
        reason = peer.missing()
        if reason is None:
            here.append(peer)
        else:
            out.append({**peer.about(), "reason": reason})
    with limited(chosen.threads):
        results = contest(here, data, chosen.size, chosen.threads)

    def add_alone(entry: dict[str, Any]) -> None:
        size = [] if chosen.size == "full" else [f"--{chosen.size}"]
        given = {"peer": entry["name"], "set": key, "folder": folder,
                 "variant": entry["variant"], "threads": chosen.threads}  # fmt: skip
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        entry.update(child(__file__, [*words, *size], timeout=120))

    with ThreadPoolExecutor(2) as pool:
        apart = [e for e in results if "times" in e and measured_alone(chosen.size, key, e["name"])]
        list(pool.map(add_alone, apart))
    n, m = data.mapped().shape
    return {"name": data.name, "n": n, "m": m, "r": data.n_components, "peers": results + out}


def measured_alone(size: str, key: str, name: str) -> bool:
    """A process for each peer and set takes its time: fewer of them at small sizes."""
    some = (OURS, "IncrementalPCA", "TruncatedSVD") if size == "quick" else (OURS,)
    return size == "full" or (key == "stream" and name in some)


def panel(found: dict[str, Any]) -> Panel:
    lines = {
        peer["name"]: tuple(zip(*peer["curve"], strict=True))
        for peer in found["peers"]
        if peer.get("curve")
    }
    return Panel(
        f"{found['name']}, {found['n']} × {found['m']}, r = {found['r']}",
        "seconds of learning",
        "error above the SVD's, share of it",
        {name: (xs, [max(y, 1e-3) for y in ys]) for name, (xs, ys) in lines.items()},
        levels={f"{100 * target:g} %": target for target in TARGETS},
    )


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "complete", argv, "peer", "set", "folder", "variant")
    with tempfile.TemporaryDirectory() as own:
        folder = chosen.folder or own
        if chosen.peer:
            data = complete_sets(chosen.size, Path(folder))[chosen.set]
            limit = BUDGETS[chosen.size][0] / 2
            found = alone(chosen.peer, data, int(chosen.variant), limit, chosen.threads)
            print(json.dumps(found))
            return
        if measured(chosen):
            return
        try:
            sets = complete_sets(chosen.size, Path(folder))
        except AbsentError as absent:
            write(chosen.out, chosen, {"sets": [], "reason": str(absent)})
            return
        found = [measure(data, key, folder, chosen) for key, data in sets.items()]
    write(chosen.out, chosen, {"sets": found, "targets": [f"{100 * t:g} %" for t in TARGETS]})
    draw(chosen.out.with_suffix(".svg"), [panel(one) for one in found])


if __name__ == "__main__":
    main()
