"""RESULTS.md from the JSON of the benchmarks: every number on the page is read from there.

python benchmarks/page.py [--results DIR] [--out FILE] [--readme README.md]
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import holes_page
from figures import draw_ratios
from md import number, table
from peers import OURS
from timing import RESULTS

HERE = Path(__file__).resolve().parent
Result = dict[str, Any]
MARKERS = ("<!-- results -->", "<!-- /results -->")

SIZES = {
    "quick": "**Small sizes, few repeats (`--quick`): not for the last digits.**",
    "tiny": "**Tiny sizes, of the smoke test: the numbers mean nothing.**",
}


def duration(taken: Result) -> str:
    """Median seconds, and the spread if there is one."""
    if taken["median"] is None:
        return "never"
    text = number(taken["median"])
    if taken["repeats"] > 1 and taken["most"] is not None:
        text += f" ({number(taken['least'], 2)} to {number(taken['most'], 2)})"
    return text


def versus(other: float | None, ours: float | None) -> str:
    """How many times faster ours is."""
    if ours is None or other is None:
        return ""
    return f" ×{other / ours:.2g}"


# -- the sections -----------------------------------------------------------------------------


def head(results: dict[str, Result]) -> Iterator[str]:
    yield "# Side by side: what was measured"
    yield ""
    yield "Written by `benchmarks/page.py` from `benchmarks/results/*.json`; no number is typed by"
    yield "hand. `make bench` measures all of it, and `make bench-quick` whether the first three of"
    yield "each panel are still the first three."
    yield ""
    if "holes" in results:
        yield from holes_page.losses(results["holes"])
    yield from not_met(results)
    if "complete" in results:
        yield "Complete rows: who is near to the SVD sooner than omfb with nothing set:"
        yield ""
        yield from (*complete_losses(results["complete"]), "")
    if "drift" in results:
        ahead = [line for line in advice(results["drift"]) if "is ahead" in line]
        if ahead:
            yield "Streams that drift, omfb with the best of its forget factors:"
            yield ""
            yield from (*ahead, "")
    if "holes" in results:
        yield from holes_page.verdicts(results["holes"])
    yield "## How it was measured"
    yield ""
    machine = next(iter(results.values()))["machine"]
    yield "Measured with " + ", ".join(f"{name} {value}" for name, value in machine.items()) + "."
    yield ""
    yield "All have the same number of threads (threadpoolctl; Numba, SPAMS and cmfrec are told)."
    yield "Warm-up is outside the clock. Where methods race, they take turns, numbers are medians,"
    yield "with least and most in brackets, and **bold is a peer that is ahead of omfb.**"
    yield ""


def not_met(results: dict[str, Result]) -> Iterator[str]:
    """What was expected of omfb and did not come true."""
    judged = (results[name] for name in ("nothing_set", "floor") if name in results)
    rows = [row for result in judged for row in result["rows"] if not row["met"]]
    if rows:
        yield "Expectations of omfb that were not met (all of them are in their sections below):"
        yield ""
        for row in rows:
            bounds = {"least": "at least", "most": "at most"}
            must = [f"{words} {row[k]:.3g}" for k, words in bounds.items() if row[k] is not None]
            measured = number(row["value"], 4)
            yield f"- {row['what']}, {row['where']}: {measured}, not {' and '.join(must)}."
        yield ""


def complete(result: Result) -> Iterator[str]:
    yield "## Complete rows: time to quality"
    yield ""
    yield "Seconds of the processor until ‖X − XQQᵀ‖ is within a share of the SVD's, Q a basis of"
    yield "what was learned."
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
    rows = []
    for peer in raced:
        cells = []
        for target in targets:
            mine, taken = ours["times"][target]["median"] if ours else None, peer["times"][target]
            wins = faster(taken["median"], mine) and peer is not ours
            text = duration(taken) + (versus(taken["median"], mine) if peer is not ours else "")
            cells.append(f"**{text}**" if wins else text)
        cells.append(f"{100 * peer['least']:.2f} %")
        for key in ("memory", "cold"):
            text = number(peer[key]) if key in peer else ""
            wins = ours is not None and faster(peer.get(key), ours.get(key))
            cells.append(f"**{text}**" if wins else text)
        rows.append([peer["name"], *cells])
    heads = [f"s to {target}" for target in targets]
    yield from table(["", *heads, "least", "peak MB", "cold first call, s"], rows)
    yield "Bold memory: a peer that holds less beside its components than a block of rows and its"
    yield "copies. Bold first call: a peer without compiled kernels to load."
    yield ""
    yield from absent(found)


def complete_losses(result: Result) -> Iterator[str]:
    """Who gets to which quality sooner than omfb with nothing set, and why."""
    for found in result["sets"]:
        raced = [peer for peer in found["peers"] if "times" in peer]
        ours = next(peer for peer in raced if peer["name"] == OURS)["times"]
        for peer in raced:
            ahead = [target for target, taken in peer["times"].items()
                     if faster(taken["median"], ours[target]["median"])]  # fmt: skip
            if ahead and not peer["name"].startswith(OURS):
                why = peer["strength"] or "it does less"
                yield f"- {found['name']}, to {', '.join(ahead)}: **{peer['name']}**: {why}."


def faster(seconds: float | None, ours: float | None) -> bool:
    return seconds is not None and (ours is None or seconds < ours)


def absent(found: Result) -> Iterator[str]:
    for peer in found["peers"]:
        if "reason" in peer:
            yield f"- {peer['name']}: {peer['reason']}."
    yield ""


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
    yield "Which forget factor to choose:"
    yield ""
    yield from advice(result)
    yield ""
    yield from absent(result)


def advice(result: Result) -> Iterator[str]:
    """For each phase the best forget factor, and who else is better still."""
    raced = [peer for peer in result["peers"] if "phases" in peer]
    mine = [peer for peer in raced if peer["name"].startswith(OURS)]
    for phase in raced[0]["phases"]:
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
        if found["speedup"] is not None:
            slopes.append(f"two threads are {found['speedup']:.2f} times as fast as one")
        yield f"**{found['axis']}** ({', '.join(fixed)}): {'; '.join(slopes) or 'see below'}."
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
    yield "`OMFBImputer()` (tables with missing entries) and `OnlineFactorAnalysis()` (complete"
    yield "rows) as they are;"
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
    yield from (f"- {one['part']}: not measured, {one['reason']}." for one in result["absent"])
    yield ""


def floor(result: Result) -> Iterator[str]:
    yield "## The floor: beside the products that nothing can avoid"
    yield ""
    yield from rows_table(result)


def files(result: Result) -> Iterator[str]:
    yield "## Files"
    yield ""
    yield from rows_table(result)


def priors(result: Result) -> Iterator[str]:
    yield "## Nonnegative and sparse factors, and sparse rows with zeros"
    yield ""
    yield "A time that is infinite was never reached within the peer's time."
    yield ""
    yield from rows_table(result)


def peers_said(results: dict[str, Result]) -> Iterator[str]:
    """Settings of all who took part."""
    said = dict.fromkeys(holes_page.settings(results["holes"]) if "holes" in results else ())
    for result in results.values():
        for found in result.get("sets", []):
            for peer in found.get("peers", []):
                said.setdefault(f"{peer['name']}: {peer['settings']}")
    yield "## Settings"
    yield ""
    yield from (f"- {line}." for line in said)
    yield ""


SECTIONS = {"holes": holes_page.holes, "nothing_set": nothing_set, "complete": complete,
            "drift": drift, "scaling": scaling, "floor": floor, "files": files,
            "priors": priors}  # fmt: skip


def page(results: dict[str, Result]) -> str:
    lines = [*head(results)]
    for name, section in SECTIONS.items():
        if name in results:
            title, blank, *rest = section(results[name])
            size = SIZES.get(results[name].get("size", "full"))
            lines += [title, blank, *([size, ""] if size else []), *rest]
    lines += peers_said(results)
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def with_table(text: str, content: str) -> str:
    """A text in which what is between the markers is exchanged."""
    before, _, rest = text.partition(MARKERS[0])
    _, _, after = rest.partition(MARKERS[1])
    if not after:
        raise SystemExit(f"page: the text has no {MARKERS[0]} and {MARKERS[1]} to write between")
    return f"{before}{MARKERS[0]}\n{content.rstrip()}\n{MARKERS[1]}{after}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument("--readme", type=Path, help="whose table between markers to write")
    chosen = parser.parse_args(argv)
    found = {name: chosen.results / f"{name}.json" for name in SECTIONS}
    results = {name: json.loads(p.read_text()) for name, p in found.items() if p.exists()}
    if not results:
        parser.error(f"no results in {chosen.results}: run a benchmark first")
    if "holes" in results:
        draw_ratios(chosen.results / "holes.svg", holes_page.ratios(results["holes"]))
    chosen.out.write_text(page(results))
    print(f"wrote {chosen.out}")
    if chosen.readme and "holes" in results:
        text = chosen.readme.read_text()
        chosen.readme.write_text(with_table(text, "\n".join(holes_page.summary(results["holes"]))))
        print(f"wrote the table of {chosen.readme}")


if __name__ == "__main__":
    main()
