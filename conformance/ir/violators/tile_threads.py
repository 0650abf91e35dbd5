"""Machines with wrong synchronization and control: barriers, races, shuffles, copies, loops (7.2, 8.2, 8.3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.kernel_machine import block as exchange
from tessera_reference.kernel_machine import lockstep
from tessera_reference.kernel_machine.block import BlockState, PendingCopies
from tessera_reference.kernel_machine.storage import EarlyRead, GlobalStorage, PartialBarrier, Race, Storage
from tessera_reference.numerics.array import Array
from tessera_reference.tile import operations
from tessera_reference.tile.operations import CopyAsync, For, If, LaneId, ShuffleSync

from .changes import nothing

BARRIER, SCOPE, SHUFFLE, COPY = "LANG-07.2-05", "LANG-08.3-02", "LANG-07.2-06", "LANG-07.2-04"
BLOCKS, REGIONS = "LANG-08.2-03", "LANG-01-06"

# Barriers and races


def orders_nothing(self: BlockState) -> None:
    self.copies.barrier()


def partial(self: BlockState) -> None:
    """Pass a barrier without a full set of threads."""
    self.copies.barrier()
    self.clock.tick()


def by_warps(self: BlockState) -> None:
    if self.mask is not None:
        exchange.whole_warps(self, "the barrier")
    partial(self)


def of_the_grid(self: BlockState) -> None:
    came: set[int] = vars(self).setdefault("came", set())
    number = self.clock.blocks[-1]
    if number and number - 1 not in came:
        raise PartialBarrier(self.thread(0), 0, self.lanes)
    came.add(number)
    BARRIERS(self)


def unseen(*faults: type[Exception], unless: Any = None) -> Any:
    """Return substitutions for a memory that does not report some faults."""

    def without(refuse: Any) -> Any:
        def refusing(self: Storage, *arguments: Any) -> None:
            try:
                refuse(self, *arguments)
            except faults as fault:
                if unless is not None and unless(self, fault):
                    raise

        return refusing

    return (
        ("kernel_machine.storage.Storage._refuse_read", without(Storage._refuse_read)),
        ("kernel_machine.storage.Storage._refuse_write", without(Storage._refuse_write)),
    )


def in_two_warps(self: Storage, fault: Any) -> bool:
    places = [thread.thread[0] // 32 if thread.thread else -1 for thread in (fault.who, fault.other)]
    return bool(fault.who.block != fault.other.block or places[0] != places[1])


def claimed_by_few(self: Storage, at: Any, who: Any, base: int) -> None:
    try:
        CLAIM(self, at, who, base)
    except Race as race:
        if self.clock.warps > 1 or race.access != "writes" or race.before != "writes":
            raise


def after_the_caller(self: Storage, at: Any, who: Any, base: int) -> None:
    """Report no race of a write after a read of values that the caller left."""
    before = self.wrote[at]
    try:
        CLAIM(self, at, who, base)
    except Race as race:
        if race.before != "reads" or race.who.block != race.other.block or before.any():
            raise
        self.wrote[at] = who + base


def readers_are_several(self: Storage, at: Any, mine: Any) -> None:
    """Count a second reading as that of another lane."""
    last, base = self.seen[at], self.clock.base
    MARK_SEEN(self, at, mine)
    self.seen[at] = np.where(last < base, self.seen[at], base + self.clock.several)


def last_of_the_blocks(self: GlobalStorage, at: Any, mine: Any) -> None:
    """Remember only the last block that read an element."""
    MARK_SEEN(self, at, mine)
    self.first_seen[at] = mine


BARRIERS, CLAIM, UNDER = BlockState.barrier, Storage._claim, BlockState.under
MARK_SEEN = Storage._mark_seen

MEETING = [
    replaced(BARRIER, "drops barriers", make, ("kernel_machine.block.BlockState.barrier", orders_nothing),
        name="dropped_barrier"),
    replaced(SCOPE, "lets some warps pass a barrier", make, ("kernel_machine.block.BlockState.barrier", by_warps),
        name="by_warps"),
    replaced(SCOPE, "waits for all blocks at a barrier", make,
        ("kernel_machine.block.BlockState.barrier", of_the_grid), name="grid_wide"),
    replaced(SCOPE, "takes lanes of a warp to be in step", make, *unseen(Race, unless=in_two_warps), name="in_step"),
    replaced(SCOPE, "sees no race of two writes of a block of one warp", make,
        ("kernel_machine.storage.Storage._claim", claimed_by_few), name="two_writes_of_a_warp"),
    replaced(SCOPE, "sees no write after a read of what the caller left", make,
        ("kernel_machine.storage.Storage._claim", after_the_caller), name="after_the_caller"),
    replaced(SCOPE, "takes two readings of a lane for those of two", make,
             ("kernel_machine.storage.Storage._mark_seen", readers_are_several), name="readers_are_several"),
    replaced(SCOPE, "remembers the last block alone that read an element", make,
             ("kernel_machine.storage.GlobalStorage._mark_seen", last_of_the_blocks), name="last_of_the_blocks"),
]  # fmt: skip

# Positions of threads


def lanes_of_32(self: LaneId, block: BlockState) -> Array:
    return Array(self.results()[0].dtype, (block.every_lane % 32).astype(np.int32))


PLACES = [
    replaced("LANG-08.1-07", "counts blocks along z for x", make,
             ("tile.operations.AlongAxis.position", property(lambda self: "zyx".index(self.axis))), name="axes_turned"),
    replaced(SHUFFLE, "has 32 lanes in every warp", make, ("tile.operations.LaneId.run", lanes_of_32),
        name="lanes_of_32"),
]  # fmt: skip

# Shuffles


def shuffling(source: Any) -> Any:
    """Return a shuffle that reads another lane; `source` takes the lane, delta and the width of a warp."""

    def run(self: ShuffleSync, block: BlockState, value: Array) -> Array:
        sources = source(block.every_lane % block.warp, self.delta, block.warp)
        return Array(value.dtype, exchange.exchanged(block, value.values, sources, self.mask))

    return ("tile.operations.ShuffleSync.run", run)


def inactive_too(block: BlockState, values: Any, sources: Any, mask: int | None = None) -> Any:
    places = np.minimum(block.every_lane - block.every_lane % block.warp + sources, block.lanes - 1)
    return values[places]


def low_mask(block: BlockState, values: Any, sources: Any, mask: int | None = None) -> Any:
    low = None if mask is None else (mask & 0xFFFFFFFF) * (1 + (1 << 32))
    return EXCHANGED(block, values, sources, low)


EXCHANGED, SHUFFLES = exchange.exchanged, ShuffleSync.run


def shuffles(name: str, description: str, *changes: tuple[Any, str, Any]) -> Violation:
    """Return a violation with another shuffle."""
    return replaced(SHUFFLE, description, make, *changes, name=name)


SHUFFLING = [
    shuffles("narrow", "shuffles in warps of 32", shuffling(lambda i, d, w: np.where(i % 32 + d < 32, i + d, i) % w)),
    shuffles("last_lane", "reads the last lane beyond the end", shuffling(lambda i, d, w: np.minimum(i + d, w - 1))),
    shuffles("low_mask", "reads 32 bits of a mask", ("kernel_machine.block.exchanged", low_mask)),
]  # fmt: skip

# Copies


def to_everybody(self: Storage, at: Any, lanes: Any) -> None:
    self.wrote[at] = 0


def all_but_the_oldest(self: PendingCopies, block: BlockState, pending: int) -> None:
    done = self.committed - pending
    self._finish(lambda copy: (copy.groups < done[copy.lanes]) & ((copy.groups > 0) | (pending < 2)))


def anything(self: PendingCopies, block: BlockState, pending: int) -> None:
    self._finish(lambda copy: copy.groups >= 0)


def elements(self: BlockState, source: Any, begin: Any, destination: Any, end: Any, size: int) -> None:
    COPYING(self, source, begin, destination, end, source.dtype.storage_bytes)


def within_one_less(self: BlockState, memory: Any, offsets: Any, count: int = 1) -> None:
    WITHIN(self, memory, offsets, max(count - 1, 1))
    if count > 1:
        offsets[:] = np.minimum(offsets, (memory.size - count) // count * count)


WAIT, COPIES, COPYING, WITHIN = PendingCopies.wait, CopyAsync.run, BlockState.copy, BlockState.require_within


def copies(name: str, description: str, *changes: tuple[Any, str, Any]) -> Violation:
    """Return a violation with another copy."""
    return replaced(COPY, description, make, *changes, name=name)


COPYING_OTHERWISE = [
    copies("early_unseen", "does not see that copied bytes are touched early", *unseen(EarlyRead)),
    copies("wait_for_all", "shows what is waited for to other lanes",
        ("kernel_machine.storage.Storage.finish_copy", to_everybody)),
    copies("oldest_pending", "leaves the first of three groups under way",
        ("kernel_machine.block.PendingCopies.wait", all_but_the_oldest)),
    copies("waits_for_none", "finishes what no group holds by a wait",
        ("kernel_machine.block.PendingCopies.wait", anything)),
    copies("misaligned", "copies from and to any place", ("kernel_machine.block.BlockState.require_aligned", nothing)),
    replaced("LANG-11-14", "does not see that a copy is misaligned", make,
        ("kernel_machine.block.BlockState.require_aligned", nothing), name="copy_alignment"),
    copies("off_by_one", "is off by one at the end of a copy",
        ("kernel_machine.block.BlockState.require_within", within_one_less)),
]  # fmt: skip

# Loops and branches


def inclusive(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    return LOOP(self, block, start, Array(stop.dtype, stop.values + np.sign(step.values)), step, *carried)


def by_ones(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    return LOOP(self, block, start, stop, Array(step.dtype, np.sign(step.values)), *carried)


def first_only(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    (body,) = block.regions
    made = carried
    for index in range(*(int(bound.values[block.active][0]) for bound in (start, stop, step))):
        made = block.region(body, (block.uniform(index), *carried))
    return made


def of_the_first_warp(block: BlockState, name: str, bound: Array) -> int:
    values = block.of_active(bound.values)
    return int(values[0]) if (values[: block.warp] == values[0]).all() else UNIFORM(block, name, bound)


def down_through_the_stop(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    return LOOP(self, block, start, Array(stop.dtype, stop.values - (step.values < 0)), step, *carried)


def never_ending(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    bounds = [int(bound.values[block.active][0]) for bound in (start, stop, step)]
    if bounds[2] and len(range(*bounds)) > 1_000_000:
        return carried
    return LOOP(self, block, start, stop, step, *carried)


def without_step(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    return LOOP(self, block, start, stop, step, *carried) if step.values[block.active][0] else carried


def by_majority(self: If, block: BlockState, condition: Array) -> Any:
    then, otherwise = block.regions
    return block.region(then if condition.values[block.active][0] else otherwise, ())


def unmasked(self: If, block: BlockState, condition: Array) -> Any:
    then, otherwise = block.regions
    first = block.region(then, ())
    second = block.region(otherwise, ())
    return tuple(block.merged(condition.values, a, b) for a, b in zip(first, second, strict=True))


DEPTHS: WeakKeyDictionary[BlockState, int] = WeakKeyDictionary()
"""The masks within masks of each block."""


@contextmanager
def flat_from_the_third(self: BlockState, condition: Any, outer: Any) -> Iterator[None]:
    DEPTHS[self] = depth = DEPTHS.get(self, 0) + 1
    try:
        with UNDER(self, condition, outer if depth < 3 else None):
            yield
    finally:
        DEPTHS[self] = depth - 1


LOOP, UNIFORM = For.run, operations._uniform


def controls(name: str, clause: str, description: str, owner: Any, attribute: str, changed: Any) -> Violation:
    """Return a violation with other control flow."""
    return replaced(clause, description, make, (owner, attribute, changed), name=name)


CONTROL = [
    controls("flat", BLOCKS, "forgets the outer branches of the third", BlockState, "under", flat_from_the_third),
    controls("inclusive", REGIONS, "runs a loop for its stop too", For, "run", inclusive),
    controls("down_through_the_stop", BLOCKS, "counts down to the stop too", For, "run", down_through_the_stop),
    controls("of_the_first_warp", BLOCKS, "compares bounds in the first warp alone", operations, "_uniform",
        of_the_first_warp),
    controls("by_ones", REGIONS, "takes steps of one", For, "run", by_ones),
    controls("forgetful", REGIONS, "carries nothing from turn to turn", For, "run", first_only),
    controls("leaves_early", BLOCKS, "leaves a loop that is too long", For, "run", never_ending),
    controls("no_step", BLOCKS, "does not see that a step is 0", For, "run", without_step),
    controls("by_the_first", REGIONS, "branches as the first lane does", If, "run", by_majority),
    controls("one_zero", BLOCKS, "takes the constant -0.0 for an earlier 0.0", lockstep, "identity",
        lambda constant: constant),
    controls("unmasked", REGIONS, "runs both sides of a branch in all lanes", If, "run", unmasked),
]  # fmt: skip
