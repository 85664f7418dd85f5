"""The page docs/reliability.md: tables between markers, each with what made it."""

import datetime
import platform
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/reliability.md"
PACKAGES = ("omfb", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pandas", "distributed")


def write_section(name: str, command: str, table: list[str]) -> None:
    """Put a table between the markers of its name."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    made = f"`{command}`, {datetime.date.today()}, Python {platform.python_version()}, {versions}."
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = PAGE.read_text().split(begin)
    after = rest.split(end)[1]
    PAGE.write_text("\n".join([f"{before}{begin}", made, "", *table, f"{end}{after}"]))
