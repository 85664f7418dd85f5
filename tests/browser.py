"""Pages as a real browser shows them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--allow-file-access-from-files", "--enable-logging=stderr", "--log-level=0",
]  # fmt: skip
needed = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

PROBE = """<!doctype html><title>waiting</title><iframe id="it" src="report.html"
style="width:{width}px;height:900px;border:0"></iframe><pre id="told"></pre><script>
document.getElementById("it").onload = (event) => {{
  const page = event.target.contentDocument, root = page.documentElement;
  const broken = [...page.images].filter((image) => image.naturalWidth === 0).length;
  const blank = [...page.querySelectorAll("svg")].filter(
    (svg) => svg.getBoundingClientRect().height < 100 || !svg.querySelector("path")).length;
  document.getElementById("told").textContent =
    [root.scrollWidth, page.images.length, broken, blank, page.title].join("|");
}};
</script>"""


def browse(file: Path, profile: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *more, file.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip


def told(folder: Path, width: int, profile: Path) -> list[str]:
    """Width to scroll, images, broken images, blank charts and title of the report."""
    probe = folder / f"probe-{width}.html"
    probe.write_text(PROBE.format(width=width))
    ran = browse(probe, profile, "--virtual-time-budget=5000", "--dump-dom")
    assert "CONSOLE" not in ran.stderr
    return re.search(r'<pre id="told">(.*?)</pre>', ran.stdout).group(1).split("|")
