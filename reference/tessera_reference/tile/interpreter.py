"""Preparing, running and launching kernels of Tile and Target IR (spec sections 7, 8.1, 8.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Protocol

import numpy as np

from ..graph import elementwise
from ..graph.constant import Constant
from ..ir.diagnostics import Rejection, UnsupportedConstruct, did_you_mean
from ..ir.operation import (
    Attribute,
    Block,
    Environment,
    Function,
    Hidden,
    Instruction,
    Module,
    Operands,
    Operation,
    Refusal,
    Shown,
    operation,
)
from ..ir.targets import Target, target_of
from ..ir.types import LAYOUTS, Memref, Numeric, Pointer, Scalar, Tensor, Type, Value, dtype_of
from ..kernel_machine.block import (
    MOST_STEPS,
    BlockState,
    Budget,
    Call,
    Code,
    KernelOperation,
    Program,
    Step,
    extents_of,
    too_many_steps,
    unwritten,
)
from ..kernel_machine.lockstep import Diverged, LockstepState, in_lockstep
from ..kernel_machine.replay import DependsOnData, Plan, Recorder, Traced
from ..kernel_machine.storage import GlobalStorage, Place, Unwritten
from ..numerics.array import Array
from ..numerics.errors import TooLarge
from ..numerics.formats import DType
from ..numerics.rounding import BY_BITS
from .fragments import FragmentStore, fragment_uses
from .operations import Store

# Preparing a kernel to run: values become slots of a frame, operations calls on all lanes at once (section 7).
#
# All decisions that do not depend on the block are made here, so that an instruction costs little more than its call.


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
"""The operations that numpy computes on integers as the reference arithmetic does, for fast index arithmetic."""


@lru_cache(maxsize=256)
def prepare(function: Function, lanes: int) -> Program:
    """Return the program of a kernel for blocks of `lanes` lanes."""
    places: dict[Value, int] = {}
    code = _code(function.body, places, lanes, set())
    return Program(code, len(places), fragment_uses(function)[0], _written(function))


@lru_cache(maxsize=256)
def _prepare_lockstep(function: Function, lanes: int) -> Program:
    """Return the program of a kernel for blocks that run in lockstep."""
    return in_lockstep(prepare(function, lanes))


def _code(block: Block, places: dict[Value, int], lanes: int, divisors: set[Value]) -> Code:
    """Return the code of a region; `divisors` receives the constants that are not zero."""
    arguments = _places(block.arguments, places)
    steps = []
    for instruction in block.instructions:
        operands = _places(instruction.operands, places)
        regions = tuple([_code(region, places, lanes, divisors) for region in instruction.regions])
        call = _call(instruction.operation, lanes)
        number = getattr(instruction.operation, "value", None)
        if type(number) is int and number:
            divisors.update(instruction.results)
        results, is_total = _places(instruction.results, places), _is_total(instruction, divisors)
        steps.append(Step(call, operands, results, instruction, regions, is_total))
    return Code(tuple(steps), arguments, _places(block.results, places), len(steps) + 1)


def _places(values: tuple[Value, ...], places: dict[Value, int]) -> tuple[int, ...]:
    return tuple([places.setdefault(value, len(places)) for value in values])


def _call(operation: Operation, lanes: int) -> Call:
    """Return the function that runs an operation."""
    if isinstance(operation, KernelOperation):
        return operation.run
    if isinstance(operation, Constant):
        one = operation.execute(env=None)  # type: ignore[arg-type]  # a constant needs no environment
        everywhere = Array(one.dtype, np.broadcast_to(one.values, lanes))
        return lambda block: everywhere
    if _is_on_indices(operation):
        return _on_indices(operation)
    if operation.lanewise:
        return _lanewise(operation)
    raise TypeError(f"{operation.name} does not run in kernels")


def _is_total(instruction: Instruction, divisors: set[Value]) -> bool:
    """True if an instruction depends on its operands alone and cannot fail, not even in inactive lanes."""
    operation = instruction.operation
    if operation.name in ("tessera.graph.divide", "llvm.sdiv"):
        return instruction.operands[1] in divisors
    if isinstance(operation, KernelOperation):
        return operation.is_total
    return isinstance(operation, Constant) or _is_on_indices(operation)


def _is_on_indices(operation: Operation) -> bool:
    return type(operation) in ON_INDICES and operation.a.dtype.kind == "int"  # type: ignore[attr-defined]  # as binary


def _on_indices(operation: Operation) -> Call:
    """Return a call of arithmetic that cannot fail, run in inactive lanes too."""
    compute, dtype = ON_INDICES[type(operation)], dtype_of(operation.results()[0])
    assert dtype is not None
    return lambda block, a, b: Array(dtype, compute(a.values, b.values))


def _lanewise(operation: Operation) -> Call:
    """Return a call in active lanes only, since an elementwise operation may fail on arbitrary values of the others."""

    def call(block: BlockState, *operands: Array) -> Array:
        if block.mask is None:
            result: Array = operation.execute(*operands, env=None)
            return result
        active = block.active
        result = operation.execute(*[Array(operand.dtype, operand.values[active]) for operand in operands], env=None)
        return Array(result.dtype, block.spread(result.values))

    return call


def _written(function: Function) -> frozenset[Value]:
    """Return the parameters that instructions write; in Target IR, which computes with pointers, all of them."""
    if function.device != "tile":
        return frozenset(function.parameters)
    stores = [step for step in function.body.walk() if isinstance(step.operation, Store | FragmentStore)]
    return frozenset(value for store in stores for value in store.operands if isinstance(value.type, Memref))


# An interpreter of kernels: one block after another, all lanes of a block at once (spec sections 7, 8.1, 8.3).
#
# The order of blocks is free (AMB-LANG-202): it changes no result, since any dependence on it is a race, which is
# reported. Time, caches and the scheduling of warps are not modelled.


MOST_BYTES = 1 << 32
"""The most bytes of a launch's buffers, with the notes for each element."""

