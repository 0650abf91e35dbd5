"""What a function does, as steps of computing and issuing: every await is gone, since its place follows from the uses.

Collectives of Graph IR, which yield their values, become those of the dialect (AMB-COLL-14). A value that is awaited is
known by its future, so that a use of the one is a use of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...abi.status import Failure, Status
from ...graph.collectives import AllGather, AllReduce, AllToAll, Collective, ReduceScatter, RootBroadcast
from ...graph.futures import Await
from ...graph.interpreter import reachable
from ...ir.module import Block, Function, Instruction, Module, Value
from ...ir.types import Future, Numeric

__all__ = ["Compute", "Issue", "Program", "Step", "steps_of", "unsupported"]

NAME = "collectives.plan"

DIALECT: Mapping[type[Collective], str] = {
    AllReduce: "tessera.collective.all_reduce",
    ReduceScatter: "tessera.collective.reduce_scatter",
    AllGather: "tessera.collective.all_gather",
    AllToAll: "tessera.collective.all_to_all",
    RootBroadcast: "tessera.collective.broadcast",
}


@dataclass(frozen=True, eq=False)
class Compute:
    """An instruction of the compute queue, or the end of the function."""

    name: str
    uses: tuple[Value, ...]
    results: tuple[Value, ...]
    instruction: Instruction | None = None
    draws: bool = False
    """Whether it may draw random numbers, the streams of which are numbered as they are drawn."""


@dataclass(frozen=True, eq=False)
class Issue:
    """A collective of some tensors, each of which has a future; several where they were fused."""

    operation: Collective
    sources: tuple[Value, ...]
    futures: tuple[Value, ...]
    types: tuple[Numeric, ...]
    """What each of them is, as the collective takes it."""
    folds: tuple[tuple[str, str, str, Value | None], ...] = ()
    """What was folded into it: cast or scale, before or after, by which dtype or value, and that value."""

    @property
    def name(self) -> str:
        """The collective of the dialect; one that has none stays what it is."""
        return DIALECT.get(type(self.operation), self.operation.name)

    @property
    def uses(self) -> tuple[Value, ...]:
        """What has to be there before it is issued."""
        return (*self.sources, *(value for *_, value in self.folds if value is not None))


Step: TypeAlias = Compute | Issue


@dataclass
class Program:
    """The steps of a function in order."""

    steps: list[Step] = field(default_factory=list)
    awaited: dict[Value, Value] = field(default_factory=dict)
    """The future of each value that is awaited, and of what was folded behind it."""
    names: dict[Value, str] = field(default_factory=dict)
    """What a future's value is called where it has a name of its own."""

    def known_as(self, value: Value) -> Value:
        """The future of a value, or itself."""
        while value in self.awaited:
            value = self.awaited[value]
        return value


def steps_of(module: Module, function: Function) -> Program:
    """The steps of a function whose collectives stand in its outermost block.

    Raises `Failure` with TESS_ERR_UNSUPPORTED for a collective, or a future, within a region or a function it calls.
    """
    program = Program()
    for instruction in function.body.instructions:
        operation = instruction.operation
        if isinstance(operation, Await):
            (future,), (value,) = instruction.operands, instruction.results
            program.awaited[value] = future
            program.names.setdefault(future, value.name)
        elif isinstance(operation, Collective):
            (result,) = instruction.results
            source = program.known_as(instruction.operands[0])
            program.steps.append(Issue(operation, (source,), (result,), (operation.x,)))
        else:
            hidden = _require_plain(module, function, instruction)
            draws = any("random" in each.operation.effects for each in (instruction, *hidden))
            uses = tuple(dict.fromkeys(map(program.known_as, _used(instruction))))
            program.steps.append(Compute(operation.name, uses, instruction.results, instruction, draws))
    last = tuple(dict.fromkeys(map(program.known_as, function.body.results)))
    if any(isinstance(type_, Future) for type_ in function.results):
        raise unsupported(f"@{function.name} returns a future", "functions that return tensors and scalars")
    program.steps.append(Compute("tessera.graph.return", last, ()))
    return program


def _used(instruction: Instruction) -> Iterator[Value]:
    """What an instruction and its regions use."""
    yield from instruction.operands
    pending: list[Block] = list(instruction.regions)
    inside: set[Value] = set()
    used: list[Value] = []
    while pending:
        block = pending.pop()
        inside.update(block.arguments)
        used += block.results
        for each in block.instructions:
            inside.update(each.results)
            used += each.operands
            pending += each.regions
    yield from (value for value in used if value not in inside)


def _require_plain(module: Module, function: Function, instruction: Instruction) -> list[Instruction]:
    """What an instruction may execute besides itself, in regions and functions. Raises `Failure`."""
    operation = instruction.operation
    hidden = [each for block in instruction.regions for each in block.walk()]
    if operation.calls:
        callee = module.functions.get(str(operation.attributes[operation.calls]))
        hidden += reachable(module, callee) if callee is not None else []
    if any(isinstance(value.type, Future) for value in instruction.operands):
        raise unsupported(f"{operation.name} takes a future at {instruction.location}", "futures that are awaited")
    if any(isinstance(each.operation, Collective | Await) for each in hidden):
        given = f"{operation.name} at {instruction.location} holds collectives"
        raise unsupported(given, f"collectives in the outermost block of @{function.name}")
    return hidden


def unsupported(given: str, expected: str) -> Failure:
    """A program that cannot be planned."""
    return Failure(Status.TESS_ERR_UNSUPPORTED, NAME, given, expected)
