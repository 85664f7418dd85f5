"""What every fitted model tells of itself, also in notebooks."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..core.engines import AnyConfig
from ..learner.learner import Learner
from .error_trace import trace_of
from .notebook import found_table


class FittedAttributes(BaseEstimator):  # type: ignore[misc]
    """Attributes of a fitted estimator, which are read off its learner."""

    _learner: Learner

    @abstractmethod
    def current_config(self) -> AnyConfig:
        """What the algorithm is given, by the parameters as they are."""

    @property
    def learner_(self) -> Learner:
        """The learner that does the work: states, codes and snapshots without scikit-learn."""
        check_is_fitted(self)
        return self._learner

    def current_state(self) -> Any:
        """The state of the engine by which rows are coded, under the parameters as they are."""
        return self.learner_.state_for(self.current_config())

    @property
    def components_(self) -> NDArray[Any]:
        """The dictionary, an atom in a row: (n_components, n_features)."""
        return self.learner_.components

    @property
    def n_components_(self) -> int:
        """Components of the model."""
        learner = self.learner_
        return learner.engine.n_active_components(learner.state)

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from so far, in all passes."""
        return self.learner_.n_seen

    @property
    def prequential_error_(self) -> float:
        """Relative error over the last pass of entries that were predicted before learning."""
        return self.learner_.error

    @property
    def error_history_(self) -> NDArray[np.float64]:
        """Rows learned, and the relative error of the rows since the point before: (n_points, 2).

        Of entries that were predicted before they were learned. At most 512 points are kept, and
        none of them in files.
        """
        check_is_fitted(self)
        return trace_of(self).points()

    @property
    def n_features_in_(self) -> int:
        """Features of a row."""
        return self.learner_.n_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if X had any."""
        names = self.learner_.feature_names
        if names is None:
            raise AttributeError("The rows that the model was fitted to had no names.")
        return np.array(names, dtype=object)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + found_table(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += found_table(self)
        return bundle
