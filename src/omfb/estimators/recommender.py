"""`OMFBRecommender`: ratings of items by users."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..core.checks import checked_count, checked_level, checked_number, shown
from ..core.ratings.fit import fit_ratings
from ..core.ratings.learn import learn
from ..core.ratings.predict import (
    UNKNOWN,
    bounded,
    interval_width,
    predict,
    scores_of,
    seen_items,
)
from ..core.ratings.state import Config
from .ids import Ids, id_array
from .parameters import checked_flag, checked_random_state
from .recommender_attributes import LearnedRatings
from .recommender_files import Fitted, read_recommender, write_recommender
from .triplets import LARGEST_RATING, Columns, column_of, ids_of, read_ratings


class OMFBRecommender(LearnedRatings, BaseEstimator):  # type: ignore[misc]
    r"""Predict ratings, and recommend items, from a stream of (user, item, rating).

    A rating is an offset of the user, an offset of the item, and what a few components say of both,

    .. math:: y_{ui} = \mu + b_u + d_i + c_i^\top x_u + \varepsilon_{ui},

    where every user and every item has a posterior of its own: a prediction knows how little it
    knows. The priors are estimated, so that components which the ratings do not need are switched
    off. What a user chose to rate shifts the prior of the user, as in SVD++ (`implicit`).

    Identifiers are text or whole numbers. Of a pair that is rated several times the last rating
    counts: the one with the latest time if there are times, otherwise the last row.

    Parameters
    ----------
    n_components : int, default=10
        Upper bound on the number of components; more may help with millions of ratings.
    implicit : bool, default=True
        Whether the choice of what to rate says something about users and items.
    max_iter : int, default=50
        Most rounds of `fit`; held-out ratings choose how many are made.
    validation_fraction : float, default=0.05
        Share of the ratings that `fit` holds out, at most 10,000 of them, to choose the number of
        rounds and to calibrate the intervals; then all ratings are fitted. With 0, or fewer than
        200 ratings, nothing is held out and there are at most 20 rounds.
    min_value, max_value : float or None, default=None
        Bounds of predicted ratings. None is the smallest, and the largest, rating seen.
    random_state : int, RandomState or None, default=None
        Seed of the first loadings and of the ratings that are held out.

    Attributes
    ----------
    users_, items_ : ndarray of shape (n_users,), (n_items,)
        Identifiers.
    user_offsets_, item_offsets_ : ndarray of shape (n_users,), (n_items,)
        b and d, in the ratings' units.
    user_factors_, item_factors_ : ndarray of shape (n_users, n_components), (n_items, n_components)
        Posterior means of x and c.
    global_mean_ : float
        μ.
    noise_variance_ : float
        Common variance of ε; users and items deviate from it.
    holdout_rmse_ : float or None
        Error of `fit` on the ratings that it held out.
    prequential_rmse_ : float or None
        Error of predicting each rating before `partial_fit` learned it.
    n_ratings_ : int
        Pairs that are rated.
    n_iter_ : int
        Rounds made by `fit`.

    Examples
    --------
    >>> from omfb import OMFBRecommender
    >>> ratings = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 2), ("eve", "Up", 4)]
    >>> model = OMFBRecommender(random_state=0).fit(ratings)
    >>> model = model.partial_fit([("bob", "Up", 1)])
    >>> items, scores = model.recommend("bob", 1)
    >>> items
    array(['Brazil'], dtype='<U6')
    >>> rating, std = model.predict("eve", "Alien", return_std=True)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        implicit: bool = True,
        max_iter: int = 50,
        validation_fraction: float = 0.05,
        min_value: float | None = None,
        max_value: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.implicit = implicit
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.min_value = min_value
        self.max_value = max_value
        self.random_state = random_state

    # -- learning ---------------------------------------------------------------------------

    def fit(self, X: Any, *, columns: Columns | None = None) -> Self:
        """Learn from all ratings at once; their order does not matter.

        Parameters
        ----------
        X : frame, array-like of shape (n, 3) or (n, 4), iterator, or path
            Rows of user, item, rating and, optionally, time. A path is that of a CSV or TSV file,
            whose identifiers are numbers where they are written as whole numbers.
        columns : sequence of str or int, or None, default=None
            Names of user, item, rating and, optionally, time in a frame or file, or their numbers,
            from 1, in a file. None is all columns, if there are three or four.

        Returns
        -------
        self
        """
        config, seed = self.checked_config(), self._seed()
        given = read_ratings(X, columns)
        users, items = Ids.ordered(given.users), Ids.ordered(given.items)
        user, item = users.find(given.users), items.find(given.items)
        pairs = user * len(items) + item
        # The last of each pair, in the order of pairs.
        _, from_end = np.unique(pairs[::-1], return_index=True)
        kept = len(pairs) - 1 - from_end
        fit = fit_ratings(
            config, user[kept], item[kept], given.ratings[kept], len(users), len(items),
            max_iter=int(self.max_iter), holdout=float(self.validation_fraction), seed=seed,
        )  # fmt: skip
        self._fitted = Fitted(fit.state, users, items, fit.state.n_rounds, fit.holdout_rmse)
        return self

    def partial_fit(self, X: Any, *, columns: Columns | None = None) -> Self:
        """Learn more ratings, at a cost for each that does not depend on how many there were.

        Users and items may be new. However the ratings are cut into calls, the model is the same.
        Until there are 200,000, the model is also fitted anew each time they have grown by half.

        Parameters
        ----------
        X : as in `fit`
            Ratings are learned in the order of time if there are times, otherwise in their order.
        columns : as in `fit`
            Names of the columns.

        Returns
        -------
        self
        """
        config = self.checked_config()
        fitted = getattr(self, "_fitted", None)
        if fitted is not None and fitted.state.config != config:
            raise ValueError(
                f"The model was fitted with {fitted.state.config}, but its parameters are now "
                f"{config}: set them back, or call fit."
            )
        given = read_ratings(X, columns)
        if fitted is None:
            seed = self._seed()
            fitted = Fitted(None, Ids(), Ids(), None, None)
        else:
            seed = fitted.state.seed
        user, item = fitted.users.add(given.users), fitted.items.add(given.items)
        state = learn(fitted.state_or_none, config, user, item, given.ratings, seed)
        self._fitted = fitted._replace(state_or_none=state)
        return self

    # -- answering --------------------------------------------------------------------------

    def predict(
        self, users: Any, items: Any, *, return_std: bool = False, interval: float | None = None
    ) -> Any:
        """Predict ratings of pairs.

        A user without ratings is predicted the average user's rating of an item, an item without
        ratings the average item's by the user, each with a large standard deviation.

        Parameters
        ----------
        users, items : int, str or array-like of them
            Of the same shape, or one of either.
        return_std : bool, default=False
            Whether to return standard deviations as well.
        interval : float or None, default=None
            If given, also return bounds between which this share of ratings lies.

        Returns
        -------
        ratings : float or ndarray
        std : float or ndarray
            Standard deviations of the ratings, if `return_std`.
        low, high : float or ndarray
            Bounds, if `interval`.
        """
        fitted = self._checked()
        return_std = checked_flag("return_std", return_std)
        level = None if interval is None else checked_level("interval", interval)
        user = _found(users, fitted.users, fitted.state.n_users, "user")
        item = _found(items, fitted.items, fitted.state.n_items, "item")
        try:
            user, item = np.broadcast_arrays(user, item)
        except ValueError:
            raise ValueError(
                f"users and items have the shapes {user.shape} and {item.shape}: give a user for "
                f"each item, or one of either."
            ) from None
        low, high = self._bounds()
        mean, std = predict(fitted.state, user.ravel(), item.ravel(), low, high)
        answers = [mean, std] if return_std else [mean]
        if level is not None:
            width = interval_width(fitted.state, level) * std
            bounds = bounded(fitted.state, low, high)
            answers += [np.clip(mean - width, *bounds), np.clip(mean + width, *bounds)]
        shaped = [each.reshape(user.shape)[()] for each in answers]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)

    def recommend(
        self, user: Any, n: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """The items that a user would rate highest.

        Parameters
        ----------
        user : int or str
            One without ratings gets the items that the average user rates highest.
        n : int, default=10
            Most items to return.
        exclude_seen : bool, default=True
            Whether to leave out what the user has rated.

        Returns
        -------
        items : ndarray of shape (n,)
            Identifiers, the best first.
        scores : ndarray of shape (n,)
            Predicted ratings.
        """
        fitted = self._checked()
        n = checked_count("n", n, "items to recommend")
        exclude_seen = checked_flag("exclude_seen", exclude_seen)
        if not isinstance(user, str) and np.ndim(user) != 0:
            raise ValueError(f"user must be one identifier, got {shown(user)}.")
        number = int(_found(user, fitted.users, fitted.state.n_users, "user"))
        scores = scores_of(fitted.state, number)
        left = np.arange(len(scores))
        if exclude_seen:
            left = np.delete(left, seen_items(fitted.state, number))
        n = min(n, len(left))
        if n < len(left):
            left = left[np.argpartition(-scores[left], n - 1)[:n]]
        best = left[np.lexsort((left, -scores[left]))]
        bounds = bounded(fitted.state, *self._bounds())
        return id_array([fitted.items.listed[at] for at in best]), np.clip(scores[best], *bounds)

    def score(self, X: Any, *, columns: Columns | None = None) -> float:
        """Minus the root of the mean squared error on ratings, so that more is better.

        Parameters
        ----------
        X : as in `fit`
            Ratings to predict.
        columns : as in `fit`
            Names of the columns.

        Returns
        -------
        score : float
        """
        self._checked()
        given = read_ratings(X, columns)
        predicted = self.predict(given.users, given.items)
        return -float(np.sqrt(np.mean((predicted - given.ratings) ** 2)))

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which is replaced as a whole; it holds all ratings.

        Parameters
        ----------
        path : str or path
            By convention ending in ``.omfb``.
        """
        write_recommender(self, self._checked(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; it continues exactly where the other one was.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        model : OMFBRecommender
        """
        model, fitted = read_recommender(path, cls._from_parameters)
        model.__dict__["_fitted"] = fitted
        return model

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> Self:
        model = cls(**parameters)
        model.checked_config()
        return model

    # -- parameters -------------------------------------------------------------------------

    def checked_config(self) -> Config:
        """What the parameters say, each of them checked."""
        checked_count("max_iter", self.max_iter, "rounds")
        checked_number(
            "validation_fraction", self.validation_fraction, "between 0 and 0.5",
            "0 holds out nothing", 0.0, 0.5,
        )  # fmt: skip
        self._bounds()
        # A new generator takes longer than the rating of a stream.
        if type(self.random_state) is not int or not 0 <= self.random_state < 2**32:
            checked_random_state(self.random_state)
        return Config(
            checked_count("n_components", self.n_components, "components"),
            checked_flag("implicit", self.implicit),
        )

    def _bounds(self) -> tuple[float | None, float | None]:
        low, high = (
            None
            if value is None
            else checked_number(name, value, "finite", "a rating", -LARGEST_RATING, LARGEST_RATING)
            for name, value in (("min_value", self.min_value), ("max_value", self.max_value))
        )
        if low is not None and high is not None and low > high:
            raise ValueError(f"min_value must not be above max_value, got {low:g} and {high:g}.")
        return low, high

    def _seed(self) -> int:
        return int(checked_random_state(self.random_state).randint(2**31 - 1))

    # -- what was learned -------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def _checked(self) -> Fitted:
        check_is_fitted(self)
        return self._fitted


def _found(ids: Any, known: Ids, n: int, name: str) -> NDArray[np.int64]:
    """Numbers of identifiers, in the shape in which they were given; `UNKNOWN` from n on."""
    if isinstance(ids, str) or np.ndim(ids) == 0:
        found = known.find(ids_of([ids], name))
        return np.where(found < n, found, UNKNOWN)[0]
    if isinstance(ids, np.ndarray):
        shape, ids = ids.shape, ids.ravel()
    else:
        ids = column_of(ids)
        shape = (len(ids),)
    found = known.find(ids_of(ids, name))
    return np.where(found < n, found, UNKNOWN).reshape(shape)
