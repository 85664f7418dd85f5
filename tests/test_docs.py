"""The pages of the documentation: their snippets run, and print what they say."""

import contextlib
import importlib
import io
import re
import textwrap
from pathlib import Path

import pytest

import omfb

pytest.importorskip("matplotlib", reason="pages draw")
pytest.importorskip("pandas", reason="pages use frames")

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = [
    DOCS / "tutorial.md",
    *sorted(DOCS.glob("guide/*.md")),
    *sorted(DOCS.glob("extending/*.md")),
]
# A snippet may be indented, as a part of a list.
SNIPPET = re.compile(
    r"^( *)```python\n(.*?)^ *```\n(?: *```text\n(.*?)^ *```)?", flags=re.DOTALL | re.MULTILINE
)


@pytest.mark.filterwarnings(
    "default::DeprecationWarning", "ignore:.*Port.*already in use:UserWarning"
)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_snippets_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    """From the first to the last, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for indent, code, printed in SNIPPET.findall(page.read_text(encoding="utf-8")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(textwrap.dedent(code), str(page), "exec"), names)
        assert out.getvalue() == re.sub(f"^{indent}", "", printed, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "module",
    ["omfb", "broyden", "factor", "datasets", "formats", "persistence", "plots", "streams"],
)
def test_every_public_name_is_in_the_reference(module):
    package = omfb if module == "omfb" else importlib.import_module(f"omfb.{module}")
    listed = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.md"))
    names = [name for name in package.__all__ if name not in ("broyden", "factor")]
    missing = [name for name in names if not re.search(rf"^ +([\w.]+\.)?{name}$", listed, re.M)]
    assert not missing
