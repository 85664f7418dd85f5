"""Learn ratings as they arrive: each is predicted first, then learned."""

import sys
from dataclasses import replace

import numpy as np

from ..conformal import binned
from ..linalg.rating_stream import learn_ratings
from .fit import run_rounds
from .state import Config, Floats, Integers, Scores, State, new_state, with_room

# Until there are so many ratings, the model is fitted anew with each; then its units are fixed.
HEAD = 100
# A component that few ratings do not support is switched off, and its return takes long. So the
# model is fitted anew each time the ratings have grown by half, up to this number.
MOST_RESTARTED = 200_000
# The histogram of errors fades by this factor after so many ratings: about 10,000 count.
FADE, FADE_EVERY = 0.9, 1000


def learn(
    state: State | None, config: Config, user: Integers, item: Integers, rating: Floats, seed: int
) -> State:
    """The state after more ratings; however these are cut into calls, it is the same.

    A rating of a pair that has one replaces it. New users and items have the next numbers, in the
    order in which they come.

    Parameters
    ----------
    state : State or None
        Changed in place as far as arrays have workspace.
    config : Config
        Of a new state.
    user, item : ndarray of shape (n,)
    rating : ndarray of shape (n,)
    seed : int
        Of a new state.
    """
    first = 0
    if state is None or state.n_ratings < HEAD:
        state, first = _begin(state, config, user, item, rating, seed)
    while first < len(rating):
        due = _next_restart(state.n_ratings) - state.n_ratings
        fading = FADE_EVERY - int(state.scores.stream[1]) % FADE_EVERY
        part = slice(first, first + min(due, fading))
        state = _continue(state, user[part], item[part], rating[part])
        first = part.stop
    return state


def _next_restart(n_ratings: int) -> int:
    """The next number of ratings at which the model is fitted anew."""
    due = HEAD
    while due <= n_ratings:
        due = due * 3 // 2
    return due if due <= MOST_RESTARTED else sys.maxsize


def _begin(
    state: State | None, config: Config, user: Integers, item: Integers, rating: Floats, seed: int
) -> tuple[State, int]:
    """The state of the first ratings, and how many of the new ones it has learned."""
    pairs: dict[tuple[int, int], float] = {}
    if state is not None:
        config, seed, n = state.config, state.seed, state.n_ratings
        ratings = state.center + state.unit * state.entries.z[:n]
        known = zip(state.entries.user[:n].tolist(), state.entries.item[:n].tolist(), strict=True)
        pairs = dict(zip(known, ratings.tolist(), strict=True))
    first = 0
    while first < len(rating) and len(pairs) < HEAD:
        pairs[int(user[first]), int(item[first])] = float(rating[first])
        first += 1
    users, items = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    ratings = np.array(list(pairs.values()))
    new = new_state(config, users, items, ratings, int(users.max()) + 1, int(items.max()) + 1, seed)
    run_rounds(new, new.n_rounds)
    return new, first


def _continue(state: State, user: Integers, item: Integers, rating: Floats) -> State:
    n = len(rating)
    due = _next_restart(state.n_ratings)
    state = with_room(state, int(user.max()) + 1, int(item.max()) + 1, state.n_ratings + n)
    errors, deviations = np.empty(n), np.empty(n)
    learn_ratings(
        user, item, (rating - state.center) / state.unit, state.place, state.known, state.users,
        state.items, state.entries, state.slots, state.first_variances, state.config.implicit,
        state.workspace, errors, deviations,
    )  # fmt: skip
    # The range of the ratings before each of them, and after all.
    low = np.minimum.accumulate(np.append(state.low, rating))
    high = np.maximum.accumulate(np.append(state.high, rating))
    errors = rating - np.clip(rating - state.unit * errors, low[:-1], high[:-1])
    scores = _scored(state.scores, errors, state.unit * deviations)
    state = replace(state, scores=scores, low=float(low[-1]), high=float(high[-1]))
    return restarted(state) if state.n_ratings == due else state


def restarted(state: State) -> State:
    """The state fitted anew to its ratings, so that components that were lost can return."""
    n = state.n_ratings
    new = new_state(
        state.config, state.entries.user[:n], state.entries.item[:n],
        state.center + state.unit * state.entries.z[:n], state.n_users, state.n_items, state.seed,
        (state.low, state.high),
    )  # fmt: skip
    run_rounds(new, state.n_rounds)
    return replace(new, scores=state.scores, n_rounds=state.n_rounds)


def _scored(scores: Scores, errors: Floats, deviations: Floats) -> Scores:
    """The scores with those of new ratings, which end where the histogram fades at the latest."""
    histogram = scores.histogram + binned(np.abs(errors) / deviations, np.ones(len(errors)))
    squares, count = scores.stream.tolist()
    for error in errors.tolist():  # one by one: the sum must not depend on how they are cut
        squares += error * error
    count += len(errors)
    fade = FADE if count % FADE_EVERY == 0 else 1.0
    return Scores(fade * histogram, np.array([squares, count]))
