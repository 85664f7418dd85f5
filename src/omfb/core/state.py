"""What a step needs next (`State`), what it was told to do (`Rule`), what it tells (`Info`)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Rows for each component that must come before early ones begin to count less.
HEAD_START = 5
# Share of a row's entries: with less, rows say little about atoms, and none is worth losing.
MOSTLY_OBSERVED = 0.5


@dataclass(frozen=True, slots=True)
class Rule:
    """The update rule. The defaults are `OMFB`'s; `memory=0` is the paper's rule.

    Attributes
    ----------
    lam : float
        How stiffly the dictionary stays where it is.
    memory : float
        From 0 (no past code counts) to 1 (all count, later ones more).
    ridge, smooth : float
        Pull of a code towards zero, and towards the code before.
    shrink : float
        Pull of the dictionary towards zero; if positive, codes count with their uncertainty.
    inner_iter : int
        Alternations between code and dictionary for each observation or mini-batch.
    batch_size : int
        Rows that share one update of the dictionary.
    """

    lam: float = 1.0
    memory: float = 1.0
    ridge: float = 0.0
    smooth: float = 0.0
    shrink: float = 0.0
    inner_iter: int = 2
    batch_size: int = 1


@dataclass(frozen=True, slots=True)
class State:
    """All that the next step needs. Treat its arrays as read-only.

    Attributes
    ----------
    rule : Rule
    C : ndarray of shape (n_features, n_components)
        The dictionary, in units of `scale`.
    G : ndarray of shape (n_components, n_components)
        Its Gram matrix, kept up to date by rank-two updates.
    S : ndarray of shape (n_components, n_components)
        Accumulated precision of the dictionary, shared by all features.
    code : ndarray of shape (n_components,) or None
        Code of the last observation; None before there was one.
    n_seen : int
        Observations so far.
    drift : int
        Entries of the data learned from since G was last computed from C.
    scale : float
        A power of two, other than 1 only for data of extreme size.
    least_ridge : float
        Ridge that a forgetting or shrinking rule has at least, in units of scale².
    since, entries, residual : int, int, float
        Rows since the dictionary was last pulled towards zero, their observed entries and their
        residual energy.
    prior : float
        What S held of `shrink` at that time.
    """

    rule: Rule
    C: NDArray[Any]
    G: NDArray[np.float64]
    S: NDArray[np.float64]
    code: NDArray[np.float64] | None = None
    n_seen: int = 0
    drift: int = 0
    scale: float = 1.0
    least_ridge: float = 0.0
    since: int = 0
    entries: int = 0
    residual: float = 0.0
    prior: float = 0.0

    @property
    def ridge(self) -> float:
        """Pull of a code towards zero, in units of scale².

        With 0 < memory < 1 the alternation makes the dictionary ever smaller and the codes ever
        larger, by about (noise / signal) / window² for each row, and nothing would stop it. So it
        is where the dictionary is pulled towards zero.
        """
        ridge = self._in_units(self.rule.ridge)
        fading = 0.0 < self.rule.memory < 1.0 or self.rule.shrink > 0.0
        return max(ridge, self.least_ridge) if fading else ridge

    @property
    def smooth(self) -> float:
        """Pull of a code towards the code before, in units of scale²."""
        return self._in_units(self.rule.smooth)

    @property
    def weight(self) -> float:
        """What the rows so far count beside the next one: S keeps weight / (weight + 1) of itself.

        So a row counts in proportion to how late it came. The first codes belong to a dictionary
        that was still poor, and to count them like the others leaves a larger error; the head
        start is for the first rows, which are too few to lose any. Rows that are mostly missing
        fade nothing: there the first dictionary's weight is what keeps from overfitting.
        """
        return float(self.n_seen + HEAD_START * self.C.shape[1])

    def _in_units(self, pull: float) -> float:
        return pull if self.scale == 1.0 else min(pull / self.scale / self.scale, 1e300)


class Info(NamedTuple):
    """What a step tells: energies over the observed entries, in units of the state's scale."""

    residual: float
    """‖y − C x‖², summed over the rows, each with the dictionary before it learned from the row."""
    energy: float
    """‖y‖², summed over the rows."""

    def plus(self, other: "Info") -> "Info":
        """The energies of both."""
        return Info(self.residual + other.residual, self.energy + other.energy)

    @property
    def error(self) -> float:
        """The prequential error, sqrt(residual / energy); 0 where there was nothing to explain."""
        return float(np.sqrt(self.residual / self.energy)) if self.energy > 0.0 else 0.0
