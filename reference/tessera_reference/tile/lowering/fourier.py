"""Discrete Fourier transforms: each element of the result is a row of products (section 5.2; canon, "fft").

For each k the tree over j of x[j] * w[jk mod n]. The factors w are a constant of the host, correctly rounded, which the
kernel gets as two more buffers; the scale is multiplied last, by component.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...graph.constant import ConstTensor
from ...graph.fft import FourierTransform
from ...graph.term import Term
from ...ir.targets import Target
from ...numerics.formats import DTYPES, DType
from ...numerics.fourier import twiddles
from ...schedule.nests import Nest
from ..complex_parts import Complex
from .index import Index
from .kernel import Extents, Terms, extents_of
from .nest_kernel import Extra, NestKernel, dtype_of
from .reductions import by_component
from .row_blocks import RowBlocks

UNSCALED = {False: "backward", True: "forward"}
"""The norm that multiplies by nothing, of a transform and of an inverse one."""

MOST = DTYPES["int32"].int_max
"""The largest product of two indices that an index can be."""


def fourier_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """The kernel of a transform, its grid and the threads of its blocks."""
    operation = nest.lead.operation
    assert isinstance(operation, FourierTransform)
    (x,), (result,) = nest.lead.operands, nest.lead.results
    shape, dtype = extents_of(x.type), dtype_of(result)
    factors = tuple(map(Extra, factors_of(shape[-1], dtype.component, operation.inverse)))
    kernel = NestKernel(nest, target, factors)
    rows = RowBlocks.of(kernel, shape, shape[-1])
    at = rows.position

    def term(index: Index) -> Term:
        turn = turned(kernel, index, at[-1], shape[-1])
        real, imaginary = (kernel.read(factor.value, (turn,)).value for factor in factors)
        element = kernel.read(x, (*at[:-1], index)).cast_to(dtype)
        return element * kernel.term(kernel.build(Complex, real, imaginary))

    def write(total: Term) -> Terms:
        kernel.write(result, at, scaled(kernel, operation, shape[-1], total))
        return ()

    if 0 not in shape:
        total = rows.tree(term, lambda a, b: a + b, dtype)
        rows.once(lambda: write(total))
    return kernel, rows.extents, rows.threads


def factors_of(n: int, component: DType, inverse: bool) -> tuple[ConstTensor, ConstTensor]:
    """The real and the imaginary parts of exp(-2 pi i m / n), m < n, or of its conjugate."""
    real, imaginary = twiddles(n, component)
    if inverse:
        imaginary = np.where(imaginary == 0, imaginary, np.negative(imaginary))
    first, second = (ConstTensor(shape=(n,), dtype=component, value=tuple(part.tolist())) for part in (real, imaginary))
    return first, second


def turned(kernel: NestKernel, j: Index, k: Index, n: int) -> Index:
    """jk mod n; in 64 bits where 32 do not hold the product."""
    if (n - 1) * (n - 1) <= MOST:
        return j * k % n
    wide, narrow = DTYPES["int64"], DTYPES["int32"]
    steps = j.term.cast_to(wide) * k.term.cast_to(wide)
    return kernel.index((steps - steps / n * kernel.exactly(n, wide)).cast_to(narrow).value)


def scaled(kernel: NestKernel, operation: FourierTransform, n: int, total: Term) -> Term:
    """The sum times 1 / sqrt(n), times 1 / n, or as it is."""
    if operation.norm == UNSCALED[operation.inverse]:
        return total
    component = total.dtype.component
    ortho = operation.norm == "ortho"
    factor = kernel.number(n, component).rsqrt() if ortho else kernel.number(Fraction(1, n), component)
    return by_component(kernel, total, lambda part: part * factor)
