"""Damaged states are refused; those that steps lead to are not."""

from dataclasses import replace

import numpy as np
import pytest

from omfb import OMFBImputer
from omfb.core.factor.check import check_state
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.init import init
from omfb.core.factor.state import Innovations, evolve
from omfb.core.factor.step import step

from .making import config, learned, leaves, table, temporal_state

M, R = 5, 3


@pytest.fixture(scope="module")
def state():
    return learned(table(0, 200, M, 0.1), FactorConfig(n_components=R - 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_states_of_a_stream_pass(missing, dtype):
    X = table(1, 300, 6, missing).astype(dtype)
    state = init(X, FactorConfig(n_components=3))
    check_state(state)
    for start in range(0, 300, 37):
        state = step(state, X[start : start + 37])[0]
        check_state(state)


def test_states_of_fits_pass():
    X = table(2, 300, 6, 0.2)
    fitted = OMFBImputer(random_state=0).fit(X).learner_.state
    assert fitted.posterior is not None
    check_state(fitted)
    temporal = OMFBImputer(random_state=0, temporal=True).fit(X).learner_.state
    assert temporal.temporal is not None
    check_state(temporal)


ARRAYS = [
    "C", "v", "center", "scale", "noise_std", "basis_change", "G", "Sigma", "S_inverse",
    "inverse_coverage", "S", "code_cov_sum", "counts", "residual_sums", "histogram", "sse", "masks",
    "votes", "n_dropped", "run_length", "known", "pending_moments", "integer", "constant", "varied",
    "constant_value", "C_batch", "memory",
]  # fmt: skip


def array_of(state, name):
    (value,) = (
        value
        for path, value in leaves(state).items()
        if path.split(".")[-1] == name and isinstance(value, np.ndarray)
    )
    return value


def test_every_array_of_a_state_is_listed_here(state):
    arrays = {k.split(".")[-1] for k, v in leaves(state).items() if isinstance(v, np.ndarray)}
    assert arrays == {*ARRAYS, "alarms", "last_seen"}  # which may be empty


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_another_shape_or_type_are_refused(state, name):
    value = array_of(state, name)
    longer = np.concatenate([value, value[..., -1:]], axis=-1)
    with pytest.raises(ValueError):  # noqa: PT011
        check_state(evolve(state, **{name: longer}))
    with pytest.raises(ValueError):  # noqa: PT011
        check_state(evolve(state, **{name: value.astype(np.complex128)}))


@pytest.mark.parametrize("last", [np.zeros(M), np.zeros(M - 1, int), np.full(M, 10**6), [-1] * M])
def test_rows_that_features_were_seen_in_must_have_been_there(state, last):
    check_state(evolve(state, last_seen=np.full(M, state.n_seen)))
    with pytest.raises(ValueError, match="seen"):
        check_state(evolve(state, last_seen=np.asarray(last)))


# The dictionaries are of the type of the data; files with NaN in any tensor are refused elsewhere.
NO_FLOATS = {"masks", "n_dropped", "run_length", "known", "integer", "constant", "varied"}
NO_FLOATS |= {"C", "C_batch"}


@pytest.mark.parametrize("name", [name for name in ARRAYS if name not in NO_FLOATS])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_arrays_that_are_not_finite_are_refused(state, name, bad):
    value = array_of(state, name).copy()
    value.flat[-1] = bad
    with pytest.raises(ValueError, match="is not finite"):
        check_state(evolve(state, **{name: value}))


def changed(array, at, value):
    copy = array.copy()
    copy[at] = value
    return copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {"v": changed(s.params.v, 1, 0.0)}, "not above zero"),
        (lambda s: {"scale": changed(s.params.scale, 1, -1.0)}, "not above zero"),
        (lambda s: {"noise_std": changed(s.params.noise_std, 1, 0.0)}, "not above zero"),
        (lambda s: {"inverse_coverage": 0.0 * s.batch.inverse_coverage}, "not above zero"),
        (lambda s: {"S": changed(s.stats.S, (0, 0), -1.0)}, "precision"),
        (lambda s: {"counts": changed(s.stats.counts, 0, -1.0)}, "below zero"),
        (lambda s: {"residual_sums": -s.stats.residual_sums}, "below zero"),
        (lambda s: {"histogram": s.holdout.histogram - 1.0}, "below zero"),
        (lambda s: {"sse": s.holdout.sse - 1e9}, "below zero"),
        (lambda s: {"votes": np.array([-1.0, 0.0, 0.0])}, "votes"),
        (lambda s: {"n_seen": -1}, "count"),
        (lambda s: {"memory": s.drift.memory - 1e9}, "negative"),
        (lambda s: {"alarms": np.array([3, 2])}, "alarms"),
        (lambda s: {"alarms": np.array([10**9])}, "alarms"),
        (lambda s: {"origin": 10**9}, "forgotten"),
        (lambda s: {"extra_weight": -1e9}, "weights that are not above zero"),
        (lambda s: {"extra_weight": np.nan}, "weights that are not above zero"),
        (lambda s: {"precision": 0.0}, "a weight of its noise"),
        (lambda s: {"n_entries": 2**62}, "count"),
        (lambda s: {"n_scored": -5}, "count"),
        (lambda s: {"pass_rows": -1}, "count"),
        (lambda s: {"start_weight": 1.5}, "start_weight"),
        (lambda s: {"batch_left": 0}, "batch"),
        (lambda s: {"update_left": 0}, "batch"),
        (lambda s: {"masks": s.holdout.masks[:0]}, "masks"),
        (lambda s: {"config": FactorConfig(n_components=1)}, "components"),
        (lambda s: {"C": s.params.C[0]}, "dictionary"),
    ],
)
def test_values_that_no_step_leads_to_are_refused(state, change, message):
    with pytest.raises(ValueError, match=message):
        check_state(evolve(state, **change(state)))


