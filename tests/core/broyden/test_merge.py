"""What parts of a start have learned adds up as the mathematics says: the paper's algorithm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.broyden import merge as of_broyden
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.evidence import MergeError

CONFIG = BroydenConfig(forget_factor=1.0)


def table(seed, n, m, missing=0.0, rank=3):
    rng = np.random.default_rng(seed)
    X = 2 + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m))
    X += 0.3 * rng.standard_normal((n, m))
    X[rng.random((n, m)) < missing] = np.nan
    return X


def mean_weight(w, n, f):
    """The average of ((w + t) / (w + n))ᶠ over t from 0 to n."""
    return ((w + n) ** (f + 1) - w ** (f + 1)) / ((f + 1) * n * (w + n) ** f)


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


@given(seed=st.integers(0, 99), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_states_of_the_rule_add_up(seed, cuts):
    rows = [table(seed + at, n, 8) for at, n in enumerate(cuts)]
    start = broyden.step(broyden.init(rows[0], 3, CONFIG, seed=0), table(seed, 30, 8))[0]
    steps = [broyden.step(start, part) for part in rows]
    merged = of_broyden.merge(start, [part for part, _, _ in steps])
    w, n = start.weight, sum(cuts)
    S, CS = w / (w + n) * start.S, w / (w + n) * start.C @ start.S
    for Y, (part, X, _) in zip(rows, steps, strict=True):
        mine = len(Y)
        weights = (w + 1 + np.arange(mine)) / (w + mine)
        weights *= mean_weight(w, n, 1) / mean_weight(w, mine, 1)
        S, CS = S + (X.T * weights) @ X, CS + (Y.T * weights) @ X
        assert part.start_weight == pytest.approx(start.start_weight * w / (w + mine), rel=1e-12)
    close(merged.S, S)
    close(merged.C @ merged.S, CS)
    close(merged.G, merged.C.T @ merged.C)
    assert merged.n_seen == 30 + n
    assert merged.start_weight == pytest.approx(start.start_weight * w / (w + n), rel=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_state_knows_what_it_has_kept_of_its_start(missing, batch_size):
    X = table(0, 64, 20, missing)
    start = broyden.init(X, 3, BroydenConfig(batch_size=batch_size, forget_factor=1.0), seed=0)
    part, codes, _ = broyden.step(start, X)
    added = np.zeros((3, 3))
    for at in range(0, 64, batch_size):  # S as the config's definition adds it up
        some = slice(at, at + batch_size)
        shares = (~np.isnan(X[some])).mean(axis=1)
        count = start.weight + at
        left = count / (count + batch_size) if shares.mean() >= 0.5 else 1.0
        added = left * added + (codes[some].T * shares) @ codes[some]
    close(part.S, part.start_weight * start.S + added, 1e-8)


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"forget_factor": 0.0}, "forget_factor=0"),
        ({"shrink": 2, "forget_factor": 1}, "shrink=2"),
        ({"positive_dict": True, "forget_factor": 1}, "positive_dict or alpha"),
    ],
)
def test_configs_whose_sums_do_not_add_up_are_refused(config, what):
    X = table(4, 50, 6)
    start = broyden.init(X, 2, BroydenConfig(**config), seed=0)
    with pytest.raises(MergeError, match=what):
        of_broyden.merge(start, [broyden.step(start, X)[0]])


def test_states_of_another_start_are_refused():
    X = table(4, 50, 6)
    start, other = (broyden.init(X, 2, CONFIG, seed=seed) for seed in (0, 1))
    with pytest.raises(MergeError, match="no common start"):
        of_broyden.merge(start, [broyden.step(other, X)[0]])
