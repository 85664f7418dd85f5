"""A photograph with half of its pixels missing, restored from its own patches.

Each row of the table that omfb fills is a patch of the photograph, with what is missing of it.
Patches overlap, so each missing pixel is filled several times: what is shown is their mean.
"""

import time
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
from sklearn.datasets import load_sample_image

from ..estimators.imputer import OMFBImputer
from ..report.outcome import Claim, Outcome, Track, untracked

Pixels = NDArray[np.float64]

NAME = "photograph"
SIDE, STEP = 8, 4  # of a patch, and between patches, in pixels
OURS, LINEAR, MEAN = "omfb, nothing set", "linear interpolation", "mean colour"
ORIGINAL, INCOMPLETE = "original", "half of the pixels missing"
PSNR, SECONDS = "PSNR", "seconds"


def photograph() -> Pixels:
    """One of scikit-learn's photographs, (height, width, 3), from 0 to 1."""
    return load_sample_image("china.jpg") / 255.0


def run(original: Pixels, seed: int = 0, track: Track[Any] = untracked) -> Outcome:
    """Restore the photograph by every method, and judge the pixels that were missing."""
    patches = f"{SIDE} × {SIDE}, every {STEP} pixels"
    settings = {"patches": patches, OURS: OMFBImputer(random_state=seed).get_params()}
    outcome = Outcome(NAME, "a photograph, half of its pixels missing", settings)
    missing = np.random.default_rng(seed).random(original.shape[:2]) < 0.5
    incomplete = np.where(missing[..., None], np.nan, original)
    outcome.pictures = {ORIGINAL: original, INCOMPLETE: incomplete}
    methods = {OURS: from_patches, LINEAR: _interpolated, MEAN: _mean_colour}
    for method in track(methods, "restoring a photograph", len(methods)):
        started = time.perf_counter()
        restored = np.clip(methods[method](incomplete, seed), 0.0, 1.0)
        outcome.add(method, SECONDS, 0, time.perf_counter() - started)
        outcome.add(method, PSNR, 0, _psnr((restored - original)[missing]))
        outcome.pictures[method] = restored
    outcome.table = [
        {
            "method": method,
            "PSNR of missing pixels": f"{outcome.values(method, PSNR)[0]:.2f} dB",
            "seconds": f"{outcome.values(method, SECONDS)[0]:.1f}",
        }
        for method in methods
    ]
    ours, linear = (outcome.values(method, PSNR)[0] for method in (OURS, LINEAR))
    text = "omfb restores the photograph better than linear interpolation"
    measured = f"{ours:.2f} against {linear:.2f} dB"
    outcome.claims = [Claim(text, "higher PSNR", measured, ours > linear)]
    return outcome


def from_patches(incomplete: Pixels, seed: int) -> Pixels:
    """The picture, filled from what its patches have in common."""
    windows = sliding_window_view(incomplete, (SIDE, SIDE), axis=(0, 1))
    down, across = (_starts(length) for length in incomplete.shape[:2])
    patches = windows[np.ix_(down, across)]
    rows = patches.reshape(len(down) * len(across), -1)
    filled = OMFBImputer(random_state=seed).fit(rows).complete(rows).reshape(patches.shape)
    total, count = np.zeros_like(incomplete), np.zeros_like(incomplete)
    for i, top in enumerate(down):
        for j, left in enumerate(across):
            place = np.s_[top : top + SIDE, left : left + SIDE]
            total[place] += filled[i, j].transpose(1, 2, 0)
            count[place] += 1.0
    return np.where(np.isnan(incomplete), total / count, incomplete)


def _starts(length: int) -> list[int]:
    """Where patches begin; the last one ends with the picture."""
    return sorted({*range(0, length - SIDE, STEP), length - SIDE})


def _interpolated(incomplete: Pixels, seed: int) -> Pixels:
    """Linear between known pixels, and the nearest one where they are on one side only."""
    missing = np.isnan(incomplete[..., 0])
    known, wanted = np.argwhere(~missing), np.argwhere(missing)
    filled = incomplete.copy()
    filled[missing] = LinearNDInterpolator(known, incomplete[~missing])(wanted)
    outside = np.isnan(filled[..., 0])
    nearest = NearestNDInterpolator(known, incomplete[~missing])
    filled[outside] = nearest(np.argwhere(outside))
    return filled


def _mean_colour(incomplete: Pixels, seed: int) -> Pixels:
    return np.where(np.isnan(incomplete), np.nanmean(incomplete, axis=(0, 1)), incomplete)


def _psnr(errors: Pixels) -> float:
    """Peak signal-to-noise ratio in decibels, for values from 0 to 1."""
    return float(-10.0 * np.log10(np.mean(errors**2)))