@pytest.mark.parametrize(
    "change",
    [
        {"code_ar": np.array([1.0, 0.5])},
        {"code_ar": np.array([0.5])},
        {"residual_ar": np.full(M, -0.1)},
        {"series_ar": np.full(M, np.nan)},
        {"last_code_cov": np.eye(3)},
        {"last_residual": np.zeros(M + 1)},
        {"residual_age": np.zeros(M)},
        {"histogram": np.zeros(3)},
        {"one_step_histogram": np.zeros(3)},
        {"series_weight": np.full((6, M), 1.5)},
        {"series_weight": np.full((6, M + 1), 0.5)},
        {"series_noise": np.full(M, 0.5)},
        {"series_noise": np.full(M, 1.5), "series_size": np.ones(M)},
        {"series_noise": np.zeros(M), "series_size": np.zeros(M)},
        {"series_noise": np.zeros(M + 1), "series_size": np.ones(M + 1)},
        {"innovations": Innovations(np.zeros((M, 0)), np.ones(M))},
        {"innovations": Innovations(np.ones((M + 1, 1)), np.ones(M))},
        {"innovations": Innovations(np.ones((M, 1)), np.zeros(M))},
        {"innovations": Innovations(np.full((M, 1), np.nan), np.ones(M))},
    ],
)
def test_damaged_autoregressions_are_refused(change):
    state = temporal_state(table(0, 100, M), [0.5, 0.5])
    check_state(state)
    with pytest.raises(ValueError):  # noqa: PT011
        check_state(evolve(state, temporal=replace(state.temporal, **change)))


def test_weights_for_another_number_of_distances_are_refused():
    """They are looked up by the distance of an entry."""
    state = temporal_state(table(0, 100, M), [0.5, 0.5])
    for n in (0, 2, 7):
        damaged = replace(state.temporal, series_weight=np.zeros((n, M)))
        with pytest.raises(ValueError):  # noqa: PT011
            check_state(evolve(state, temporal=damaged))


def test_damaged_posteriors_of_features_are_refused():
    X = table(3, 300, 6, 0.2)
    state = OMFBImputer(random_state=0).fit(X).learner_.state
    posterior = state.posterior
    covariances = posterior.covariances
    for change in (
        {"active": posterior.active[::-1]},
        {"active": posterior.active + 1},
        {"active": posterior.active.astype(float)},
        {"covariances": covariances[:-1]},
        {"covariances": -1.0 - covariances},
        {"covariances": np.nan * covariances},
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            check_state(evolve(state, posterior=replace(posterior, **change)))


def test_a_config_without_held_out_entries_passes(state):
    check_state(learned(table(0, 100, M), config(2)))


def test_damaged_regressors_are_refused():
    X = table(2, 300, 6, 0.2)
    X[:, 4] = np.arange(300.0)
    model = OMFBImputer(random_state=0, temporal=True, covariates=[4]).fit(X)
    state = model.learner_.state
    check_state(state)
    found = state.temporal.regressors
    r = state.n_components
    for change in (
        {"columns": np.array([6])}, {"columns": np.array([-1])}, {"columns": np.array([4.0])},
        {"columns": np.array([4, 4])}, {"scale": np.zeros(1)}, {"mean": np.array([np.nan])},
        {"loadings": np.zeros((5, 1))}, {"code_basis": np.eye(r + 1)},
    ):  # fmt: skip
        temporal = replace(state.temporal, regressors=replace(found, **change))
        with pytest.raises(ValueError, match=r".+"):
            check_state(evolve(state, temporal=temporal))
    for covariates in ("6", "-1", "x"):
        with pytest.raises(ValueError, match=r".+"):
            check_state(evolve(state, config=replace(state.config, covariates=covariates)))
