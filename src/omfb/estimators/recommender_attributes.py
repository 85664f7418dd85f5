"""What `OMFBRecommender` has learned, as attributes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ids import id_array
from .recommender_files import Fitted


class LearnedRatings:
    """Attributes of a model of ratings, none of which exist before it is fitted."""

    _fitted: Fitted

    def _learned(self, name: str) -> Fitted:
        """The fitted model for an attribute, which does not exist before."""
        if not hasattr(self, "_fitted"):
            raise AttributeError(f"{type(self).__name__} is not fitted: it has no {name!r} yet.")
        return self._fitted

    @property
    def users_(self) -> NDArray[Any]:
        """Identifiers of the users."""
        fitted = self._learned("users_")
        return id_array(fitted.users.listed[: fitted.state.n_users])

    @property
    def items_(self) -> NDArray[Any]:
        """Identifiers of the items."""
        fitted = self._learned("items_")
        return id_array(fitted.items.listed[: fitted.state.n_items])

    @property
    def user_offsets_(self) -> NDArray[np.float64]:
        """Posterior means of the users' offsets."""
        state = self._learned("user_offsets_").state
        return state.unit * state.users.mean[: state.n_users, state.config.n_components]

    @property
    def item_offsets_(self) -> NDArray[np.float64]:
        """Posterior means of the items' offsets."""
        state = self._learned("item_offsets_").state
        return state.unit * state.items.mean[: state.n_items, state.config.n_components + 1]

    @property
    def user_factors_(self) -> NDArray[np.float64]:
        """Posterior means of the users' codes."""
        state = self._learned("user_factors_").state
        return state.users.mean[: state.n_users, : state.config.n_components].copy()

    @property
    def item_factors_(self) -> NDArray[np.float64]:
        """Posterior means of the items' loadings, in the ratings' units."""
        state = self._learned("item_factors_").state
        return state.unit * state.items.mean[: state.n_items, : state.config.n_components]

    @property
    def global_mean_(self) -> float:
        """The mean that offsets are added to."""
        return self._learned("global_mean_").state.center

    @property
    def noise_variance_(self) -> float:
        """Common variance of the noise."""
        state = self._learned("noise_variance_").state
        return state.noise * state.unit**2

    @property
    def holdout_rmse_(self) -> float | None:
        """Error of `fit` on held-out ratings."""
        return self._learned("holdout_rmse_").holdout_rmse

    @property
    def prequential_rmse_(self) -> float | None:
        """Error of `partial_fit` on ratings before they were learned."""
        squares, count = self._learned("prequential_rmse_").state.scores.stream
        return float(np.sqrt(squares / count)) if count else None

    @property
    def n_ratings_(self) -> int:
        """Number of pairs that are rated."""
        return self._learned("n_ratings_").state.n_ratings

    @property
    def n_iter_(self) -> int | None:
        """Rounds of `fit`; None if there was only `partial_fit`."""
        return self._learned("n_iter_").n_iter
