"""Shared by all tests: fresh kernels, seeds, and the data sets that are on this machine.

No test needs a network or a data set that does not come with its dependencies: it skips, and says
why, or it uses scikit-learn's bundled photographs. Tests that touch data carry the marker `data`;
`.ci/run` repeats them offline, without `../shared`.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Numba's cache checks a kernel's own file, but not the files of the kernels it calls. Give each
# version of the sources its own cache, before anything is imported.
_sources = sorted((ROOT / "src/omfb/core").rglob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba-cache" / _digest))

import hypothesis  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

# A run is repeatable: the same sources draw the same examples. `HYPOTHESIS_PROFILE=explore pytest`
# draws new ones.
_common = {
    "deadline": None, "max_examples": 40,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}  # fmt: skip
hypothesis.settings.register_profile("repeatable", derandomize=True, **_common)
hypothesis.settings.register_profile("explore", print_blob=True, **_common)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

SHARED = ROOT.parent / "shared"
# Tests that load data sets or photographs, besides all that use one of the fixtures.
DATA_FIXTURES = frozenset({"faces", "panel"})
DATA_TESTS = (
    "tests/cli/test_demo.py",
    "tests/cli/test_reproduce.py",
    "tests/datasets",
    "tests/demo",
    "tests/estimators/test_tables.py",
    "tests/paper",
    "tests/test_offline.py",
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "data: touches data sets, and must pass without them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = DATA_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if fixtures or any(item.path.is_relative_to(ROOT / path) for path in DATA_TESTS):
            item.add_marker("data")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20150630)


@pytest.fixture(scope="session")
def faces() -> np.ndarray:
    """The Olivetti faces (400, 4096), float32; never downloaded."""
    from sklearn.datasets import fetch_olivetti_faces

    if "SCIKIT_LEARN_DATA" not in os.environ and (SHARED / "scikit_learn_data").is_dir():
        os.environ["SCIKIT_LEARN_DATA"] = str(SHARED / "scikit_learn_data")
    try:
        return fetch_olivetti_faces(download_if_missing=False).data
    except OSError:
        pytest.skip("the Olivetti faces are not in scikit-learn's data folder")
