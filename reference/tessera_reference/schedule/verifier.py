"""Legality of the schedule of a whole function (spec sections 6.2, 6.3, 11; LANG-11-06, -08, -09).

Operations check what depends on their operands' types alone; here are the rules that depend on producers, consumers and
the target.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.matmul import MatMul
from ..ir.diagnostics import Category, Diagnostic, Rejection
from ..ir.module import Composite, Function, Instruction
from ..ir.operation import Refusal, diagnostic_of
from ..ir.targets import Target
from ..ir.types import Tensor, Value, layout_of
from .fusion import blocks_of
from .nests import Nest, Plan, buffers, registers, shared_bytes
from .operations import LayoutCast, Prefetch, Tile, is_alias, require_cover


def verify_schedule(function: Function, target: Target) -> None:
    """Raise `Rejection` unless the schedule of a function of the host can be executed on a target."""
    if function.device:
        return
    problems = list(Legality(function, target).findings())
    if problems:
        raise Rejection(problems)


class Legality:
    """Judges one function."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.target = target
        self.plan = Plan(function, target)
        self.nests: dict[Value, Nest] = {}
        """The nest that computes each value."""
        self.producers = {value: producer for producer in function.body.walk() for value in producer.results}
        self.readers: dict[Value, list[Instruction]] = {}
        for instruction in function.body.walk():
            for value in instruction.operands:
                self.readers.setdefault(value, []).append(instruction)

    def findings(self) -> Iterator[Diagnostic]:
        """All violations."""
        for block in blocks_of(self.function.body):
            try:
                nests = [item for item in self.plan.block(block) if isinstance(item, Nest)]
            except Rejection as rejection:
                yield from rejection.diagnostics
                continue
            self.nests.update({step.results[0]: nest for nest in nests for step in nest.instructions})
            for nest in nests:
                yield from self._resources(nest)
        for instruction in self.function.body.walk():
            yield from self._operation(instruction)

    def _resources(self, nest: Nest) -> Iterator[Diagnostic]:
        limit, needed = self.target.shared_bytes, shared_bytes(nest)
        if needed > limit:
            alone = next((value for value, size in buffers(nest) if size // nest.depth > limit), None)
            what = f"one tile of %{alone.name}" if alone is not None else "its stages"
            yield self._finding(
                nest.lead,
                f"{what} takes more shared memory than a block of {self.target.name} has: {needed} of {limit} bytes",
                f"at most {limit} bytes for all buffers",
                "LANG-06.2-03" if alone is not None else "LANG-11-08",
                "smaller tiles, or a pipeline that is less deep",
            )
        estimate = registers(nest, self.target)
        if estimate > self.target.registers:
            yield self._finding(
                nest.lead,
                f"a thread is estimated to need {estimate} registers, and one of {self.target.name} has "
                f"{self.target.registers}",
                f"at most {self.target.registers} registers",
                "LANG-11-09",
                "smaller tiles",
            )

    def _operation(self, instruction: Instruction) -> Iterator[Diagnostic]:
        operation = instruction.operation
        if isinstance(operation, Tile):
            yield from self._tile(instruction, operation)
        elif isinstance(operation, Prefetch):
            yield from self._prefetch(instruction)
        elif isinstance(operation, LayoutCast):
            yield from self._cast(instruction, operation)

    def _tile(self, instruction: Instruction, tile: Tile) -> Iterator[Diagnostic]:
        """Require that k is stated for contractions only, and covers the summed extent."""
        if tile.k is None:
            return
        root = self.plan.root(instruction.operands[0])
        producer = self.producers.get(root)
        nest = self.nests.get(root)
        lead = nest.lead if nest is not None and nest.kind == "contract" else producer
        if lead is None or not isinstance(lead.operation, MatMul | Composite):
            yield self._finding(
                instruction,
                f"k tiles a contraction, and %{root.name} is none",
                "k on the result of a matmul only",
                "LANG-06.1-01",
                "leave out k",
            )
        elif isinstance(lead.operation, MatMul):
            left = lead.operands[0].type
            assert isinstance(left, Tensor)
            try:
                require_cover(2, tile.k, left.shape[-1], tile.pad)
            except Refusal as refusal:
                yield diagnostic_of(refusal.by(tile), instruction.location)

    def _prefetch(self, instruction: Instruction) -> Iterator[Diagnostic]:
        """Require that a prefetched value is read by an operation that computes (AMB-LANG-218)."""
        if not any(not is_alias(use) for use in self._uses(instruction.results[0])):
            yield self._finding(
                instruction,
                f"no operation reads %{instruction.results[0].name}",
                "a prefetch of what is computed with",
                "LANG-06.1-04",
                "compute with its result, or leave it out",
            )

    def _uses(self, value: Value) -> Iterator[Instruction]:
        """The instructions that read a value, directly or through schedule operations."""
        pending = [value]
        while pending:
            read = pending.pop()
            for reader in self.readers.get(read, ()):
                yield reader
                if is_alias(reader) and reader.operands[-1] is read:
                    pending += reader.results

    def _cast(self, instruction: Instruction, cast: LayoutCast) -> Iterator[Diagnostic]:
        """Refuse a cast without a copy unless its producer can write the layout; consumers check it themselves."""
        layout, current = layout_of(cast.to), cast.x.layout
        if cast.materialize or layout == current:
            return
        root = self.plan.root(instruction.operands[0])
        producer = self.producers.get(root)
        if producer is None or layout.name not in producer.operation.layouts:
            maker = f"@{self.function.name}'s caller" if producer is None else producer.operation.short_name
            yield self._finding(
                instruction,
                f"{maker} makes %{root.name}, and does not write {layout} itself",
                "a cast that producer and consumers support, or a materialized copy",
                "LANG-06.3-02",
                "materialize=true",
                "layouts",
            )

    def _finding(
        self,
        instruction: Instruction,
        message: str,
        requirement: str,
        clause: str,
        remedy: str,
        category: Category = "schedule",
    ) -> Diagnostic:
        refusal = Refusal(category, message, requirement, clause, remedy)
        operands = tuple(f"%{value.name} is {value.type}" for value in instruction.operands)
        return diagnostic_of(refusal.by(instruction.operation), instruction.location, operands)
