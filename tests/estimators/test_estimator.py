"""The estimators: the contract of scikit-learn, and that a model never half-changes."""

import copy
import logging
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given as property_of
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.core.broyden import encode
from omfb.core.factor.engine import FactorEngine

from .. import reference
from ..making import ALL, DECOMPOSITIONS, rows, same, snapshot, sparse


def unweighted(estimator):
    """Checks of weights that do not apply: see the page on weights.

    A stream of repeated rows has other batches, and other rows hold entries out.
    """
    checks = ["equivalence_on_dense_data", "equivalence_on_sparse_data"]
    if isinstance(estimator, OMFBImputer):
        return {}  # complete rows stay as they are
    failing = {
        f"check_sample_weight_{check}": "only within a mini-batch is a weight a repetition"
        for check in checks
    }
    if getattr(estimator, "alpha", 0.0) > 0.0:
        kinds = ["pandas_series", "not_an_array", "list", "shape", "not_overwritten"]
        names = [f"check_sample_weights_{kind}" for kind in kinds]
        names.append("check_all_zero_sample_weights_error")
        failing |= dict.fromkeys(names, "weights are refused with an l1 penalty")
    return failing


# With smooth > 0 the rows of `transform` are one sequence: order matters there, by intent.
@parametrize_with_checks(
    [
        OMFB(),
        OnlineFactorAnalysis(),
        OMFBImputer(),
        OMFB(2, forget_factor=1.0, random_state=0),
        OMFB(2, batch_size=7, shuffle="uniform", max_iter=2, random_state=0),
        OMFB(3, ridge=0.1, shuffle=False, init="random", inner_iter=1, random_state=0),
        OMFB(2, forget_factor=0.9, shrink=1.0, batch_size=3, tol=1e-3, max_iter=5, random_state=0),
        OMFB(2, forget_factor=1.0, positive_code=True, positive_dict=True, random_state=0),
        OMFB(3, alpha=0.1, l1_ratio=0.5, batch_size=4, random_state=0),
        OnlineFactorAnalysis(2, forget_factor=0.9, scale=True, temporal=True, random_state=0),
        OMFBImputer(2, robust=False, center=False, noise="isotropic", max_iter=3, random_state=0),
    ],
    expected_failed_checks=unweighted,
)
@pytest.mark.filterwarnings("ignore:X is sparse, and its absent")
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# -- chunks, seeds, copies --------------------------------------------------------------------


def without_finalize(patch):
    """The factor model ends a fit with the state of a stream."""
    patch.setattr(FactorEngine, "finalize", lambda self, state, sample, last_rows, times: state)


