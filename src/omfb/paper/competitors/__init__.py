"""What the paper compares with: stochastic gradients and multiplicative updates."""

from .nmf import NMF
from .sgmf import SGMF, DivergedError

__all__ = ["NMF", "SGMF", "DivergedError"]
