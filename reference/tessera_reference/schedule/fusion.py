"""Which operations are fused: elementwise ones with the producer of an operand, and those that directives name.

An operation joins the group of an operand of its own shape, unless a group outside needs one of them and is needed by
the other: by values, by the order of effects, across a barrier. So a fusion that is chosen here is never refused
(LANG-08.2-13). A directive names some values; elementwise operations between them are fused with them, named in the
source or not (AMB-LANG-219).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..graph.directive import Directive
from ..ir.module import Instruction, Value
from ..ir.types import Tensor
from .annotations import Fusion
from .grouping import joined, needs_of, pairs_of
from .kinds import is_elementwise, kind_of

LARGEST = 16
"""Operations of one group, so that a thread has registers for the values between them."""


class FusionGroups:
    """The groups of one block while its instructions are visited in order; a group is known by its first position."""

    def __init__(
        self, instructions: Sequence[Instruction], directed: set[tuple[str, Value]], fusions: Sequence[Fusion]
    ) -> None:
        self.place = {instruction: position for position, instruction in enumerate(instructions)}
        self.produced = {value: position for each, position in self.place.items() for value in each.results}
        self.instructions = tuple(instructions)
        self.directed = directed
        self.needs = needs_of(instructions, range(len(instructions)), lambda value: value)
        """The positions that must have run before each."""
        self.group = joined(len(instructions), pairs_of(instructions, fusions))
        self.members: dict[int, list[int]] = {}
        for position, group in enumerate(self.group):
            self.members.setdefault(group, []).append(position)
        self.start = list(range(len(instructions)))
        """For each position the first of the run of overlapping groups around it: no group reaches across its start."""
        for members in self.members.values():
            self._extend(members[0], members[-1])

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
                self._extend(group, place)
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
            and not self._is_something_between(group, place)
        )

    def _extend(self, first: int, last: int) -> None:
        """Make one run of all groups between two positions of a group."""
        start = self.start[first]
        while last + 1 < len(self.start) and self.start[last + 1] <= last:
            last += 1
        self.start[start : last + 1] = [start] * (last + 1 - start)

    def _is_something_between(self, group: int, place: int) -> bool:
        """Whether a group outside needs this one, or the instruction at a place, and is needed by either."""
        inside, start = {group, self.group[place]}, self.start[group]
        pending = list(self._needed(inside, start) - inside)
        seen = set(pending)
        while pending:
            needed = self._needed((pending.pop(),), start) - seen
            if needed & inside:
                return True
            seen |= needed
            pending += needed
        return False

    def _needed(self, groups: Collection[int], start: int) -> set[int]:
        """The groups that must have run before these, but those before the start of a run, which need only such."""
        positions = {needed for each in groups for member in self.members[each] for needed in self.needs[member]}
        return {self.group[position] for position in positions if position >= start}

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
