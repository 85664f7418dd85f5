"""The factor model as pure functions: `init`, `step`, `encode` and `predict`.

>>> import numpy as np
>>> from omfb import factor
>>> rng = np.random.default_rng(0)
>>> rows = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 10))
>>> state = factor.init(rows, factor.FactorConfig(noise="isotropic"), seed=0)
>>> state, codes, info = factor.step(state, rows)
>>> rows[0, 3] = np.nan
>>> mean, std = factor.predict(state, rows[:1])
>>> bool(std[0, 3] > 0), bool(std[0, 4] == 0)
(True, True)
"""

from typing import Any

from numpy.typing import NDArray

from .core.factor.config import FactorConfig
from .core.factor.engine import FACTOR
from .core.finite import quiet
from .core.info import Info
from .core.prediction import Prediction

__all__ = ["FactorConfig", "Prediction", "encode", "init", "predict", "step"]


def init(rows: Any, config: FactorConfig | None = None, *, seed: int = 0) -> Any:
    """Make the state before the first step.

    Parameters
    ----------
    rows : ndarray or scipy.sparse of shape (n_samples, n_features), float32 or float64
        The first rows of the stream, some hundreds if possible: they give the type, scales, mean,
        directions and noise. They are not learned from.
    config : FactorConfig, default=FactorConfig()
    seed : int, default=0
        Seed of the entries that are held out.

    Returns
    -------
    state : frozen dataclass
        Treat its arrays as read-only.
    """
    with quiet():
        return FACTOR.start(rows, None, config or FactorConfig(), "data", seed)


def step(state: Any, rows: Any) -> tuple[Any, NDArray[Any], Info]:
    """Learn from rows, in the order given.

    Parameters
    ----------
    state : as from `init`
        It is not changed.
    rows : ndarray or scipy.sparse of shape (n_samples, n_features)
        NaN is missing, and so are absent entries of a sparse matrix.

    Returns
    -------
    state
        After the rows.
    codes : ndarray
        Of the rows, by the dictionary as it was before them.
    info : Info
        Energies of held-out entries and of their errors.
    """
    with quiet():
        return FACTOR.step(state, rows, reuse=False)


def encode(state: Any, rows: Any) -> NDArray[Any]:
    """Codes of rows, (n_samples, n_components), in descending order of variance."""
    with quiet():
        return FACTOR.encode(state, rows)


def predict(state: Any, rows: Any) -> Prediction:
    """Rows with their missing entries filled, and the standard deviation of each entry.

    Parameters
    ----------
    state : as from `init` or `step`
    rows : ndarray or scipy.sparse of shape (n_samples, n_features)

    Returns
    -------
    prediction : Prediction
        Unpacks as ``mean, std``, both ndarrays of shape (n_samples, n_features); std is 0 where
        entries are observed. ``prediction.interval(0.9)`` gives bounds.
    """
    with quiet():
        return FACTOR.predict(state, rows, std=True)
