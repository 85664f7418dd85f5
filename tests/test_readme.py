"""The README's snippets run and print what it says."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def test_commands_run_as_they_are_written(tmp_path):
    """Every line of the README's commands, in a folder that has the files they name."""
    pytest.importorskip("pyarrow", reason="CSV files need omfb[files]")
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 6))
    np.save(tmp_path / "big.npy", rows)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    for name in ("table.csv", "live.csv"):
        np.savetxt(tmp_path / name, rows, delimiter=",", header="a,b,c,d,e,f", comments="")
    (block,) = re.findall(r"## On the command line\n\n```sh\n(.*?)```", README, flags=re.DOTALL)
    script = f'set -e\nomfb() {{ "{sys.executable}" -m omfb "$@"; }}\n{block}'
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("model.omfb", "filled.csv", "report.txt"):
        assert (tmp_path / name).stat().st_size > 0
    assert "nan" not in (tmp_path / "filled.csv").read_text()
