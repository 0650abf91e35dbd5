"""Folding: a scaling or a cast next to a collective becomes part of it (COLL-02.4-02, COLL-02.4-04; AMB-COLL-57).

Before the collective, of what nothing else uses; behind it, where nothing else uses its value. A cast before it is
folded where it narrows, so that the narrow type travels. What is folded rounds where it rounded before, and the
reduction is in the accumulator type all the same: no bit changes. Nothing is folded into a send or a recv, whose other
end is on another rank (AMB-COLL-59).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...graph.cast import Cast
from ...graph.elementwise import Multiply
from ...graph.messages import PointToPoint
from ...ir.module import Value
from ...ir.types import Scalar, Tensor
from .steps import Compute, Issue, Program, Step

__all__ = ["fold"]


def fold(program: Program) -> None:
    """Fold what can be folded, in place."""
    _before(program)
    _behind(program)


def _before(program: Program) -> None:
    uses = _uses(program)
    makers = {value: step for step in program.steps if isinstance(step, Compute) for value in step.results}
    gone: set[Compute] = set()
    for index, step in enumerate(program.steps):
        while isinstance(step, Issue) and not isinstance(step.operation, PointToPoint):
            (source,) = step.sources
            maker = makers.get(source)
            found = None if maker is None or uses[source] > 1 else _foldable(maker, program, narrowing=True)
            if maker is None or found is None:
                break
            kind, x, by, value = found
            step = replace(step, sources=(x,), folds=((kind, "before", by, value), *step.folds))
            gone.add(maker)
        program.steps[index] = step
    program.steps = [step for step in program.steps if step not in gone]


def _behind(program: Program) -> None:
    uses = _uses(program)
    place = {value: index for index, step in enumerate(program.steps) for value in _made(step)}
    gone: set[int] = set()
    for index, step in enumerate(program.steps):
        found = _foldable(step, program, narrowing=False) if isinstance(step, Compute) else None
        if not isinstance(step, Compute) or found is None:
            continue
        kind, future, by, value = found
        at = place.get(future, index)
        issue = program.steps[at]
        if not isinstance(issue, Issue) or isinstance(issue.operation, PointToPoint):
            continue
        if uses[future] > 1 or _later(value, place, at):
            continue
        gone.add(index)
        program.steps[at] = replace(issue, folds=(*issue.folds, (kind, "after", by, value)))
        (result,) = step.results
        program.awaited[result] = future
        program.names[future] = result.name
        uses[future] = uses[result]
    program.steps = [_renamed(step, program) for index, step in enumerate(program.steps) if index not in gone]


def _later(value: Value | None, place: Mapping[Value, int], at: int) -> bool:
    """Whether a value is made only after a collective is issued."""
    return value is not None and place.get(value, -1) >= at


def _renamed(step: Step, program: Program) -> Step:
    if isinstance(step, Compute):
        return replace(step, uses=tuple(dict.fromkeys(map(program.known_as, step.uses))))
    return replace(step, sources=tuple(map(program.known_as, step.sources)))


def _foldable(step: Compute, program: Program, narrowing: bool) -> tuple[str, Value, str, Value | None] | None:
    """What a step does to a tensor, if it is a scaling by a scalar or a cast: kind, tensor, by what."""
    if step.instruction is None:
        return None
    operation = step.instruction.operation
    operands = [program.known_as(value) for value in step.instruction.operands]
    types = [value.type for value in step.instruction.operands]
    if isinstance(operation, Cast) and operation.overflow == "saturate":
        held = types[0]
        if not isinstance(held, Tensor) or {held.dtype.kind, operation.dtype.kind} != {"float"}:
            return None
        if narrowing and operation.dtype.bits >= held.dtype.bits:
            return None
        return "cast", operands[0], operation.dtype.name, None
    if isinstance(operation, Multiply):
        for tensor, scalar in ((0, 1), (1, 0)):
            if isinstance(types[tensor], Tensor) and isinstance(types[scalar], Scalar):
                return "scale", operands[tensor], f"%{operands[scalar].name}", operands[scalar]
    return None


def _made(step: Step) -> tuple[Value, ...]:
    return step.results if isinstance(step, Compute) else step.futures


def _uses(program: Program) -> Counter[Value]:
    return Counter(value for step in program.steps for value in step.uses)
