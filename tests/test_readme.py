"""The README's snippets run and print what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", README, flags=re.DOTALL)


def test_every_python_block_says_what_it_prints():
    assert len(SNIPPETS) == README.count("```python") >= 2


@pytest.mark.parametrize(("code", "printed"), SNIPPETS)
def test_snippet_prints_what_the_readme_says(code, printed):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_link_leads_somewhere(target):
    assert target.startswith("https://") or (ROOT / target).exists()


@pytest.mark.parametrize("command", re.findall(r"^make (\w[\w-]*)", README, flags=re.MULTILINE))
def test_make_target_exists(command):
    assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
