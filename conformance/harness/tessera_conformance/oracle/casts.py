"""Conversions between all dtypes.

Language spec usage, "op.cast": one rounding; a float becomes an integer by truncation toward zero, and an integer
another by wrapping. What a number out of an integer's range gives is not asserted: here it is the nearest end, and NaN
gives 0. Infinities and overflow become the largest finite value of fp8, unless `overflow="nonfinite"`. A bool is 0 or
1, and true is whatever is not zero. A complex number cannot become a real one; a real number gets the imaginary part
+0.
"""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance.oracle.elementary import Overflow, is_nonfinite
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import NAN, ZERO, Value, finite, is_infinite, is_negative, is_zero
from tessera_conformance.oracle.formats import COMPONENTS, FORMATS, FloatFormat, IntegerFormat, tensor_of, values_of
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor


def cast(x: Tensor, *, dtype: str, overflow: Overflow = "saturate") -> Tensor:
    """The elements as another dtype."""
    if dtype not in ELEMENT_FORMATS:
        raise BadArgument("dtype", dtype, f"one of {', '.join(ELEMENT_FORMATS)}")
    nonfinite = is_nonfinite(overflow)
    values = values_of(x)
    if x.dtype in COMPONENTS or dtype in COMPONENTS:
        return tensor_of(dtype, x.shape, _complex(values, x.dtype, dtype), nonfinite=nonfinite)
    if dtype == "bool":
        return Tensor.from_words("bool", x.shape, [int(not is_zero(value)) for value in values])
    target, source = FORMATS[dtype], FORMATS[x.dtype]
    if isinstance(target, IntegerFormat) and isinstance(source, FloatFormat):
        values = [_truncated(value, target) for value in values]
    return tensor_of(dtype, x.shape, values, nonfinite=nonfinite)


def _complex(values: list[Value], source: str, target: str) -> list[Value]:
    """The parts of complex numbers, the imaginary one +0 where the source is real."""
    if target not in COMPONENTS:
        raise BadArgument("dtype", target, f"a complex dtype for elements of {source}")
    if source in COMPONENTS:
        return values
    return [part for value in values for part in (value, ZERO)]


def _truncated(value: Value, target: IntegerFormat) -> Value:
    """Toward zero, and to the nearest end of the range."""
    least, greatest = -(1 << (target.bits - 1)), (1 << (target.bits - 1)) - 1
    if value is NAN:
        return ZERO
    if is_infinite(value):
        return Fraction(least if is_negative(value) else greatest)
    return Fraction(min(max(int(finite(value)), least), greatest))
