"""A row of few entries is learned in the space of the features that it observes.

All that a row does to a feature that it does not observe is to fade its statistics. So the state is
restricted to the features of the row, which is complete there; it learns the row as any state does;
and what it has learned goes back to its place. That costs O(k r²) for k entries, however many
features there are. How much the others fade is kept as one number (`Batch.count_fade`) until the
batch ends.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..linalg.rows import gram
from .rank import with_components
from .state import FeaturePosterior, State, evolve, settled
from .stats import Matrix

# Arrays that have an axis of features, the last one unless it is the first.
BY_FEATURE = (
    "C", "C_batch", "center", "scale", "noise_std", "inverse_coverage", "counts", "residual_sums",
    "masks", "n_dropped", "run_length", "known", "pending_moments", "integer", "constant", "varied",
    "constant_value", "last_seen",
)  # fmt: skip
FEATURES_FIRST = ("C", "C_batch")
# Arrays that a row of few entries changes in place, if it may.
WRITTEN = ("C", "counts", "residual_sums", "pending_moments", "integer", "last_seen")
# Arrays that are faded by `Batch.count_fade` and not yet by themselves.
FADED = ("counts", "residual_sums")
# A row has few entries if it observes at most one in so many features, of at least so many.
FEW_OF, FEWEST_FEATURES = 4, 256


@dataclass(frozen=True, slots=True)
class RestrictedState(State):
    """A state that is restricted to some features.

    Attributes
    ----------
    full_width : int
        How many features there are.
    """

    full_width: int = 0

    @property
    def width(self) -> int:
        """How many features a row has, of which it observes a share."""
        return self.full_width


def has_few_entries(state: State, X: Any) -> bool:
    """Whether X is one row with entries of few of the features."""
    m = len(state.params.C)
    return (
        scipy.sparse.issparse(X)
        and X.shape[0] == 1
        and m >= FEWEST_FEATURES
        and 0 < FEW_OF * len(X.data) <= m
    )


def restricted(state: State, which: NDArray[Any]) -> RestrictedState:
    """The state restricted to some features."""
    found = {name: _taken(array, name, which) for name, array in by_feature_of(state).items()}
    for name in FADED:
        found[name] = found[name] * state.batch.count_fade
    codes = found["C"] if found["C_batch"] is None else found["C_batch"]
    codes = codes.astype(np.float64, copy=False)
    few = evolve(state, **found, G=codes.T @ codes, count_fade=1.0, posterior=None)
    return RestrictedState(
        few.config, few.seed, few.params, few.batch, few.stats, few.schedule, few.holdout,
        few.outliers, few.features, None, None, few.drift, full_width=len(state.params.C),
    )  # fmt: skip


def put_back(
    state: State, before: State, after: State, which: NDArray[Any], *, reuse: bool
) -> State:
    """What a restricted state has learned from one row, in the state that it was made of.

    Parameters
    ----------
    state : State
    before, after : State
        The state restricted to the features `which`, before and after the row.
    which : ndarray of int
    reuse : bool
        Whether the arrays `WRITTEN` of `state` may be written into.
    """
    whole, given, now = by_feature_of(state), by_feature_of(before), by_feature_of(after)
    fade = state.batch.count_fade
    if after.schedule.n_entries > state.schedule.n_entries:  # rows without entries fade nothing
        fade *= float(state.keep(1)[0])
    whole["C_batch"] = state.coding
    for name, array in now.items():
        if array is given[name] or name == "C_batch":
            continue
        target = whole[name]
        if not (reuse and name in WRITTEN) or target is state.coding:
            target = target.copy()
        new = array / fade if name in FADED else array
        if name in FEATURES_FIRST:
            target[which] = new
        else:
            target[..., which] = new
        whole[name] = target
    merged = evolve(after, **whole, G=state.batch.G, count_fade=fade)
    return State(
        merged.config, merged.seed, merged.params, merged.batch, merged.stats, merged.schedule,
        merged.holdout, merged.outliers, merged.features, state.temporal, None, merged.drift,
    )  # fmt: skip


def by_feature_of(state: State) -> dict[str, Any]:
    """The arrays with an axis of features, by their names."""
    params, batch, features = state.params, state.batch, state.features
    stats, outliers = state.stats, state.outliers
    found: dict[str, Any] = dict(zip(BY_FEATURE, (
        params.C, batch.C_batch, params.center, params.scale, params.noise_std,
        batch.inverse_coverage, stats.counts, stats.residual_sums, state.holdout.masks,
        outliers.n_dropped, outliers.run_length, features.known, features.pending_moments,
        features.integer, features.constant, features.varied, features.constant_value,
        features.last_seen,
    ), strict=True))  # fmt: skip
    if len(features.last_seen) != len(params.C):
        del found["last_seen"]
    return found


def with_only(state: State, which: NDArray[Any]) -> State:
    """The state with some of the features only, in rising order."""
    found = {name: _taken(array, name, which) for name, array in by_feature_of(state).items()}
    return evolve(state, **found, G=gram(found["C"]))


def with_others(few: State, state: State, which: NDArray[Any]) -> State:
    """A state of some features that was refined, with the others as they are; without loadings."""
    whole, m = by_feature_of(state), len(state.params.C)
    for name, array in by_feature_of(few).items():
        if array is None:
            whole[name] = None
        elif name == "C":
            whole[name] = np.zeros_like(state.params.C)
            whole[name][which] = array
        else:
            whole[name] = whole[name].copy()
            whole[name][..., which] = array
    posterior = few.posterior
    if posterior is not None:
        covariances = np.zeros((m, *posterior.covariances.shape[1:]))
        covariances[which] = posterior.covariances
        posterior = FeaturePosterior(posterior.active, covariances)
    return evolve(few, **whole, posterior=posterior)


def _taken(array: Matrix | None, name: str, which: NDArray[Any]) -> Any:
    if array is None:
        return None
    return array[which] if name in FEATURES_FIRST else array[..., which]


def _moved(known: tuple[int, ...], kept: NDArray[np.int64]) -> str | None:
    """Where covariates, which are never dropped, stand among the features that are kept."""
    at = np.searchsorted(kept, known).tolist()
    return " ".join(map(str, at)) if at else None


def without_features(state: State, kept: NDArray[np.int64]) -> State:
    """The state without all but some features, in their order.

    What it has learned from the others stays in the codes' statistics. If so few features cannot
    have so many components, the weakest ones go.
    """
    state = settled(state)
    found = {name: _taken(array, name, kept) for name, array in by_feature_of(state).items()}
    counts, schedule = state.stats.counts, state.schedule
    share = float(found["counts"].sum()) / max(float(counts.sum()), 1e-300)
    n_entries = min(round(schedule.n_entries * share), schedule.n_seen * len(kept))
    found = {name: None if array is None else array.copy() for name, array in found.items()}
    config = replace(state.config, covariates=_moved(state.config.known, kept))
    after = evolve(
        state, **found, n_entries=n_entries, temporal=None, posterior=None, config=config
    )
    after = evolve(after, G=gram(after.coding))
    most = state.config.components_for(len(kept))
    if after.n_components <= most:
        return after
    strongest = np.sort(np.argsort(-state.params.v[:-1], kind="stable")[:most])
    which = np.append(strongest, state.n_components)
    codes = after.batch.C_batch
    fewer = with_components(after, which)
    if codes is None:
        return fewer
    return evolve(fewer, C_batch=np.ascontiguousarray(codes[:, which]))
