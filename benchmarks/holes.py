"""Panels with holes: how well hidden entries are filled, with which certainty, at what cost.

Each method chooses among its settings by hiding more of what may be seen, in a process of its own
and with a time limit; then it learns and fills. What is already among the results is not
computed again.

    python benchmarks/holes.py                      # hours; goes on where it was
    python benchmarks/holes.py --set "rank 5" --masks 1
    python benchmarks/holes.py --quick              # are the first three of each panel still so?
"""

import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from data import AbsentError, Holes
from fillers import IN_TIME, METHODS, RATINGS, Filled, methods_for, possible
from panels import PANELS, TINY, Panel
from peers import OURS, Peer
from scipy.stats import norm
from timing import cpu_seconds, limited, options, resident, say, source_digest, write

MASKS = {"tiny": 1, "quick": 1, "full": 5}
LIMIT = {"tiny": 0.2, "quick": 10.0, "full": 300.0}  # processor seconds to choose settings
PACKAGES = {
    "sklearn": "scikit-learn", "statsmodels.multivariate.pca": "statsmodels",
    "subtracking": "pysubtracking",
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """One method on one panel under one mask."""

    panel: Panel
    peer: Peer
    mask: int

    @property
    def key(self) -> dict[str, Any]:
        """What a result is known by; a method that has changed is measured again."""
        package = self.peer.package
        release = source_digest() if package == OURS else version(PACKAGES.get(package, package))
        return {"panel": self.panel.name, "method": self.peer.name, "mask": self.mask,
                "version": release}  # fmt: skip


# -- one task, in a process of its own --------------------------------------------------------


def scores(problem: Holes, filled: Filled) -> dict[str, float]:
    """RMSE on hidden entries; coverage and width of 90 % intervals and CRPS where there are any."""
    hidden, truth = problem.hidden, problem.truth[problem.hidden]
    found = {"rmse": problem.error(filled.values)}
    if filled.bounds is not None and filled.deviations is not None:
        low, high = (bound[hidden] for bound in filled.bounds())
        found["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
        found["width"] = float(np.mean(high - low))
        deviations = np.maximum(filled.deviations[hidden].astype(float), 1e-9)
        z = (truth - filled.values[hidden]) / deviations
        each = z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi)
        found["crps"] = float(np.mean(deviations * each))
    return found


def timed(function: Callable[[], Any], name: str, found: dict[str, Any]) -> Any:
    """What a function returns; its seconds, by the clock and of the processor, are noted."""
    start, start_cpu = time.perf_counter(), cpu_seconds()
    result = function()
    found[f"{name}_seconds"] = time.perf_counter() - start
    found[f"{name}_cpu"] = cpu_seconds() - start_cpu
    return result


def choose(peer: Peer, problem: Holes, limit: float) -> tuple[dict[str, Any], int]:
    """The settings with the least error on entries hidden for this, and how many were tried."""
    settings = possible(peer, problem.X.shape) or [peer.variants[0]]
    if len(settings) == 1:
        return settings[0], 1
    trial = problem.again(seed=2)
    errors: list[float] = []
    start = cpu_seconds()
    for one in settings:
        try:
            error = trial.error(peer.train(trial, **one)().values)
        except Exception:  # settings that a method cannot use
            error = math.inf
        errors.append(error if math.isfinite(error) else math.inf)
        if cpu_seconds() - start > limit:
            break
    return settings[int(np.argmin(errors))], len(errors)


def warm_up(peer: Peer, problem: Holes) -> None:
    """Fill a few rows: what is compiled or loaded, is."""
    few = slice(0, 64)
    head = replace(problem, X=problem.X[few], truth=problem.truth[few], hidden=problem.hidden[few])
    try:
        peer.train(head, **peer.variants[0])()
    except Exception:  # if more rows do not help, the task will say why
        return


def measure(task: Task, limit: float, chosen: dict[str, Any] | None) -> dict[str, Any]:
    """All that is told of one task."""
    problem = task.panel.masked(task.mask)
    found: dict[str, Any] = {}
    with limited(1):
        warm_up(task.peer, problem)
        before = resident(peak=False)
        if chosen is None:
            chosen, tried = timed(lambda: choose(task.peer, problem, limit), "choosing", found)
            found["tried"] = [tried, len(possible(task.peer, problem.X.shape))]
        fill = timed(lambda: task.peer.train(problem, **chosen), "learning", found)
        filled = timed(fill, "filling", found)
        found["memory"] = resident(peak=True) - before
    found |= {"chosen": chosen, **scores(problem, filled)}
    if not math.isfinite(found["rmse"]):
        return {"reason": "it filled in what is not finite"}
    return found


def apart(limit: float, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """What a function returns in a process of its own, or the reason why it does not."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        try:
            sender.send(function(*arguments))
        except Exception as error:  # a method may fail in any way: say how
            sender.send({"reason": f"{type(error).__name__}: {error}"[:200]})

    process = context.Process(target=run)
    process.start()
    sender.close()
    try:
        if receiver.poll(limit):
            return receiver.recv()
        return {"reason": f"did not end within {limit:g} s"}
    except EOFError:
        return {"reason": "it died"}
    finally:
        process.kill()
        process.join()


# -- all of them ------------------------------------------------------------------------------


def about(panel: Panel) -> dict[str, Any]:
    """What the page says of a panel, and by what methods are chosen."""
    try:
        problem = panel.masked(0)
    except AbsentError as reason:
        return {"reason": str(reason)}
    n, m = problem.X.shape
    return {"name": panel.name, "origin": panel.origin, "large": panel.large, "n": n, "m": m,
            "pattern": problem.pattern, "in_time": problem.in_time,
            "observed": float(np.mean(~np.isnan(problem.X)))}  # fmt: skip


def tasks(panels: dict[str, Panel], told: list[dict[str, Any]], masks: int) -> Iterator[Task]:
    """Mask by mask, so that whoever stops early has all methods under fewer masks."""
    for mask in range(masks):
        for one in told:
            if one["name"] in panels and not (one["large"] and mask):
                yield from (Task(panels[one["name"]], peer, mask) for peer in methods_for(one))


def stored(out: Path) -> dict[str, Any]:
    """What was found before."""
    return json.loads(out.read_text()) if out.exists() else {"panels": [], "results": []}


def found_of(results: list[dict[str, Any]], key: dict[str, Any]) -> dict[str, Any] | None:
    """The result that has this key."""
    return next((r for r in results if all(r.get(k) == v for k, v in key.items())), None)


def run(chosen: Any, panels: dict[str, Panel], masks: int, limit: float) -> None:
    """Measure what is not among the results yet; write after each task."""
    before = stored(chosen.out)
    results: list[dict[str, Any]] = before["results"]
    told = {one["name"]: one for one in before["panels"]}
    absent = {}
    for name, panel in panels.items():
        if name not in told:
            one = apart(limit + 60, about, panel)
            if "reason" in one:
                absent[name] = one["reason"]
            else:
                told[name] = one
    order = [panel.name for panel in (*PANELS, *TINY)]
    known = sorted(told.values(), key=lambda one: order.index(one["name"]))
    waiting, not_installed = [], {}
    for task in tasks(panels, known, masks):
        if reason := task.peer.missing():
            not_installed[task.peer.name] = reason
        elif found_of(results, task.key) is None:
            waiting.append(task)

    def save() -> None:
        write(chosen.out, chosen, {
            "panels": known, "absent": absent, "not_installed": not_installed,
            "methods": [peer.about() for peer in (*METHODS, *IN_TIME, *RATINGS)],
            "results": results,
        })  # fmt: skip

    for number, task in enumerate(waiting):
        say(f"{len(waiting) - number} left: {task.panel.name}, mask {task.mask}, {task.peer.name}")
        found = once(task, results, limit)
        same = {name: value for name, value in task.key.items() if name != "version"}
        old = found_of(results, same)
        results = [*(result for result in results if result is not old), {**task.key, **found}]
        save()
    save()


def once(task: Task, results: list[dict[str, Any]], limit: float) -> dict[str, Any]:
    """One task; what was chosen, or failed, under the first mask holds for the others."""
    first = found_of(results, {**task.key, "mask": 0}) or {}
    if "reason" in first:
        return {"reason": first["reason"]}
    return apart(4 * limit + 60, measure, task, limit, first.get("chosen"))


# -- the quick check --------------------------------------------------------------------------


def check(chosen: Any, panels: dict[str, Panel]) -> None:
    """Measure the first three of each panel again, with the settings that were chosen.

    Only methods that took less than the quick limit: it tells whether the page can be believed,
    in minutes.
    """
    before = stored(chosen.out)
    same = total = 0
    for one in before["panels"]:
        mine = [r for r in before["results"] if r["panel"] == one["name"] and r["mask"] == 0]
        firsts = sorted((r for r in mine if "rmse" in r), key=lambda r: r["rmse"])[:3]
        firsts = [r for r in firsts if r["learning_seconds"] < LIMIT["quick"]]
        if one["large"] or one["name"] not in panels or not firsts:
            continue
        peers = {peer.name: peer for peer in methods_for(one)}
        each = [Task(panels[one["name"]], peers[old["method"]], 0) for old in firsts]
        with ThreadPoolExecutor(2) as pool:  # no time is told
            found = pool.map(
                lambda task, old: apart(5 * LIMIT["quick"], measure, task, 0.0, old["chosen"]),
                each, firsts,
            )  # fmt: skip
            again = {
                old["method"]: new.get("rmse", math.inf)
                for old, new in zip(firsts, found, strict=True)
            }
        order = sorted(again, key=lambda name: again[name])
        agrees = order == [old["method"] for old in firsts]
        same, total = same + agrees, total + 1
        numbers = ", ".join(f"{name} {again[name]:.4f}" for name in order)
        print(f"{'same ' if agrees else 'OTHER'} order, {one['name']}: {numbers}", flush=True)
    print(f"the order of the first three is the same on {same} of {total} panels")


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "holes", argv, "set", "masks", "limit")
    everything = TINY if chosen.size == "tiny" else PANELS
    panels = {p.name: p for p in everything if chosen.set in (None, p.name)}
    if chosen.size == "quick":
        check(chosen, panels)
        return
    masks = int(chosen.masks or MASKS[chosen.size])
    run(chosen, panels, masks, float(chosen.limit or LIMIT[chosen.size]))


if __name__ == "__main__":
    main()
