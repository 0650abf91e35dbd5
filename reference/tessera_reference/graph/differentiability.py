"""Whether every gradient that a program asks for exists (LANG-05.5-02, AMB-LANG-59).

`grad` goes back along what is executed, which is known only then. So a path from what is differentiated to what it is
differentiated by is one that some execution could take: through either branch, round every loop, into what is called
and out to every caller. Only floats carry a derivative, and futures of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..ir.diagnostics import Diagnostic
from ..ir.module import Block, Function, Instruction, Module, Value
from ..ir.operation import Refusal
from ..ir.refusals import diagnostic_of
from ..ir.types import Future, dtype_of
from .call import Call
from .grad import Grad

Edges = dict[Value, list[Value]]


def missing_adjoints(module: Module) -> list[Diagnostic]:
    """A diagnostic for each operation without an adjoint that a `grad` of the module may have to go through."""
    instructions = [each for function in module.functions.values() for each in function.body.walk()]
    gradients = [each for each in instructions if isinstance(each.operation, Grad)]
    lacking = [each for each in instructions if gradients and not each.operation.is_differentiable()]
    if not lacking:
        return []
    flow = Flow(module)
    found: dict[Instruction, None] = {}
    for gradient in gradients:
        y, *wrt = gradient.operands
        behind, ahead = flow.before(y), flow.after(wrt)
        for each in lacking:
            if ahead.intersection(each.operands) and behind.intersection(each.results):
                found[each] = None
    return [_diagnostic(each) for each in found]


class Flow:
    """Which values a value may be computed from, or be handed on as, in the whole of a module."""

    def __init__(self, module: Module) -> None:
        self._into: Edges = {}
        self._out_of: Edges = {}
        self._same: Edges = {}
        for function in module.functions.values():
            for instruction in function.body.walk():
                self._add(instruction, module.functions)

    def before(self, value: Value) -> set[Value]:
        """The float values that `value` may depend on, itself among them."""
        return _reached([value], self._out_of)

    def after(self, values: Iterable[Value]) -> set[Value]:
        """The float values that may depend on one of `values`, or on what that was handed on from."""
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

    def _hand_on(self, given: tuple[Value, ...], taken: tuple[Value, ...]) -> None:
        """One value for another, counted from the last: what is carried comes behind conditions and counters."""
        for source, target in zip(reversed(given), reversed(taken), strict=False):
            if self._connect(source, target):
                self._same.setdefault(target, []).append(source)

    def _connect(self, source: Value, target: Value) -> bool:
        if not (_is_float(source) and _is_float(target)):
            return False
        self._into.setdefault(source, []).append(target)
        self._out_of.setdefault(target, []).append(source)
        return True


def _returned(block: Block) -> Iterator[tuple[Value, ...]]:
    """What a function may return: at its end, and from within regions."""
    if block.exit == "return":
        yield block.results
    for instruction in block.walk():
        for region in instruction.regions:
            if region.exit == "return":
                yield region.results


def _is_float(value: Value) -> bool:
    """Whether it is of floats, or a future of such."""
    type_ = value.type.value if isinstance(value.type, Future) else value.type
    found = dtype_of(type_)
    return found is not None and found.kind == "float"


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
    refusal = Refusal(
        "types",
        "no adjoint, and a gradient is asked for that goes through it",
        "an adjoint of every operation between what is differentiated and what it is differentiated by",
        "LANG-05.5-02",
        "compute the value without it, or differentiate before it",
    )
    operands = tuple(f"{name} is {type_}" for name, type_ in instruction.operation.operand_types)
    return diagnostic_of(refusal.by(instruction.operation), instruction.location, operands)
