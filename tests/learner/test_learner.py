"""A learner: whole at every moment, the same from all threads, and saved by its fields."""

import copy
import dataclasses
import pickle
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import clone

from omfb import OMFB, Info, Learner, OnlineFactorAnalysis
from omfb.core.broyden import engine as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.state import State
from omfb.core.engines import ENGINES as BY_NAME
from omfb.core.factor import engine as factor
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.engine import FactorEngine
from omfb.core.prediction import Prediction
from omfb.learner.records import Parts, parts_of, snapshot_of
from omfb.learner.snapshot import Learned, Snapshot
from omfb.persistence import read_model, write_model

from ..making import DECOMPOSITIONS, rows, sparse

KINDS = pytest.mark.parametrize("kind", [broyden.BroydenEngine, FactorEngine])


class InterruptAt:
    """Raises KeyboardInterrupt at the n-th bytecode that the package runs."""

    def __init__(self, number):
        self.left = number

    def __enter__(self):
        sys.settrace(self._trace)

    def __exit__(self, *error):
        sys.settrace(None)

    def _trace(self, frame, event, _):
        if "/omfb/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._trace


@pytest.fixture
def small_head(monkeypatch):
    """Streams of the tests are short: they are to be old nevertheless."""
    usual = FactorEngine.n_start_rows
    monkeypatch.setattr(
        FactorEngine, "n_start_rows", lambda self, *args: min(20, usual(self, *args))
    )


def _content(model):
    """All that a model is, to compare bit by bit."""
    parts = parts_of(model.learner_.snapshot())
    return parts.header, {name: tensor.tobytes() for name, tensor in parts.tensors.items()}


def _interrupted_everywhere(model, before, X, stride):
    """Interrupt learning from X at one bytecode after the other; return what was seen after.

    The row before it leaves a second copy of the dictionary, which copies of a model do not have.
    """
    fresh = copy.deepcopy(model).partial_fit(before)
    old, new = _content(fresh), _content(fresh.partial_fit(X))
    assert old != new
    seen, number = [], 1
    while True:
        tried = copy.deepcopy(model).partial_fit(before)
        interrupt = InterruptAt(number)
        with suppress(KeyboardInterrupt), interrupt:
            tried.partial_fit(X)
        after = _content(tried)
        assert after in (old, new)
        seen.append(after == new)
        if after == old:
            tried.partial_fit(X)  # no lock is held, nothing is half done
            assert _content(tried) == new
        if interrupt.left > 0:
            return seen
        number += stride


@DECOMPOSITIONS
@pytest.mark.parametrize("kind", ["complete", "missing", "sparse", "shrinking", "young"])
def test_an_interrupt_at_any_moment_leaves_the_old_or_the_new_model(
    rng, kind, estimator, small_head
):
    X = rows(rng, 40, holes=0.0 if kind == "complete" else 0.3)
    model = estimator(3, random_state=0)
    if kind == "shrinking" and estimator is OMFB:
        model.set_params(forget_factor=1.0, shrink=2.0)
    model.partial_fit(X[:4] if kind == "young" else X[:30])
    row = sparse(X[32:33]) if kind == "sparse" else X[32:33]
    seen = _interrupted_everywhere(model, X[31:32], row, stride=3 if estimator is OMFB else 17)
    assert not seen[0]
    assert seen[-1]


@DECOMPOSITIONS
def test_an_interrupt_amid_many_rows_leaves_the_old_or_the_new_model(rng, estimator, small_head):
    X = rows(rng, 60)
    model = estimator(3, random_state=0).partial_fit(X[:30])
    seen = _interrupted_everywhere(model, X[30:31], X[31:], stride=7 if estimator is OMFB else 41)
    assert not seen[0]
    assert seen[-1]


@KINDS
def test_a_failed_kernel_leaves_no_trace_in_the_second_copy(rng, monkeypatch, kind, small_head):
    """It has been written to when the error comes."""
    X = rows(rng, 60, holes=0.8)
    learner, usual = (Learner(kind.name, 3) for _ in range(2))
    for row in X[:40]:
        learner.learn(row[None])
        usual.learn(row[None])
    right = kind.step

    written = []

    def failing(self, state, rows, *, reuse, numbers=None):
        if reuse:
            state.C[:] = np.nan
        written.append(reuse)
        raise FloatingPointError

    for row in X[40:]:
        monkeypatch.setattr(kind, "step", failing)
        with pytest.raises(FloatingPointError):
            learner.learn(row[None])
        monkeypatch.setattr(kind, "step", right)
        learner.learn(row[None])
        usual.learn(row[None])
    assert any(written)
    assert np.array_equal(learner.components, usual.components)


