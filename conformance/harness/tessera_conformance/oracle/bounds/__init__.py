"""Bounds on the distance of a result from the exact one, by which the level fast is judged.

For every function of the oracle that yields floats, `enclose` gives an enclosure for each element of the first result,
row-major. A complex element has two, the real part first. None means that nothing is promised: an operand is not
finite, the exact result is no number, or some order of the steps may overflow.

What is granted at every step, and nothing else:
- one rounding to nearest of the step's type, or a wider one: an intermediate may be kept wider than the reference has
  it, never narrower. So rounding twice, by way of a wider type, is within the bound;
- subnormal operands and results may be flushed to zero, except in fp8;
- an elementary function may be off by `FUNCTION_ULPS` units in the last place of the type;
- sums and products may be taken in any order, fused or not; a quotient may be a product with a reciprocal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.oracle.bounds.intervals import FUNCTION_ULPS, Enclosure, Enclosures
from tessera_conformance.oracle.bounds.operations import RULES as ENCLOSED
from tessera_conformance.oracle.bounds.operations import function, sums
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor

__all__ = ["ENCLOSED", "FUNCTION_ULPS", "Enclosure", "enclose", "function", "sums"]


def enclose(function_name: str, inputs: Sequence[Tensor], arguments: Mapping[str, Any]) -> Enclosures:
    """An enclosure for each element of the function's first result, row-major; two for a complex element.

    `function_name` is a name of `oracle.FUNCTIONS`, with or without `oracle.`; inputs and arguments are those that the
    function itself takes. A sum or a product may be taken in any order, whatever tree is among them.

    Raises `BadArgument`: the function yields no floats.
    """
    name = function_name.removeprefix("oracle.")
    if name not in ENCLOSED:
        raise BadArgument("function_name", function_name, f"one of {', '.join(ENCLOSED)}")
    return ENCLOSED[name](*inputs, **arguments)
