"""The part of the page about panels with holes: losses first, then wins, then every table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from fillers import methods_for
from md import number, settings_of, table
from panels import GENERATED, PANELS, TINY
from peers import OURS

Result = dict[str, Any]
CLEARLY = 0.01  # by so much of the error a method must be ahead, and under every mask
HELD = (0.87, 0.93)  # shares that are fair for intervals of 90 %


@dataclass(frozen=True)
class Entry:
    """A method on a panel, over all masks that it was measured with."""

    method: str
    by_mask: dict[int, Result]

    def of(self, key: str) -> float:
        """The mean of a measure."""
        return mean(one[key] for one in self.by_mask.values())

    @property
    def rmse(self) -> float:
        """The mean error."""
        return self.of("rmse")

    @property
    def first(self) -> Result:
        """What was found under the first mask, where settings were chosen."""
        return self.by_mask[min(self.by_mask)]

    def ahead_of(self, other: "Entry") -> bool:
        """Whether the error is clearly lower, and under every mask; one mask alone tells little."""
        masks = self.by_mask.keys() & other.by_mask.keys()
        each = all(self.by_mask[k]["rmse"] < other.by_mask[k]["rmse"] for k in masks)
        margin = CLEARLY if len(masks) > 1 else 5 * CLEARLY
        return each and self.rmse < (1 - margin) * other.rmse

    @property
    def cpu(self) -> float:
        """Seconds of the processor to learn and to fill."""
        return self.of("learning_cpu") + self.of("filling_cpu")

    @property
    def spread(self) -> str:
        """The mean error, and the least and the most if there are several masks."""
        errors = [one["rmse"] for one in self.by_mask.values()]
        if len(errors) == 1:
            return f"{errors[0]:.4f}"
        return f"{self.rmse:.4f} ({min(errors):.4f} to {max(errors):.4f})"


Tables = dict[str, list[Entry]]


def tables_of(result: Result) -> Tables:
    """The methods of each panel, the best first; only panels that all methods are through with."""
    found: dict[str, dict[str, dict[int, Result]]] = {}
    through: dict[str, set[str]] = {}
    for one in result["results"]:
        through.setdefault(one["panel"], set(result["not_installed"])).add(one["method"])
        if "rmse" in one:
            found.setdefault(one["panel"], {}).setdefault(one["method"], {})[one["mask"]] = one
    return {
        panel["name"]: _entries(found[panel["name"]])
        for panel in result["panels"]
        if {peer.name for peer in methods_for(panel)} <= through.get(panel["name"], set())
    }


def _entries(methods: dict[str, dict[int, Result]]) -> list[Entry]:
    """The best first, by the masks that all were measured with: means of others do not compare."""
    common = set.intersection(*(set(by_mask) for by_mask in methods.values()))
    entries = [Entry(name, {mask: by_mask[mask] for mask in sorted(common)})
               for name, by_mask in methods.items()]  # fmt: skip
    return sorted(entries, key=lambda entry: entry.rmse)


def ours_of(entries: list[Entry]) -> Entry:
    return next(entry for entry in entries if entry.method == OURS)


def others_of(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if not entry.method.startswith(OURS)]


# -- the sections -----------------------------------------------------------------------------


def losses(result: Result) -> Iterator[str]:
    """Where omfb is behind, and why: the first thing to read."""
    tables = tables_of(result)
    why = {one["name"]: one["strength"] for one in result["methods"]}
    yield "## Where omfb is behind"
    yield ""
    rows = []
    for panel, entries in tables.items():
        ours = ours_of(entries)
        for other in others_of(entries):
            if other.rmse < ours.rmse:
                clear = other.ahead_of(ours)
                rows.append([
                    panel, f"**{other.method}**" if clear else other.method,
                    f"{other.rmse:.4f}", f"{ours.rmse:.4f}",
                    f"{100 * (ours.rmse / other.rmse - 1):.1f} %",
                    number(other.cpu), number(ours.cpu),
                    why.get(other.method, "") if clear else "level: not clearly or not always",
                ])  # fmt: skip
    yield "Every method that had a lower mean error than omfb with nothing set. Bold is ahead under"
    yield f"every mask and by more than {100 * CLEARLY:g} % ({500 * CLEARLY:g} % where there is one"
    yield "mask only). Seconds are of the processor, to learn and fill. What a method is good at is"
    yield "the likely reason, of the method and not of the panel: it was not tested here."
    yield ""
    heads = [
        "panel",
        "method",
        "RMSE",
        "omfb's",
        "omfb above",
        "s",
        "omfb's s",
        "what it is good at",
    ]
    yield from table(heads, rows) if rows else ["None was.", ""]
    unfair = [
        [panel, f"{100 * ours.of('coverage'):.1f} %", number(ours.of("width"))]
        for panel, entries in tables.items()
        if "coverage" in (ours := ours_of(entries)).first
        and not HELD[0] <= ours.of("coverage") <= HELD[1]
    ]
    if unfair:
        yield "Panels on which omfb's 90 % intervals held less than 87 % or more than 93 % of the"
        yield "hidden entries (runs and spans hide entries that depend on each other, so that the"
        yield "share varies much with the mask on small panels):"
        yield ""
        yield from table(["panel", "held", "mean width"], unfair)


def verdicts(result: Result) -> Iterator[str]:
    """Panels won and lost against each method."""
    tables = tables_of(result)
    names = [one["name"] for one in result["methods"] if not one["name"].startswith(OURS)]
    rows = []
    for name in names:
        pairs = [(ours_of(entries), other) for entries in tables.values()
                 for other in entries if other.method == name]  # fmt: skip
        if not pairs:
            continue
        won = sum(ours.ahead_of(other) for ours, other in pairs)
        lost = sum(other.ahead_of(ours) for ours, other in pairs)
        error = median(other.rmse / ours.rmse for ours, other in pairs)
        cost = median(other.cpu / ours.cpu for ours, other in pairs)
        rows.append([name, str(won), str(len(pairs) - won - lost), str(lost), f"{error:.2f}",
                     number(cost, 2)])  # fmt: skip
    best = sum(ours_of(e).rmse <= min(o.rmse for o in others_of(e)) for e in tables.values())
    yield "## Wins and losses"
    yield ""
    yield f"omfb with nothing set had the least mean error on {best} of {len(tables)} panels."
    yield "Against each method, on how many panels it was ahead (under every mask and by more than"
    yield f"{100 * CLEARLY:g} %), level or behind; the method's error and processor seconds"
    yield "(without those of choosing its settings), as multiples of omfb's: medians over panels."
    yield ""
    yield "![errors beside omfb's](results/holes.svg)"
    yield ""
    yield from table(["", "omfb ahead", "level", "omfb behind", "error ×", "seconds ×"], rows)


def ratios(result: Result) -> dict[str, dict[str, float]]:
    """For the figure: each panel's methods, their error as a multiple of omfb's."""
    return {
        panel: {entry.method: entry.rmse / ours_of(entries).rmse for entry in others_of(entries)}
        for panel, entries in tables_of(result).items()
    }


def holes(result: Result) -> Iterator[str]:
    """How it was measured, and all panels."""
    yield "## Panels with holes"
    yield ""
    yield "RMSE on hidden entries, in deviations of each column (ratings: stars; faces: grey from 0"
    yield "to 1). All get the same values, in float64 but for those of a million rows, each column"
    yield "standardised by what may be seen of"
    yield f"it. Settings are the best of {max(_tried(result))} at most for each method, by hiding"
    yield "more of what may be seen; fewer where some mean the same for a panel, or where time"
    yield "ended, which the table says."
    yield "They are chosen under the first mask and kept for the"
    yield "others, which favours those who have settings over omfb with nothing set. omfb is told"
    yield "that rows are in time, as a DatetimeIndex would. Intervals are of 90 %; CRPS is that of"
    yield "normal distributions. Seconds are of the processor; memory is the peak above data and"
    yield "imports, choosing included."
    yield ""
    for panel, entries in tables_of(result).items():
        about = next(one for one in result["panels"] if one["name"] == panel)
        masks = len(ours_of(entries).by_mask)
        yield f"### {panel}: {about['n']} × {about['m']}"
        yield ""
        yield (
            f"{'Generated' if about['origin'] == GENERATED else 'From ' + about['origin']}; "
            f"{WORDS[about['pattern']]} hidden, "
            f"{100 * about['observed']:.0f} % to be seen"
            f"{', rows in time' if about['in_time'] else ''}; "
            f"{masks} mask{'s' if masks > 1 else ''}."
        )
        yield ""
        yield from table(HEADS, [_row(entry) for entry in entries])
        failed = {one["method"]: one["reason"] for one in result["results"]
                  if one["panel"] == panel and "reason" in one}  # fmt: skip
        yield from (f"- {method}: {reason}." for method, reason in failed.items())
        yield ""
    tiny = any(one["name"] == TINY[0].name for one in result["panels"])
    waiting = [] if tiny else [p.name for p in PANELS if p.name not in tables_of(result)]
    if waiting:
        yield f"- Not measured in this run: {'; '.join(waiting)}. `make bench` goes on with them."
    yield from of_older_releases(result)
    yield from (f"- {name}: {why}." for name, why in result["absent"].items())
    yield from (f"- {name}: {why}." for name, why in result["not_installed"].items())
    yield from (f"- {name} takes no part: {why}." for name, why in LEFT_OUT.items())
    yield ""


def of_older_releases(result: Result) -> Iterator[str]:
    """Which results of omfb are not those of the release that wrote the others."""
    now, older = result["machine"]["omfb"], {}
    for one in result["results"]:
        release = one["version"].partition("+")[0]
        if one["method"].startswith(OURS) and release != now:
            older.setdefault((one["method"], release), {})[one["panel"]] = None
    for (method, release), panels in older.items():
        where = "all panels" if len(panels) == len(tables_of(result)) else ", ".join(panels)
        yield f"- {method} was measured with {release} on {where}."


LEFT_OUT = {
    "ImputeGAP 1.1.2": "its compiled methods (CDRec and others) need libopenblas.so.0 of the "
    "system, which PyPI does not have, and its package PyTorch and TensorFlow",
    "PyPOTS 1.5": "but for means and interpolation its methods are networks, which need PyTorch",
}
WORDS = {
    "runs": "runs of 20 rows of a column", "points": "single entries",
    "spans": "a quarter of each row, adjacent columns", "blocks": "a quarter of each picture",
    "pixels": "single entries", "ratings": "single entries",
}  # fmt: skip
HEADS = ("", "RMSE", "held", "width", "CRPS", "s learning", "s filling", "s choosing", "peak MB",
         "chosen")  # fmt: skip


def _tried(result: Result) -> list[int]:
    return [one["tried"][1] for one in result["results"] if "tried" in one] or [1]


def _row(entry: Entry) -> list[str]:
    first = entry.first
    unsure = ["", "", ""]
    if "coverage" in first:
        unsure = [f"{100 * entry.of('coverage'):.1f} %", number(entry.of("width")),
                  number(entry.of("crps"))]  # fmt: skip
    tried, known = first["tried"]
    short = "" if tried == known else f" ({tried} of {known} settings tried: too slow)"
    name = f"**{entry.method}**" if entry.method == OURS else entry.method
    choosing = number(first["choosing_cpu"]) if known > 1 else ""
    return [
        name, entry.spread, *unsure, number(entry.of("learning_cpu")),
        number(entry.of("filling_cpu")), choosing, number(entry.of("memory")),
        settings_of(first["chosen"]) + short,
    ]  # fmt: skip


def settings(result: Result) -> Sequence[str]:
    return [f"{one['name']}: {one['settings']}" for one in result["methods"]]


def summary(result: Result) -> Iterator[str]:
    """The README's table: omfb beside the best of the others on each panel."""
    rows = []
    for panel, entries in tables_of(result).items():
        ours, best = ours_of(entries), others_of(entries)[0]
        about = next(one for one in result["panels"] if one["name"] == panel)
        errors = [f"{ours.rmse:.3f}", f"{best.rmse:.3f}"]
        if ours.ahead_of(best):
            errors[0] = f"**{errors[0]}**"
        if best.ahead_of(ours):
            errors[1] = f"**{errors[1]}**"
        choosing = best.first["choosing_cpu"]
        rows.append([f"{panel}, {about['n']} × {about['m']}", errors[0], number(ours.cpu, 2),
                     best.method, errors[1], number(best.cpu, 2),
                     number(choosing, 2) if best.first["tried"][1] > 1 else ""])  # fmt: skip
    heads = ["panel", "omfb", "s", "best of the others", "error", "s", "s to choose settings"]
    yield from table(heads, rows)