LOCKSTEP = BY_BITS
"""True to run blocks in lockstep; False, with plain numerics, runs one after another, to the same bits."""

WORTHWHILE = 1000
"""The instructions of a kernel, times its blocks, from which on blocks run in lockstep."""

MOST_LANES = 1 << 15
"""The most lanes that run in lockstep, so that a value of them stays in cache."""

NOTED_BYTES = 24
"""The bytes of the notes for an element: its last writer, its last and first reader."""


@dataclass(frozen=True)
class Uninitialised:
    """A buffer whose every element the kernel must write."""

    dtype: DType
    shape: tuple[int, ...]


Argument = Array | Uninitialised | None
"""The argument of a parameter; None for an uninitialised buffer of the parameter's type."""


def run_kernel(
    kernel: Function,
    arguments: Sequence[Argument],
    target: Target,
    *,
    steps: int = MOST_STEPS,
    order: str | Sequence[int] = "forward",
) -> tuple[Array, ...]:
    """Return the buffers of a verified kernel after it has run, in the order of its parameters.

    `order` is forward, reverse, or a permutation of the blocks, which are counted with x fastest. Raises `Rejection`
    with phase execute for errors of the kernel, `TooLarge` for buffers that do not fit in memory, and
    `UnsupportedConstruct` for regions nested too deep.
    """
    grid, extents = extents_of(kernel, "grid"), extents_of(kernel, "block")
    lanes = prod(extents)
    if lanes > target.threads_per_block:
        raise TooLarge("launch", "threads of a block", lanes, target.threads_per_block)
    inputs = [_stated(*pair) for pair in zip(kernel.parameters, arguments, strict=True)]
    _require_room(inputs)
    try:
        program = prepare(kernel, lanes)
        _require_steps(program, grid, steps)
        if order == "forward" and LOCKSTEP:
            shapes = tuple((argument.dtype, argument.shape) for argument in inputs)
            repeated = _launches(kernel, shapes, target, steps).run(kernel, inputs, target, steps)
            if repeated is not None:
                return repeated
        return _run(kernel, program, inputs, target, steps, order)
    except RecursionError:
        raise UnsupportedConstruct("execute.deep_regions", kernel.location) from None


class _Launches:
    """The launches of a kernel on arguments of some shapes, of which the third is recorded: many have only two."""

    def __init__(self) -> None:
        self.count = 0
        self.plan: Plan | None = None

    def run(
        self, kernel: Function, inputs: Sequence[Array | Uninitialised], target: Target, steps: int
    ) -> tuple[Array, ...] | None:
        """Return the buffers after a launch by the plan; None without one, or where an operation fails."""
        self.count += 1
        if self.count == 3:
            recorder = Recorder()
            program = recorder.program(prepare(kernel, prod(extents_of(kernel, "block"))))
            try:
                numbers = [recorder.fresh(x.dtype, x.shape) if isinstance(x, Array) else x for x in inputs]
                outputs = _run(kernel, program, numbers, target, steps)
                self.plan = Plan(recorder, [x for x in numbers if isinstance(x, Traced)], outputs)
            except (Rejection, DependsOnData, UnsupportedConstruct):
                return None
        return self.plan.run(inputs) if self.plan else None


