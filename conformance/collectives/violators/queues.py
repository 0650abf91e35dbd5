"""Queues that delay ready units, run too many or too few at once, or wait for everything.

Collectives specification, 1, 2.1, 4.1.
"""

from dataclasses import replace

from tessera_reference.collectives import queues
from tessera_reference.collectives.queues import Collective

from ...ir.violators.changes import changed, nothing

SIMULATE, QUEUES = queues.simulate, queues._Queues
COMPUTE, COMPUTE_ONE, READY, IS_THERE = (
    QUEUES._compute,
    QUEUES._compute_one,
    QUEUES._ready_collectives,
    QUEUES._is_there,
)


def simulating(clause, name, description, units=lambda unit: unit, slots=tuple, most=lambda most: most):
    """Return a violation that simulates other units, reports other slots, or has another number in flight."""

    def simulate(given, topology, devices=None, max_inflight=4):
        usual = SIMULATE([units(unit) for unit in given], topology, devices, most(max_inflight))
        return replace(usual, slots=tuple(slots(usual.slots)))

    return changed(clause, name, description, ("adapter.collectives.simulate", simulate))


def queueing(clause, name, description, method, other):
    """Return a violation with another method of the queues."""
    return changed(clause, name, description, (QUEUES, method, other))


def on_any_rank(self, name, rank):
    return bool(IS_THERE(self, name, rank)) or (rank not in self._units[name].ranks and bool(self._states[name].ended))


def never_busy(self, unit, rank):
    COMPUTE(self, unit, rank)
    self._busy.discard(rank)


def after_all(self, name, rank):
    awaited = self._units.values() if isinstance(self._units[name], Collective) else [self._units[name]]
    return all(
        IS_THERE(self, instruction.id, rank) for instruction in awaited if isinstance(instruction, Collective)
    ) and bool(IS_THERE(self, name, rank))


def one_collective(self):
    for unit in READY(self):
        if all(state.issued == state.arrived for name, state in self._states.items() if name != unit.id):
            yield unit


def head_of_line(self):
    yield from list(READY(self))[:1]


def since_the_last_end(run, queue):
    gaps, total = dict.fromkeys(run.devices, 0), 0
    for slot in sorted(
        (candidate for candidate in run.slots if candidate.queue == queue), key=lambda candidate: candidate.start
    ):
        total += max(slot.start - gaps[slot.device], 0)
        gaps[slot.device] = slot.end
    return total + sum(run.duration - end for end in gaps.values())


def room_on_the_first(self):
    for unit in self._ready_collectives():
        devices = [self._devices[rank] for rank in unit.ranks]
        sent = [*self._chunks[unit.id], []][self._states[unit.id].issued]
        first = [message for message in sent if message.step == sent[0].step]
        if sent and self._inflight[unit.ranks[0]] < self._max_inflight and self._progress.has_credits(devices, first):
            self._issue(unit, sent, devices)
            return True
    return bool(ISSUE_ONE(self))


ISSUE_ONE = queues._Queues._issue_one


VIOLATIONS = [
    queueing("COLL-04.1-01", "units_at_once", "runs several units of a compute queue at once", "_compute", never_busy),
    changed("COLL-04.1-01", "circles_accepted", "leaves out units that wait for one another",
        ("collectives.queues._require_order", nothing)),
    changed("COLL-04.1-01", "idle_since_the_last", "counts time in which an earlier chunk still travels as idle",
        ("adapter.collectives.idle", since_the_last_end)),
    queueing("COLL-04.1-03", "room_on_the_first", "looks for room on the first device alone", "_issue_one",
        room_on_the_first),
    simulating("COLL-04.1-02", "on_one_device", "puts chunks into the queue of one device",
        slots=lambda slots: [slot for slot in slots if slot.queue == "compute" or slot.device == slots[0].device]),
    queueing("COLL-04.1-03", "one_collective_at_a_time", "has chunks of one collective in flight alone",
        "_ready_collectives", one_collective),
    changed("COLL-04.2-03", "issued_without_credits", "issues chunks without credits",
        ("collectives.travel.Progress.has_credits", lambda self, devices, sent: True)),
    queueing("COLL-04.2-04", "first_collective_alone", "issues nothing while the first that is ready lacks credits",
        "_ready_collectives", head_of_line),
    queueing("COLL-02.1-03", "barrier_between_devices", "waits until all devices have computed", "_is_there",
        lambda self, name, rank: len(self._states[name].ended) == len(self._units[name].ranks)),
    queueing("COLL-02.1-02", "waits_for_all", "waits for all collectives where one is used", "_is_there", after_all),
    queueing("COLL-02.1-02", "waits_for_any_rank", "computes when one rank has what it uses", "_is_there", on_any_rank),
    simulating("COLL-08-06", "computations_alike", "lets computations go in the order of the list",
        units=lambda unit: replace(unit, priority=unit.priority if isinstance(unit, Collective) else 0)),
]  # fmt: skip
