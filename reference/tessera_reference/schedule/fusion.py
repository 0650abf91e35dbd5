"""Fused groups of operations, and composites expanded into their definitions (spec sections 6.2, 8.2, 11)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from ..graph.control import Barrier, Directive
from ..graph.elementwise import Elementwise, Identity
from ..ir.diagnostics import Diagnostic, Rejection
from ..ir.operation import Block, Builder, Composite, Function, Instruction, Names, Refusal, diagnostic_of
from ..ir.types import Tensor, Value
from .choices import is_known, kind_of, leads
from .operations import Annotations, Fusion

# Fused groups, and an order in which groups and other instructions can run (LANG-06.2-01, LANG-11-06).
#
# A group runs as a unit. So a fusion is refused where an instruction outside depends on one member and another member
# depends on it. Barriers and effects keep their order; a group does not extend across a barrier (AMB-LANG-218).


def in_order(instructions: Sequence[Instruction], annotations: Annotations) -> list[list[Instruction]]:
    """Return the groups of a block in an order that respects dependences, each in program order. Raises `Rejection`."""
    place = {instruction: position for position, instruction in enumerate(instructions)}
    heads = joined(len(instructions), pairs_of(instructions, annotations.fusions))
    groups: dict[int, list[Instruction]] = {}
    for instruction in instructions:
        groups.setdefault(heads[place[instruction]], []).append(instruction)
    needs = needs_of(instructions, heads, annotations.root)
    order = sorted_groups(list(groups), needs)
    if len(order) < len(groups):
        raise Rejection([_violation(groups, set(groups) - set(order), annotations.fusions)])
    return [groups[head] for head in order]


def pairs_of(instructions: Sequence[Instruction], fusions: Sequence[Fusion]) -> list[tuple[int, int]]:
    """Return pairs of positions that a fusion puts into one group."""
    fusible = [(place, instruction) for place, instruction in enumerate(instructions) if instruction.operation.nest]
    produced = {value: place for place, instruction in fusible for value in instruction.results}
    pairs = []
    for _, values in fusions:
        members = [produced[value] for value in values if value in produced]
        pairs += [(members[0], member) for member in members[1:]]
    return pairs


def joined(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first position of the group of each position."""
    head = list(range(count))

    def find(place: int) -> int:
        while head[place] != place:
            place = head[place]
        return place

    for a, b in pairs:
        first, second = sorted((find(a), find(b)))
        head[second] = first
    return [find(place) for place in range(count)]


def needs_of(
    instructions: Sequence[Instruction], heads: Sequence[int], root: Callable[[Value], Value]
) -> dict[int, set[int]]:
    """Return the groups that must run before each group; `root` removes schedule operations from a value."""
    needs: dict[int, set[int]] = {head: set() for head in heads}
    produced: dict[Value, int] = {}
    effect: int | None = None
    barrier: int | None = None
    since: set[int] = set()
    for position, instruction in enumerate(instructions):
        head = heads[position]
        needs[head].update(produced[value] for value in map(root, used_by(instruction)) if value in produced)
        if barrier is not None:
            needs[head].add(barrier)
        if has_effects(instruction):
            needs[head].update(() if effect is None else (effect,))
            effect = head
        if isinstance(instruction.operation, Barrier):
            needs[head] |= since
            barrier, since = head, set()
        since.add(head)
        produced.update(dict.fromkeys(instruction.results, head))
    for head, needed in needs.items():
        needed.discard(head)
    return needs


def used_by(instruction: Instruction) -> Iterable[Value]:
    """Return the operands, and the outer values that regions use."""
    yield from instruction.operands
    for region in instruction.regions:
        for block in region.blocks():
            yield from block.results
            for inner in block.instructions:
                yield from inner.operands


def has_effects(instruction: Instruction) -> bool:
    """True if an instruction, or one inside it, does more than compute its results."""
    inside = (step for region in instruction.regions for step in region.walk())
    return any(step.operation.effects or step.operation.calls for step in (instruction, *inside))


