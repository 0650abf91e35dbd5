"""An accelerated left fold for matmul, with the same bits as the plain one; used where llvmlite is installed.

The definition stays the plain fold in numpy (`matmul`). The loops below are written as instructions of LLVM. It
compiles them for this machine in a twentieth of a second, once in a process; nothing is kept on disk. Every product and
every sum is an instruction of its own without fast-math flags, so that each is rounded as written;
`tests/numerics/test_fast_paths.py` holds the bits equal. Set TESSERA_PLAIN_NUMERICS=1 to do without it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .kernels import compile_loops, loop, wanted

Values: TypeAlias = npt.NDArray[Any]
Fold: TypeAlias = Callable[[Values, Values, Values], None]

_CARRIERS = frozenset(np.dtype(name) for name in ("float32", "float64", "int32", "int64"))

_WORTHWHILE = 1 << 22
"""The number of products from which a process compiles the kernel: the plain fold takes as long as compiling."""

_WIDTH, _HEIGHT, _DEPTH = 512, 128, 8
"""The columns and rows of the result, and the terms, handled at once: a panel of B stays in the first cache, and the
block of the result in the second. A row of the block is read and written once for all terms of a panel, in order."""

_products = 0
"""The number of products requested so far in this process."""


def left_fold_product(a: Values, b: Values, start: Values) -> Values | None:
    """Return ((start + a[0] b[0]) + a[1] b[1]) + ... over ascending k, every product and every sum rounded.

    `a` is (..., M, K), `b` (..., K, N), `start` and the result (..., M, N), all of one accumulator's carrier. Return
    None where the compiled fold is not available: llvmlite is missing or unwanted, the carrier is complex, or the
    products of this process are too few.
    """
    global _products
    if a.dtype not in _CARRIERS or not wanted():
        return None
    _products += start.size * a.shape[-1]
    if _products < _WORTHWHILE:
        return None
    compiled = _compiled(a.dtype)
    if compiled is None:
        return None
    matrices = prod(start.shape[:-2])
    total = np.array(start, order="C").reshape(matrices, *start.shape[-2:])
    left = np.ascontiguousarray(a).reshape(matrices, *a.shape[-2:])
    right = np.ascontiguousarray(b).reshape(matrices, *b.shape[-2:])
    compiled(left, right, total)
    return total.reshape(start.shape)


@cache
def _compiled(carrier: np.dtype[Any]) -> Fold | None:
    """Compile the fold; None without llvmlite, or if a check shows that products are not rounded."""
    compiled = compile_loops("fold", lambda ir: _instructions(ir, carrier))
    if compiled is None:
        return None
    address, engine = compiled
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 4)(address)

    def fold(left: Values, right: Values, total: Values, _code: Any = engine) -> None:
        panel = np.empty(_DEPTH * _WIDTH, carrier)
        call(*(array.ctypes.data for array in (total, left, right, panel)), *left.shape, right.shape[2])

    return fold if carrier.kind == "i" or _rounds_products(fold, carrier) else None


def _instructions(ir: Any, carrier: np.dtype[Any]) -> Any:
    """Return the module with fold(total, left, right, panel, matrices, M, K, N).

    It adds the products of (matrices, M, K) and (matrices, K, N) onto `total`, (matrices, M, N), k ascending.
    """
    whole = ir.IntType(64)
    element = {"float32": ir.FloatType(), "float64": ir.DoubleType()}.get(
        carrier.name, ir.IntType(8 * carrier.itemsize)
    )
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [element.as_pointer()] * 4 + [whole] * 4), "fold")
    for pointer in function.args[:4]:
        pointer.add_attribute("noalias")
    bases, (matrices, rows, terms, columns) = function.args[:4], function.args[4:]
    build = ir.IRBuilder(function.append_basic_block())
    add, multiply = (build.fadd, build.fmul) if carrier.kind == "f" else (build.add, build.mul)

    def smaller(a: Any, b: Any) -> Any:
        return build.select(build.icmp_signed("<", a, b), a, b)

    zero = whole(0)
    whole_panels = build.and_(terms, whole(-_DEPTH))
    with loop(build, zero, matrices, 1) as matrix:
        sizes = ((rows, columns), (rows, terms), (terms, columns))
        total, left, right = (
            build.gep(base, [build.mul(matrix, build.mul(*size))]) for base, size in zip(bases, sizes, strict=False)
        )
        panels = [build.gep(bases[3], [whole(i * _WIDTH)]) for i in range(_DEPTH)]
        with loop(build, zero, columns, _WIDTH) as column:
            width = smaller(whole(_WIDTH), build.sub(columns, column))
            with loop(build, zero, rows, _HEIGHT) as top:
                bottom = smaller(rows, build.add(top, whole(_HEIGHT)))
                for first, end, depth in ((zero, whole_panels, _DEPTH), (whole_panels, terms, 1)):
                    with loop(build, first, end, depth) as k:
                        with loop(build, zero, whole(depth), 1) as i:
                            source = build.gep(right, [build.add(build.mul(build.add(k, i), columns), column)])
                            panel = build.gep(bases[3], [build.mul(i, whole(_WIDTH))])
                            with loop(build, zero, width, 1) as j:
                                build.store(build.load(build.gep(source, [j])), build.gep(panel, [j]))
                        with loop(build, top, bottom, 1) as row:
                            factor = build.gep(left, [build.add(build.mul(row, terms), k)])
                            factors = [build.load(build.gep(factor, [whole(i)])) for i in range(depth)]
                            target = build.gep(total, [build.add(build.mul(row, columns), column)])
                            with loop(build, zero, width, 1) as j:
                                place = build.gep(target, [j])
                                accumulator = build.load(place)
                                for panel, a_k in zip(panels, factors, strict=False):
                                    accumulator = add(accumulator, multiply(a_k, build.load(build.gep(panel, [j]))))
                                build.store(accumulator, place)
    build.ret_void()
    return module


def _rounds_products(fold: Fold, carrier: np.dtype[Any]) -> bool:
    """True if (1 + e)**2 - (1 + 2e) is 0, as it is when the product is rounded; a fused multiply-add gives e**2."""
    e = 2.0 ** -(12 if carrier == np.float32 else 27)
    for terms in (1, _DEPTH):  # only the last product is not 0
        factors = np.zeros((1, 1, terms), carrier)
        factors[..., -1] = 1 + e
        total = np.full((1, 1, 64), -(1 + 2 * e), carrier)
        fold(factors, np.full((1, terms, 64), 1 + e, carrier), total)
        if total.any():
            return False
    return True
