"""Gradients (spec section 5.5; AMB-LANG-58, -59).

`tessera.graph.grad`, its tape, differentiation, and which gradients exist."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ir.diagnostics import Diagnostic, Location
from ..ir.operation import (
    Applied,
    Arrival,
    Block,
    Builder,
    Function,
    Instruction,
    Module,
    Operand,
    Operands,
    Operation,
    Refusal,
    StepEnvironment,
    Steps,
    Stepwise,
    fields_of,
    operation,
    refused_by,
)
from ..ir.types import LAYOUTS, ROW_MAJOR, Future, Numeric, Scalar, Tensor, Type, Value, dtype_of
from ..numerics.array import Array
from .collectives import Collective
from .control import Call
from .elementwise import Add

# `tessera.graph.grad`: reverse-mode derivatives (spec sections 5.2, 5.5; AMB-LANG-58, AMB-LANG-107).


@operation("tessera.graph.grad", spellings=("op.grad",), clauses=("LANG-05.2-06", "LANG-05.5-01", "LANG-05.5-02"))
class Grad(Stepwise):
    """The derivative of the sum of y's elements with respect to each of `wrt`, of that operand's type."""

    y: Operand[Tensor | Scalar]
    wrt: Operands[Tensor | Scalar]

    layouts = frozenset(LAYOUTS)
    orders = ("fold", "pairwise")

    def infer(self) -> tuple[Type, ...]:
        """Return one gradient type for each operand, which must be a float."""
        if not self.wrt:
            raise Refusal("types", "differentiates by nothing", "op.grad(y, x, ...)", "LANG-05.2-06")
        for name, type_ in self.operand_types:
            if type_.dtype.kind != "float":  # type: ignore[union-attr]  # kinds are checked before
                raise Refusal("types", f"{name} is {type_}, which has no derivative", "a float dtype", "LANG-05.2-06")
        return self.wrt

    def steps(self, y: Array, *wrt: Array, env: StepEnvironment) -> Steps:
        """Differentiate backwards along the executed operations."""
        return env.differentiate(y, wrt)


# The tape: the record of executed operations that differentiation follows backwards (section 5.5).


@dataclass(frozen=True)
class Executed:
    """An operation that was executed, with its operands and results."""

    operation: Operation
    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    location: Location


def on_types_of(operation: Operation, operands: tuple[Array, ...]) -> Operation:
    """Return an operation with the types of the arrays that it was executed on, so that every dimension is known."""
    static = [type_ for _, type_ in operation.operand_types]
    types = tuple(actual_type(type_, array) for type_, array in zip(static, operands, strict=True))
    return replace(operation, **fields_of(type(operation), types))  # type: ignore[type-var]  # all are dataclasses


def actual_type(static: Type, array: Array) -> Type:
    """Return the type of an array where `static` is the type of its value: the same layout."""
    return replace(static, shape=array.shape) if isinstance(static, Tensor) else Scalar(array.dtype)


def type_of(array: Array) -> Numeric:
    """Return the type of an array, in the layout that every operation takes."""
    return Tensor(array.shape, array.dtype) if array.shape else Scalar(array.dtype)


class Tape:
    """The operations that one interpreter has executed, in order."""

    def __init__(self) -> None:
        self._entries: list[Executed] = []
        self._produced: dict[int, int] = {}
        self._communicates = False

    def add(self, executed: Executed) -> None:
        """Append an executed operation."""
        for result in executed.results:
            self._produced[id(result)] = len(self._entries)
        self._communicates = self._communicates or isinstance(executed.operation, Stepwise)
        self._entries.append(executed)

    def since(self, arrays: Sequence[Array]) -> tuple[Executed, ...]:
        """Return the entries from the one that made the first of `arrays` on: no earlier entry can depend on them.

        Return all entries where ranks communicated, since every rank goes back through every collective.
        """
        first = 0 if self._communicates else min((self._produced.get(id(array), 0) for array in arrays), default=0)
        return tuple(self._entries[first:])


# Reverse-mode differentiation along what was executed (spec section 5.5; LANG-05.5-01).
#
# An interpreter that runs a program with `grad` keeps a tape of what it executes: branches taken, every turn of a
# loop, the bodies of calls. `gradients` follows it backwards, and has each operation's adjoint build its contribution.
# This is executed and recorded like any other code, so gradients can be differentiated again.


Contributions = dict[int, list[Array]]
"""The gradients that each array, by identity, receives from its uses, the last use first."""

Run = Callable[[Block, tuple[Array, ...]], Steps]
"""A function that runs a block on arguments, and records what it executes."""


def gradients(tape: Tape, run: Run, y: Array, wrt: tuple[Array, ...], location: Location) -> Steps:
    """Return the derivative of the sum of y's elements with respect to each of `wrt`; zeros where y is independent."""
    executed = tape.since(wrt)
    depending = _depending_on(wrt, executed)
    contributions: Contributions = {id(y): [_filled(y, 1)]} if id(y) in depending else {}
    for entry in reversed(executed):
        reached = any(id(result) in contributions for result in entry.results)
        operation = entry.operation
        if isinstance(operation, Collective) and operation.is_differentiable():  # what reaches any rank comes to all
            reached = yield from operation.anywhere(reached, entry.location)
        if not reached:
            continue
        dys = []
        for result in entry.results:
            dys.append((yield from _total(run, result, contributions, location)))
        gradients = yield from _adjoint(run, entry, tuple(dys))
        for operand, gradient in reversed(list(zip(entry.operands, gradients, strict=True))):
            if gradient is not None and id(operand) in depending:
                contributions.setdefault(id(operand), []).append(gradient)
    totals = []
    for x in wrt:
        totals.append((yield from _total(run, x, contributions, location)))
    return tuple(totals)


