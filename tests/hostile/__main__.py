"""`python -m tests.hostile --minutes 20`: try to break omfb, and print what came of it."""

import argparse
import itertools
import time
from collections import Counter

from . import workers
from .kinds import KINDS, warm_up
from .page import write_section
from .trial import ACCEPTED, BAD, REFUSED

# How long each kind goes on in its turn. Kinds that start processes need longer for less.
SLICE_SECONDS = 6.0
OTHER_SLICES = {"data files, by command": 4.0, "command lines": 4.0, "kills": 12.0}


def main() -> None:
    """Run trials of all kinds in turn until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=10**9, help="trials of each kind at most")
    parser.add_argument("--page", action="store_true", help="write the table to the page")
    asked = parser.parse_args()
    warm_up()
    kinds = asked.kind or list(KINDS)
    counts = {kind: Counter() for kind in kinds}
    seeds = dict.fromkeys(kinds, asked.seed)
    end = time.monotonic() + 60 * asked.minutes
    shown: Counter[str] = Counter()
    for kind in itertools.cycle(kinds):
        left = min(OTHER_SLICES.get(kind, SLICE_SECONDS), end - time.monotonic())
        last = asked.seed + asked.count
        if left <= 0 or all(seed >= last for seed in seeds.values()):
            break
        for result in workers.run(KINDS[kind], seeds[kind], last, left):
            seeds[kind] = result.seed + 1
            counts[kind].update(result.outcomes)
            shown[result.what[-60:]] += 1
            if result.what and shown[result.what[-60:]] <= 3:
                print(f"{kind} {result.seed}: {result.outcomes[0]}: {result.what}", flush=True)
    print("\n".join(table(counts)))
    if asked.page:
        command = f"python -m tests.hostile --minutes {asked.minutes:g} --seed {asked.seed} --page"
        write_section("hostile", command, table(counts))
    if any(count[name] for count in counts.values() for name in BAD):
        raise SystemExit(1)


def table(counts: dict[str, Counter[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    columns = ("tried", ACCEPTED, REFUSED, *BAD)
    lines = [f"| kind | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    rows = {kind: Counter(tried=count.total()) + count for kind, count in counts.items()}
    rows["**all**"] = sum(rows.values(), Counter())
    for kind, count in rows.items():
        lines.append(f"| {kind} | {' | '.join(f'{count[name]:,}' for name in columns)} |")
    return lines


if __name__ == "__main__":
    main()
