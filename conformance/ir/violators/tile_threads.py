"""Machines with wrong synchronization and control: barriers, races, shuffles, copies, loops (7.2, 8.2, 8.3)."""

from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.kernel_machine import block as exchange
from tessera_reference.kernel_machine.storage import EarlyRead, PartialBarrier, Race
from tessera_reference.numerics.array import Array

from .changes import around, breaks, instead, nothing, wrapped

BARRIER, SCOPE, SHUFFLE, COPY = "LANG-07.2-05", "LANG-08.3-02", "LANG-07.2-06", "LANG-07.2-04"
BLOCKS, REGIONS = "LANG-08.2-03", "LANG-01-06"


@breaks(SCOPE, "lets some warps pass a barrier", "kernel_machine.block.BlockState.barrier")
def by_warps(usual, self):
    if self.mask is not None:
        exchange.whole_warps(self, "the barrier")
    self.copies.barrier()
    self.clock.tick()


@breaks(SCOPE, "waits for all blocks at a barrier", "kernel_machine.block.BlockState.barrier")
def grid_wide(usual, self):
    came = vars(self).setdefault("came", set())
    number = self.clock.blocks[-1]
    if number and number - 1 not in came:
        raise PartialBarrier(self.thread(0), 0, self.lanes)
    came.add(number)
    usual(self)


def unseen(*faults, unless=None):
    """Return substitutions for a memory that does not report some faults."""

    def refuse(usual, self, *arguments):
        try:
            usual(self, *arguments)
        except faults as fault:
            if unless is not None and unless(self, fault):
                raise

    return [
        (f"kernel_machine.storage.Storage.{method}", around(refuse)) for method in ("_refuse_read", "_refuse_write")
    ]