def _depending_on(wrt: tuple[Array, ...], executed: Sequence[Executed]) -> set[int]:
    """Return the identities of the arrays computed from `wrt`, and of `wrt` themselves."""
    depending = {id(x) for x in wrt}
    for entry in executed:
        if any(id(operand) in depending for operand in entry.operands):
            depending.update(id(result) for result in entry.results if result.dtype.kind == "float")
    return depending


def _total(
    run: Run, x: Array, contributions: Contributions, location: Location
) -> Generator[Arrival, tuple[Array, ...], Array]:
    """Return the sum of the contributions of all uses, in program order (AMB-LANG-117)."""
    parts = contributions.get(id(x), [])
    if len(parts) < 2:
        return parts[0] if parts else _filled(x, 0)
    build = Builder(location)
    terms = tuple(build.value(type_of(x)) for _ in parts)
    total = terms[0]
    for term in terms[1:]:
        total = build(Add, total, term)
    (result,) = yield from run(build.block(terms, (total,)), tuple(reversed(parts)))
    contributions[id(x)] = [result]
    return result


def _adjoint(
    run: Run, entry: Executed, dys: tuple[Array, ...]
) -> Generator[Arrival, tuple[Array, ...], tuple[Array | None, ...]]:
    """Return the adjoint of each operand of an operation, or None where it has none."""
    operation = _row_major(on_types_of(entry.operation, entry.operands))
    build = Builder(entry.location)
    operands = tuple(build.value(type_) for _, type_ in operation.operand_types)
    types = operation.results()
    results = tuple(build.value(type_) for type_ in types)
    incoming = tuple(build.value(type_) for type_ in types)
    outgoing = operation.adjoint(Applied(operands, results, incoming), build)
    block = build.block((*operands, *results, *incoming), tuple(value for value in outgoing if value is not None))
    gradients = iter((yield from run(block, (*entry.operands, *entry.results, *dys))))
    return tuple(None if value is None else next(gradients) for value in outgoing)


def _row_major(operation: Operation) -> Operation:
    """Return an operation on row-major operands, which every operation takes: no derivative depends on a layout."""
    operands = [type_ for _, type_ in operation.operand_types]
    types = tuple(replace(type_, layout=ROW_MAJOR) if isinstance(type_, Tensor) else type_ for type_ in operands)
    return replace(operation, **fields_of(type(operation), types))  # type: ignore[type-var]  # all are dataclasses


def _filled(like: Array, number: int) -> Array:
    return Array(like.dtype, np.full(like.shape, number, like.dtype.carrier))


# The existence of every gradient that a program asks for (LANG-05.5-02, AMB-LANG-59).
#
# `grad` follows the executed operations backwards, which only execution determines. So a path from the differentiated
# value to an operand of `wrt` is one that some execution could take: through either branch, round every loop, into each
# callee and out to every caller. Only floats carry a derivative, and futures of them.


