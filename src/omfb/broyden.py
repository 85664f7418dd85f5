"""The paper's algorithm as pure functions: `init`, `step`, `encode` and `fill`.

>>> import numpy as np
>>> from omfb import broyden
>>> rows = np.random.default_rng(0).random((100, 20))
>>> state = broyden.init(rows, 3, broyden.BroydenConfig(lam=2.0), seed=0)
>>> state, codes, info = broyden.step(state, rows)
>>> codes.shape, state.n_seen
((100, 3), 100)
"""

from .core.broyden.config import BroydenConfig
from .core.broyden.encode import encode, fill
from .core.broyden.state import State
from .core.broyden.step import init, step

__all__ = ["BroydenConfig", "State", "encode", "fill", "init", "step"]