def sorted_groups(heads: Sequence[int], needs: dict[int, set[int]]) -> list[int]:
    """Return groups after those that they need, otherwise in program order; groups of a cycle are missing."""
    open_needs = {head: set(needs[head]) for head in heads}
    waiting: dict[int, list[int]] = {}
    for head, needed in open_needs.items():
        for value in needed:
            waiting.setdefault(value, []).append(head)
    ready = [head for head, needed in open_needs.items() if not needed]
    heapify(ready)
    order = []
    while ready:
        head = heappop(ready)
        order.append(head)
        for value in waiting.get(head, ()):
            open_needs[value].discard(head)
            if not open_needs[value]:
                heappush(ready, value)
    return order


def _violation(groups: dict[int, list[Instruction]], stuck: set[int], fusions: Sequence[Fusion]) -> Diagnostic:
    """Return the error for the first group that cannot run as a unit."""
    head = min(head for head in stuck if len(groups[head]) > 1)
    members = {value for group in groups[head] for value in group.results}
    place = next(instruction for instruction, values in reversed(fusions) if members & set(values)).location
    values = [value for group in groups[head] for value in group.results]
    written = [value for value in values if not value.name.isdecimal()] or values  # numbers are of values without names
    names = ", ".join(f"%{value.name}" for value in written)
    message = f"fuse: {names} cannot run as one: something between them needs one of them and is needed by another"
    requirement = "a fusion that keeps every dependence"
    remedy = "fuse the operations between them too, or none of them"
    return diagnostic_of(Refusal("schedule", message, requirement, "LANG-06.2-01", remedy), place)


# The fused operations: elementwise ones with the producer of an operand, and those that directives name.
#
# An operation joins the group of an operand of its own shape, unless a group outside needs one of them and is needed by
# the other: by values, by the order of effects, across a barrier. So a fusion chosen here is never refused
# (LANG-08.2-13). A directive names some values; elementwise operations between them are fused with them, whether the
# source names them or not (AMB-LANG-219).


LARGEST = 16
"""The most operations of one group, so that a thread has registers for the values between them."""


class FusionGroups:
    """The groups of one block while its instructions are visited in order; its first position identifies a group."""

    def __init__(
        self, instructions: Sequence[Instruction], directed: set[tuple[str, Value]], fusions: Sequence[Fusion]
    ) -> None:
        self.produced = {
            value: position for position, instruction in enumerate(instructions) for value in instruction.results
        }
        self.instructions = tuple(instructions)
        self.directed = directed
        self.needs = needs_of(instructions, range(len(instructions)), lambda value: value)
        """The positions that must run before each."""
        self.group = joined(len(instructions), pairs_of(instructions, fusions))
        self.members: dict[int, list[int]] = {}
        for position, group in enumerate(self.group):
            self.members.setdefault(group, []).append(position)
        self.start = list(range(len(instructions)))
        """For each position, the first of the run of overlapping groups around it; no group crosses its start."""
        for members in self.members.values():
            self._extend(members[0], members[-1])

    def into(self, instruction: Instruction) -> Value | None:
        """Return the operand with whose producer an instruction is fused, or None."""
        place = next((self.produced[value] for value in instruction.results), None)
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

    def _may_join(self, instruction: Instruction) -> bool:
        return (
            isinstance(instruction.operation, Elementwise)
            and kind_of(instruction) == "map"
            and ("schedule.fuse", instruction.results[0]) not in self.directed
        )

    def _takes(self, group: int, value: Value, instruction: Instruction, place: int) -> bool:
        """True if an instruction that uses a value of a group may join it."""
        lead, shape = self.instructions[group], instruction.results[0].type
        return (
            leads(kind_of(lead), lead)
            and isinstance(shape, Tensor)
            and isinstance(value.type, Tensor)
            and value.type.shape == shape.shape
            and len(self.members[group]) < LARGEST
            and ("schedule.fuse", value) not in self.directed
            and not self._is_something_between(group, place)
        )

    def _extend(self, first: int, last: int) -> None:
        """Join all groups between two positions of a group into one run."""
        start = self.start[first]
        while last + 1 < len(self.start) and self.start[last + 1] <= last:
            last += 1
        self.start[start : last + 1] = [start] * (last + 1 - start)

    def _is_something_between(self, group: int, place: int) -> bool:
        """True if a group outside needs this one, or the instruction at a place, and is needed by either."""
        inside, start = {group, self.group[place]}, self.start[group]
        pending = list(self._needed(inside, start) - inside)
        visited = set(pending)
        while pending:
            needed = self._needed((pending.pop(),), start) - visited
            if needed & inside:
                return True
            visited |= needed
            pending += needed
        return False

    def _needed(self, groups: Collection[int], start: int) -> set[int]:
        """Return the groups that must run before these, without those before `start`, which need only such."""
        positions = {needed for group in groups for member in self.members[group] for needed in self.needs[member]}
        return {self.group[position] for position in positions if position >= start}

    def _last_of(self, group: int, instruction: Instruction) -> Value:
        """Return the first operand that the group produces; there is one."""
        operands = [value for value in instruction.operands if value in self.produced]
        return next(value for value in operands if self.group[self.produced[value]] == group)


