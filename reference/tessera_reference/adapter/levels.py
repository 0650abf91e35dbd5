"""Reads targets and schedules, and writes lowered functions as messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..ir.byte_count import ByteCount
from ..ir.module import Function, Instruction
from ..ir.operation import AttributeValue
from ..ir.targets import TARGETS, Target, target_of
from ..ir.types import Shard
from ..numerics.attributes import one_of, switch, whole
from ..numerics.errors import InvalidArgument
from ..numerics.formats import DType
from .values import names_within

if TYPE_CHECKING:
    from ..schedule.options import Options

__all__ = ["function_message", "schedule", "target"]

MOST = (1 << 31) - 1
"""Of a tile or a depth."""


def target(operation: str, name: str, value: Any) -> Target:
    """Read the name of a target."""
    if not isinstance(value, str) or value not in TARGETS:
        raise InvalidArgument(operation, name, value, "one of " + ", ".join(TARGETS))
    return target_of(value)


def schedule(operation: str, name: str, value: Any) -> Options:
    """Read how to schedule: what is left out follows from the program."""
    from ..schedule.options import Options

    readers = {"tile": _tile, "depth": whole(1, MOST), "prefetch": one_of("shared", "global", "none"), "fuse": switch}
    given = names_within(operation, name, value, readers)
    return Options(**{each: readers[each](operation, f"{name}.{each}", value) for each, value in given.items()})


def _tile(operation: str, name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise InvalidArgument(operation, name, value, "a list of m, n and k")
    extent = whole(1, MOST)
    return tuple(extent(operation, f"{name}[{i}]", each) for i, each in enumerate(value))


def function_message(function: Function) -> dict[str, Any]:
    """A function or kernel with its operations."""
    return {
        "name": function.name,
        "kind": "kernel" if function.kernel or function.device else "func",
        "arguments": [str(value.type) for value in function.parameters],
        "results": [str(result) for result in function.results],
        "attributes": {name: _plain(value) for name, value in function.attributes.items()},
        "operations": [_operation(instruction) for instruction in function.body.walk()],
    }


def _operation(instruction: Instruction) -> dict[str, Any]:
    attributes: Mapping[str, AttributeValue] = {**instruction.operation.attributes, **instruction.attributes}
    return {
        "name": instruction.operation.name,
        "operands": [f"%{value.name}" for value in instruction.operands],
        "results": [f"%{value.name}" for value in instruction.results],
        "operand_types": [str(value.type) for value in instruction.operands],
        "result_types": [str(value.type) for value in instruction.results],
        "attributes": {name: _plain(value) for name, value in attributes.items()},
        "effects": sorted(instruction.operation.effects),
        "regions": len(instruction.regions),
    }


def _plain(value: AttributeValue) -> Any:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, ByteCount):
        return int(value)
    if isinstance(value, Shard):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
