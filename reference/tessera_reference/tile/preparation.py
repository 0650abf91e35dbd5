"""Preparing a kernel to run: values become slots of a frame, operations calls on all lanes at once (section 7).

Everything that does not depend on the block is decided here, so that an instruction costs little more than its call.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from ..graph import elementwise
from ..graph.cast import Cast
from ..graph.constant import Constant
from ..graph.functions import FloatFunction
from ..graph.identity import Identity
from ..graph.selection import Abs, Clamp, Select
from ..ir.module import Block, Function, Value
from ..ir.operation import Operation
from ..ir.types import Memref, dtype_of
from ..numerics.array import Array
from .block import BlockState
from .fragment_uses import fragment_uses
from .fragments import FragmentStore
from .memory import Store
from .operation import KernelOperation
from .program import Call, Code, Program, Step

LANEWISE: tuple[type[Operation], ...] = (
    elementwise.ElementwiseBinary,
    FloatFunction,
    elementwise.Negate,
    Cast,
    Select,
    Clamp,
    Abs,
    Identity,
    Constant,
)
"""The operations of Graph IR that a kernel may hold, on scalars: they do the same in each lane."""

ON_INDICES: Mapping[type[Operation], Call] = {
    elementwise.Add: np.add,
    elementwise.Subtract: np.subtract,
    elementwise.Multiply: np.multiply,
    elementwise.Equal: np.equal,
    elementwise.NotEqual: np.not_equal,
    elementwise.Less: np.less,
    elementwise.LessEqual: np.less_equal,
    elementwise.Greater: np.greater,
    elementwise.GreaterEqual: np.greater_equal,
}
"""What numpy does on integers just as the canon has it: most of a kernel is index arithmetic, which this keeps fast."""


@lru_cache(maxsize=256)
def prepare(function: Function, lanes: int) -> Program:
    """The program of a kernel for blocks of so many lanes."""
    places: dict[Value, int] = {}
    code = _code(function.body, places, lanes)
    return Program(code, len(places), fragment_uses(function)[0], _written(function))


def _code(block: Block, places: dict[Value, int], lanes: int) -> Code:
    arguments = _places(block.arguments, places)
    steps = []
    for instruction in block.instructions:
        operands = _places(instruction.operands, places)
        regions = tuple([_code(region, places, lanes) for region in instruction.regions])
        call = _call(instruction.operation, lanes)
        steps.append(Step(call, operands, _places(instruction.results, places), instruction, regions))
    return Code(tuple(steps), arguments, _places(block.results, places))


def _places(values: tuple[Value, ...], places: dict[Value, int]) -> tuple[int, ...]:
    return tuple([places.setdefault(value, len(places)) for value in values])


def _call(operation: Operation, lanes: int) -> Call:
    """The function that runs an operation."""
    if isinstance(operation, KernelOperation):
        return operation.run
    if isinstance(operation, Constant):
        one = operation.execute(env=None)  # type: ignore[arg-type]  # it asks nothing of its surroundings
        everywhere = Array(one.dtype, np.broadcast_to(one.values, lanes))
        return lambda block: everywhere
    if type(operation) in ON_INDICES and operation.a.dtype.kind == "int":  # type: ignore[attr-defined]  # as binary
        return _on_indices(operation)
    if isinstance(operation, LANEWISE):
        return _lanewise(operation)
    raise TypeError(f"{operation.name} does not run in kernels")


def _on_indices(operation: Operation) -> Call:
    """Arithmetic that cannot fail, run in inactive lanes too."""
    compute, made = ON_INDICES[type(operation)], dtype_of(operation.results()[0])
    assert made is not None
    return lambda block, a, b: Array(made, compute(a.values, b.values))


def _lanewise(operation: Operation) -> Call:
    """An elementwise operation, run in the active lanes only: it may fail on the arbitrary values of the others."""

    def call(block: BlockState, *operands: Array) -> Array:
        if block.mask is None:
            made: Array = operation.execute(*operands, env=None)
            return made
        active = block.active
        made = operation.execute(*[Array(each.dtype, each.values[active]) for each in operands], env=None)
        return Array(made.dtype, block.spread(made.values))

    return call


def _written(function: Function) -> frozenset[Value]:
    """The parameters that instructions write; in Target IR, which computes with pointers, all of them."""
    if function.device != "tile":
        return frozenset(function.parameters)
    stores = [each for each in function.body.walk() if isinstance(each.operation, Store | FragmentStore)]
    return frozenset(value for each in stores for value in each.operands if isinstance(value.type, Memref))
