"""Rows with holes: RMSE on entries that were hidden, against seconds of learning and filling.

Settings are chosen, for all alike and outside the clock, by hiding more of what may be seen.

    python benchmarks/holes.py              # some minutes
    python benchmarks/holes.py --quick
    python benchmarks/holes.py --set "faces, pixels" --out one.json
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from data import HOLES, AbsentError, Holes, with_holes
from figures import Panel, draw
from fillers import contestants
from peers import OURS, Peer
from timing import Curve, Point, child, limited, options, race, reached, say, spread, write

# Seconds: of a race, of all trials of settings, of a peer in all repeats; repeats; of a slow peer.
BUDGETS = {
    "tiny": (0.05, 0.05, 0.05, 2, 60.0),
    "quick": (0.3, 0.3, 0.3, 2, 4.0),
    "full": (3.0, 1.5, 1.5, 3, 300.0),
}
SLOW_AT_A_TIME = 2


def judge_of(problem: Holes) -> Callable[[Any], tuple[float, float]]:
    def judge(snapshot: Callable[[], np.ndarray]) -> tuple[float, float]:
        start = time.perf_counter()
        filled = snapshot()
        extra = time.perf_counter() - start
        return problem.error(filled), extra

    return judge


class Contest(NamedTuple):
    """A panel, who takes part, and what was found of each."""

    problem: Holes
    peers: tuple[Peer, ...]
    found: dict[str, dict[str, Any]]


class Choice(NamedTuple):
    """The settings of a peer, when it stops, and how many settings were tried."""

    settings: dict[str, Any]
    steps: int
    tried: int


def choose(peer: Peer, problem: Holes, size: str, threads: int) -> Choice:
    """Settings and steps with the least error on entries hidden for this.

    First all settings, with a share of the budget for each and one snapshot at least; then the
    two best of them as long as in the race, if more time can change anything.
    """
    if len(peer.variants) == 1 and (peer.apart or not peer.learns):
        return Choice(peer.variants[0], 1, 1)
    limit, budget = BUDGETS[size][:2]
    trial = problem.again(seed=2)
    started = time.perf_counter()
    best: dict[int, Point] = {}
    unfinished = set()

    def try_out(number: int, limit: float) -> None:
        steps = peer.train(trial, threads, **peer.variants[number])
        curve = race(steps, judge_of(trial), limit)
        finite = [point for point in curve if math.isfinite(point.score)]
        best[number] = min(finite, key=lambda p: p.score, default=Point(0.0, math.inf, 1))
        if next(steps, None) is not None:
            unfinished.add(number)

    for number in range(len(peer.variants)):
        try_out(number, budget / len(peer.variants))
        if time.perf_counter() - started > 3 * budget:
            break
    tried = len(best)
    if tried > 1:
        for number in unfinished.intersection(sorted(best, key=lambda n: best[n].score)[:2]):
            try_out(number, limit)
    chosen = min(best, key=lambda n: best[n].score)
    return Choice(peer.variants[chosen], best[chosen].steps, tried)


def compete(peer: Peer, problem: Holes, size: str, threads: int) -> dict[str, Any]:
    """One race of one peer, its settings chosen before."""
    limit = BUDGETS[size][0]
    try:
        choice = choose(peer, problem, size, threads)
        return {**choice._asdict(), "curves": [run(peer, problem, choice, limit, threads)]}
    except Exception as error:  # a peer may fail in any way: say how
        return {"reason": f"{type(error).__name__}: {error}"[:200]}


def run(peer: Peer, problem: Holes, choice: Choice, limit: float, threads: int) -> Curve:
    """One race with the settings and the number of steps that were chosen."""
    steps = peer.train(problem, threads, **choice.settings)
    return race(steps, judge_of(problem), limit, most=choice.steps)


def contest(peers: list[Peer], problem: Holes, size: str, threads: int) -> dict[str, dict]:
    """All peers in turn, again and again; those that took long, less often."""
    limit, _, budget, repeats, _ = BUDGETS[size]
    found = {}
    for peer in peers:
        start = time.perf_counter()
        found[peer.name] = compete(peer, problem, size, threads)
        say(f"{problem.name}: {peer.name}, {time.perf_counter() - start:.0f} s")
    for _ in range(1, repeats):
        for peer in peers:
            mine = found[peer.name]
            spent = sum(curve[-1].seconds for curve in mine.get("curves", ()))
            if "reason" in mine or spent >= budget:
                continue
            choice = Choice(mine["settings"], mine["steps"], mine["tried"])
            mine["curves"].append(run(peer, problem, choice, limit, threads))
    return found


def slow_contest(sets: list[Contest], size: str, threads: int) -> None:
    """Peers that may take minutes, each in a process with a time limit, two at a time."""
    limit = BUDGETS[size][4]

    def one(pair: tuple[Contest, Peer]) -> None:
        contest, peer = pair
        words = ["--peer", peer.name, "--set", contest.problem.name, "--threads", str(threads)]
        words += [] if size == "full" else [f"--{size}"]
        contest.found[peer.name] = child(__file__, words, limit)
        say(f"{contest.problem.name}: {peer.name}")

    waiting = [(c, p) for c in sets for p in c.peers if p.apart and p.name not in c.found]
    waiting.sort(key=lambda pair: max(pair[0].problem.X.shape), reverse=True)  # the longest first
    with ThreadPoolExecutor(SLOW_AT_A_TIME) as pool:
        list(pool.map(one, waiting))


def result(peer: Peer, found: dict[str, Any], ours: list[list[Curve]]) -> dict[str, Any]:
    """What the page needs: the error where it stopped, when, and when omfb was as good."""
    if "reason" in found:
        return {**peer.about(), "reason": found["reason"]}
    curves = [[Point(*point) for point in curve] for curve in found["curves"]]
    error = float(np.median([curve[-1].score for curve in curves]))
    # "As good" is within one in a thousand: the last digits take for ever and tell nothing.
    taken = [reached(curve, 1.001 * curve[-1].score) for curve in curves]
    return {
        **peer.about(),
        "chosen": found["settings"],
        "tried": [found["tried"], len(peer.variants)],
        "rmse": error,
        "seconds": spread(taken),
        "ours": soonest([spread([reached(c, 1.001 * error) for c in curves]) for curves in ours]),
        "curve": [point[:2] for point in curves[-1] if math.isfinite(point.score)],
    }


def soonest(times: list[dict[str, Any]]) -> dict[str, Any]:
    """Of omfb with nothing set, with chosen settings and with r components, the soonest."""
    return min(times, key=lambda t: math.inf if t["median"] is None else t["median"])


def raced(name: str, chosen: Any) -> Contest:
    """All peers but the slow ones, on one panel."""
    problem = with_holes(name, chosen.size)
    peers = contestants(problem)
    found = {peer.name: {"reason": why} for peer in peers if (why := peer.missing())}
    here = [peer for peer in peers if peer.name not in found]
    warm_up(here, problem, chosen.threads)
    with limited(chosen.threads):
        fast = [peer for peer in here if not peer.apart]
        found |= contest(fast, problem, chosen.size, chosen.threads)
    return Contest(problem, peers, found)


def told(contest: Contest) -> dict[str, Any]:
    """A panel and its peers, as the page reads them."""
    problem, peers, found = contest
    ours = [found[p.name].get("curves", []) for p in peers if p.name.startswith(OURS)]
    n, m = problem.X.shape
    return {
        "name": problem.name, "n": n, "m": m, "r": problem.n_components,
        "observed": float(np.mean(~np.isnan(problem.X))),
        "hidden": float(np.mean(problem.hidden)),
        "variance": float(np.nanvar(problem.truth)),
        "in_time": problem.in_time,
        "peers": [result(peer, found[peer.name], ours) for peer in peers],
    }  # fmt: skip


def warm_up(peers: list[Peer], problem: Holes, threads: int) -> None:
    """Let every peer that is raced here fill a few rows: what is compiled or loaded, is."""
    head = slice(0, 4 * problem.n_components)
    small = Holes("warm-up", problem.X[head], problem.truth[head], problem.hidden[head],
                  problem.pattern, problem.n_components // 2, problem.in_time)  # fmt: skip
    for peer in peers:
        if peer.apart:
            continue
        for settings in (peer.variants[0], peer.variants[-1]):
            try:
                with limited(threads):
                    next(peer.train(small, threads, **settings))()
            except Exception:  # the race will say why
                continue


def panel(found: dict[str, Any]) -> Panel:
    lines = {
        peer["name"]: tuple(zip(*peer["curve"], strict=True))
        for peer in found["peers"]
        if peer.get("curve")
    }
    worst = next(p["rmse"] for p in found["peers"] if p["name"] == "mean")
    return Panel(
        f"{found['name']}, {found['n']} × {found['m']}", "seconds of learning and filling",
        "RMSE on hidden entries", lines, log_y=False, top=1.25 * worst,
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "holes", argv, "peer", "set")
    if chosen.peer:
        problem = with_holes(chosen.set, chosen.size)
        peer = next(peer for peer in contestants(problem) if peer.name == chosen.peer)
        peer.missing()
        with limited(chosen.threads):
            print(json.dumps(compete(peer, problem, chosen.size, chosen.threads)))
        return
    names = {"tiny": HOLES[:1], "quick": HOLES[:3:2], "full": HOLES}[chosen.size]
    names = (chosen.set,) if chosen.set else names
    contests, absent = [], []
    for name in names:
        try:
            contests.append(raced(name, chosen))
        except AbsentError as reason:
            absent.append({"name": name, "reason": str(reason)})
    slow_contest(contests, chosen.size, chosen.threads)
    found = [told(contest) for contest in contests] + absent
    write(chosen.out, chosen, {"sets": found, "slow": BUDGETS[chosen.size][4]})
    shown = [panel(one) for one in found if "peers" in one]
    if shown:
        draw(chosen.out.with_suffix(".svg"), shown)


if __name__ == "__main__":
    main()
