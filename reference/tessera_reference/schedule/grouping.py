"""Fused groups, and an order in which groups and other instructions can run (LANG-06.2-01, LANG-11-06).

A group runs as a unit. So a fusion is refused where an instruction outside depends on one member and another member
depends on it. Barriers and effects keep their order; a group does not extend across a barrier (AMB-LANG-218).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush

from ..graph.control import Barrier
from ..ir.diagnostics import Diagnostic, Rejection
from ..ir.module import Block, Instruction, Value
from ..ir.operation import Refusal
from ..ir.refusals import diagnostic_of
from .annotations import Annotations, Fusion
from .kinds import is_fusible


def in_order(instructions: Sequence[Instruction], annotations: Annotations) -> list[list[Instruction]]:
    """The groups of a block in an order that respects dependences, each in program order. Raises `Rejection`."""
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
    """Positions that a fusion puts into one group."""
    fusible = [(place, each) for place, each in enumerate(instructions) if is_fusible(each)]
    produced = {value: place for place, each in fusible for value in each.results}
    pairs = []
    for _, values in fusions:
        members = [produced[value] for value in values if value in produced]
        pairs += [(members[0], member) for member in members[1:]]
    return pairs


def joined(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The first position of the group of each position."""
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
    """The groups that must have run before each group; `root` is the value behind schedule operations."""
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
    """The operands, and the outer values that regions use."""
    yield from instruction.operands
    for region in instruction.regions:
        for block in blocks_of(region):
            yield from block.results
            for inner in block.instructions:
                yield from inner.operands


def has_effects(instruction: Instruction) -> bool:
    """Whether an instruction, or one inside it, does more than compute its results."""
    operation = instruction.operation
    if operation.effects or operation.calls:
        return True
    return any(
        inner.operation.effects or inner.operation.calls for region in instruction.regions for inner in region.walk()
    )


def sorted_groups(heads: Sequence[int], needs: dict[int, set[int]]) -> list[int]:
    """Groups after those that they need, otherwise in program order; groups of a cycle are missing."""
    open_needs = {head: set(needs[head]) for head in heads}
    waiting: dict[int, list[int]] = {}
    for head, needed in open_needs.items():
        for each in needed:
            waiting.setdefault(each, []).append(head)
    ready = [head for head, needed in open_needs.items() if not needed]
    heapify(ready)
    order = []
    while ready:
        head = heappop(ready)
        order.append(head)
        for each in waiting.get(head, ()):
            open_needs[each].discard(head)
            if not open_needs[each]:
                heappush(ready, each)
    return order


def _violation(groups: dict[int, list[Instruction]], stuck: set[int], fusions: Sequence[Fusion]) -> Diagnostic:
    """The error for the first group that cannot run as a unit."""
    head = min(head for head in stuck if len(groups[head]) > 1)
    members = {value for each in groups[head] for value in each.results}
    place = next(instruction for instruction, values in reversed(fusions) if members & set(values)).location
    values = [value for each in groups[head] for value in each.results]
    written = [value for value in values if not value.name.isdecimal()] or values  # numbers are of values without names
    names = ", ".join(f"%{value.name}" for value in written)
    refusal = Refusal(
        "schedule",
        f"fuse: {names} cannot run as one: something between them needs one of them and is needed by another",
        "a fusion that keeps every dependence",
        "LANG-06.2-01",
        "fuse what lies between them too, or none of them",
    )
    return diagnostic_of(refusal, place)


def blocks_of(block: Block) -> Iterable[Block]:
    """A block and all blocks inside it."""
    yield block
    for instruction in block.walk():
        yield from instruction.regions
