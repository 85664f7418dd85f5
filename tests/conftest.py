"""Shared by all tests: fresh kernels, seeds, and the data sets where they are there."""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Numba's cache looks at the file of a kernel only, not at those of the kernels it calls: give
# each version of the sources a cache of its own, before anything is imported.
_sources = sorted((ROOT / "src/omfb/core").rglob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba-cache" / _digest))

import numpy as np  # noqa: E402
import pytest  # noqa: E402

SHARED = ROOT.parent / "shared"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20150630)


@pytest.fixture(scope="session")
def faces() -> np.ndarray:
    """The Olivetti faces (400, 4096), float32."""
    from sklearn.datasets import fetch_olivetti_faces

    if "SCIKIT_LEARN_DATA" not in os.environ and (SHARED / "scikit_learn_data").is_dir():
        os.environ["SCIKIT_LEARN_DATA"] = str(SHARED / "scikit_learn_data")
    try:
        return fetch_olivetti_faces(download_if_missing=False).data
    except OSError:
        pytest.skip("the Olivetti faces are not in scikit-learn's data folder")
