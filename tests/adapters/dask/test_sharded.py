"""A dictionary in slices answers as a whole one does, and is never put together for it."""

from copy import copy
from dataclasses import replace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.callbacks import Callback

from omfb import OMFB, merge
from omfb.adapters.dask.sharded import SHARDED
from omfb.learner.learner import Learner

from ...making import rows, same

M = 40


def sharded(model, widths=(17, 3, 20)):
    """The model with its dictionary cut by features, as a fit by a cluster leaves it."""
    snapshot = model.learner_.snapshot()
    C = da.from_array(snapshot.learned.state.C, chunks=(widths, -1))
    learned = replace(snapshot.learned, state=replace(snapshot.learned.state, C=C))
    return copy(model).adopt(
        Learner.from_snapshot(replace(snapshot, engine=SHARDED, learned=learned))
    )


class NothingWhole(Callback):
    """Computes, and looks at what tasks come to: nowhere are all features together."""

    def __enter__(self):
        self._set = dask.config.set(scheduler="synchronous")
        return super().__enter__()

    def __exit__(self, *error):
        self._set.__exit__(*error)
        super().__exit__(*error)

    def _posttask(self, key, result, *_):
        for part in result if isinstance(result, list | tuple) else [result]:
            shape = getattr(part, "shape", ())
            assert len(shape) < 2 or M not in shape, f"{key}: {shape}"


@pytest.fixture(params=[{}, {"forget_factor": 0.99, "ridge": 0.1}], ids=str)
def whole(request, rng):
    return OMFB(3, random_state=0, **request.param).fit(rows(rng, 300, M))


@pytest.mark.parametrize("chunks", [(48, 20), (100, (17, 3, 20)), (48, (39, 1))], ids=str)
def test_lazy_answers(whole, chunks, rng):
    X = rows(rng, 100, M)
    lazy, model = da.from_array(X, chunks=chunks), sharded(whole)
    codes, score = model.transform(lazy), model.score(lazy)
    back = model.inverse_transform(codes)
    assert (codes.chunks[0], back.chunks) == (lazy.chunks[0], (lazy.chunks[0], (17, 3, 20)))
    with NothingWhole():
        found, told = dask.compute(codes, score)
        by_rows = [np.hstack(dask.compute(*parts)) for parts in back.to_delayed()]
        parts = model.components_.to_delayed().ravel()
        assert same(np.hstack(dask.compute(*parts)), whole.components_, 1e-14)
    assert same(found, whole.transform(X))
    assert same(np.vstack(by_rows), whole.inverse_transform(whole.transform(X)))
    judged = [whole.score_held_out(X[at : at + chunks[0]]) for at in range(0, 100, chunks[0])]
    total = judged[0]
    for part in judged[1:]:
        total = total.plus(part)
    assert told == pytest.approx(total.score, rel=1e-10)


def test_answers_about_arrays(whole, rng):
    X = rows(rng, 100, M)
    model = sharded(whole)
    with dask.config.set(scheduler="synchronous"):
        codes = model.transform(X)
        assert same(codes, whole.transform(X))
        assert same(model.inverse_transform(codes), whole.inverse_transform(whole.transform(X)))
        assert model.score(X) == pytest.approx(whole.score(X), rel=1e-10)
    assert model.get_feature_names_out().tolist() == ["omfb0", "omfb1", "omfb2"]


def test_parameters_that_change_count(whole, rng):
    X = rows(rng, 100, M)
    model = sharded(whole)
    for each in (model, whole):
        each.set_params(ridge=5.0)
    lazy = da.from_array(X, chunks=(100, 20))
    (found,) = dask.compute(model.transform(lazy), scheduler="synchronous")
    assert same(found, whole.transform(X))


def test_codes_of_rows_in_time(rng):
    X = rows(rng, 100, M)
    whole = OMFB(3, smooth=0.5, shuffle=False, random_state=0).fit(X)
    with dask.config.set(scheduler="synchronous"):
        assert same(sharded(whole).transform(X), whole.transform(X))


def test_units_of_extreme_data(rng):
    X = 1e-90 * rows(rng, 100, M)
    whole = OMFB(3, random_state=0).fit(X)
    model = sharded(whole)
    with dask.config.set(scheduler="synchronous"):
        codes = model.transform(X)
        assert same(codes, whole.transform(X))
        assert same(model.inverse_transform(codes), whole.inverse_transform(codes))
        assert model.score(X) == pytest.approx(whole.score(X), rel=1e-10)


def test_what_needs_the_whole_dictionary_is_refused(whole, rng):
    X = rows(rng, 100, M)
    lazy, model = da.from_array(X, chunks=(50, 20)), sharded(whole)
    refused = [
        lambda: model.complete(lazy),
        lambda: model.complete(X),
        lambda: model.partial_fit(X),
        lambda: merge([model], model),
    ]
    for ask in refused:
        with pytest.raises(ValueError, match="the dictionary must be in one place"):
            ask()
    with pytest.raises(ValueError, match=f"X has 20 features, but the model has {M}"):
        model.transform(lazy[:, :20])
    gappy = X.copy()
    gappy[7, 3] = np.nan
    with dask.config.set(scheduler="synchronous"):
        for ask in (model.transform, model.score):
            with pytest.raises(ValueError, match="codes complete rows"):
                ask(gappy)


def test_frames(whole, rng):
    table = pd.DataFrame(rows(rng, 100, M), columns=[f"f{i}" for i in range(M)])
    codes = sharded(whole).transform(dd.from_pandas(table, npartitions=3))
    (found,) = dask.compute(codes, scheduler="synchronous")
    assert same(found, whole.transform(table.to_numpy()))
