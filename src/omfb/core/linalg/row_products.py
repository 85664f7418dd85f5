"""N = Y Yᵀ above its diagonal, for few and long rows.

Of a matrix with itself, OpenBLAS makes a product for AVX-512 at 0.5 to 0.8 of the speed of others.
With the 32 registers that such a processor has, a plain loop that keeps four rows' sums with four
others there is 1.2 (120 rows) to 2 times (64) as fast. With fewer registers BLAS is better.
"""

from typing import Any

import llvmlite.binding
import numpy as np
from numpy.typing import NDArray

from .compiling import inner_jit, jit
from .rows import Matrix

# Multiply-adds below which BLAS is as good, and the kernel need not be compiled.
FEW = 1_000_000


def _has_many_registers() -> bool:
    try:
        return bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))
    except RuntimeError:  # LLVM does not know this processor
        return False


MANY_REGISTERS = _has_many_registers()


def add_row_products(Y: NDArray[Any], features: slice, N: Matrix) -> None:
    """Add the rows' products over these features to N, above its diagonal and on it."""
    rows = Y[:, features]
    if not MANY_REGISTERS or len(Y) * rows.size < FEW:
        N += rows @ rows.T
    elif Y.flags.c_contiguous and Y.flags.writeable:
        _add_row_products(Y, features.start, features.stop, N)
    else:  # a type of its own, for which the kernel would be compiled again
        _add_row_products(np.array(rows, order="C"), 0, rows.shape[1], N)


@inner_jit
def _four_rows(Y, t, first, last):
    """Four rows from t on, the last one again where there are fewer."""
    end = Y.shape[0] - 1
    return (
        Y[t, first:last],
        Y[min(t + 1, end), first:last],
        Y[min(t + 2, end), first:last],
        Y[min(t + 3, end), first:last],
    )


@jit
def _add_row_products(Y, first, last, N):
    q = Y.shape[0]
    tile = np.empty((4, 4))
    for i in range(0, q, 4):
        a0, a1, a2, a3 = _four_rows(Y, i, first, last)
        for j in range(i, q, 4):
            b0, b1, b2, b3 = _four_rows(Y, j, first, last)
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = Y.dtype.type(0.0)
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = Y.dtype.type(0.0)
            for k in range(last - first):
                s00 += a0[k] * b0[k]
                s01 += a0[k] * b1[k]
                s02 += a0[k] * b2[k]
                s03 += a0[k] * b3[k]
                s10 += a1[k] * b0[k]
                s11 += a1[k] * b1[k]
                s12 += a1[k] * b2[k]
                s13 += a1[k] * b3[k]
                s20 += a2[k] * b0[k]
                s21 += a2[k] * b1[k]
                s22 += a2[k] * b2[k]
                s23 += a2[k] * b3[k]
                s30 += a3[k] * b0[k]
                s31 += a3[k] * b1[k]
                s32 += a3[k] * b2[k]
                s33 += a3[k] * b3[k]
            tile[0, 0], tile[0, 1], tile[0, 2], tile[0, 3] = s00, s01, s02, s03
            tile[1, 0], tile[1, 1], tile[1, 2], tile[1, 3] = s10, s11, s12, s13
            tile[2, 0], tile[2, 1], tile[2, 2], tile[2, 3] = s20, s21, s22, s23
            tile[3, 0], tile[3, 1], tile[3, 2], tile[3, 3] = s30, s31, s32, s33
            for s in range(min(4, q - i)):
                for t in range(min(4, q - j)):
                    N[i + s, j + t] += tile[s, t]