def directed_fusions(instructions: Sequence[Instruction]) -> dict[Instruction, tuple[Value, ...]]:
    """Return for each fusing directive its named values and those of elementwise operations between them, in order."""
    fusions: dict[Instruction, tuple[Value, ...]] = {}
    for position, directive in enumerate(instructions):
        if isinstance(directive.operation, Directive) and directive.operation.directive == "schedule.fuse":
            fusions[directive] = with_between(instructions[:position], directive.operands)
    return fusions


def with_between(before: Sequence[Instruction], named: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return values and those of elementwise operations between them; the last named value stays last."""
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
        if value in after and value in ahead and value not in named and isinstance(instruction.operation, Elementwise)
    ]
    return (*named[:-1], *between, named[-1])


# Expansion of a block's composites in place into the operations that define them (AMB-LANG-59).
#
# A composite with effects, such as a random draw, is not expanded; nor is one with unknown extents, since its
# expansion depends on them.


def names_of(function: Function) -> Names:
    """Return the names that a function already uses."""
    values = list(function.parameters)
    for instruction in function.body.walk():
        values += instruction.results
        for region in instruction.regions:
            values += region.arguments
    names = Names()
    for value in values:
        names.unique(value.name)
    return names


def is_expandable(instruction: Instruction) -> bool:
    """True if an instruction is a composite that can be expanded."""
    operation, types = instruction.operation, [value.type for value in instruction.operands]
    return isinstance(operation, Composite) and not operation.effects and all(map(is_known, types))


def expanded(block: Block, names: Names) -> tuple[Instruction, ...]:
    """Return the instructions of a block without composites; regions stay unchanged."""
    instructions: list[Instruction] = []
    for instruction in block.instructions:
        instructions += expansion(instruction, names) if is_expandable(instruction) else [instruction]
    return tuple(instructions)


def expansion(instruction: Instruction, names: Names) -> list[Instruction]:
    """Return the expansion of a composite, which has the composite's results."""
    composite = instruction.operation
    assert isinstance(composite, Composite)
    build = Builder(instruction.location)
    built = composite.decompose(build, *instruction.operands)
    values: dict[Value, Value] = {}
    for inner, outer in zip(built if isinstance(built, tuple) else (built,), instruction.results, strict=True):
        is_own = inner not in instruction.operands and inner not in values
        values[inner if is_own else build(Identity, inner)] = outer
    instructions: list[Instruction] = []
    for original in build.instructions:
        for value in original.results:
            values.setdefault(value, Value(names.unique(f"{instruction.results[0].name}_{value.name}"), value.type))
        operands = tuple(values.get(value, value) for value in original.operands)
        renamed = replace(original, operands=operands, results=tuple(values[value] for value in original.results))
        instructions += expansion(renamed, names) if is_expandable(renamed) else [renamed]
    return instructions
