"""Kernels from Tile IR to Target IR: entry, instructions, control flow (spec section 8.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...ir.operation import Block, Function, Instruction, Module, Operation, fields_of
from ...ir.targets import Target, target_of
from ...ir.types import Fragment, Memref, Pointer, Scalar, Type, Value
from ...kernel_machine.block import extents_of
from ...tile import operations
from ...tile.fragments import fragment_uses
from .. import operations as _declared  # noqa: F401, declares the operations, so that printed text can be read
from ..operations import memory as scf
from ..operations.memory import GLOBAL
from . import memory
from .scalars import Body, Buffer, Lowered, Number, Pair, Share, lowered, plain

# Parameters keep their order: buffers as pointers to global memory, then scalars. Special registers, shared memory and
# constants appear at the beginning of the body.


class _Kernel:
    """The lowering of one kernel."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.body = Body(target, extents_of(function, "block"), function.location, fragment_uses(function)[0])

    def lowered(self) -> Function:
        """Return the lowered kernel."""
        parameters = tuple(map(self._parameter, self.function.parameters))
        self._instructions(self.function.body.instructions)
        body = Block(parameters, (*self.body.before, *self.body.instructions), ())
        attributes = {**self.function.attributes, "target": self.body.target.name}
        return Function(self.function.name, body, (), self.function.location, attributes, device="target")

    def _parameter(self, value: Value) -> Value:
        if isinstance(value.type, Memref):
            pointer = Value(value.name, Pointer(GLOBAL))
            self.body.values[value] = Buffer(pointer, value.type.extents, value.type.dtype.storage, "global")
            return pointer
        return self._argument(value)

    def _argument(self, value: Value) -> Value:
        plain_value = self.body.values[value] = Value(value.name, plain(value.type))
        return plain_value

    def _instructions(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            self.body.location = instruction.location
            values = self._instruction(instruction)
            self.body.values.update(zip(instruction.results, values, strict=True))

    def _instruction(self, instruction: Instruction) -> tuple[Lowered, ...]:
        operation = instruction.operation
        if isinstance(operation, operations.For):
            return self._for(instruction)
        if isinstance(operation, operations.If):
            return self._if(instruction)
        value = lowered(operation, instruction, self.body)
        return () if value is None else (value,)

    # Control

    def _for(self, instruction: Instruction) -> tuple[Lowered, ...]:
        body = self.body
        (region,) = instruction.regions
        bounds = tuple(map(body.scalar, instruction.operands[:3]))
        carried = self._flat(instruction.operands[3:])
        index = self._argument(region.arguments[0])
        arguments = (index, *self._bound(region.arguments[1:]))
        inner = Block(arguments, *self._region(region), "yield")
        types = tuple(bound.type for bound in (*bounds, *carried))
        operation = scf.For(**fields_of(scf.For, types))
        return self._controlled(instruction, operation, (*bounds, *carried), (inner,))

    def _if(self, instruction: Instruction) -> tuple[Lowered, ...]:
        regions = tuple(Block((), *self._region(region), "yield") for region in instruction.regions)
        condition = self.body.scalar(instruction.operands[0])
        returns = tuple(type_ for value in instruction.results for type_ in self._types(value))
        operation = scf.If(condition.type, returns)  # type: ignore[arg-type]  # a scalar
        return self._controlled(instruction, operation, (condition,), regions)

    def _region(self, region: Block) -> tuple[tuple[Instruction, ...], tuple[Value, ...]]:
        """Return the instructions of a region, and the values it yields."""
        instructions: list[Instruction] = []
        with self.body.within(instructions):
            self._instructions(region.instructions)
            results = self._flat(region.results)
        return tuple(instructions), results

    def _controlled(
        self, instruction: Instruction, operation: Operation, operands: tuple[Value, ...], regions: tuple[Block, ...]
    ) -> tuple[Lowered, ...]:
        self.body.location = instruction.location
        types = operation.results()
        results = tuple(map(self.body.value, types))
        self.body.instructions.append(Instruction(operation, operands, results, instruction.location, regions))
        return self._grouped(instruction.results, results)

    # Values that are lowered to several values

    def _types(self, value: Value) -> tuple[Type, ...]:
        """Return the types of the values that a value is lowered to."""
        if isinstance(value.type, Fragment):
            return memory.parts_of(self.body, value.type, self.body.uses[value])
        if isinstance(value.type, Scalar) and value.type.dtype.kind == "complex":
            return (Scalar(value.type.dtype.component),) * 2
        return (plain(value.type),)

    def _flat(self, values: Iterable[Value]) -> tuple[Value, ...]:
        flat: list[Value] = []
        for value in values:
            lowered = self.body.values[value]
            assert not isinstance(lowered, Buffer), "regions carry no memory"
            flat += _values_of(lowered)
        return tuple(flat)

    def _bound(self, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        """Bind the arguments of a region to fresh values of the lowered types."""
        values = tuple(self.body.value(type_) for value in arguments for type_ in self._types(value))
        self.body.values.update(zip(arguments, self._grouped(arguments, values), strict=True))
        return values

    def _grouped(self, values: tuple[Value, ...], flat: tuple[Value, ...]) -> tuple[Lowered, ...]:
        """Split a flat list of lowered values into those of each original value."""
        rest = list(flat)
        groups: list[Lowered] = []
        for value in values:
            count = len(self._types(value))
            own, rest = tuple(rest[:count]), rest[count:]
            if isinstance(value.type, Fragment):
                groups.append(Share(own))
            else:
                groups.append(Pair(*own) if len(own) == 2 else own[0])
        return tuple(groups)


def _values_of(value: Number | Share) -> tuple[Value, ...]:
    """Return the values to which one value was lowered."""
    if isinstance(value, Share):
        return value.parts
    return (value.real, value.imaginary) if isinstance(value, Pair) else (value,)


# From Tile IR to Target IR: every kernel in its vendor's dialects; host functions stay unchanged (section 8.2).


def to_target(module: Module, target: Target) -> Module:
    """Return the module with its kernels lowered. Raises `UnsupportedConstruct` for what the Target level lacks."""
    return replace(module, functions={name: _lowered(function, target) for name, function in module.functions.items()})


def _lowered(function: Function, target: Target) -> Function:
    if function.device != "tile":
        return function
    own = function.attributes.get("target")
    return _Kernel(function, target_of(own) if isinstance(own, str) else target).lowered()
