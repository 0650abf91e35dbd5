"""Queues that delay ready units, run too many or too few at once, or wait for everything.

Collectives specification, 1, 2.1, 4.1.
"""

from dataclasses import replace
from itertools import islice

from tessera_reference.collectives.queues import Collective

from ...ir.violators.changes import changed, nothing
from .changes import at, result_of


def never_busy(usual, self, unit, rank):
    usual(self, unit, rank)
    self._busy.discard(rank)


def one_collective(usual, self):
    for unit in usual(self):
        if all(state.issued == state.arrived for name, state in self._states.items() if name != unit.id):
            yield unit


def since_the_last_end(run, queue):
    gaps, total = dict.fromkeys(run.devices, 0), 0
    for slot in sorted((slot for slot in run.slots if slot.queue == queue), key=lambda slot: slot.start):
        total += max(slot.start - gaps[slot.device], 0)
        gaps[slot.device] = slot.end
    return total + sum(run.duration - end for end in gaps.values())


def on_one_device(run):
    kept = [slot for slot in run.slots if slot.queue == "compute" or slot.device == run.slots[0].device]
    return replace(run, slots=tuple(kept))


def room_on_the_first(usual, self):
    for unit in self._ready_collectives():
        devices = [self._devices[rank] for rank in unit.ranks]
        sent = [*self._chunks[unit.id], []][self._states[unit.id].issued]
        first = [message for message in sent if message.step == sent[0].step]
        if sent and self._inflight[unit.ranks[0]] < self._max_inflight and self._progress.has_credits(devices, first):
            self._issue(unit, sent, devices)
            return True
    return usual(self)


ready, is_there = at("collectives.queues._Queues._ready_collectives"), at("collectives.queues._Queues._is_there")


def ended_with_the_issued(usual, self, flight):
    """End a collective once all chunks that were issued have arrived, though some are yet to be issued."""
    usual(self, flight)
    state = self._states[flight.unit.id]
    if state.arrived == state.issued:
        state.ended.update(flight.unit.ranks)


VIOLATIONS = [
    at("collectives.queues._Queues._end_chunk")("COLL-02.1-02", "ended_with_the_issued",
        "ends a collective with the last chunk that was issued", ended_with_the_issued),
    at("collectives.queues._Queues._compute")("COLL-04.1-01", "units_at_once",
        "runs several units of a compute queue at once", never_busy),
    changed("COLL-04.1-01", "circles_accepted", "leaves out units that wait for one another",
        ("collectives.queues._require_order", nothing)),
    changed("COLL-04.1-01", "idle_since_the_last", "counts time in which an earlier chunk still travels as idle",
        ("adapter.collectives.idle", since_the_last_end)),
    at("collectives.queues._Queues._issue_one")("COLL-04.1-03", "room_on_the_first",
        "looks for room on the first device alone", room_on_the_first),
    result_of("adapter.collectives.simulate")("COLL-04.1-02", "on_one_device",
        "puts chunks into the queue of one device", on_one_device),
    ready("COLL-04.1-03", "one_collective_at_a_time", "has chunks of one collective in flight alone", one_collective),
    changed("COLL-04.2-03", "issued_without_credits", "issues chunks without credits",
        ("collectives.travel.Progress.has_credits", lambda self, devices, sent: True)),
    ready("COLL-04.2-04", "first_collective_alone", "issues nothing while the first that is ready lacks credits",
        lambda usual, self: islice(usual(self), 1)),
    is_there("COLL-02.1-03", "barrier_between_devices", "waits until all devices have computed",
        lambda usual, self, name, rank: len(self._states[name].ended) == len(self._units[name].ranks)),
    is_there("COLL-02.1-02", "waits_for_any_rank", "computes when one rank has what it uses",
        lambda usual, self, name, rank:
            usual(self, name, rank) or (rank not in self._units[name].ranks and bool(self._states[name].ended))),
    at("adapter.collectives.simulate")("COLL-08-06", "computations_alike",
        "lets computations go in the order of the list", lambda usual, units, *given: usual(
            [unit if isinstance(unit, Collective) else replace(unit, priority=0) for unit in units], *given)),
]  # fmt: skip
