"""Reverse-mode differentiation along what was executed (spec section 5.5; LANG-05.5-01).

An interpreter that runs a program with `grad` keeps a tape of what it executes: branches taken, every turn of a loop,
the bodies of calls. `gradients` goes back along the tape and has each operation's adjoint build its contribution, which
is then executed, and recorded, like any other code; so gradients can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

import numpy as np

from ..ir.builder import BlockBuilder, fields_of
from ..ir.diagnostics import Location
from ..ir.module import Block
from ..ir.operation import Applied, Operation
from ..ir.stepwise import Arrival, Steps
from ..ir.types import ROW_MAJOR, Tensor
from ..numerics.array import Array
from .collectives import Collective
from .elementwise import Add
from .tape import Executed, Tape, on_types_of, type_of

Contributions = dict[int, list[Array]]
"""What each array, by identity, is given by its uses, the last use first."""

Run = Callable[[Block, tuple[Array, ...]], Steps]
"""Runs a block on arguments, recording what it executes."""


def gradients(tape: Tape, run: Run, y: Array, wrt: tuple[Array, ...], location: Location) -> Steps:
    """The derivative of the sum of y's elements with respect to each of `wrt`; zeros where y does not depend on it."""
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
        found = yield from _adjoint(run, entry, tuple(dys))
        for operand, gradient in reversed(list(zip(entry.operands, found, strict=True))):
            if gradient is not None and id(operand) in depending:
                contributions.setdefault(id(operand), []).append(gradient)
    totals = []
    for x in wrt:
        totals.append((yield from _total(run, x, contributions, location)))
    return tuple(totals)


def _depending_on(wrt: tuple[Array, ...], executed: Sequence[Executed]) -> set[int]:
    """The identities of the arrays computed from `wrt`, and of `wrt` themselves."""
    depending = {id(x) for x in wrt}
    for entry in executed:
        if any(id(operand) in depending for operand in entry.operands):
            depending.update(id(result) for result in entry.results if result.dtype.kind == "float")
    return depending


def _total(
    run: Run, x: Array, contributions: Contributions, location: Location
) -> Generator[Arrival, tuple[Array, ...], Array]:
    """The contributions of all uses, added in program order (AMB-LANG-117)."""
    found = contributions.get(id(x), [])
    if len(found) < 2:
        return found[0] if found else _filled(x, 0)
    build = BlockBuilder(location)
    terms = tuple(build.value(type_of(x)) for _ in found)
    total = terms[0]
    for term in terms[1:]:
        total = build(Add, total, term)
    (result,) = yield from run(build.block(terms, (total,)), tuple(reversed(found)))
    contributions[id(x)] = [result]
    return result


def _adjoint(
    run: Run, entry: Executed, dys: tuple[Array, ...]
) -> Generator[Arrival, tuple[Array, ...], tuple[Array | None, ...]]:
    """What an operation's adjoint gives each operand; None for nothing."""
    operation = _row_major(on_types_of(entry.operation, entry.operands))
    build = BlockBuilder(entry.location)
    operands = tuple(build.value(type_) for _, type_ in operation.operand_types)
    types = operation.results()
    results = tuple(build.value(type_) for type_ in types)
    incoming = tuple(build.value(type_) for type_ in types)
    outgoing = operation.adjoint(Applied(operands, results, incoming), build)
    block = build.block((*operands, *results, *incoming), tuple(value for value in outgoing if value is not None))
    found = iter((yield from run(block, (*entry.operands, *entry.results, *dys))))
    return tuple(None if value is None else next(found) for value in outgoing)


def _row_major(operation: Operation) -> Operation:
    """On operands in the layout that every operation takes: no derivative depends on a layout."""
    types = (
        replace(type_, layout=ROW_MAJOR) if isinstance(type_, Tensor) else type_ for _, type_ in operation.operand_types
    )
    return replace(operation, **fields_of(type(operation), tuple(types)))  # type: ignore[type-var]  # all are dataclasses


def _filled(like: Array, number: int) -> Array:
    return Array(like.dtype, np.full(like.shape, number, like.dtype.carrier))
