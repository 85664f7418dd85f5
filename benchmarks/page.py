"""RESULTS.md from the JSON of the benchmarks: every number on the page is read from there.

python benchmarks/page.py [--results DIR] [--out FILE]
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from math import log10
from pathlib import Path
from typing import Any

from peers import OURS
from timing import RESULTS

HERE = Path(__file__).resolve().parent
Result = dict[str, Any]

SIZES = {
    "full": "Full sizes.",
    "quick": "**Quick sizes: small data, few repeats. `make bench` measures the full ones.**",
    "tiny": "**Tiny sizes, of the smoke test: the numbers mean nothing.**",
}


def number(value: float | None, digits: int = 3) -> str:
    return "never" if value is None else f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def duration(taken: Result) -> str:
    """Median seconds, and the spread if there is one."""
    if taken["median"] is None:
        return "never"
    text = number(taken["median"])
    if taken["repeats"] > 1 and taken["most"] is not None:
        text += f" ({number(taken['least'], 2)} to {number(taken['most'], 2)})"
    return text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def versus(other: float | None, ours: float | None) -> str:
    """How many times faster ours is."""
    if ours is None or other is None:
        return ""
    return f" ×{other / ours:.2g}"


def settings_of(chosen: Result) -> str:
    return ", ".join(f"{name}={value}" for name, value in chosen.items()) or "defaults"


def untried(tried: int, known: int) -> str:
    """A peer so slow that not all its settings could be tried is at a disadvantage: say so."""
    return "" if tried == known else f" ({tried} of {known} settings tried: too slow)"


# -- the sections -----------------------------------------------------------------------------


def head(results: dict[str, Result]) -> Iterator[str]:
    yield "# Side by side: what was measured"
    yield ""
    yield "Written by `benchmarks/page.py` from `benchmarks/results/*.json`; no number is typed by"
    yield "hand. `benchmarks/nothing_set.py` measures the first section, `make bench` those with"
    yield "peers, `benchmarks/floor.py` and `benchmarks/files.py` those without. Sections whose"
    yield "numbers were not measured with this version are left out."
    yield ""
    for size in sorted({result["size"] for result in results.values() if "size" in result}):
        yield SIZES[size]
    machine = next(iter(results.values()))["machine"]
    yield ""
    yield "Measured with " + ", ".join(f"{name} {value}" for name, value in machine.items()) + "."
    yield ""
    yield "All have the same number of threads (threadpoolctl; Numba, SPAMS and cmfrec are told)."
    yield "Warm-up is outside the clock, and the first call in a new process, import included, is"
    yield "on its own. All take turns; numbers are medians, with least and most in brackets."
    yield "**Bold is a peer that is ahead of omfb.**"
    yield ""


def complete(result: Result) -> Iterator[str]:
    yield "## Complete rows: time to quality"
    yield ""
    yield "Seconds until ‖X − XQQᵀ‖ is within a share of the SVD's, Q a basis of what was learned."
    yield "In brackets the spread; × is how many times as long as omfb it took. The first turn,"
    yield "with a judge in between, gives the errors; later ones, if there was time, the seconds."
    yield ""
    if "reason" in result:
        yield f"Not measured: {result['reason']}."
    else:
        yield "![curves](results/complete.svg)"
    yield ""
    for found in result["sets"]:
        yield f"### {found['name']}: {found['n']} × {found['m']}, r = {found['r']}"
        yield ""
        yield from complete_table(found, result["targets"])


def complete_table(found: Result, targets: list[str]) -> Iterator[str]:
    raced = [peer for peer in found["peers"] if "times" in peer]
    ours = next((peer for peer in raced if peer["name"] == OURS), None)
    rows, ahead = [], []
    for peer in raced:
        cells = []
        for target in targets:
            mine, taken = ours["times"][target]["median"] if ours else None, peer["times"][target]
            wins = faster(taken["median"], mine) and peer is not ours
            text = duration(taken) + (versus(taken["median"], mine) if peer is not ours else "")
            cells.append(f"**{text}**" if wins else text)
            if wins:
                ahead.append((peer, f"to {target} ({settings_of(taken['variant'])})"))
        cells.append(f"{100 * peer['least']:.2f} %")
        for key in ("memory", "cold"):
            text = number(peer[key]) if key in peer else ""
            wins = ours is not None and faster(peer.get(key), ours.get(key))
            cells.append(f"**{text}**" if wins else text)
        rows.append([peer["name"], *cells])
    heads = [f"s to {target}" for target in targets]
    yield from table(["", *heads, "least", "peak MB", "cold first call, s"], rows)
    yield from explain(ahead)
    yield "Bold memory: a peer that holds less beside its components than a block of rows and its"
    yield "copies. Bold first call: a peer without compiled kernels to load."
    yield ""
    yield from absent(found)


def faster(seconds: float | None, ours: float | None) -> bool:
    return seconds is not None and (ours is None or seconds < ours)


def explain(ahead: list[tuple[Result, str]]) -> Iterator[str]:
    """Where peers are ahead, and why."""
    told: dict[str, list[str]] = {}
    why = {}
    for peer, where in ahead:
        told.setdefault(peer["name"], []).append(where)
        why[peer["name"]] = peer["strength"] or "it does less"
    for name, places in told.items():
        yield f"- **{name} is ahead {', '.join(places)}**: {why[name]}."
    if not told:
        yield "- No peer gets there sooner than omfb."
    yield ""


def absent(found: Result) -> Iterator[str]:
    for peer in found["peers"]:
        if "reason" in peer:
            yield f"- {peer['name']}: {peer['reason']}."
    yield ""


def holes(result: Result) -> Iterator[str]:
    yield "## Rows with holes: time to quality"
    yield ""
    yield "RMSE on entries that were hidden; seconds of learning and filling until it was reached"
    yield "(to one in a thousand), and those that omfb took to be as good: with nothing set, with"
    yield "the settings that were chosen or with r components, whichever was first. Settings were"
    yield "chosen, for all alike, by hiding more of what may be seen, outside the clock; those"
    yield "that were good in longer trials of that kind come first: time may not suffice for all."
    yield f"KNNImputer and IterativeImputer had {result['slow']:g} s, two at a time."
    yield ""
    yield "![curves](results/holes.svg)"
    yield ""
    for found in result["sets"]:
        if "reason" in found:
            yield f"### {found['name']}: skipped, {found['reason']}"
            yield ""
            continue
        yield f"### {found['name']}: {found['n']} × {found['m']}, r = {found['r']}, " + (
            f"{100 * found['observed']:.0f} % to be seen"
        )
        yield ""
        yield from holes_table(found)


def holes_table(found: Result) -> Iterator[str]:
    raced = [peer for peer in found["peers"] if "rmse" in peer]
    ours = next((peer for peer in raced if peer["name"] == OURS), None)
    rows, ahead = [], []
    for peer in sorted(raced, key=lambda peer: peer["rmse"]):
        own = peer["name"].startswith(OURS)
        better = not own and ours is not None and peer["rmse"] < ours["rmse"]
        quick = (
            not own
            and not better
            and peer["learns"]
            and faster(peer["seconds"]["median"], peer["ours"]["median"])
        )
        rmse, seconds = f"{peer['rmse']:.4f}", duration(peer["seconds"])
        rows.append([
            peer["name"],
            f"**{rmse}**" if better else rmse,
            *([snr(found, peer["rmse"])] if not found["in_time"] else []),
            f"**{seconds}**" if quick else seconds,
            "" if own else duration(peer["ours"])
            + (versus(peer["seconds"]["median"], peer["ours"]["median"]) if peer["learns"] else ""),
            settings_of(peer["chosen"]) + untried(*peer["tried"]),
        ])  # fmt: skip
        if better:
            ahead.append((peer, "in RMSE"))
        elif quick:
            ahead.append((peer, "in seconds to its RMSE"))
    decibel = [] if found["in_time"] else ["SNR, dB"]
    yield from table(["", "RMSE", *decibel, "s", "omfb as good after, s", "chosen"], rows)
    yield from explain(ahead)
    yield from absent(found)


def snr(found: Result, rmse: float) -> str:
    """The paper's: over all entries, of which those to be seen are kept."""
    return f"{10 * log10(found['variance'] / (found['hidden'] * rmse**2)):.2f}"