@DECOMPOSITIONS
def test_threads_learn_one_after_the_other_and_see_whole_models(rng, estimator, small_head):
    X = rows(rng, 400, holes=0.1)
    model = estimator(3, random_state=0).partial_fit(X[:20])
    stop, wrong = threading.Event(), []

    def learn(part):
        for row in part:
            model.partial_fit(row[None])
            with suppress(ValueError):
                model.partial_fit(np.full((1, 10), np.inf))

    def use():
        while not stop.is_set():
            state = model.learner_.learned.state
            C, G = (state.C, state.G) if estimator is OMFB else (state.coding, state.batch.G)
            if not np.allclose(C.T @ C, G, rtol=1e-6):
                wrong.append(state.n_seen)
            if not np.isfinite(model.transform(X[:3])).all():
                wrong.append("codes")

    users = [threading.Thread(target=use) for _ in range(3)]
    learners = [threading.Thread(target=learn, args=(X[i::8],)) for i in range(8)]
    for thread in users + learners:
        thread.start()
    for thread in learners:
        thread.join()
    stop.set()
    for thread in users:
        thread.join()
    assert model.n_samples_seen_ == 20 + 400
    assert wrong == []


@DECOMPOSITIONS
def test_no_row_is_lost_when_threads_begin_together(rng, estimator, small_head):
    X = rows(rng, 80)
    for _ in range(5):
        model, gate = estimator(3, random_state=0), threading.Barrier(8)

        def learn(part, model=model, gate=gate):
            gate.wait()
            for row in part:
                model.partial_fit(row[None])

        threads = [threading.Thread(target=learn, args=(X[i::8],)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.n_samples_seen_ == 80


@KINDS
def test_what_is_held_stays_as_it_is_while_rows_are_learned(rng, kind, small_head):
    X = rows(rng, 60)
    learner = Learner(kind.name, 3)
    learner.learn(X[:30])
    held = learner.learned
    before = pickle.dumps(held)
    for row in X[30:]:
        learner.learn(row[None])
    assert pickle.dumps(held) == before


def test_learners_that_share_a_past_do_not_disturb_each_other(rng):
    """Their dictionaries are the same array until they learn."""
    X = rows(rng, 80)
    learner = Learner("broyden", 3)
    learner.learn(X[:30])
    others = []
    for row in X[30:60]:
        learner.learn(row[None])
        other = Learner.from_snapshot(learner.snapshot())
        other.close_head()  # no longer holds the very same thing, but the same array
        another = learner.with_config(BroydenConfig(ridge=0.5))
        others += [(one, one.components) for one in (other, another)]
    for row in X[60:]:
        learner.learn(row[None])
    for one, components in others:
        assert np.array_equal(one.components, components)


def test_the_model_writes_into_its_dictionary_what_few_entries_change(rng):
    """Of other rows all features change: products make a new dictionary, and nothing is copied."""
    X = rows(rng, 60, holes=0.0)
    few = np.where(np.arange(X.shape[1]) == 0, X, np.nan)
    model = Learner("factor", 3)
    model.learn(X)
    assert [model.engine.updates_in_place(row) for row in (X[:1], few[:1], sparse(X[:1]))] == [
        0,
        1,
        1,
    ]
    for row in (X[:1], few[:1], sparse(X[:1]), X[:1]):
        before = model.learned.state.C
        copied = before.copy()
        model.learn(row)
        assert np.array_equal(before, copied)
        assert model.learned.state.C is not before


def test_the_second_copy_is_used_and_never_grows_stale(rng):
    """Between single rows come blocks, which change all of the dictionary."""
    X = rows(rng, 90, 6000, holes=0.9)
    learner = Learner("broyden", 3)
    learner.learn(X[:30])
    state = learner.learned.state
    addresses = set()
    for start in range(30, 90, 6):
        for part in (X[start : start + 1], X[start + 1 : start + 2], X[start + 2 : start + 5],
                     X[start + 5 : start + 6]):  # fmt: skip
            learner.learn(part)
            state = broyden.BROYDEN.step(state, part, reuse=False)[0]
            assert np.array_equal(learner.learned.state.C, state.C)
    for row in X[:20]:
        learner.learn(row[None])
        addresses.add(learner.learned.state.C.__array_interface__["data"][0])
    assert len(addresses) <= 3


@pytest.mark.parametrize("holes", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("m", [10, 6000])
def test_rows_one_by_one_equal_steps_that_copy(rng, holes, m):
    """The second copy is brought up to date for a part of the features only."""
    X = rows(rng, 60, m, holes=holes)
    learner = Learner("broyden", 3)
    learner.learn(X[:30])
    state = learner.learned.state
    for number, row in enumerate(X[30:]):
        learner.learn(sparse(row[None]) if number % 5 == 4 else row[None])
        state = broyden.BROYDEN.step(state, row[None], reuse=False)[0]
        assert np.array_equal(learner.learned.state.C, state.C)


def test_learning_and_filling_is_learning_then_filling(rng):
    X = rows(rng, 60, holes=0.2)
    one, two = Learner("broyden", 3), Learner("broyden", 3)
    one.learn(X[:4])
    two.learn(X[:4])
    for row in X[4:]:
        made = one.learn_and_fill(row[None])
        codes = two.learn(row[None])
        assert np.array_equal(made, two.decode(codes))
    assert np.array_equal(one.components, two.components)
    missing = np.isnan(X)
    assert np.array_equal(one.fill(X)[~missing], X[~missing])
    assert np.isfinite(one.fill(X)).all()


# -- files are made from fields -----------------------------------------------------------------


def _different(value):
    """A value of the same kind that is not the default."""
    if value is None:
        return np.arange(2.0)
    if isinstance(value, BroydenConfig):
        return BroydenConfig(0.5, 0.9, 0.25, 0.125, 2.0, 3, 4, absent="zero")
    return type(value)(4)


def test_every_field_of_a_state_survives_a_file(tmp_path):
    """A new field is saved without a word about it; if it is not, this fails."""
    C = np.arange(6.0).reshape(3, 2) + 1.0
    state = State(config=_different(BroydenConfig()), C=C, G=C.T @ C, S=np.eye(2))
    given = {"config", "C", "G", "S"}
    rest = {
        field.name: _different(getattr(state, field.name))
        for field in dataclasses.fields(State)
        if field.name not in given
    }
    state = dataclasses.replace(state, **rest)
    learned = Learned(state, Info(1.0, 4.0))
    snapshot = Snapshot(2, state.config, "data", 0, None, broyden.BROYDEN, learned)
    parts = parts_of(snapshot)
    write_model(tmp_path / "m", parts.header, parts.tensors)
    loaded = snapshot_of(Parts(*read_model(tmp_path / "m"))).learned
    assert loaded.totals == Info(1.0, 4.0)
    for field in dataclasses.fields(State):
        before, after = getattr(state, field.name), getattr(loaded.state, field.name)
        assert type(before) is type(after), field.name
        np.testing.assert_equal(after, before, err_msg=field.name)
    penalties = {
        "positive_code",
        "positive_dict",
        "alpha",
        "l1_ratio",
    }  # exclude some of the others
    for field in dataclasses.fields(BroydenConfig):
        if field.name in penalties:
            continue
        default = getattr(BroydenConfig(), field.name)
        assert getattr(loaded.state.config, field.name) != default, field.name
    config = BroydenConfig(positive_code=True, positive_dict=True, alpha=0.5, l1_ratio=0.25)
    parts = parts_of(
        dataclasses.replace(
            snapshot, learned=Learned(dataclasses.replace(state, config=config), Info(1.0, 4.0))
        )
    )
    assert snapshot_of(parts).config == config


@dataclasses.dataclass(frozen=True)
class Noise:
    scales: np.ndarray
    kind: str = "isotropic"
    floor: float | None = None


@dataclasses.dataclass(frozen=True)
class OtherState:
    """As another engine may have it."""

    config: BroydenConfig
    C: np.ndarray
    noise: Noise
    mean: np.ndarray | None
    n_seen: int = 0


class OtherEngine(broyden.BroydenEngine):
    """Learns the sum of rows as its only atom."""

    name = "other"
    state_type = OtherState

    def start(self, head, n_components, config, init, seed, numbers=None):
        return OtherState(config, np.zeros((head.shape[1], 1)), Noise(np.ones(head.shape[1])), None)

    def step(self, state, rows, *, reuse, numbers=None):
        C = state.C + rows.sum(axis=0)[:, None]
        mean = C[:, 0] / (state.n_seen + len(rows))
        state = dataclasses.replace(state, C=C, mean=mean, n_seen=state.n_seen + len(rows))
        return state, np.ones((len(rows), 1)), Info(0.0, 1.0)

    def encode(self, state, rows):
        return np.ones((len(rows), 1))

    def decode(self, state, codes):
        return codes * state.mean

    def predict(self, state, rows, *, std, times=None):
        made = self.decode(state, self.encode(state, rows))
        return Prediction(np.where(np.isnan(rows), made, rows))

    def check(self, state):
        if state.C.shape[1] != 1:
            raise ValueError("more than one atom")


def test_another_engine_learns_fills_and_is_saved_without_further_code(tmp_path, monkeypatch):
    other = OtherEngine()
    monkeypatch.setitem(BY_NAME, "other", other)
    learner = Learner("other", 1)
    X = np.arange(12.0).reshape(4, 3)
    learner.learn(X[:3])
    learner.learn(X[3:])
    parts = parts_of(learner.snapshot())
    write_model(tmp_path / "m", parts.header, parts.tensors)
    loaded = Learner.from_snapshot(snapshot_of(Parts(*read_model(tmp_path / "m"))))
    assert loaded.engine is other
    assert loaded.learned.state.noise.kind == "isotropic"
    assert loaded.learned.state.noise.floor is None
    np.testing.assert_array_equal(loaded.learned.state.noise.scales, np.ones(3))
    np.testing.assert_array_equal(loaded.fill(np.full((1, 3), np.nan)), [[4.5, 5.5, 6.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", range(20, 301, 40))
@pytest.mark.parametrize(
    "new",
    [
        OnlineFactorAnalysis(3, random_state=0),
        OnlineFactorAnalysis(3, temporal=True, random_state=0),
        OMFB(3, smooth=0.5, shuffle=False, random_state=0),
    ],
    ids=["factors", "temporal", "paper"],
)
def test_rows_far_off_are_refused_or_leave_a_finite_dictionary(rng, dtype, power, new):
    X = rng.normal(size=(200, 6)).astype(dtype)
    model = clone(new).fit(X)
    with np.errstate(over="ignore"):
        far = (X[:3] * 10.0**power).astype(dtype)
    far[0, 1] = np.nan
    before = model.components_.copy()
    try:
        model.partial_fit(far)
    except ValueError:
        assert np.array_equal(model.components_, before)
    assert np.isfinite(model.components_).all()


def test_what_another_thread_learns_between_passes_is_kept(rng, small_head):
    """`begin_pass` and `close_head` change what there is when they have the lock, not before."""
    X = rows(rng, 200, holes=0.1)
    for change in (Learner.begin_pass, Learner.close_head):
        learner = OnlineFactorAnalysis(3, random_state=0).partial_fit(X).learner_
        lock = learner._lock

        class Late:
            def __enter__(self, lock=lock, learner=learner):
                learner._lock = lock
                learner.learn(X)
                lock.acquire()

            def __exit__(self, *error, lock=lock):
                lock.release()

        learner._lock = Late()
        change(learner)
        assert learner.n_seen == 400


def test_streams_in_time_estimate_at_m_steps_and_not_when_they_are_read(rng, monkeypatch):
    fits = []
    fit = factor.regressors.fit_in_time
    monkeypatch.setattr(factor.regressors, "fit_in_time", lambda *a: fits.append(1) or fit(*a))
    learner = Learner("factor", 2, FactorConfig(temporal=True))
    X = np.cumsum(rng.normal(size=(900, 4)), axis=0)
    learner.learn(X[:600])
    known = len(fits)
    for at in range(600, 610):
        learner.learn(X[at : at + 1])
        learner.fill(np.array([[np.nan, *X[at, 1:]]]))
    assert len(fits) <= known + 1
    learner.learn(X[610:])
    assert len(fits) <= known + 2  # of several M-steps, only the last counts
    assert learner.state.temporal is not None
