"""The folder of results: written completely or not at all."""

import csv
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from errno import EISDIR, ENOTDIR
from pathlib import Path
from secrets import token_hex
from typing import Any

from .drawing import render
from .environment import environment
from .outcome import Number, Outcome, as_json
from .page import Part, page


@contextmanager
def new_results(out: Path) -> Iterator[Path]:
    """A temporary folder on the same disk, whose files are moved to `out` at the end.

    An error, in the block or before it, leaves no trace. Other files in `out` stay.
    """
    out = out.absolute()
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(ENOTDIR, "a file is in the way", str(out))
    made = [folder for folder in out.parents if not folder.exists()]
    home = out if out.is_dir() else out.parent
    temporary = home / f".omfb-{token_hex(4)}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        yield temporary
        _move(temporary, out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for folder in made:
            with suppress(OSError):  # not empty: there are results in it
                folder.rmdir()


def _move(temporary: Path, out: Path) -> None:
    if not out.exists():
        temporary.rename(out)
        return
    names = sorted(path.name for path in temporary.iterdir())
    for name in names:
        if (out / name).is_dir():
            raise IsADirectoryError(EISDIR, "a folder is in the way", str(out / name))
    for name in names:
        os.replace(temporary / name, out / name)


def write_report(
    folder: Path,
    heading: str,
    subtitle: str,
    parts: list[Part],
    about: Mapping[str, Any],
    notices: Iterable[str] = (),
) -> None:
    """Figures as SVG and PNG, `results.json`, `results.csv` and `report.html`.

    Parameters
    ----------
    folder : Path
        It exists.
    heading, subtitle, parts, notices
        As for `page`.
    about : dict
        Facts about the run for `results.json`, besides when and where.
    """
    machine = environment()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    for part in parts:
        for name, figure in part.figures.items():
            for kind in ("svg", "png"):
                (folder / f"{name}.{kind}").write_bytes(render(figure, kind))
    about = {"made": made, **about, "environment": machine}
    write_numbers(folder, about, [part.outcome for part in parts])
    subtitle = f"{subtitle} · {made[:10]}"
    html = page(heading, subtitle, parts, machine, notices)
    (folder / "report.html").write_text(html, encoding="utf-8")


def write_numbers(folder: Path, about: Mapping[str, Any], outcomes: list[Outcome]) -> None:
    """`results.json` with all results and settings, and `results.csv`, a number in each row."""
    whole = {
        **about,
        "experiments": {
            outcome.experiment: {
                "settings": as_json(outcome.settings),
                "table": outcome.table,
                "claims": [claim._asdict() for claim in outcome.claims],
                "numbers": [number._asdict() for number in outcome.numbers],
            }
            for outcome in outcomes
        },
    }
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    with (folder / "results.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(Number._fields)
        for outcome in outcomes:
            table.writerows(outcome.numbers)
