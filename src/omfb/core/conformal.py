"""Conformal calibration of intervals, from a histogram of standardised errors.

A standardised error is |error| / predicted standard deviation, on a held-out entry. The width of an
interval is a quantile of past standardised errors, so that it holds its level whatever the
distribution of the errors is.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

Vector = NDArray[np.float64]

# Bins of log2(standardised error), from −LOWEST octaves on.
BINS_PER_OCTAVE, LOWEST, OCTAVES = 16, 6, 12
N_BINS = BINS_PER_OCTAVE * OCTAVES
# Probability that a normal variable is within one standard deviation.
WITHIN_ONE_DEVIATION = 0.6827


def binned(sizes: Vector, weights: Vector) -> Vector:
    """The histogram of standardised errors.

    Parameters
    ----------
    sizes : ndarray of shape (n,)
        Standardised errors; NaN counts as infinitely large.
    weights : ndarray of shape (n,)

    Returns
    -------
    histogram : ndarray of shape (N_BINS,)
    """
    with np.errstate(divide="ignore"):
        at = BINS_PER_OCTAVE * (np.log2(sizes) + LOWEST)
    at = np.where(np.isnan(at), N_BINS - 1, np.clip(at, 0, N_BINS - 1))
    counts = np.bincount(at.astype(int), weights, N_BINS)
    return counts.astype(np.float64, copy=False)


def rescaled(histogram: Vector, change: float) -> Vector:
    """The histogram as if the predicted deviations had been `change` times as large."""
    at = np.arange(N_BINS) + BINS_PER_OCTAVE * np.log2(change)
    total = np.concatenate([[0.0], np.cumsum(histogram)])
    below = np.interp(np.append(at, at[-1] + 1.0), np.arange(N_BINS + 1), total)
    below[0], below[-1] = 0.0, total[-1]
    return np.diff(below)


def quantile(histogram: Vector, level: float) -> float:
    """Number of predicted deviations that hold a share `level` of the errors.

    With fewer than 20 errors the quantile is shrunk towards that of the normal distribution.
    """
    total = float(histogram.sum())
    normal = float(ndtri(0.5 + level / 2.0))
    if total == 0.0:
        return normal
    below = np.concatenate([[0.0], np.cumsum(histogram)]) / total
    found = 2.0 ** (
        float(np.interp(level, below, np.arange(N_BINS + 1))) / BINS_PER_OCTAVE - LOWEST
    )
    trust = min(1.0, total / 20.0)
    return trust * found + (1.0 - trust) * normal


def calibration(histogram: Vector) -> float:
    """Factor for predicted deviations so that one deviation holds as much as a normal one's."""
    return quantile(histogram, WITHIN_ONE_DEVIATION)


def normal_sizes(n: int) -> Vector:
    """Sizes of n standardised errors that a normal law expects."""
    sizes: Vector = ndtri(0.5 + (np.arange(n) + 0.5) / (2.0 * n)) if n else np.empty(0)
    return sizes


def student_factor(level: float, dof: Vector) -> Vector:
    """How much wider than a normal interval Student's is; infinite without a degree of freedom."""
    known = dof > 0.0
    wide = stdtrit(np.where(known, dof, 1.0), 0.5 + level / 2.0)
    factor: Vector = np.where(known, wide / ndtri(0.5 + level / 2.0), np.inf)
    return factor


def share_beyond(histogram: Vector, deviations: float) -> float:
    """Share of the errors that exceed so many predicted deviations; 0 if there are none."""
    first = int(BINS_PER_OCTAVE * (np.log2(deviations) + LOWEST))
    return float(histogram[first:].sum()) / max(float(histogram.sum()), 1e-300)
