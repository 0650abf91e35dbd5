"""Runs a kernel: one block of the grid after another, all lanes of a block at once (spec sections 7, 8.1, 8.3).

The order of blocks is free (AMB-LANG-202): it changes no result, since any dependence on it is a race, which is
reported. Time, caches and the scheduling of warps are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.module import Function, Value
from ..ir.targets import Target
from ..ir.types import Memref, Pointer
from ..numerics.array import Array
from ..numerics.errors import TooLarge
from ..numerics.formats import DType
from .block import BlockState
from .faults import Place, Unwritten
from .preparation import prepare
from .program import Program
from .reports import MOST_STEPS, Budget, too_many_steps, unwritten
from .storage import GlobalStorage

__all__ = ["MOST_BYTES", "Uninitialised", "run_kernel"]

MOST_BYTES = 1 << 32
"""What the buffers of a launch may take, with what is noted for each element."""

NOTED_BYTES = 24
"""What is noted for an element: who wrote it last, who read it last and first."""


@dataclass(frozen=True)
class Uninitialised:
    """A buffer of which the kernel has to write every element."""

    dtype: DType
    shape: tuple[int, ...]


Argument = Array | Uninitialised | None
"""What a parameter is given; nothing for an uninitialised buffer of the type that the parameter says."""


def run_kernel(
    kernel: Function,
    arguments: Sequence[Argument],
    target: Target,
    *,
    steps: int = MOST_STEPS,
    order: str | Sequence[int] = "forward",
) -> tuple[Array, ...]:
    """What the buffers of a verified kernel hold after it has run, in the order of its parameters.

    `order` is forward, reverse, or a permutation of the blocks, which are counted with x fastest. Raises `Rejection`
    with phase execute for errors of the kernel, `TooLarge` for what does not fit in memory, and
    `UnsupportedConstruct` for regions nested too deep.
    """
    grid, extents = _extents(kernel, "grid"), _extents(kernel, "block")
    lanes = prod(extents)
    if lanes > target.threads_per_block:
        raise TooLarge("launch", "threads of a block", lanes, target.threads_per_block)
    inputs = [_stated(*each) for each in zip(kernel.parameters, arguments, strict=True)]
    _require_room(inputs)
    try:
        program = prepare(kernel, lanes)
        _require_steps(program, grid, steps)
        block = BlockState(program, target, grid, extents, Budget(steps))
        buffers = _bind(kernel, inputs, block)
        with np.errstate(all="ignore"):
            for number in _in_order(order, prod(grid)):
                block.begin(number)
                block.region(program.code, block.parameters)
    except RecursionError:
        raise UnsupportedConstruct("execute.deep_regions", kernel.location) from None
    for buffer in buffers:
        try:
            buffer.require_written()
        except Unwritten as fault:
            raise Rejection([unwritten(kernel, fault)]) from fault
    return tuple(buffer.array() for buffer in buffers)


def _extents(kernel: Function, name: str) -> Place:
    extents = kernel.attributes[name]
    assert isinstance(extents, tuple) and len(extents) == 3, "a kernel that was not verified"
    return int(extents[0]), int(extents[1]), int(extents[2])


def _stated(parameter: Value, argument: Argument) -> Array | Uninitialised:
    if argument is not None:
        return argument
    assert isinstance(parameter.type, Memref), f"%{parameter.name} is given nothing"
    return Uninitialised(parameter.type.dtype, tuple(int(dim) for dim in parameter.type.shape))


def _in_order(order: str | Sequence[int], blocks: int) -> Iterable[int]:
    if order == "forward":
        return range(blocks)
    if order == "reverse":
        return range(blocks - 1, -1, -1)
    if isinstance(order, str) or sorted(order) != list(range(blocks)):
        raise ValueError(f"{order!r} is no order of {blocks} blocks")
    return order


def _require_room(arguments: Sequence[Array | Uninitialised]) -> None:
    """Raise `TooLarge`, naming the size, unless the buffers fit in memory."""
    needed = sum(prod(each.shape) * (each.dtype.carrier.itemsize + NOTED_BYTES) for each in arguments)
    if needed > MOST_BYTES:
        raise TooLarge("launch", "bytes of buffers", needed, MOST_BYTES)


def _require_steps(program: Program, grid: Place, steps: int) -> None:
    """Raise `Rejection` for a grid whose shortest execution already exceeds the limit on instructions."""
    if prod(grid) * (len(program.code.steps) + 1) > steps:
        last = program.code.steps[-1].instruction if program.code.steps else None
        raise Rejection([too_many_steps(last, steps)])


def _bind(kernel: Function, arguments: Sequence[Array | Uninitialised], block: BlockState) -> list[GlobalStorage]:
    """Bind the parameters to memories and to scalars, the same in all lanes; returns the memories."""
    buffers = []
    values: list[GlobalStorage | Array] = []
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if isinstance(argument, Array) and not isinstance(parameter.type, Memref | Pointer):
            values.append(Array(argument.dtype, np.broadcast_to(argument.values, block.lanes)))
            continue
        initial = argument if isinstance(argument, Array) else None
        noted = initial is None or parameter in block.program.written
        memory = GlobalStorage(f"%{parameter.name}", argument.dtype, argument.shape, block.clock, initial, noted)
        buffers.append(memory)
        values.append(memory)
    block.parameters = tuple(values)
    return buffers