def drift(result: Result) -> Iterator[str]:
    yield "## Drift"
    yield ""
    yield f"{result['m']} features, rank {result['r']}, phases of {result['length']} rows, noise"
    yield f"of {result['noise']:g} of the signal. Share of the noiseless signal missed: median"
    yield "over the second half of a phase, and over the first rows after the jump. Bold is best."
    yield ""
    yield "![error over time](results/drift.svg)"
    yield ""
    raced = [peer for peer in result["peers"] if "phases" in peer]
    phases = list(raced[0]["phases"])
    best = {phase: min(raced, key=lambda p: p["phases"][phase])["name"] for phase in phases}
    rows = []
    for peer in raced:
        errors = peer["phases"].items()
        cells = [f"**{e:.3f}**" if best[k] == peer["name"] else f"{e:.3f}" for k, e in errors]
        rows.append([peer["name"], *cells, number(peer["microseconds"])])
    yield from table(["", *phases, "µs a row"], rows)
    yield from advice(raced, phases, result)
    yield from absent(result)


def advice(raced: list[Result], phases: list[str], result: Result) -> Iterator[str]:
    mine = [peer for peer in raced if peer["name"].startswith(OURS)]
    yield "Which memory to choose:"
    yield ""
    for phase in phases:
        first = min(mine, key=lambda p: p["phases"][phase])
        other = min((p for p in raced if p not in mine), key=lambda p: p["phases"][phase])
        angle = result["angles"].get(phase, 0)
        turning = f" ({angle:g} rad a row)" if angle else ""
        line = f"- {phase}{turning}: `{first['name'].removeprefix(f'{OURS}, ')}`"
        if other["phases"][phase] < first["phases"][phase]:
            gap = first["phases"][phase] / other["phases"][phase]
            cost = other["microseconds"] / first["microseconds"]
            line += f"; **{other['name']} is ahead** (error of omfb ×{gap:.2f}, at ×{cost:.2g} "
            line += "of omfb's time a row)"
        yield line + "."
    yield ""


