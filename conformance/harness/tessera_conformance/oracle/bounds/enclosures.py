"""Enclosures of the results of every function of the oracle that yields floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tessera_conformance.oracle.bounds import compositions, operations, reductions
from tessera_conformance.oracle.bounds import reductions as movement
from tessera_conformance.oracle.bounds import reductions as wires
from tessera_conformance.oracle.bounds.intervals import Enclosures
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor

ENCLOSED: Mapping[str, Callable[..., Enclosures]] = {
    **compositions.ATTENTION_RULES,
    **operations.ELEMENTWISE_RULES,
    **movement.MOVEMENT_RULES,
    **compositions.NORMALIZATION_RULES,
    **operations.PRODUCT_RULES,
    **compositions.RANDOM_RULES,
    **reductions.RULES,
    **compositions.SOFTMAX_RULES,
    **compositions.TRANSFORMS_RULES,
    **wires.PAYLOADS_RULES,
}
"""The rule of each function, by its name in the oracle."""

ORDERED = ("matmul", "sum", "mean", "prod", "softmax", "logsumexp")
"""The functions that take an order."""

matmul = operations.matmul
function = operations.function


def enclose(
    function_name: str, inputs: Sequence[Tensor], arguments: Mapping[str, Any], *, known_order: bool = False
) -> Enclosures:
    """An enclosure for each element of the function's first result, row-major; two for a complex element.

    `function_name` is a name of `oracle.FUNCTIONS`, with or without `oracle.`; inputs and arguments are those that the
    function itself takes. With `known_order` the bound is that of the order or tree among the arguments; without it, of
    any order.

    Raises:
        BadArgument: the function yields no floats.
    """
    name = function_name.removeprefix("oracle.")
    if name not in ENCLOSED:
        raise BadArgument("function_name", function_name, f"one of {', '.join(ENCLOSED)}")
    if name in ORDERED:
        return ENCLOSED[name](*inputs, **arguments, known_order=known_order)
    return ENCLOSED[name](*inputs, **arguments)
