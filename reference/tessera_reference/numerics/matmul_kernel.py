"""An accelerated left fold for matmul, with the same bits as the plain one; used where numba is installed.

The definition stays the plain fold in numpy (`matmul`). Numba compiles the three loops below for this machine, without
its fast-math mode, so that every product and every sum is rounded as written; `tests/numerics/test_fast_paths.py`
holds the bits equal. Set TESSERA_PLAIN_NUMERICS=1 to do without it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = npt.NDArray[Any]
Fold: TypeAlias = Callable[[Values, Values, Values], None]

_CARRIERS = frozenset(np.dtype(name) for name in ("float32", "float64", "int32", "int64"))

_WORTHWHILE = 1 << 22
"""Products from which on the kernel is used: starting the compiler takes a second, once in a process."""


def left_fold_product(a: Values, b: Values, start: Values) -> Values | None:
    """Return ((start + a[0] b[0]) + a[1] b[1]) + ... over ascending k, every product and every sum rounded.

    `a` is (..., M, K), `b` (..., K, N), `start` and the result (..., M, N), all of one accumulator's carrier. None
    where this module has nothing to offer: numba is missing or unwanted, the carrier is complex, the product small.
    """
    if a.dtype not in _CARRIERS or start.size * a.shape[-1] < _WORTHWHILE or not _wanted():
        return None
    compiled = _compiled()
    if compiled is None:
        return None
    matrices = prod(start.shape[:-2])
    total = np.array(start, order="C").reshape(matrices, *start.shape[-2:])
    left = np.ascontiguousarray(a).reshape(matrices, *a.shape[-2:])
    right = np.ascontiguousarray(b).reshape(matrices, *b.shape[-2:])
    compiled(left, right, total)
    return total.reshape(start.shape)


def _wanted() -> bool:
    return os.environ.get("TESSERA_PLAIN_NUMERICS", "") in ("", "0")


@cache
def _compiled() -> Fold | None:
    """Compile the fold; None without a numba for this numpy, or where products turn out not to be rounded."""
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        return None
    compiled: Fold = numba.njit(_fold, fastmath=False, error_model="numpy", nogil=True)
    return compiled if _rounds_products(compiled) else None


def _fold(left: Values, right: Values, total: Values) -> None:
    """Add the products of (matrices, M, K) and (matrices, K, N) onto `total`, (matrices, M, N), k ascending."""
    matrices, rows, terms = left.shape
    columns = right.shape[2]
    for matrix in range(matrices):
        for row in range(rows):
            for k in range(terms):
                factor = left[matrix, row, k]
                for column in range(columns):
                    total[matrix, row, column] += factor * right[matrix, k, column]


def _rounds_products(fold: Fold) -> bool:
    """True if (1 + e)**2 - (1 + 2e) is 0, as it is when the product is rounded; a fused multiply-add gives e**2."""
    for carrier, e in ((np.float32, 2.0**-12), (np.float64, 2.0**-27)):
        factor = np.full((1, 1, 1), 1 + e, carrier)
        total = np.full((1, 1, 64), -(1 + 2 * e), carrier)
        fold(factor, np.full((1, 1, 64), 1 + e, carrier), total)
        if total.any():
            return False
    return True