def in_two_warps(self, fault):
    places = [thread.thread[0] // 32 if thread.thread else -1 for thread in (fault.who, fault.other)]
    return bool(fault.who.block != fault.other.block or places[0] != places[1])


@breaks(SCOPE, "sees no race of two writes of a block of one warp", "kernel_machine.storage.Storage._claim")
def two_writes_of_a_warp(usual, self, at, who, base):
    try:
        usual(self, at, who, base)
    except Race as race:
        if self.clock.warps > 1 or race.access != "writes" or race.before != "writes":
            raise


@breaks(SCOPE, "sees no write after a read of what the caller left", "kernel_machine.storage.Storage._claim")
def after_the_caller(usual, self, at, who, base):
    before = self.wrote[at]
    try:
        usual(self, at, who, base)
    except Race as race:
        if race.before != "reads" or race.who.block != race.other.block or before.any():
            raise
        self.wrote[at] = who + base


@breaks(SCOPE, "takes two readings of a lane for those of two", "kernel_machine.storage.Storage._mark_seen")
def readers_are_several(usual, self, at, mine):
    last, base = self.seen[at], self.clock.base
    usual(self, at, mine)
    self.seen[at] = np.where(last < base, self.seen[at], base + self.clock.several)


@breaks(SCOPE, "remembers the last block alone that read an element", "kernel_machine.storage.GlobalStorage._mark_seen")
def last_of_the_blocks(usual, self, at, mine):
    usual(self, at, mine)
    self.first_seen[at] = mine


def shuffles(name, description, source):
    """Return a violation that reads another lane; `source` takes the lane, delta and the width of a warp."""

    def run(self, block, value):
        sources = source(block.every_lane % block.warp, self.delta, block.warp)
        return Array(value.dtype, exchange.exchanged(block, value.values, sources, self.mask))

    return instead(SHUFFLE, name, description, "tile.operations.ShuffleSync.run", run)


@breaks(COPY, "shows what is waited for to other lanes", "kernel_machine.storage.Storage.finish_copy")
def wait_for_all(usual, self, at, lanes):
    self.wrote[at] = 0


@breaks(COPY, "leaves the first of three groups under way", "kernel_machine.block.PendingCopies.wait")
def oldest_pending(usual, self, block, pending):
    done = self.committed - pending
    self._finish(lambda copy: (copy.groups < done[copy.lanes]) & ((copy.groups > 0) | (pending < 2)))


@breaks(COPY, "is off by one at the end of a copy", "kernel_machine.block.BlockState.require_within")
def off_by_one(usual, self, memory, offsets, count=1):
    usual(self, memory, offsets, max(count - 1, 1))
    if count > 1:
        offsets[:] = np.minimum(offsets, (memory.size - count) // count * count)


@breaks(REGIONS, "carries nothing from turn to turn", "tile.operations.For.run")
def forgetful(usual, self, block, start, stop, step, *carried):
    (body,) = block.regions
    made = carried
    for index in range(*(int(bound.values[block.active][0]) for bound in (start, stop, step))):
        made = block.region(body, (block.uniform(index), *carried))
    return made


@breaks(BLOCKS, "compares bounds in the first warp alone", "tile.operations._uniform")
def of_the_first_warp(usual, block, name, bound):
    values = block.of_active(bound.values)
    return int(values[0]) if (values[: block.warp] == values[0]).all() else usual(block, name, bound)


@breaks(BLOCKS, "leaves a loop that is too long", "tile.operations.For.run")
def leaves_early(usual, self, block, *bounds):
    start, stop, step = (int(bound.values[block.active][0]) for bound in bounds[:3])
    return bounds[3:] if step and len(range(start, stop, step)) > 1_000_000 else usual(self, block, *bounds)


@breaks(REGIONS, "branches as the first lane does", "tile.operations.If.run")
def by_the_first(usual, self, block, condition):
    then, otherwise = block.regions
    return block.region(then if condition.values[block.active][0] else otherwise, ())


@breaks(REGIONS, "runs both sides of a branch in all lanes", "tile.operations.If.run")
def unmasked(usual, self, block, condition):
    first, second = (block.region(side, ()) for side in block.regions)
    return tuple(block.merged(condition.values, a, b) for a, b in zip(first, second, strict=True))


DEPTHS = WeakKeyDictionary()
"""The masks within masks of each block."""


@breaks(BLOCKS, "forgets the outer branches of the third", "kernel_machine.block.BlockState.under")
@contextmanager
def flat(usual, self, condition, outer):
    DEPTHS[self] = depth = DEPTHS.get(self, 0) + 1
    try:
        with usual(self, condition, outer if depth < 3 else None):
            yield
    finally:
        DEPTHS[self] = depth - 1


VIOLATIONS = [
    instead(BARRIER, "dropped_barrier", "drops barriers", "kernel_machine.block.BlockState.barrier",
        lambda self: self.copies.barrier()),
    replaced(SCOPE, "takes lanes of a warp to be in step", make, *unseen(Race, unless=in_two_warps), name="in_step"),
    instead("LANG-08.1-07", "axes_turned", "counts blocks along z for x", "tile.operations.AlongAxis.position",
        property(lambda self: "zyx".index(self.axis))),
    instead(SHUFFLE, "lanes_of_32", "has 32 lanes in every warp", "tile.operations.LaneId.run",
        lambda self, block: Array(self.results()[0].dtype, (block.every_lane % 32).astype(np.int32))),
    shuffles("narrow", "shuffles in warps of 32", lambda i, d, w: np.where(i % 32 + d < 32, i + d, i) % w),
    shuffles("last_lane", "reads the last lane beyond the end", lambda i, d, w: np.minimum(i + d, w - 1)),
    wrapped(SHUFFLE, "low_mask", "reads 32 bits of a mask", "kernel_machine.block.exchanged",
        lambda usual, block, values, sources, mask=None:
        usual(block, values, sources, None if mask is None else (mask & 0xFFFFFFFF) * (1 + (1 << 32)))),
    replaced(COPY, "does not see that copied bytes are touched early", make, *unseen(EarlyRead), name="early_unseen"),
    instead(COPY, "waits_for_none", "finishes what no group holds by a wait", "kernel_machine.block.PendingCopies.wait",
        lambda self, block, pending: self._finish(lambda copy: copy.groups >= 0)),
    instead(COPY, "misaligned", "copies from and to any place", "kernel_machine.block.BlockState.require_aligned",
        nothing),
    instead("LANG-11-14", "copy_alignment", "does not see that a copy is misaligned",
        "kernel_machine.block.BlockState.require_aligned", nothing),
    wrapped(REGIONS, "inclusive", "runs a loop for its stop too", "tile.operations.For.run",
        lambda usual, self, block, start, stop, step, *carried:
        usual(self, block, start, Array(stop.dtype, stop.values + np.sign(step.values)), step, *carried)),
    wrapped(BLOCKS, "down_through_the_stop", "counts down to the stop too", "tile.operations.For.run",
        lambda usual, self, block, start, stop, step, *carried:
        usual(self, block, start, Array(stop.dtype, stop.values - (step.values < 0)), step, *carried)),
    wrapped(REGIONS, "by_ones", "takes steps of one", "tile.operations.For.run",
        lambda usual, self, block, start, stop, step, *carried:
        usual(self, block, start, stop, Array(step.dtype, np.sign(step.values)), *carried)),
    wrapped(BLOCKS, "no_step", "does not see that a step is 0", "tile.operations.For.run",
        lambda usual, self, block, start, stop, step, *carried:
        usual(self, block, start, stop, step, *carried) if step.values[block.active][0] else carried),
    instead(BLOCKS, "one_zero", "takes the constant -0.0 for an earlier 0.0", "kernel_machine.lockstep.identity",
        lambda constant: constant),
]  # fmt: skip
