"""From Graph IR to Schedule IR: tiling, fusion, prefetch, pipelines (spec sections 6, 8.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..graph.constant import LayoutCast as GraphLayoutCast
from ..graph.control import Directive
from ..ir.diagnostics import Diagnostic, Rejection
from ..ir.module import Block, Function, Instruction, Module, Walk, fields_of, trampoline
from ..ir.operation import Operation, Refusal
from ..ir.targets import Target
from ..ir.types import Value
from .choices import Choices
from .fusion import FusionGroups, directed_fusions, expanded, names_of
from .gradients import without_gradients
from .nests import is_dropped
from .operations import Fuse, LayoutCast, Pipeline, Prefetch, Tile, host_functions
from .options import Options, annotated
from .specialize import lowering_refused
from .verifier import verify_schedule

# From Graph IR to Schedule IR: tiling, fusion, prefetch, pipelines (sections 6, 8.2; LANG-08.2-01, -02, -13, -14).
#
# Products are tiled, their operands prefetched to shared memory and their loads pipelined; elementwise operations are
# fused with the producers of their operands; rows are tiled and prefetched. Directives of the program replace the
# choices for their values. Gradients are written out first; a function with one that is not stays on the host (AMB-
# LANG-215).


DIRECTIVES: Mapping[str, type[Operation]] = {
    "schedule.tile": Tile,
    "schedule.fuse": Fuse,
    "schedule.pipeline": Pipeline,
    "schedule.prefetch": Prefetch,
}
"""The operation that each directive becomes. A layout cast is an operation of its own already."""


def to_schedule(module: Module, target: Target, options: Options | None = None) -> Module:
    """The module with every function scheduled. Raises `Rejection` for a schedule that is not legal."""
    module = without_gradients(module)
    host = host_functions(module)
    functions, problems = {}, list[Diagnostic]()
    for name, function in module.functions.items():
        try:
            wished = annotated(options or Options(), function)
            scheduled = Scheduling(function, target, wished, name in host).function()
            verify_schedule(scheduled, target)
        except Refusal as refusal:
            problems += lowering_refused(refusal, function.location).diagnostics
        except Rejection as rejection:
            problems += [replace(diagnostic, phase="lower") for diagnostic in rejection.diagnostics]
        else:
            functions[name] = scheduled
    if problems:
        raise Rejection(problems)
    return replace(module, functions=functions)


class Scheduling:
    """Schedules one function; `now` maps each value to the result of the last schedule operation on it so far."""

    def __init__(self, source: Function, target: Target, options: Options, host: bool) -> None:
        self.source = source
        self.target = target
        self.options = options
        self.host = host
        self.names = names_of(source)
        self.now: dict[Value, Value] = {}
        self.made: list[Instruction] = []
        directives = [instruction for instruction in source.body.walk() if isinstance(instruction.operation, Directive)]
        self.directed = {
            (directive.operation.directive, value)
            for directive in directives
            for value in directive.operands
            if isinstance(directive.operation, Directive)
        }
        """Pairs of a directive and the value that it is about."""
        self.fused: dict[Instruction, tuple[Value, ...]] = {}
        """All values of each fusion that is directed."""

    def function(self) -> Function:
        """The scheduled function. Raises `Rejection`."""
        body = trampoline(self._block(self.source.body))
        attributes = {name: value for name, value in self.source.attributes.items() if name != "schedule"}
        return replace(self.source, body=body, attributes=attributes)

    def _block(self, block: Block) -> Walk[Block]:
        outer, self.made = self.made, []
        around = dict(self.now)
        instructions = block.instructions if self.host else expanded(block, self.names)
        for directive, values in directed_fusions(instructions).items():
            self.fused[directive] = values
            self.directed |= {("schedule.fuse", value) for value in values}
        groups = self._groups(instructions) if self.options.fuse and not self.host else None
        for instruction in instructions:
            if isinstance(instruction.operation, Directive):
                self._direct(instruction)
            elif isinstance(instruction.operation, GraphLayoutCast) and not self.host:
                self._cast(instruction)
            else:
                regions = []
                for region in instruction.regions:
                    regions.append((yield self._block(region)))
                self._schedule(replace(instruction, regions=tuple(regions)), groups)
        made, self.made = self.made, outer
        results, self.now = self._read(block.results), around
        return Block(block.arguments, tuple(made), results, block.exit)

    def _groups(self, instructions: Sequence[Instruction]) -> FusionGroups:
        """Return the groups that directives fuse; operations join them as they are scheduled."""
        fusions = [(instruction, self.fused[instruction]) for instruction in instructions if instruction in self.fused]
        return FusionGroups(
            [instruction for instruction in instructions if not is_dropped(instruction)], self.directed, fusions
        )

    def _read(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self.now.get(value, value) for value in values)

    # What is chosen

    def _schedule(self, instruction: Instruction, groups: FusionGroups | None) -> None:
        """Add an instruction, the prefetches of its operands before it and the schedule of its result behind it."""
        if self.host:
            self.made.append(replace(instruction, operands=self._read(instruction.operands)))
            return
        choices = Choices.of(instruction, self.target, self.options, self.directed)
        operands = list(self._read(instruction.operands))
        for position in choices.prefetched:
            source = operands[position]
            operands[position] = self._put(instruction, Prefetch, (source,), f"{source.name}s", scope=choices.scope)
        self.made.append(replace(instruction, operands=tuple(operands)))
        if not instruction.results:
            return
        result = instruction.results[0]
        producer = groups.into(instruction) if groups is not None else None
        if choices.tile is not None and producer is None:
            m, n, k, pad = choices.tile
            sizes: dict[str, Any] = {"m": m, "n": n, "k": k, "pad": pad}
            self.now[result] = self._put(instruction, Tile, self._read((result,)), f"{result.name}t", **sizes)
        if choices.depth is not None:
            settings: dict[str, Any] = {"double_buffer": choices.depth > 1, "depth": choices.depth}
            self.now[result] = self._put(instruction, Pipeline, self._read((result,)), f"{result.name}p", **settings)
        if producer is not None:
            self.now[result] = self._put(instruction, Fuse, self._read((producer, result)), f"{result.name}f")

    # What is directed

    def _direct(self, instruction: Instruction) -> None:
        """Add the operation that a directive requests; from here on its result replaces the value."""
        directive = instruction.operation
        assert isinstance(directive, Directive)
        operation = DIRECTIVES.get(directive.directive)
        if operation is None or self.host:
            return
        settings = dict(directive.settings)
        if operation is Fuse:
            last = instruction.operands[-1]
            self.now[last] = self._put(instruction, Fuse, self._read(self.fused[instruction]), f"{last.name}f")
            return
        for subject in instruction.operands:
            attributes = self._completed(subject, settings) if operation is Tile else settings
            name = subject.name + {Tile: "t", Pipeline: "p", Prefetch: "s"}[operation]
            before = len(self.made)
            result = self._put(instruction, operation, self._read((subject,)), name, **attributes)
            if operation is Prefetch and not self._is_read_later(subject, instruction):
                del self.made[before:]  # legal, and of no effect (AMB-LANG-218)
            else:
                self.now[subject] = result

    def _completed(self, subject: Value, settings: dict[str, Any]) -> dict[str, Any]:
        """The sizes of a tile directive; missing ones are chosen as without the directive."""
        producer = next((candidate for candidate in self.made if subject in candidate.results), None)
        chosen = Choices.of(producer, self.target, self.options, set()).tile if producer is not None else None
        m, n, k, pad = chosen or (1, 1, None, None)
        attributes = {"m": m, "n": n, "k": k, **settings}
        open_k = "k" not in settings and k is not None
        if open_k and pad is not None and pad[2]:
            own = settings.get("pad", 0)
            numbers = own if isinstance(own, tuple) else (own, own)
            attributes["pad"] = (*numbers[:2], pad[2])
        return {name: value for name, value in attributes.items() if value is not None}

    def _is_read_later(self, value: Value, directive: Instruction) -> bool:
        """True if anything computes with a value after a directive about it."""
        later = False
        for instruction in self.source.body.walk():
            later = later or instruction is directive
            if later and value in instruction.operands and not isinstance(instruction.operation, Directive):
                return True
        return False

    def _cast(self, instruction: Instruction) -> None:
        """A layout cast of Graph IR is a materialized copy (AMB-LANG-67)."""
        operation, operands = instruction.operation, self._read(instruction.operands)
        assert isinstance(operation, GraphLayoutCast)
        cast = LayoutCast(x=operation.x, to=operation.to, materialize=True)
        self.made.append(replace(instruction, operation=cast, operands=operands))

    def _put(
        self, at: Instruction, operation: type[Operation], operands: tuple[Value, ...], name: str, **attributes: Any
    ) -> Value:
        """Add a schedule operation; its result."""
        types = tuple(operand.type for operand in operands)
        operation_ = operation(**fields_of(operation, types), **attributes)
        try:
            (type_,) = operation_.results()
        except Refusal as refusal:
            raise lowering_refused(refusal.by(operation_), at.location) from refusal
        result = Value(self.names.unique(name), type_)
        self.made.append(Instruction(operation_, operands, (result,), at.location))
        return result


# Whether the schedule that a program states can be followed at all (spec section 6; LANG-06.2-01 to -05, -06.3-01).
#
# A program is verified without a target: it is refused where no target can follow its directives and annotations.


def verify_stated_schedules(modules: Iterable[Module], targets: Sequence[Target]) -> None:
    """Raise `Rejection`, with what is wrong for the first target, unless a target can follow each module's schedule."""
    for module in modules:
        if any(_states_schedule(function) for function in module.functions.values()):
            _verify(module, targets)


def _verify(module: Module, targets: Sequence[Target]) -> None:
    refused = []
    for target in targets:
        try:
            to_schedule(module, target)
        except Rejection as rejection:
            refused.append(rejection)
        else:
            return
    raise Rejection([replace(diagnostic, phase="verify") for diagnostic in refused[0].diagnostics])


def _states_schedule(function: Function) -> bool:
    return "schedule" in function.attributes or any(
        isinstance(instruction.operation, Directive) and instruction.operation.directive.startswith("schedule.")
        for instruction in function.body.walk()
    )
