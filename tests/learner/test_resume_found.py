"""What a model has found survives its file: a fit that was killed ends as one that was not."""

import dataclasses

import numpy as np
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.formats import open_stream
from omfb.learner import fit_stream
from omfb.learner.fit_stream import StopFitting
from omfb.learner.records import parts_of

from ..making import PREDICTIVE, rows, sparse


def content(model):
    """All that a model is, to compare bit by bit."""
    parts = parts_of(model.learner_.snapshot())
    return parts.header, {name: tensor.tobytes() for name, tensor in parts.tensors.items()}


# Young, at the end of the head, amid a batch, amid a period, and later.
MOMENTS = [1, 7, 399, 400, 401, 413, 470, 777, 1503]


@PREDICTIVE
@pytest.mark.parametrize("seen", MOMENTS)
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_a_stream_that_was_saved_at_any_moment_goes_on_bit_for_bit(
    rng, tmp_path, estimator, seen, holes
):
    X = rows(rng, 2000, holes=holes)
    model = estimator(random_state=0, temporal=seen % 2 == 1).partial_fit(X[:seen])
    model.save(tmp_path / "m.omfb")
    loaded = estimator.load(tmp_path / "m.omfb")
    assert content(loaded) == content(model)
    for one in (model, loaded):
        for part in np.split(X[seen:], [3, 200, 201]):
            one.partial_fit(part)
    assert content(loaded) == content(model)
    assert np.array_equal(loaded.complete(X[-50:]), model.complete(X[-50:]))


def test_a_young_sparse_stream_is_saved_before_there_is_a_state(rng, tmp_path):
    X = rows(rng, 600, holes=0.5)
    model = OnlineFactorAnalysis(random_state=0).partial_fit(sparse(X[:30]))
    model.save(tmp_path / "m.omfb")
    loaded = OnlineFactorAnalysis.load(tmp_path / "m.omfb")
    assert loaded.n_samples_seen_ == 30
    for one in (model, loaded):
        one.partial_fit(sparse(X[30:]))
    assert content(loaded) == content(model)


@pytest.mark.parametrize("stop", [1, 3, 8, 14])
@pytest.mark.parametrize("temporal", [False, True])
def test_a_fit_that_was_killed_ends_as_one_that_was_not(rng, tmp_path, monkeypatch, stop, temporal):
    import omfb.streams.base as base

    monkeypatch.setattr(base, "BLOCK_BYTES", 10 * 8 * 150, raising=False)
    monkeypatch.setattr(fit_stream, "WHOLE_BATCHES", 1)
    X = rows(rng, 900, holes=0.2)
    X[:500, 4] = np.nan  # begins late
    how = {"temporal": temporal, "max_iter": 2, "random_state": 0}
    whole = OMFBImputer(**how).fit(X)
    blocks = [0]

    def killed(progress):
        blocks[0] += 1
        if blocks[0] == stop:
            raise StopFitting

    with pytest.raises(StopFitting):
        OMFBImputer(**how).fit_source(open_stream(X), checkpoint=tmp_path / "c", on_block=killed)
    resumed = OMFBImputer(**how).fit(X, checkpoint=tmp_path / "c", resume=True)
    assert content(resumed) == content(whole)


def test_a_column_that_begins_late_is_learned_however_the_stream_is_cut(rng):
    X = rows(rng, 1500, holes=0.1)
    X[:700, 3] = np.nan
    X[:, 3] *= 1e6
    for kind, cuts in ((np.asarray, [1, 699, 701, 720, 1100]), (sparse, [710])):
        whole = OMFBImputer(random_state=0).partial_fit(kind(X))
        assert whole.learner_.state.features.known.all()
        model = OMFBImputer(random_state=0)
        for part in np.split(X, cuts):
            model.partial_fit(kind(part))
        np.testing.assert_allclose(model.components_, whole.components_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.mean_, whole.mean_, rtol=1e-6)


def test_every_field_of_the_state_survives_a_file(rng, tmp_path):
    X = rows(rng, 900, holes=0.1)
    model = OMFBImputer(random_state=0, temporal=True).fit(X)
    model.save(tmp_path / "m.omfb")
    before, after = model.learner_.state, OMFBImputer.load(tmp_path / "m.omfb").learner_.state
    for field in dataclasses.fields(before):
        one, other = getattr(before, field.name), getattr(after, field.name)
        if dataclasses.is_dataclass(one):
            one, other = dataclasses.asdict(one), dataclasses.asdict(other)
        np.testing.assert_equal(other, one, err_msg=field.name)