@st.composite
def streams(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rows(rng, draw(st.integers(1, 40)), holes=draw(st.sampled_from([0.0, 0.2])))
    batch_size = draw(st.sampled_from([1, 1, 1, 4]))
    cuts = draw(st.lists(st.integers(1, max(1, (len(X) - 1) // batch_size)), max_size=8))
    cuts = sorted({cut * batch_size for cut in cuts if cut * batch_size < len(X)})
    if draw(st.booleans()):
        cuts = list(range(batch_size, len(X), batch_size))  # as small as can be
    model = draw(st.sampled_from([OMFB, OnlineFactorAnalysis]))(
        draw(st.integers(1, 4)), max_iter=1, shuffle=False, random_state=draw(st.integers(0, 5))
    )
    if isinstance(model, OMFB):
        forget_factor = draw(st.sampled_from([0.0, 0.9, 1.0]))
        model.set_params(
            forget_factor=forget_factor,
            **draw(
                st.sampled_from(
                    [
                        {"shrink": 2.0 if forget_factor > 0.0 else 0.0, "smooth": 0.5},
                        {"smooth": 0.5},
                        {"positive_code": True, "positive_dict": True},
                        {"alpha": 0.1, "positive_dict": True},
                        {},
                    ]
                )
            ),
            batch_size=batch_size,
            init=draw(st.sampled_from(["data", "random"])),
        )
    else:
        model.set_params(forget_factor=draw(st.sampled_from([0.9, 1.0])))
    return X, cuts, model, draw(st.sampled_from([np.asarray, sparse]))


@DECOMPOSITIONS
def test_a_young_stream_keeps_rows_of_its_own(rng, estimator):
    """Users fill the same array again and again."""
    X, buffer = rows(rng, 12), np.empty((3, 10))
    model = estimator(5, random_state=0)
    for start in range(0, 12, 3):
        buffer[:] = X[start : start + 3]
        model.partial_fit(buffer)
    whole = estimator(5, random_state=0).partial_fit(X)
    assert same(model.components_, whole.components_)


@pytest.mark.filterwarnings("ignore:Never observed")
@property_of(streams())
def test_one_pass_in_order_equals_any_chunks(stream):
    """Except for what the end of a fit does."""
    X, cuts, model, kind = stream
    with pytest.MonkeyPatch.context() as patch:
        without_finalize(patch)
        _check_any_chunks(X, cuts, model, kind)


def _check_any_chunks(X, cuts, model, kind):
    whole, chunked = clone(model).fit(kind(X)), clone(model)
    for chunk in np.split(X, cuts):
        chunked.partial_fit(kind(chunk))
    # A row may see fewer entries than there are atoms; nothing bounds the condition then.
    assert same(chunked.components_, whole.components_, 1e-7)
    assert chunked.n_samples_seen_ == whole.n_samples_seen_ == len(X)
    errors = chunked.prequential_error_, whole.prequential_error_
    assert np.isclose(*errors, atol=1e-7, equal_nan=True)


@DECOMPOSITIONS
def test_chunks_may_be_of_different_kinds(rng, estimator, monkeypatch):
    without_finalize(monkeypatch)
    X = rows(rng, holes=0.2)
    whole = estimator(2, shuffle=False, random_state=0, max_iter=1).fit(X)
    mixed = estimator(2, random_state=0)
    mixed.partial_fit(sparse(X[:2])).partial_fit(X[2:3]).partial_fit(
        scipy.sparse.csc_matrix(sparse(X[3:30]))
    )
    mixed.partial_fit(X[30:].tolist())
    assert same(mixed.components_, whole.components_)


@DECOMPOSITIONS
def test_learning_goes_on_after_fit_and_after_a_copy(rng, estimator):
    X = rows(rng)
    model = estimator(3, random_state=0).fit(X)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]
    model.partial_fit(X[:1])
    for other in copies:
        assert not same(other.components_, model.components_)
        assert same(other.partial_fit(X[:1]).components_, model.components_)


@ALL
def test_the_same_seed_gives_the_same_model_and_fit_starts_anew(rng, estimator):
    X = rows(rng, holes=0.1)
    model = estimator(3, random_state=3, max_iter=2).fit(X)
    first = snapshot(model)
    assert snapshot(model.fit(X)) == first
    assert snapshot(clone(model).fit(X)) == first
    assert not same(estimator(3, random_state=4).fit(X).components_, model.components_)


@DECOMPOSITIONS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_keep_the_inputs_type(rng, dtype, estimator):
    X = rows(rng, holes=0.1, dtype=dtype)
    model = estimator(3, random_state=0).fit(X)
    codes = model.transform(X)
    for output in (model.components_, codes, model.inverse_transform(codes), model.complete(X)):
        assert output.dtype == dtype


@ALL
def test_nothing_that_was_given_or_returned_is_tied_to_the_model(rng, estimator):
    X = rows(rng, holes=0.1)
    as_given = X.copy()
    model = estimator(3, max_iter=2).fit(X).partial_fit(X[:1])
    model.transform(X), model.complete(X), model.score(X)
    assert np.array_equal(X, as_given, equal_nan=True)
    before = model.components_.copy()
    X[:] = 0.0
    model.components_[:] = 0.0
    assert np.array_equal(model.components_, before)


@DECOMPOSITIONS
@pytest.mark.parametrize("how", ["read-only", "memmap"])
def test_read_only_models_and_data_can_be_used_and_learned_from(rng, tmp_path, how, estimator):
    X = rows(rng, holes=0.1)
    model, path = estimator(3, random_state=0).fit(X), tmp_path / "X.npy"
    if how == "memmap":
        np.save(path, X)
        X = np.load(path, mmap_mode="r")
    else:
        X.flags.writeable = False
    again = estimator(3, random_state=0).fit(X)
    assert np.array_equal(again.components_, model.components_)
    assert np.array_equal(again.complete(X)[~np.isnan(X)], X[~np.isnan(X)])


# -- using a model ------------------------------------------------------------------------------


def hidden_error(C, X, ridge, smooth):
    """Relative squared error of what is hidden from the codes: an eighth of each row."""
    m, error, energy = X.shape[1], 0.0, 0.0
    fold = np.random.default_rng(0).permutation(m) % 8
    for number in range(8):
        here, hidden = X[number::8], fold == number
        codes = reference.codes_of(C[~hidden], here[:, ~hidden], ridge, smooth)
        error += np.nansum((here[:, hidden] - codes @ C[hidden].T) ** 2)
        energy += np.nansum(here[:, hidden] ** 2)
    return error / energy


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("smooth", [0.0, 0.7])
@pytest.mark.parametrize("holes", [0.0, 0.02, 0.3])
def test_transform_equals_the_reference(rng, monkeypatch, ridge, smooth, holes):
    monkeypatch.setattr(encode, "ROWS", 7)  # the chain goes on from one part to the next
    X = rows(rng, holes=holes)
    X[20] = np.nan if holes else X[20]
    model = OMFB(
        3, forget_factor=1.0, ridge=ridge, smooth=smooth, shuffle=False, random_state=0
    ).fit(X)
    C = model.components_.T
    expected = reference.codes_of(C, X, ridge, smooth)
    for same_rows in (X, sparse(X)):
        assert same(model.transform(same_rows), expected)
        explained = 1.0 - hidden_error(C, X, ridge, smooth)
        assert np.isclose(model.score(same_rows), explained, rtol=1e-9)
        filled = model.complete(same_rows)
        assert same(filled, np.where(np.isnan(X), expected @ C.T, X))
        assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert same(model.inverse_transform(expected), expected @ C.T)


@ALL
def test_fit_transform_is_fit_then_transform(rng, estimator):
    X = rows(rng, holes=0.1)
    model = estimator(3, random_state=0)
    assert np.array_equal(model.fit_transform(X), clone(model).fit(X).transform(X))


@ALL
def test_an_unfitted_model_says_so(estimator):
    model = estimator(2)
    for call in (lambda: model.transform([[1.0]]), lambda: model.complete([[1.0]]),
                 lambda: model.score([[1.0]]), lambda: model.components_):  # fmt: skip
        with pytest.raises(NotFittedError):
            call()
    for name in ("components_", "n_samples_seen_", "prequential_error_", "n_features_in_"):
        assert not hasattr(model, name)


def test_the_prequential_error_is_that_before_learning(rng):
    X = rows(rng)
    model = OMFB(3, forget_factor=1.0, max_iter=3, shuffle=False, random_state=0).fit(X)
    two = OMFB(3, forget_factor=1.0, max_iter=2, shuffle=False, random_state=0).fit(X)
    residual = energy = 0.0
    for x in X:
        error = x - two.transform(x[None])[0] @ two.components_
        residual, energy = residual + error @ error, energy + x @ x
        two.partial_fit(x[None])
    assert np.isclose(model.prequential_error_, np.sqrt(residual / energy), rtol=1e-9)


@DECOMPOSITIONS
def test_the_atoms_that_a_fitted_model_has_are_what_counts(rng, estimator):
    """Parameters may be set for the next fit while the model is still in use."""
    X = rows(rng)
    model = estimator(3, random_state=0).fit(X)
    codes = model.transform(X)
    model.set_params(n_components=5)
    assert np.array_equal(model.transform(X), codes)
    assert model.inverse_transform(codes).shape == X.shape


# -- passes -------------------------------------------------------------------------------------


def test_passes_stop_when_they_no_longer_improve(rng):
    X = rows(rng)
    model = OMFB(3, forget_factor=1.0, max_iter=50, tol=1e-2, random_state=0).fit(X)
    assert 1 < model.n_iter_ < 50
    assert model.n_samples_seen_ == model.n_iter_ * len(X)
    assert OnlineFactorAnalysis(3, max_iter=7, random_state=0).fit(X).n_iter_ == 7


@pytest.mark.parametrize("shuffle", [True, False, "uniform"])
def test_each_way_to_shuffle_takes_as_many_rows(rng, shuffle):
    X = rows(rng)
    model = OnlineFactorAnalysis(3, shuffle=shuffle, max_iter=2, random_state=0).fit(X)
    assert model.n_samples_seen_ == 2 * len(X)
    others = [
        OnlineFactorAnalysis(3, shuffle=s, max_iter=2, random_state=0).fit(X)
        for s in (True, False, "uniform")
    ]
    equal = [np.array_equal(model.components_, other.components_) for other in others]
    assert sum(equal) == 1


def test_shuffling_permutes_and_uniform_draws_with_replacement():
    """Row i sees feature i only, so a feature never observed is a row never drawn."""
    X = scipy.sparse.eye_array(1000, format="csr")
    model = OMFB(2, forget_factor=1.0, absent="missing", random_state=0)
    model.fit(X)  # a warning would be an error
    with pytest.warns(UserWarning, match="Never observed") as told:
        model.set_params(shuffle="uniform").fit(X)
    missed = 10 + int(re.search(r"and (\d+) more", str(told[0].message)).group(1))
    assert 320 < missed < 420  # 368 are expected, with a deviation of 10


def test_a_given_dictionary_is_not_written_into(rng):
    X, init = rows(rng), rng.normal(size=(3, 10))
    first = init.copy()
    OMFB(3, init=init, max_iter=2).fit(X).partial_fit(X[:1])
    assert np.array_equal(init, first)


@pytest.mark.parametrize("max_iter", [2, None])
def test_verbose_logs_each_pass(rng, caplog, max_iter):
    with caplog.at_level(logging.INFO, logger="omfb"):
        OnlineFactorAnalysis(3, max_iter=max_iter, verbose=1, random_state=0).fit(rows(rng))
        told = [record.getMessage() for record in caplog.records]
        OnlineFactorAnalysis(3, max_iter=max_iter, random_state=0).fit(rows(rng))
    assert [message.partition(":")[0] for message in told] == [f"pass {i} of 2" for i in (1, 2)]
    assert len(caplog.records) == 2


class Watch:
    """A scikit-learn callback that counts passes, and may ask to stop."""

    def __init__(self, stop_after=None):
        self.stop_after, self.begun, self.ended, self.kept = stop_after, 0, 0, []
        self.set_up = self.torn_down = 0

    def setup(self, estimator, context):
        self.set_up += 1

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.begun += context.task_name == "pass"

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name != "pass":
            return False
        self.ended += 1
        self.kept.append((fitted_estimator, fitted_estimator.components_.copy()))
        return self.ended == self.stop_after


def test_callbacks_see_each_pass_and_can_stop(rng, monkeypatch):
    without_finalize(monkeypatch)
    pytest.importorskip("sklearn.callback")
    X, watch = rows(rng), Watch(stop_after=3)
    model = OnlineFactorAnalysis(3, max_iter=10, random_state=0).set_callbacks(watch).fit(X)
    assert (watch.begun, watch.ended, watch.set_up, watch.torn_down) == (3, 3, 1, 1)
    assert model.n_iter_ == 3
    for passes, (kept, components) in enumerate(watch.kept, start=1):
        so_far = OnlineFactorAnalysis(3, max_iter=passes, random_state=0).fit(X)
        assert np.array_equal(components, so_far.components_)
        assert np.array_equal(kept.components_, components)  # later passes leave it alone
        assert same(kept.transform(X), so_far.transform(X))


def test_callbacks_are_torn_down_when_a_fit_fails(rng):
    pytest.importorskip("sklearn.callback")
    X, watch = rows(rng), Watch()
    X[-1, -1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        OnlineFactorAnalysis(3, random_state=0).set_callbacks(watch).fit(X)
    assert watch.set_up == watch.torn_down == 1
