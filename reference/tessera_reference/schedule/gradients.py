"""Gradients written out: `grad` as the operations of the adjoints, scheduled as any others (sections 5.5, 8.2).

The interpreter differentiates along its tape (`graph.differentiation`); here it is done along the text of a function.
The order is the same, so that the bits are the same. It requires a function that is one path: no branch, loop,
collective, draw, state or gradient between the output and the input of the derivative. Composites and calls there are
written out first. Any other function that differentiates stays on the host (AMB-LANG-215).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..graph.constant import Constant, ConstTensor
from ..graph.control import Call
from ..graph.elementwise import Add, Identity
from ..graph.grad import Grad
from ..ir.diagnostics import Location
from ..ir.module import BlockBuilder, Composite, Function, Instruction, Module, Stepwise
from ..ir.operation import Applied, MissingAdjoint
from ..ir.types import ROW_MAJOR, Scalar, Tensor, Value, dtype_of
from .choices import is_known
from .fusion import used_by

PREFIX = "g"
"""With which the names of values of adjoints begin."""


class _NotOnePath(Exception):
    """A gradient that only an execution can compute."""


def without_gradients(module: Module) -> Module:
    """The module, at Graph IR and with extents that are known, with the gradients written out of which that is done."""
    return replace(module, functions={name: _written(module, function) for name, function in module.functions.items()})


def _written(module: Module, function: Function) -> Function:
    """A function without gradients; as it is where only an execution can compute one of them."""
    if not any(isinstance(step.operation, Grad) for step in function.body.walk()):
        return function
    instructions: list[Instruction] = []
    gradients: set[Value] = set()
    try:
        for instruction in function.body.instructions:
            if any(isinstance(inner.operation, Grad) for region in instruction.regions for inner in region.walk()):
                return function
            if isinstance(instruction.operation, Grad):
                instructions = _one_path(module, instructions, instruction, gradients)
                instructions += _gradients(instructions, instruction)
                gradients.update(instruction.results)
            else:
                instructions.append(instruction)
    except (_NotOnePath, MissingAdjoint):
        return function
    return replace(function, body=replace(function.body, instructions=tuple(instructions)))


# One path


def _one_path(
    module: Module, instructions: Sequence[Instruction], gradient: Instruction, gradients: set[Value]
) -> list[Instruction]:
    """The instructions with those composites and calls written out that a gradient goes through.

    Raises `_NotOnePath` where it goes through one of `gradients`: on the tape the parts of an adjoint are another path.
    """
    y, *wrt = gradient.operands
    ahead, behind = _ahead(wrt, instructions), {y}
    for instruction in reversed(instructions):
        if behind.intersection(instruction.results):
            behind.update(used_by(instruction))
    if ahead & behind & gradients:
        raise _NotOnePath
    made: list[Instruction] = []
    for instruction in instructions:
        between = ahead.intersection(used_by(instruction)) and behind.intersection(instruction.results)
        made += _flat(module, instruction) if between else [instruction]
    return made


def _ahead(wrt: Sequence[Value], instructions: Sequence[Instruction]) -> set[Value]:
    """The values computed from `wrt`, and `wrt`; only floats carry a derivative."""
    values = set(wrt)
    for instruction in instructions:
        if values.intersection(used_by(instruction)):
            values.update(value for value in instruction.results if _is_float(value))
    return values


def _is_float(value: Value) -> bool:
    dtype = dtype_of(value.type)
    return dtype is not None and dtype.kind == "float"


def _flat(module: Module, instruction: Instruction) -> Iterator[Instruction]:
    """Yield the instructions that a composite or a call runs, its arguments and results as values of their own."""
    operation, at = instruction.operation, instruction.location
    if isinstance(operation, Composite) and not operation.effects and all(map(_is_plain, instruction.operands)):
        build = BlockBuilder(at, instruction.results[0].name + "_")
        arguments = tuple(build.value(operand_.type) for operand_ in instruction.operands)
        results = operation.decompose(build, *arguments)
        inner = build.block(arguments, results if isinstance(results, tuple) else (results,))
    elif isinstance(operation, Call) and operation.callee in module.functions:
        inner = module.functions[operation.callee].body
        if inner.exit != "return" or len(inner.arguments) != len(instruction.operands):
            raise _NotOnePath
    else:
        yield instruction
        return
    values = {argument: Value(argument.name, argument.type) for argument in inner.arguments}
    for argument, operand in zip(inner.arguments, instruction.operands, strict=True):
        yield _copied(operand, values[argument], at)
    for inner_step in inner.instructions:
        if inner_step.regions:
            raise _NotOnePath
        operands = tuple(values[value] for value in inner_step.operands)
        values |= {value: Value(value.name, value.type) for value in inner_step.results}
        results = tuple(values[value] for value in inner_step.results)
        yield from _flat(module, replace(inner_step, operands=operands, results=results))
    for inside, outside in zip(inner.results, instruction.results, strict=True):
        yield _copied(values[inside], outside, at)


def _copied(value: Value, copy: Value, at: Location) -> Instruction:
    if not isinstance(value.type, Tensor | Scalar):
        raise _NotOnePath
    return Instruction(Identity(x=value.type), (value,), (copy,), at)


def _is_plain(value: Value) -> bool:
    """True if a value has extents that are known and the layout that every operation takes."""
    return is_known(value.type) and (not isinstance(value.type, Tensor) or value.type.layout == ROW_MAJOR)


# Adjoints


def _gradients(instructions: Sequence[Instruction], gradient: Instruction) -> list[Instruction]:
    """Return the instructions that compute the results of a gradient, from instructions on one path before it."""
    y, *wrt = gradient.operands
    backward = _Backward(gradient.location)
    ahead = _ahead(wrt, instructions)
    if y in ahead:
        backward.contributions[y] = [backward.filled(y, 1)]
    for instruction in reversed(instructions):
        if any(result in backward.contributions for result in instruction.results):
            for operand, adjoint in backward.through(instruction):
                if operand in ahead:
                    backward.contributions.setdefault(operand, []).append(adjoint)
    totals = [backward.total(x) for x in wrt]
    ends = (_copied(total, result, gradient.location) for total, result in zip(totals, gradient.results, strict=True))
    return [*backward.made, *ends]


class _Backward:
    """The way back: `contributions` has what each value is given by its uses, the last use first."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.contributions: dict[Value, list[Value]] = {}
        self.made: list[Instruction] = []

    def through(self, instruction: Instruction) -> list[tuple[Value, Value]]:
        """The gradients of the operands of an instruction, the last operand first."""
        operation = instruction.operation
        values = (*instruction.operands, *instruction.results)
        if isinstance(operation, Stepwise) or operation.effects or not all(map(_is_plain, values)):
            raise _NotOnePath
        dys = tuple(self.total(result) for result in instruction.results)
        build = BlockBuilder(instruction.location, PREFIX)
        outgoing = operation.adjoint(Applied(instruction.operands, instruction.results, dys), build)
        self.made += build.instructions
        pairs = zip(instruction.operands, outgoing, strict=True)
        return [(operand, gradient) for operand, gradient in reversed(list(pairs)) if gradient is not None]

    def total(self, value: Value) -> Value:
        """The contributions of all uses of a value, added in program order (AMB-LANG-117)."""
        terms = self.contributions.get(value, [])
        if not terms:
            return self.filled(value, 0)
        build = BlockBuilder(self.location, PREFIX)
        total = terms[-1]
        for term in reversed(terms[:-1]):
            total = build(Add, total, term)
        self.made += build.instructions
        self.contributions[value] = [total]
        return total

    def filled(self, like: Value, number: int) -> Value:
        """A constant of the shape and dtype of a value."""
        type_ = like.type
        if not _is_plain(like) or not isinstance(type_, Tensor | Scalar):
            raise _NotOnePath
        build = BlockBuilder(self.location, PREFIX)
        if isinstance(type_, Tensor):
            constant = build(ConstTensor, shape=type_.shape, dtype=type_.dtype, value=float(number))
        else:
            constant = build(Constant, value=float(number), dtype=type_.dtype)
        self.made += build.instructions
        return constant
