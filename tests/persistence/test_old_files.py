"""Files of omfb 0.1.0 load, and go on as they would have."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omfb import OMFB, OMFBImputer
from omfb.persistence import ModelFileError, read_model, write_model

from ..making import given, sparse

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def expected():
    with np.load(DATA / "expected.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", ["omfb", "named", "imputer", "float32", "young", "young_sparse"])
def test_a_model_of_0_1_0_is_what_it_was_and_goes_on(tmp_path, expected, name):
    """Their components are 0.1.0's own, before and after ten more rows."""
    kind = OMFBImputer if name == "imputer" else OMFB
    model = kind.load(DATA / f"{name}.omfb")
    assert np.array_equal(model.components_, expected[f"{name}.components"])
    assert model.prequential_error_ == expected[f"{name}.error"]
    more = np.load(DATA / "rows.npy")[20:30].astype(model.components_.dtype)
    if name == "named":
        more = pd.DataFrame(more, columns=list("abcdef"))
        assert list(model.feature_names_in_) == list("abcdef")
    if name == "imputer":
        assert np.array_equal(model.init, np.arange(12.0).reshape(2, 6) / 12)
        assert (model.n_iter_, model.max_iter) == (2, 2)
    model.save(tmp_path / "new.omfb")
    for one in (model, kind.load(tmp_path / "new.omfb")):
        after = one.partial_fit(more).components_
        tolerance = 1e-5 if name == "float32" else 1e-10
        np.testing.assert_allclose(after, expected[f"{name}.after"], rtol=tolerance)


def test_a_young_stream_of_0_1_0_may_become_sparse():
    model = OMFB.load(DATA / "young_sparse.omfb")
    rows = np.load(DATA / "rows.npy")
    model.partial_fit(sparse(rows[7:30]))
    whole = OMFB(5, **given(random_state=1)).partial_fit(sparse(rows[:30]))
    np.testing.assert_allclose(model.components_, whole.components_, rtol=1e-9)


def test_a_fit_of_0_1_0_goes_on_from_its_checkpoint(tmp_path, expected):
    checkpoint = tmp_path / "fit.ckpt"
    checkpoint.write_bytes((DATA / "fit.ckpt").read_bytes())
    model = OMFB(2, **given(max_iter=3, smooth=0.0, random_state=0))
    assert 0 < OMFB.load(checkpoint).n_samples_seen_ < 180
    model.fit(DATA / "rows.npy", checkpoint=checkpoint, resume=True)
    # Rows were cut into other blocks then: the same but for rounding.
    np.testing.assert_allclose(model.components_, expected["fit.ckpt.final"], rtol=1e-9)
    assert model.n_samples_seen_ == 180


def test_damage_to_an_old_header_is_refused(tmp_path):
    path = tmp_path / "old.omfb"
    header, tensors = _as_written(DATA / "omfb.omfb")
    for name in header:
        for value in (None, 5, [], {}, "x"):
            if header[name] == value or name in ("format", "class"):
                continue
            write_model(path, {**header, name: value}, tensors)
            try:
                model = OMFB.load(path)
            except ModelFileError:
                continue
            assert np.isfinite(model.components_).all()


def _as_written(path):
    """An old file's own header and tensors, not as they are read today."""
    from safetensors.numpy import load

    from omfb.persistence import modelfile

    with path.open("rb") as stream:
        text = modelfile._metadata(path, stream).partition(" ")[2]
    import json

    assert read_model(path)[0]["version"] == 2
    return json.loads(text), load(path.read_bytes())
