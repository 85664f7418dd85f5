"""Model files: whole or refused, and never a half-written one."""

import json
import os
import pickle
import struct
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given as property_of
from hypothesis import settings
from hypothesis import strategies as st

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.persistence import (
    LockedError,
    ModelFileError,
    check_replaceable,
    locked,
    read_model,
    replaced,
    write_model,
)
from omfb.persistence.modelfile import VERSION

from ..commands import leftovers, low_rank
from ..making import ALL, DECOMPOSITIONS


def _names(X):
    return pd.DataFrame(X, columns=[f"größe {i}" for i in range(X.shape[1])])


def _sparse(X):
    observed = ~np.isnan(X)
    return scipy.sparse.csr_matrix((X[observed], np.nonzero(observed)), shape=X.shape)


MODELS = {
    "factors": lambda X: OnlineFactorAnalysis(3, random_state=0).fit(X),
    "forgetting": lambda X: OnlineFactorAnalysis(3, forget_factor=0.9).fit(X),
    "float32": lambda X: OnlineFactorAnalysis(3).fit(X.astype(np.float32)),
    "named": lambda X: OnlineFactorAnalysis(2, random_state=np.int64(3)).fit(_names(X)),
    "young": lambda X: OnlineFactorAnalysis(6, random_state=1).partial_fit(X[:7]),
    "young and sparse": lambda X: OnlineFactorAnalysis(6).partial_fit(_sparse(X[:7])),
    "huge data": lambda X: OnlineFactorAnalysis(2).fit(X * 1e200),
    "bounded": lambda X: OMFBImputer(min_value=-np.inf, max_value=[9.0] * 8, integers=True).fit(X),
    "bounds of each": lambda X: OMFBImputer(min_value=[-np.inf, *range(-9, -2)]).fit(X),
    "temporal": lambda X: OMFBImputer(temporal=True).fit(np.where(X > 2.0, np.nan, X)),
    "missing": lambda X: OMFBImputer(random_state=0).fit(np.where(X > 1.0, np.nan, X)),
    "paper": lambda X: OMFB(3, random_state=0).fit(X),
    "paper, lam": lambda X: OMFB(3, lam=0.5, max_iter=2).fit(X),
    "paper, float32": lambda X: OMFB(3, batch_size=4).fit(X.astype(np.float32)),
    "paper, smooth": lambda X: OMFB(2, smooth=0.5, shuffle=False).fit(X),
    "paper, given start": lambda X: OMFB(2, init=np.arange(16.0).reshape(2, 8)).fit(X),
    "paper, nonnegative": lambda X: OMFB(3, positive_code=True, positive_dict=True).fit(X),
    "paper, sparse codes": lambda X: OMFB(3, forget_factor=1.0, alpha=0.1, l1_ratio=0.5).fit(X),
    "paper, shrinking": lambda X: OMFB(3, forget_factor=1.0, shrink=5.0).fit(X),
    "paper, young": lambda X: OMFB(10, random_state=1).partial_fit(X[:7]),
    "paper, young and sparse": lambda X: OMFB(10).partial_fit(_sparse(X[:7])),
    "paper, huge data": lambda X: OMFB(2).fit(X * 1e200),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_goes_on_as_the_saved_one(tmp_path, name):
    X = low_rank(100, 8)
    model = MODELS[name](X)
    model.save(tmp_path / "m.omfb")
    loaded = type(model).load(tmp_path / "m.omfb")
    more = _sparse(X) if "sparse" in name else _names(X) if name == "named" else X
    more = more * 1e200 if "huge data" in name else more
    for one in (model, loaded):
        one.partial_fit(more[40:])
    for name in ("components_", "n_samples_seen_", "prequential_error_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(loaded, name))
    np.testing.assert_array_equal(model.complete(more), loaded.complete(more))
    np.testing.assert_equal(loaded.get_params(), model.get_params())


@ALL
def test_the_same_model_makes_the_same_file(tmp_path, estimator):
    model = estimator(3, random_state=0).fit(low_rank(100, 8))
    model.save(tmp_path / "a.omfb")
    estimator.load(tmp_path / "a.omfb").save(tmp_path / "b.omfb")
    assert (tmp_path / "a.omfb").read_bytes() == (tmp_path / "b.omfb").read_bytes()


def test_classes_load_models_of_their_algorithm(tmp_path):
    X = low_rank(100, 8, missing=0.1)
    for saved in (OMFB, OnlineFactorAnalysis, OMFBImputer):
        model = saved(3, random_state=0).fit(X)
        model.save(tmp_path / "m.omfb")
        for loading in (OMFB, OnlineFactorAnalysis, OMFBImputer):
            if (saved is OMFB) == (loading is OMFB):
                loaded = loading.load(tmp_path / "m.omfb")
                assert np.array_equal(loaded.complete(X), model.complete(X))
            else:
                with pytest.raises(ModelFileError, match=f"a model of {saved.__name__}, whose"):
                    loading.load(tmp_path / "m.omfb")


def test_a_file_without_a_field_that_has_a_default_is_loaded(tmp_path):
    """As older versions write it, before the field was there."""
    X = low_rank(100, 8, missing=0.1)
    model = OnlineFactorAnalysis(3, random_state=0).fit(X)
    model.save(tmp_path / "m.omfb")
    header, tensors = read_model(tmp_path / "m.omfb")
    hyper = header["state"]["config"].pop("hyper")
    assert any(isinstance(value, list) for value in hyper.values())
    write_model(tmp_path / "m.omfb", header, tensors)
    loaded = OnlineFactorAnalysis.load(tmp_path / "m.omfb")
    assert np.array_equal(loaded.complete(X), model.complete(X))
    header["state"]["config"]["hyper"] = {**hyper, "update_rows": [1]}
    write_model(tmp_path / "m.omfb", header, tensors)
    with pytest.raises(ModelFileError, match="another length"):
        OnlineFactorAnalysis.load(tmp_path / "m.omfb")


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        OnlineFactorAnalysis().save(tmp_path / "m.omfb")
    assert os.listdir(tmp_path) == []


def _write_half(path):
    with replaced(path) as new:
        new.write_text("half")
        raise KeyError


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(KeyError):
        _write_half(path)
    assert path.read_text() == "old"
    with replaced(path) as new:
        new.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "link").symlink_to(path)
    with replaced(tmp_path / "link") as new:
        new.write_text("through")
    assert path.read_text() == "through"
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_what_cannot_be_replaced_is_told_by_the_name_that_was_given(tmp_path):
    for path, error in ((tmp_path / "no" / "m", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error) as caught:
            check_replaceable(path)
        assert caught.value.filename == str(path)
        with pytest.raises(error) as caught, replaced(path):
            pass
        assert caught.value.filename == str(path)
    check_replaceable(tmp_path / "m")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_and_devices_are_not_replaced(tmp_path):
    """Root could: a model in place of /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "link")
    for path in (tmp_path / "pipe", tmp_path / "link"):
        for attempt in (check_replaceable, OnlineFactorAnalysis(2).fit(low_rank(30, 4)).save):
            with pytest.raises(FileExistsError, match="a pipe or device; name a file"):
                attempt(path)
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_a_lock_is_for_one_and_ends(tmp_path):
    path = tmp_path / "a [1].ckpt"
    leftover = tmp_path / ".a [1].ckpt.0123abcd.tmp"
    leftover.touch()
    with locked(path):
        assert not leftover.exists()
        with pytest.raises(LockedError, match=f"process {os.getpid()}"), locked(path):
            pass
    with locked(path):
        pass
    assert leftovers(tmp_path) == []


def test_a_file_can_be_read_while_it_is_replaced(tmp_path):
    model = OMFB(3, random_state=0).fit(low_rank(100, 8))
    model.save(tmp_path / "m.omfb")
    stop = threading.Event()

    def rewrite():
        while not stop.is_set():
            model.partial_fit(low_rank(1, 8)).save(tmp_path / "m.omfb")

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        seen = [OMFB.load(tmp_path / "m.omfb").n_samples_seen_ for _ in range(200)]
    finally:
        stop.set()
        writer.join()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


# -- files that are not what they should be ---------------------------------------------------


@pytest.fixture(scope="module", params=[OnlineFactorAnalysis, OMFB])
def good(tmp_path_factory, request):
    """The bytes of a model file, the model, and a path for bad ones."""
    folder = tmp_path_factory.mktemp("fuzz")
    X = np.where(low_rank(100, 8) > 2.0, np.nan, low_rank(100, 8))
    model = request.param(3, random_state=0).fit(_names(X))
    model.save(folder / "good.omfb")
    return (folder / "good.omfb").read_bytes(), model, folder / "bad.omfb"


def _refused(path, estimator=OMFB):
    with pytest.raises(ModelFileError) as caught:
        estimator.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message


def _same(bad, whole, start):
    """Whether two files of one length hold the same header and the same tensors."""
    try:
        headers = [json.loads(file[8:start]) for file in (bad, whole)]
    except ValueError:
        return False
    return headers[0] == headers[1] and bad[:8] + bad[start:] == whole[:8] + whole[start:]


@settings(max_examples=900, deadline=None, derandomize=True)
@property_of(data=st.data())
def test_a_damaged_file_is_refused(good, data):
    whole, model, path = good
    length = struct.unpack("<Q", whole[:8])[0]
    kind = data.draw(st.sampled_from(["cut", "flip", "insert", "remove", "swap"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    if kind == "cut":
        bad = whole[:at]
    elif kind == "flip":
        bit = 1 << data.draw(st.integers(0, 7))
        bad = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
    elif kind == "insert":
        bad = whole[:at] + data.draw(st.binary(min_size=1, max_size=9)) + whole[at:]
    elif kind == "remove":
        bad = whole[:at] + whole[at + 1 + data.draw(st.integers(0, 40)) :]
    else:
        other = data.draw(st.integers(0, len(whole) - 1))
        a, b = sorted([at, other])
        bad = whole[:a] + whole[b:] + whole[a:b]
    path.write_bytes(bad)
    if len(bad) == len(whole) and _same(bad, whole, 8 + length):
        return  # another blank between two words of the header: the same file
    _refused(path, type(model))


@settings(max_examples=300, deadline=None, derandomize=True)
@property_of(content=st.binary(max_size=300))
def test_a_foreign_file_is_refused(good, content):
    path = good[2]
    path.write_bytes(content)
    _refused(path)


def _hostile_values():
    numbers = st.one_of(
        st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)
    )
    plain = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5))
    return st.one_of(
        plain, st.lists(plain, max_size=3), st.dictionaries(st.text(max_size=3), plain, max_size=2)
    )


def _paths(header, before=()):
    """Paths to all that a header holds, and to something that it does not."""
    for name, value in header.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from _paths(value, (*before, name))
    yield (*before, "unknown")


@settings(max_examples=600, deadline=None, derandomize=True)
@property_of(number=st.integers(0, 10**6), value=_hostile_values())
def test_a_hostile_header_is_refused_or_makes_a_sound_model(good, number, value):
    """The digest is right: whoever wrote this knew the format."""
    whole, model, path = good
    path.write_bytes(whole)
    header, tensors = read_model(path)
    paths = list(_paths(header))
    *outer, name = paths[number % len(paths)]
    inner = header
    for key in outer:
        inner = inner[key]
    inner[name] = value
    write_model(path, header, tensors)
    try:
        model = type(model).load(path)
    except ModelFileError:
        return
    learner = model.learner_
    assert np.isfinite(learner.decode(learner.encode(low_rank(5, 8)))).all()
    assert isinstance(model.n_samples_seen_, int)


SHAPES = {"state.C": (8, 3), "state.G": (3, 3), "state.S": (3, 3), "state.code": (3,)}


@settings(max_examples=300, deadline=None, derandomize=True)
@property_of(
    name=st.sampled_from(sorted(SHAPES)),
    shape=st.lists(st.integers(0, 9), max_size=3),
    dtype=st.sampled_from([np.float64, np.float32, np.int64, np.uint8]),
    fill=st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf]),
)
def test_a_hostile_tensor_is_refused(good, name, shape, dtype, fill):
    whole, model, path = good
    if not isinstance(model, OMFB):
        return
    path.write_bytes(whole)
    header, tensors = read_model(path)
    with np.errstate(invalid="ignore"):
        tensors[name] = np.full(shape, fill).astype(dtype)
    fits = SHAPES[name] == tuple(shape)
    floats = (np.float64, np.float32) if name == "state.C" else (np.float64,)
    finite = np.isfinite(fill) and (fill >= 0 or name in ("state.C", "state.code"))
    write_model(path, header, tensors)
    if fits and dtype in floats and finite:
        OMFB.load(path)
    else:
        _refused(path)


@settings(max_examples=400, deadline=None, derandomize=True)
@property_of(
    number=st.integers(0, 99),
    shape=st.lists(st.integers(0, 9), max_size=3),
    own=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32, np.int64, np.uint8]),
    fill=st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf]),
)
def test_a_hostile_tensor_is_refused_or_makes_a_sound_model(good, number, shape, own, dtype, fill):
    whole, model, path = good
    path.write_bytes(whole)
    header, tensors = read_model(path)
    name = sorted(tensors)[number % len(tensors)]
    with np.errstate(invalid="ignore"):
        tensors[name] = np.full(tensors[name].shape if own else shape, fill).astype(dtype)
    write_model(path, header, tensors)
    try:
        model = type(model).load(path)
    except ModelFileError:
        return
    X = pd.DataFrame(low_rank(5, 8), columns=model.feature_names_in_)
    X.iloc[0, 0] = np.nan
    assert np.isfinite(model.complete(X).to_numpy()).all()
    model.partial_fit(X)


def test_absurd_shapes_newer_versions_and_pickles_are_refused(good):
    whole, model, path = good
    name = "state.C" if isinstance(model, OMFB) else "state.params.C"
    length = struct.unpack("<Q", whole[:8])[0]
    outer = json.loads(whole[8 : 8 + length])
    for shape in ([2**62, 2**62], [-8, -3], [2**40, 0], [8.0, 3], "83", None):
        bad = {**outer, name: {**outer[name], "shape": shape}}
        text = json.dumps(bad).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + whole[8 + length :])
        _refused(path, type(model))
    path.write_bytes(struct.pack("<Q", 2**63) + whole[8:])
    _refused(path, type(model))
    path.write_bytes(struct.pack("<Q", 90_000) + b"[" * 90_000)
    _refused(path, type(model))
    path.write_bytes(pickle.dumps(model))
    _refused(path, type(model))
    path.write_bytes(whole)
    header, tensors = read_model(path)
    write_model(path, {**header, "version": VERSION + 1}, tensors)
    with pytest.raises(ModelFileError, match="written by a newer omfb"):
        type(model).load(path)


# -- what is saved can be loaded ----------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [{"n_components": 50}, {"init": np.ones((9, 2))}, {"ridge": np.float32(0.5)}, {"lam": 10**30}],
)
def test_parameters_that_were_set_after_the_fit_are_loaded(tmp_path, changed):
    model = OMFB(3, random_state=0).fit(low_rank(100, 8)).set_params(**changed)
    model.save(tmp_path / "m.omfb")
    loaded = OMFB.load(tmp_path / "m.omfb")
    np.testing.assert_equal(loaded.get_params(), model.get_params())
    np.testing.assert_array_equal(loaded.components_, model.components_)


@pytest.mark.parametrize(
    "changed", [{"ridge": -1.0}, {"init": "zz"}, {"init": [[np.nan]]}, {"max_iter": "many"}]
)
def test_parameters_that_cannot_be_used_are_not_saved(tmp_path, changed):
    model = OMFB(3, random_state=0).fit(low_rank(100, 8)).set_params(**changed)
    with pytest.raises((TypeError, ValueError), match=next(iter(changed))):
        model.save(tmp_path / "m.omfb")
    assert os.listdir(tmp_path) == []


@DECOMPOSITIONS
def test_models_of_wild_ranges_are_finite_and_loaded(tmp_path, estimator):
    """Rows of sizes so different that rounding takes over in the Gram matrix."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 5)) * 10.0 ** rng.uniform(-130, 130, size=(40, 1))
        model = estimator(3, random_state=0)
        try:
            model.fit(X)
        except ValueError:
            continue  # too large beside what came before: refused, with a reason
        model.save(tmp_path / "m.omfb")
        loaded = estimator.load(tmp_path / "m.omfb")
        assert np.isfinite(loaded.prequential_error_)
        np.testing.assert_array_equal(loaded.components_, model.components_)


# -- locks leave the user's files alone ---------------------------------------------------------


def test_a_lock_leaves_files_of_the_user_alone(tmp_path):
    path, own = tmp_path / "fit.ckpt", tmp_path / "fit.ckpt.lock"
    own.write_text("mine")
    with locked(path):
        pass
    assert own.read_text() == "mine"
    assert os.listdir(tmp_path) == ["fit.ckpt.lock"]


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed on this system")
def test_a_lock_does_not_follow_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".fit.ckpt.omfb-lock").symlink_to(victim)
    with pytest.raises(OSError, match="omfb-lock"), locked(tmp_path / "fit.ckpt"):
        pass
    assert victim.read_text() == "precious"
    assert (tmp_path / ".fit.ckpt.omfb-lock").is_symlink()


@pytest.mark.parametrize("name", ["state.holdout.histogram", "state.temporal.histogram"])
def test_a_histogram_of_another_length_is_refused(tmp_path, name):
    model = OnlineFactorAnalysis(3, random_state=0, temporal=True).fit(low_rank(100, 8))
    model.save(tmp_path / "m.omfb")
    header, tensors = read_model(tmp_path / "m.omfb")
    write_model(tmp_path / "m.omfb", header, {**tensors, name: np.tile(tensors[name], 2)})
    with pytest.raises(ModelFileError, match="histogram"):
        OnlineFactorAnalysis.load(tmp_path / "m.omfb")
