"""Errors in units of their predicted deviation, as a histogram: what makes intervals conformal."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Vector = NDArray[np.float64]

# Bins of the histogram: of log2 |error / deviation|, from −LOWEST octaves on.
BINS_PER_OCTAVE, LOWEST, OCTAVES = 16, 6, 12
N_BINS = BINS_PER_OCTAVE * OCTAVES
# Share of a normal law that is within one deviation.
WITHIN_ONE_DEVIATION = 0.6827


def binned(sizes: Vector, weights: Vector) -> Vector:
    """A histogram of errors in units of their deviation."""
    with np.errstate(divide="ignore"):
        at = BINS_PER_OCTAVE * (np.log2(sizes) + LOWEST)
    at = np.where(np.isnan(at), N_BINS - 1, np.clip(at, 0, N_BINS - 1))
    counts = np.bincount(at.astype(int), weights, N_BINS)
    return counts.astype(np.float64, copy=False)


def rescaled(histogram: Vector, change: float) -> Vector:
    """The histogram, had the deviations been `change` times as large."""
    at = np.arange(N_BINS) + BINS_PER_OCTAVE * np.log2(change)
    total = np.concatenate([[0.0], np.cumsum(histogram)])
    below = np.interp(np.append(at, at[-1] + 1.0), np.arange(N_BINS + 1), total)
    below[0], below[-1] = 0.0, total[-1]
    return np.diff(below)


def quantile(histogram: Vector, level: float) -> float:
    """How many predicted deviations hold this share of the errors."""
    total = float(histogram.sum())
    normal = float(norm.ppf(0.5 + level / 2.0))
    if total == 0.0:
        return normal
    below = np.concatenate([[0.0], np.cumsum(histogram)]) / total
    found = 2.0 ** (
        float(np.interp(level, below, np.arange(N_BINS + 1))) / BINS_PER_OCTAVE - LOWEST
    )
    trust = min(1.0, total / 20.0)
    return trust * found + (1.0 - trust) * normal


def calibration(histogram: Vector) -> float:
    """What predicted deviations are to be multiplied by, to hold what a normal law's hold."""
    return quantile(histogram, WITHIN_ONE_DEVIATION)


def share_beyond(histogram: Vector, deviations: float) -> float:
    """Share of the errors that exceed so many predicted deviations; 0 if there are none."""
    first = int(BINS_PER_OCTAVE * (np.log2(deviations) + LOWEST))
    return float(histogram[first:].sum()) / max(float(histogram.sum()), 1e-300)
