"""Building instructions from code: for adjoints, decompositions and passes."""

from __future__ import annotations

from typing import Any

from .diagnostics import Location
from .module import Block, Instruction, Value
from .operation import Operation
from .types import Type


class BlockBuilder:
    """The `Builder` of one block: appends instructions, all at one place in the source, and names their results."""

    def __init__(self, location: Location, prefix: str = "") -> None:
        self.location = location
        self.prefix = prefix
        self.instructions: list[Instruction] = []
        self._named = 0

    def __call__(self, operation: type[Operation], *operands: Value, **attributes: Any) -> Value:
        """Append an operation with one result; that result. Attributes and hidden fields are given by name."""
        (result,) = self.all(operation, *operands, **attributes)
        return result

    def all(self, operation: type[Operation], *operands: Value, **attributes: Any) -> tuple[Value, ...]:
        """Append an operation; its results. Raises `Refusal` when it does not take these operands."""
        made = operation(**fields_of(operation, tuple([value.type for value in operands])), **attributes)
        results = tuple([self.value(type_) for type_ in made.results()])
        self.instructions.append(Instruction(made, operands, results, self.location))
        return results

    def value(self, type_: Type) -> Value:
        """A new value, which something else is to define."""
        self._named += 1
        return Value(f"{self.prefix}{self._named - 1}", type_)

    def block(self, arguments: tuple[Value, ...], results: tuple[Value, ...]) -> Block:
        """What was built, as a block that yields `results`."""
        return Block(arguments, tuple(self.instructions), results, "yield")


def fields_of(operation: type[Operation], types: tuple[Type, ...]) -> dict[str, Any]:
    """The operand fields of an operation from the types of its operands in order; the variadic field takes the rest."""
    count = len(operation.singles)
    named: dict[str, Any] = dict(zip(operation.singles, types, strict=False))
    if operation.rest:
        named[operation.rest] = types[count:]
    elif len(types) > count:
        raise TypeError(f"{operation.name} takes {count} operands, {len(types)} given")
    return named
