"""The discrete Fourier transform over the last axis, as the canon composes it.

For each k the canonical tree over j of x[j] * w[jk mod n], where w[m] = exp(-2 pi i m / n), for the inverse its
conjugate, has both parts correctly rounded; complex products are (ac - bd, ad + bc), every step rounded; the scale
comes last, one multiplication of both parts by the correctly rounded factor. A float is a complex number whose
imaginary part is +0: of fp64 a complex128, of any narrower one a complex64.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.axes import along
from tessera_conformance.oracle.complex_operands import complex_operand
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import ZERO, Value
from tessera_conformance.oracle.fields import Complex, ComplexField, elements_of, tensor_from
from tessera_conformance.oracle.formats import FloatFormat, component_format
from tessera_conformance.oracle.functions import evaluate, turn
from tessera_conformance.oracle.trees import Node, grown, reduced
from tessera_conformance.tensors import Tensor

Norm: TypeAlias = Literal["ortho", "backward", "forward"]


def fft(x: Tensor, *, norm: Norm = "ortho") -> Tensor:
    """The transform; `norm` says which direction is scaled: each by 1/sqrt(n), the inverse by 1/n, or this by 1/n."""
    return _transform(x, norm, inverse=False)


def ifft(x: Tensor, *, norm: Norm = "ortho") -> Tensor:
    """The inverse transform."""
    return _transform(x, norm, inverse=True)


def root(m: int, n: int, inverse: bool, format_: FloatFormat) -> Complex:
    """exp(-2 pi i m / n), or its conjugate, both parts correctly rounded; zeros are +0."""
    return turn(m if inverse else -m, n, format_)


def scale_factor(n: int, norm: str, inverse: bool, format_: FloatFormat) -> Value | None:
    """What a transform of length n multiplies by last; None where it does not.

    Raises:
        BadArgument: there is no such norm.
    """
    if norm not in ("ortho", "backward", "forward"):
        raise BadArgument("norm", norm, "ortho, backward or forward")
    if norm == "ortho":
        return evaluate("rsqrt", format_, Fraction(n))
    return format_.round(Fraction(1, n)) if (norm == "backward") == inverse else None


def rows_of(x: Tensor) -> list[list[int]]:
    """The places of the rows to transform.

    Raises:
        BadArgument: the last axis is empty or missing.
    """
    if not x.shape or not x.shape[-1]:
        raise BadArgument("shape", list(x.shape), "a last axis of at least one element")
    return along(x.shape, -1).places


def _transform(x: Tensor, norm: str, *, inverse: bool) -> Tensor:
    x = complex_operand(x)
    rows, n = rows_of(x), x.shape[-1]
    format_ = component_format(x.dtype)
    field = ComplexField(format_)
    factor = scale_factor(n, norm, inverse, format_)
    roots = [root(m, n, inverse, format_) for m in range(n)]
    node = grown("pairwise", n, start=False)
    elements = elements_of(x)
    results: list[Complex] = []
    for places in rows:
        row = [elements[place] for place in places]
        sums = [_frequency(row, roots, k, node, field) for k in range(n)]
        results.extend(sums if factor is None else [_scaled(value, factor, format_) for value in sums])
    return tensor_from(x.dtype, x.shape, results)


def _frequency(row: list[Complex], roots: list[Complex], k: int, node: Node, field: ComplexField) -> Complex:
    n = len(row)
    found: Complex = reduced(node, lambda j: field.multiply(row[j], roots[j * k % n]), (ZERO, ZERO), field.total)
    return found


def _scaled(element: Complex, factor: Value, format_: FloatFormat) -> Complex:
    real, imaginary = (format_.round(exact.multiply(part, factor)) for part in element)
    return real, imaginary
