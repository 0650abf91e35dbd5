"""Results of elementary functions that no accuracy changes: special values, and numbers far beyond the range."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import gmpy2

from tessera_conformance.oracle.bounds.elementwise import point
from tessera_conformance.oracle.bounds.intervals import Unpromised
from tessera_conformance.oracle.bounds.steps import image, may_flush
from tessera_conformance.oracle.elementwise import paired
from tessera_conformance.oracle.exact import Value
from tessera_conformance.oracle.formats import FloatFormat, float_format, values_of
from tessera_conformance.tensors import Tensor


def settled(name: str, *inputs: Tensor, ulps: float, flushes: bool) -> list[bool]:
    """For each element, whether its bits are settled (IEEE 754-2019, 9.2.1) although no enclosure holds it.

    So they are where an operand is infinite or NaN, where the function has no value or a pole, and where the exact
    result is so large that no error of `ulps` brings it back into the range. With `flushes` a subnormal operand may be
    taken for zero, which settles nothing.
    """
    format_ = float_format(inputs[0].dtype)
    groups = [(value,) for value in values_of(inputs[0])] if len(inputs) == 1 else paired(*inputs)[1]
    known = {group: _is_settled(name, group, format_, ulps, flushes and may_flush(format_)) for group in set(groups)}
    return [known[group] for group in groups]


def _is_settled(name: str, group: Sequence[Value], format_: FloatFormat, ulps: float, flushes: bool) -> bool:
    if flushes and any(isinstance(value, Fraction) and 0 < abs(value) < format_.smallest_normal for value in group):
        return False
    operands = [point(value) for value in group]
    finite = [operand for operand in operands if operand is not None]
    if len(finite) < len(operands):
        return True
    try:
        exact = image(name, *finite)
    except Unpromised:
        return True
    reach = 1 + (ulps + 1) * gmpy2.exp2(-format_.fraction_bits)
    return bool(min(abs(exact.low), abs(exact.high)) > gmpy2.mpfr(gmpy2.mpq(format_.largest)) * reach)
