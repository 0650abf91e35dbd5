"""Steps become units: an await right before the first use, chunks with their buffers, and what each waits for.

COLL-02.1-02, COLL-02.3-04, COLL-02.3-05, COLL-08-09, COLL-08-10; AMB-COLL-14, AMB-COLL-58.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...graph.collective_hints import WIRES
from ...graph.collectives import Collective, Reducing
from ...graph.futures import FutureCollective
from ...ir.module import Function, Module, Value
from .folding import fold
from .fusion import fuse
from .slicing import chunk_elements, elements, ranges
from .steps import Compute, Issue, Program, steps_of
from .units import Fold, Options, Part, Unit

__all__ = ["Plan", "plan_function"]

AWAIT = "tessera.await"


@dataclass(frozen=True)
class Plan:
    """The units of a function, in the order in which they are put into their queues, and what each of them does."""

    program: Program
    units: Sequence[Unit]
    steps: Mapping[int, Compute | Issue | Value]
    """By number of the unit: a step, or the future that it waits for."""


def plan_function(module: Module, function: Function, options: Options) -> Plan:
    """The plan of a function.

    Raises `Failure`: TESS_ERR_UNSUPPORTED for collectives within regions and for tensors of unknown extents,
    TESS_ERR_INVALID_VALUE for a tile that ends within an element.
    """
    program = steps_of(module, function)
    fold(program)
    fuse(program, options.tile)
    emitter = _Emitter(program, options)
    return Plan(program, emitter.units(), emitter.steps)


class _Emitter:
    """Emits units; `made` has the units after which a value is there."""

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.emitted: list[Unit] = []
        self.made: dict[Value, tuple[int, ...]] = {}
        self.pending: dict[Value, tuple[int, ...]] = {}
        """Futures that were issued and not awaited yet, with their chunks."""
        self.sent: list[int] = []
        """The chunks of all collectives, in order."""
        self.steps: dict[int, Compute | Issue | Value] = {}
        self.drawn: tuple[int, ...] = ()
        """The last unit that drew random numbers, which are numbered in the order of the program."""

    def units(self) -> list[Unit]:
        """All of them."""
        for step in self.program.steps:
            for value in step.uses:
                self._await(value)
            if isinstance(step, Compute):
                after = (*self._after(step.uses), *(self.drawn if step.draws else ()))
                unit = self._emit(step.name, self._names(step.uses), self._names(step.results), after)
                self.drawn = (unit,) if step.draws else self.drawn
                self.steps[unit] = step
                self.made |= dict.fromkeys(step.results, (unit,))
            else:
                self._issue(step)
        return self.emitted

    def _await(self, value: Value) -> None:
        """The wait for a future, before its first use."""
        chunks = self.pending.pop(value, None)
        if chunks is not None:
            unit = self._emit(AWAIT, (f"%{value.name}",), self._names((value,)), chunks)
            self.made[value] = (unit,)
            self.steps[unit] = value

    def _issue(self, step: Issue) -> None:
        """The chunks of a collective."""
        operation = step.operation
        total = sum(map(elements, step.types))
        ready = self._after(step.uses)
        own: list[int] = []
        for place, chunk in enumerate(ranges(total, chunk_elements(operation, self.options.tile))):
            buffer = None if self.options.depth is None else place % self.options.depth
            unit = Unit(
                len(self.emitted),
                "comm",
                step.name,
                self._names(step.sources),
                tuple(f"%{each.name}" for each in step.futures),
                _ordered((*ready, *self._before(own))),
                chunk,
                buffer,
                _wire(operation),
                _accumulator(operation),
                _parts(step),
                tuple(Fold(*each[:3]) for each in step.folds),
            )
            self.emitted.append(unit)
            self.steps[unit.id] = step
            own.append(unit.id)
            self.sent.append(unit.id)
        self.pending |= dict.fromkeys(step.futures, tuple(own))

    def _before(self, own: list[int]) -> list[int]:
        """Which chunks must have ended: the last in the same buffer, and one so that few are under way."""
        depth, most = self.options.depth, self.options.max_inflight
        found = [own[-depth]] if depth is not None and len(own) >= depth else []
        return found + ([self.sent[-most]] if most is not None and len(self.sent) >= most else [])

    def _emit(self, name: str, operands: tuple[str, ...], results: tuple[str, ...], after: Iterable[int]) -> int:
        unit = Unit(len(self.emitted), "compute", name, operands, results, _ordered(after))
        self.emitted.append(unit)
        return unit.id

    def _after(self, values: Iterable[Value]) -> tuple[int, ...]:
        return tuple(unit for value in values for unit in self.made.get(value, ()))

    def _names(self, values: Iterable[Value]) -> tuple[str, ...]:
        """Values by name; of a future that of its value."""
        return tuple(f"%{self.program.names.get(value, value.name)}" for value in values)


def _ordered(units: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(units)))


def _wire(operation: Collective) -> str:
    """What travels: the dtype that is asked for, or that of the data."""
    asked = operation.dtype if isinstance(operation, FutureCollective) else None
    return WIRES[asked] if asked else operation.x.dtype.name


def _accumulator(operation: Collective) -> str | None:
    """In what a reduction adds: fp32 or wider (AMB-COLL-06)."""
    reduces = isinstance(operation, Reducing) or "op" in operation.attributes
    return operation.x.dtype.accumulator.name if reduces else None


def _parts(step: Issue) -> tuple[Part, ...]:
    """Where the tensors of a fused collective lie; nothing for one."""
    if len(step.sources) == 1:
        return ()
    found, first = [], 0
    for source, future in zip(step.types, step.futures, strict=True):
        count = elements(source)
        found.append(Part(f"%{future.name}", first, count))
        first += count
    return tuple(found)
