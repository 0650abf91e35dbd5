"""Single elements of fused operations: what each operation reads for one element of its result, and how it computes it.

Elementwise operations are applied to scalars, which is what they do to each element (section 3.2); operations that move
elements become index arithmetic. First the positions that are needed are propagated from results to operands; then the
elements are computed in program order, once for each needed position. The rules for moving elements are in `movements`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

from ...graph.cast import Cast
from ...graph.constant import Constant
from ...graph.elementwise import ElementwiseBinary, Negate
from ...graph.functions import FloatFunction
from ...graph.selection import Abs, Clamp, Select
from ...graph.term import Term
from ...ir.module import Instruction, Value
from ...ir.operation import Operation, Refusal, Role
from .index import Position, broadcast_to
from .kernel import extents_of
from .nest_kernel import NestKernel


@dataclass(frozen=True)
class Reading:
    """The operand elements that one element of a result needs; `combine` computes it from them, in that order."""

    elements: tuple[tuple[Value, Position], ...]
    combine: Callable[..., Term]


@singledispatch
def reading(operation: Operation, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """How an operation computes the element at a position of its result. Raises `Refusal`."""
    raise Refusal(
        "tile",
        f"no kernel holds {operation.short_name}",
        "operations on elements, products, and operations on rows",
        "LANG-08.2-03",
        "leave it in the host function",
    )


def _of_elements(operation: Operation, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """The elements of the operands at the position; operands that broadcast have theirs at its projection."""
    elements = tuple((value, broadcast_to(at, extents_of(value.type))) for value in instruction.operands)
    return Reading(elements, lambda *operands: applied(operation, operands, kernel))


for _kind in (ElementwiseBinary, Negate, FloatFunction, Select, Clamp, Abs, Cast, Constant):
    reading.register(_kind, _of_elements)


def applied(operation: Operation, operands: Sequence[Term], kernel: NestKernel) -> Term:
    """The operation on scalars."""
    own = {name: getattr(operation, name) for name, role in operation.roles.items() if role in _STATED}
    return kernel.term(kernel.build(type(operation), *(each.value for each in operands), **own))


_STATED = (Role.ATTRIBUTE, Role.HIDDEN)


def evaluate(
    kernel: NestKernel,
    instructions: Sequence[Instruction],
    wanted: Sequence[Value],
    at: Position,
    known: Mapping[Value, Term] | None = None,
) -> tuple[Term, ...]:
    """The elements at a position of values that instructions compute, or that are `known` there. Raises `Refusal`."""
    terms = {
        (value, place): term
        for value, term in (known or {}).items()
        for place in (at, broadcast_to(at, extents_of(value.type)))  # so an extent of 1 is read
    }
    needed: dict[Value, dict[Position, None]] = {value: {at: None} for value in wanted}
    plans: list[tuple[Value, Position, Reading]] = []
    for instruction in reversed(instructions):
        (result,) = instruction.results
        for position in needed.get(result, {}):
            if (result, position) not in terms:
                found = reading(instruction.operation, instruction, position, kernel)
                plans.append((result, position, found))
                for value, place in found.elements:
                    needed.setdefault(value, {})[place] = None
    for result, position, found in reversed(plans):
        for value, place in found.elements:
            if (value, place) not in terms:
                terms[value, place] = kernel.read(value, place)
        terms[result, position] = found.combine(*(terms[element] for element in found.elements))
    return tuple(terms[value, at] for value in wanted)