@lru_cache(maxsize=32)
def _launches(
    kernel: Function, shapes: tuple[tuple[DType, tuple[int, ...]], ...], target: Target, steps: int
) -> _Launches:
    return _Launches()


def _run(
    kernel: Function,
    program: Program,
    inputs: Sequence[Array | Uninitialised],
    target: Target,
    steps: int,
    order: str | Sequence[int] = "forward",
) -> tuple[Array, ...]:
    """Run each instruction, for many blocks at once where they run in lockstep."""
    grid, extents = extents_of(kernel, "grid"), extents_of(kernel, "block")
    together = _in_lockstep(kernel, program, inputs, target, steps) if order == "forward" else None
    if together is not None:
        return together
    block = BlockState(program, target, grid, extents, Budget(steps))
    buffers = _bind(kernel, inputs, block)
    with np.errstate(all="ignore"):
        for number in _in_order(order, prod(grid)):
            block.begin(number)
            block.region(program.code, block.parameters)
    for buffer in buffers:
        try:
            buffer.require_written()
        except Unwritten as fault:
            raise Rejection([unwritten(kernel, fault)]) from fault
    return tuple(buffer.array() for buffer in buffers)


def _in_lockstep(
    kernel: Function, program: Program, inputs: Sequence[Array | Uninitialised], target: Target, steps: int
) -> tuple[Array, ...] | None:
    """Return the buffers of a kernel whose blocks ran in lockstep; None where they cannot, or where few would."""
    grid, extents = extents_of(kernel, "grid"), extents_of(kernel, "block")
    blocks, lanes = prod(grid), prod(extents)
    worthwhile = LOCKSTEP and blocks > 1 and blocks * sum(1 for _ in kernel.body.walk()) >= WORTHWHILE
    if not worthwhile or lanes % target.warp:
        return None
    is_cached = program is prepare(kernel, lanes)
    program, buffers, parameters = _prepare_lockstep(kernel, lanes) if is_cached else in_lockstep(program), None, ()
    try:
        with np.errstate(all="ignore"):
            groups = -(-blocks // max(3, MOST_LANES // lanes))
            for group in range(groups):
                numbers = range(blocks * group // groups, blocks * (group + 1) // groups)
                state = LockstepState(program, target, grid, extents, Budget(steps // blocks), numbers)
                buffers = buffers or _bind(kernel, inputs, state)
                parameters = parameters or state.parameters
                state.region(program.code, parameters)
        for buffer in buffers or ():
            buffer.require_written()
    except (Rejection, Diverged, UnsupportedConstruct):
        return None
    return tuple(buffer.array() for buffer in buffers or ())


def _stated(parameter: Value, argument: Argument) -> Array | Uninitialised:
    if argument is not None:
        return argument
    assert isinstance(parameter.type, Memref), f"%{parameter.name} is given nothing"
    return Uninitialised(parameter.type.dtype, parameter.type.extents)


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
    needed = sum(prod(argument.shape) * (argument.dtype.carrier.itemsize + NOTED_BYTES) for argument in arguments)
    if needed > MOST_BYTES:
        raise TooLarge("launch", "bytes of buffers", needed, MOST_BYTES)


def _require_steps(program: Program, grid: Place, steps: int) -> None:
    """Raise `Rejection` for a grid whose shortest execution already exceeds the limit on instructions."""
    if prod(grid) * program.code.cost > steps:
        last = program.code.steps[-1].instruction if program.code.steps else None
        raise Rejection([too_many_steps(last, steps)])


def _bind(kernel: Function, arguments: Sequence[Array | Uninitialised], block: BlockState) -> list[GlobalStorage]:
    """Bind the parameters to memories, and to scalars that are the same in all lanes; return the memories."""
    buffers = []
    values: list[GlobalStorage | Array] = []
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if isinstance(argument, Array) and not isinstance(parameter.type, Memref | Pointer):
            values.append(type(argument)(argument.dtype, np.broadcast_to(argument.values, block.lanes)))
            continue
        initial = argument if isinstance(argument, Array) else None
        noted = initial is None or parameter in block.program.written
        memory = block.global_memory(f"%{parameter.name}", argument.dtype, argument.shape, block.clock, initial, noted)
        buffers.append(memory)
        values.append(memory)
    block.parameters = tuple(values)
    return buffers


# `tessera.tile.launch`: a host function runs a grid of blocks and receives their results (spec section 8.1).


class LaunchEnvironment(Environment, Protocol):
    """The environment of a launch, in addition to that of every operation."""

    @property
    def module(self) -> Module:
        """The running module, which holds the kernel."""


@operation("tessera.tile.launch", clauses=("LANG-08.1-01", "LANG-08.2-03"))
class Launch(Operation):
    """Runs `kernel` on the arguments: buffers in the order of its parameters, then scalars.

    The last buffers of the kernel, one for each result, are allocated here uninitialised, and are the results.
    """

    arguments: Operands[Tensor | Scalar]
    kernel: Attribute[str]
    returns: Hidden[tuple[Type, ...]]

    layouts = frozenset(LAYOUTS)
    calls = "kernel"

    def infer(self) -> tuple[Type, ...]:
        """Return the stated result types, checked against the kernel."""
        return self.returns

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """Return the hidden fields: the kernel's last buffers are the results, the arguments its other parameters."""
        name = str(shown.attributes.get("kernel"))
        kernel = shown.functions.get(name)
        if kernel is None or not kernel.device:
            names = [device_function for device_function, function in shown.functions.items() if function.device]
            remedy = did_you_mean(name, names, "@{}")
            raise Refusal("types", f"there is no kernel @{name}", "a kernel of this module", "LANG-05-03", remedy)
        buffers = _buffers(kernel)
        count = len(kernel.parameters) - len(shown.operands)
        if not 0 <= count <= len(buffers):
            message = f"{len(shown.operands)} arguments given"
            requirement = f"those of @{name}: buffers but the ones it returns, then scalars"
            raise Refusal("types", message, requirement, "LANG-16-02")
        scalars = [parameter.type for parameter in kernel.parameters[len(buffers) :]]
        for actual, expected in zip(shown.operands, buffers[: len(buffers) - count] + scalars, strict=True):
            if not _passes(actual, expected):
                raise Refusal("types", f"an argument is {actual}", f"what fits {expected}", "LANG-08.1-01")
        returned = buffers[len(buffers) - count :]
        results = shown.results or tuple(_held(result) for result in returned if isinstance(result, Memref))
        if len(results) != count or not all(map(_passes, results, returned)):
            message = f"the results are ({', '.join(map(str, results))})"
            raise Refusal("types", message, f"what @{name} leaves in ({', '.join(map(str, returned))})", "LANG-08.1-01")
        return {"returns": results}

    def execute(self, *arguments: Array, env: LaunchEnvironment) -> tuple[Array, ...]:
        """Run the grid. Raises `Rejection`."""
        kernel = env.module.functions[self.kernel]
        inputs = len(_buffers(kernel)) - len(self.returns)
        allocated = [_uninitialised(memref) for memref in self.returns]
        return self.over_grid(kernel, [*arguments[:inputs], *allocated, *arguments[inputs:]])[inputs:]

    def over_grid(self, kernel: Function, buffers: Sequence[Array | Uninitialised]) -> tuple[Array, ...]:
        """Return the buffers after the kernel has run. Raises `Rejection`."""
        return run_kernel(kernel, buffers, target_of(str(kernel.attributes["target"])))


def _buffers(kernel: Function) -> list[Type]:
    return [parameter.type for parameter in kernel.parameters if isinstance(parameter.type, Memref | Pointer)]


def _uninitialised(result: Type) -> Uninitialised:
    """Return the buffer for a result, whose extents are known where a kernel is launched."""
    assert isinstance(result, Tensor | Scalar)
    return Uninitialised(result.dtype, tuple(int(dim) for dim in result.shape))


def _held(buffer: Memref) -> Numeric:
    """Return the value of the host that a buffer holds."""
    return Tensor(buffer.shape, buffer.dtype) if buffer.shape else Scalar(buffer.dtype)


def _passes(actual: Type, expected: Type) -> bool:
    """True if a value of the host, of any layout, can be passed for a parameter of a kernel."""
    if isinstance(actual, Tensor | Scalar) and isinstance(expected, Memref):
        return (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    return isinstance(expected, Pointer) or actual == expected
