"""Which operations are fused: elementwise ones with the producer of an operand, and those that directives name.

An operation joins the group of an operand of its own shape, unless another operand depends on that group through
operations outside it. So a fusion that is chosen here is never refused (LANG-08.2-13). A directive names some values;
elementwise operations between them are fused with them, named in the source or not (AMB-LANG-219).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.constant import Constant
from ..graph.control import Barrier
from ..graph.directive import Directive
from ..ir.module import Instruction, Value
from ..ir.types import Tensor
from .grouping import used_by
from .kinds import is_elementwise, kind_of

LARGEST = 16
"""Operations of one group, so that a thread has registers for the values between them."""


class FusionGroups:
    """The groups of one block while its instructions are visited in order; a group is known by its first position."""

    def __init__(self, instructions: Sequence[Instruction], directed: set[tuple[str, Value]]) -> None:
        self.place = {instruction: position for position, instruction in enumerate(instructions)}
        self.produced = {value: position for each, position in self.place.items() for value in each.results}
        self.instructions = tuple(instructions)
        self.directed = directed
        self.group = list(range(len(instructions)))
        self.members: dict[int, list[int]] = {position: [position] for position in self.group}
        self.barriers = [position for each, position in self.place.items() if isinstance(each.operation, Barrier)]

    def into(self, instruction: Instruction) -> Value | None:
        """The operand with whose producer an instruction is fused, or None."""
        place = self._place_of(instruction)
        if place is None or not self._may_join(instruction):
            return None
        for value in instruction.operands:
            group = self.group[self.produced[value]] if value in self.produced else None
            if group is not None and self._takes(group, value, instruction, place):
                self.members[group].append(place)
                self.group[place] = group
                return self._last_of(group, instruction)
        return None

    def _place_of(self, instruction: Instruction) -> int | None:
        return next((self.produced[value] for value in instruction.results), None)

    def _may_join(self, instruction: Instruction) -> bool:
        return (
            is_elementwise(instruction.operation)
            and kind_of(instruction) == "map"
            and ("schedule.fuse", instruction.results[0]) not in self.directed
        )

    def _takes(self, group: int, value: Value, instruction: Instruction, place: int) -> bool:
        """Whether an instruction that uses a value of a group may join it."""
        lead = self.instructions[group]
        fits = kind_of(lead) == "contract" or (kind_of(lead) == "map" and is_elementwise(lead.operation))
        shape = instruction.results[0].type
        return (
            fits
            and isinstance(shape, Tensor)
            and isinstance(value.type, Tensor)
            and value.type.shape == shape.shape
            and len(self.members[group]) < LARGEST
            and ("schedule.fuse", value) not in self.directed
            and not any(group < barrier < place for barrier in self.barriers)
            and not self._depends_from_outside(group, instruction)
        )

    def _depends_from_outside(self, group: int, instruction: Instruction) -> bool:
        """Whether the instruction depends on the group through something outside it."""
        pending = [self.produced[value] for value in instruction.operands if value in self.produced]
        seen: set[int] = {group}
        pending = [place for place in pending if self.group[place] != group]
        while pending:
            head = self.group[pending.pop()]
            if head in seen or max(self.members[head]) < group:
                continue
            seen.add(head)
            for member in self.members[head]:
                for value in used_by(self.instructions[member]):
                    place = self.produced.get(value)
                    if place is None or isinstance(self.instructions[place].operation, Constant):
                        continue
                    if self.group[place] == group:
                        return True
                    pending.append(place)
        return False

    def _last_of(self, group: int, instruction: Instruction) -> Value:
        """The first operand that the group produces; there is one."""
        made = [value for value in instruction.operands if value in self.produced]
        return next(value for value in made if self.group[self.produced[value]] == group)


def directed_fusions(instructions: Sequence[Instruction]) -> dict[Instruction, tuple[Value, ...]]:
    """For each directive that fuses, the values it names and those of elementwise operations between them, in order."""
    found: dict[Instruction, tuple[Value, ...]] = {}
    for position, directive in enumerate(instructions):
        if isinstance(directive.operation, Directive) and directive.operation.directive == "schedule.fuse":
            found[directive] = with_between(instructions[:position], directive.operands)
    return found


def with_between(before: Sequence[Instruction], named: tuple[Value, ...]) -> tuple[Value, ...]:
    """Values, and those of elementwise operations that depend on one and lead to another; the last named stays last."""
    after, ahead = set(named), set(named)
    for instruction in before:
        if after.intersection(instruction.operands):
            after.update(instruction.results)
    for instruction in reversed(before):
        if ahead.intersection(instruction.results):
            ahead.update(instruction.operands)
    between = [
        value
        for instruction in before
        for value in instruction.results
        if value in after and value in ahead and value not in named and is_elementwise(instruction.operation)
    ]
    return (*named[:-1], *between, named[-1])