def scaling(result: Result) -> Iterator[str]:
    yield "## Scaling"
    yield ""
    yield "![seconds for a row](results/scaling.svg)"
    yield ""
    for found in result["axes"]:
        fixed = [f"{k} = {found[k]}" for k in ("m", "r") if found[k]]
        slopes = []
        if found["slope"] is not None:
            slopes.append(f"seconds for a row grow like its power {found['slope']:.2f}")
        if found["memory_slope"] is not None:
            slopes.append(f"memory like its power {found['memory_slope']:.2f}")
        if found["axis"] == "threads":
            slopes.append(f"two threads are {result['speedup']:.2f} times as fast as one")
        yield f"**{found['axis']}** ({', '.join(fixed)}): {'; '.join(slopes)}."
        yield ""
        points = found["points"]
        rows = [["µs a row", *(number(1e6 * p["seconds"]["median"]) for p in points)]]
        if any("memory" in p for p in points):
            rows.append(["peak MB", *(number(p["memory"]) if "memory" in p else p["reason"]
                                      for p in points)])  # fmt: skip
        yield from table(["", *(f"{p['value']:g}" for p in points)], rows)


def rows_table(result: Result) -> Iterator[str]:
    """A table of ratios, as `timing.report` writes it."""
    rows = []
    for row in result["rows"]:
        words = {"most": "at most", "least": "at least"}
        bound = [f"{words[k]} {row[k]:g}" for k in words if row.get(k) is not None]
        mark = "" if not bound else "met" if row["met"] else "**not met**"
        rows.append(
            [f"{row['what']}, {row['where']}", number(row["value"]), *(bound or [""]), mark]
        )
    yield from table(["", "measured", "expected", ""], rows)


def nothing_set(result: Result) -> Iterator[str]:
    """What must be reached, what was, and the spread over masks."""
    yield "## Nothing set"
    yield ""
    yield "`OMFBImputer()` (tables with missing entries) and `OMFB()` (complete rows) as they are;"
    yield "entries hidden by seeds that were never looked at before, but for rows that name the"
    yield "mask which their bound was measured with. Means over several masks, or"
    yield "over several orders of the rows where nothing is missing, with the least and the most."
    yield ""
    rows = []
    for row in result["rows"]:
        bounds = {"least": "at least", "most": "at most"}
        must = [f"{words} {row[k]:.3g}" for k, words in bounds.items() if row.get(k) is not None]
        each = row["spread"]
        measured = number(row["value"], 4)
        if len(each) > 1:
            measured += f" ({number(min(each), 4)} to {number(max(each), 4)})"
        mark = "" if not must else "met" if row["met"] else "**not met**"
        rows.append([f"{row['what']}: {row['where']}", " and ".join(must), measured, mark])
    yield from table(["", "must", "measured", ""], rows)
    yield from (f"- {one['name']}: not measured, {one['reason']}." for one in result["absent"])
    yield ""


def floor(result: Result) -> Iterator[str]:
    yield "## The floor: beside the products that nothing can avoid"
    yield ""
    yield from rows_table(result)


def files(result: Result) -> Iterator[str]:
    yield "## Files"
    yield ""
    yield from rows_table(result)


def peers_said(results: dict[str, Result]) -> Iterator[str]:
    """Settings of all who took part."""
    said: dict[str, str] = {}
    for result in results.values():
        for found in result.get("sets", []):
            for peer in found.get("peers", []):
                said.setdefault(f"{peer['name']}: {peer['settings']}", "")
    yield "## Settings"
    yield ""
    yield from (f"- {line}." for line in said)
    yield ""


SECTIONS = {"nothing_set": nothing_set, "complete": complete, "holes": holes, "drift": drift,
            "scaling": scaling, "floor": floor, "files": files}  # fmt: skip


def page(results: dict[str, Result]) -> str:
    lines = [*head(results)]
    for name, section in SECTIONS.items():
        if name in results:
            lines += section(results[name])
    lines += peers_said(results)
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    chosen = parser.parse_args(argv)
    found = {name: chosen.results / f"{name}.json" for name in SECTIONS}
    results = {name: json.loads(p.read_text()) for name, p in found.items() if p.exists()}
    if not results:
        parser.error(f"no results in {chosen.results}: run a benchmark first")
    chosen.out.write_text(page(results))
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