Edges = dict[Value, list[Value]]


def missing_adjoints(module: Module) -> list[Diagnostic]:
    """Return a diagnostic for each operation without an adjoint that a `grad` of the module may go through."""
    instructions = [site for function in module.functions.values() for site in function.body.walk()]
    gradients = [instruction for instruction in instructions if isinstance(instruction.operation, Grad)]
    lacking = [site for site in instructions if gradients and not site.operation.is_differentiable()]
    if not lacking:
        return []
    flow = Flow(module)
    missing: dict[Instruction, None] = {}
    for gradient in gradients:
        y, *wrt = gradient.operands
        behind, ahead = flow.before(y), flow.after(wrt)
        for instruction in lacking:
            if ahead.intersection(instruction.operands) and behind.intersection(instruction.results):
                missing[instruction] = None
    return [_diagnostic(instruction) for instruction in missing]


class Flow:
    """The values in a whole module that a value may be computed from, or passed on as."""

    def __init__(self, module: Module) -> None:
        self._into: Edges = {}
        self._out_of: Edges = {}
        self._same: Edges = {}
        for function in module.functions.values():
            for instruction in function.body.walk():
                self._add(instruction, module.functions)

    def before(self, value: Value) -> set[Value]:
        """Return the float values that `value` may depend on, including itself."""
        return _reached([value], self._out_of)

    def after(self, values: Iterable[Value]) -> set[Value]:
        """Return the float values that may depend on one of `values`, or on the values passed on as them."""
        return _reached(_reached(values, self._same), self._into)

    def _add(self, instruction: Instruction, functions: Mapping[str, Function]) -> None:
        operation = instruction.operation
        if isinstance(operation, Call):
            callee = functions.get(operation.callee)
            if callee is not None:
                self._hand_on(instruction.operands, callee.parameters)
                for results in _returned(callee.body):
                    self._hand_on(results, instruction.results)
        elif instruction.regions:
            for region in instruction.regions:
                self._hand_on(instruction.operands, region.arguments)
                if region.exit == "yield":
                    self._hand_on(region.results, region.arguments)
                    self._hand_on(region.results, instruction.results)
            self._hand_on(instruction.operands, instruction.results)
        else:
            for operand in instruction.operands:
                for result in instruction.results:
                    self._connect(operand, result)

    def _hand_on(self, values: tuple[Value, ...], types: tuple[Value, ...]) -> None:
        """Connect values to those they become, counted from the last: carried values follow conditions and counters."""
        for source, target in zip(reversed(values), reversed(types), strict=False):
            if self._connect(source, target):
                self._same.setdefault(target, []).append(source)

    def _connect(self, source: Value, target: Value) -> bool:
        if not (is_float(source) and is_float(target)):
            return False
        self._into.setdefault(source, []).append(target)
        self._out_of.setdefault(target, []).append(source)
        return True


def _returned(block: Block) -> Iterator[tuple[Value, ...]]:
    """Yield the results with which a function may return: at its end, and from within regions."""
    if block.exit == "return":
        yield block.results
    for instruction in block.walk():
        for region in instruction.regions:
            if region.exit == "return":
                yield region.results


def is_float(value: Value) -> bool:
    """True if the value is of floats, or a future of floats."""
    type_ = value.type.value if isinstance(value.type, Future) else value.type
    value_type = dtype_of(type_)
    return value_type is not None and value_type.kind == "float"


def _reached(start: Iterable[Value], edges: Edges) -> set[Value]:
    reached = set(start)
    pending = list(reached)
    while pending:
        for value in edges.get(pending.pop(), ()):
            if value not in reached:
                reached.add(value)
                pending.append(value)
    return reached


def _diagnostic(instruction: Instruction) -> Diagnostic:
    message = "no adjoint, and a gradient is asked for that goes through it"
    requirement = "an adjoint of every operation between what is differentiated and what it is differentiated by"
    remedy = "compute the value without it, or differentiate before it"
    refusal = Refusal("types", message, requirement, "LANG-05.5-02", remedy)
    return refused_by(instruction.operation, refusal, instruction.location)
