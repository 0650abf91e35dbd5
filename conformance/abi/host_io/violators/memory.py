"""Writes and reads that reach another place, another memory or nothing, or at another time (D5, D6)."""

from dataclasses import replace

from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Branch, Journey, Place
from tessera_reference.host_io.messages import MemoryWrite

from ....ir.violators.changes import around, breaks, changed, wrapped
from .message_changes import READ, REQUIRE, RUN, SPACE, WRITE, read_as, requiring


def at_another_place(clause, name, description, change):
    """Return a violation that uses another PE's memory; `change` gives that PE."""
    return wrapped(clause, name, description, SPACE, lambda usual, self, place: usual(self, change(Place(*place))))


def writing(clause, name, description, change):
    return wrapped(clause, name, description, WRITE, lambda usual, self, write, pair: usual(self, change(write), pair))


def any_tag(clause, member, what):
    """Return a violation that takes a tag that is too large as the largest."""

    def nearest(machine, place):
        most = getattr(machine.size, f"{member}s") - 1
        return Place(*place)._replace(**{member: min(getattr(place, member), most)})

    def call(usual, self, place, *others, **named):
        return usual(self, nearest(self, place), *others, **named)

    name, description = f"any_{member}_of_a_{what}", f"the {member} of a {what} may be too large"
    return changed(clause, name, description, (REQUIRE, around(call)), (SPACE, around(call)))


@breaks("HIO-D5-07", "any bytes are accepted", REQUIRE)
def any_range(usual, self, place, pa, nbytes, kind="AUTO", field=""):
    within = pa + nbytes <= 2 << 32  # twice the TCM
    usual(self, place, *((0, 1, "AUTO") if within else (pa, nbytes, kind)), field)


@breaks("HIO-D5-22", "writes before it refuses the kind", WRITE)
def before_refusal(usual, self, write, pair):
    answer = usual(self, replace(write, dst_mem_kind="AUTO"), pair)
    self.machine.require(Place(write.dst_sip, write.dst_cube, write.dst_pe), write.dst_pa, 1, write.dst_mem_kind)
    return answer


@breaks("HIO-D5-01", "a PE that fails has written before", WRITE)
def failed_and_wrote(usual, self, write, pair):
    place = Place(write.dst_sip, write.dst_cube, write.dst_pe)
    failing, self.machine.failing = self.machine.failing, frozenset()
    answer = usual(self, write, pair)
    self.machine.failing = failing
    if place in failing:
        return Journey(branches=(Branch(place, None),)), RequestFailed(ErrorCode.PE_FAULT, "failed")
    return answer


@breaks("HIO-D5-02", "writes although the device is unknown", RUN)
def wrong_device_written(usual, self, request, pair, characters):
    if request.target_device not in self.machine.devices() and isinstance(request, MemoryWrite):
        self._write(request, pair)
    return usual(self, request, pair, characters)


def clearing(clause, name, description, kind):
    def read(usual, self, message):
        answer = usual(self, message)
        if message.dst_kind == kind:
            place = Place(message.src_sip, message.src_cube, message.src_pe)
            self.machine.space(place).write(message.src_pa, bytes(min(message.nbytes, 65536)))
        return answer

    return wrapped(clause, name, description, READ, read)


def bringing(clause, name, description, change):
    """Return a violation in which a read returns other bytes."""

    def read(usual, self, message):
        journey, failure, sunk = usual(self, message)
        return journey, failure, change(message, sunk)

    return wrapped(clause, name, description, READ, read)


def less_a_byte(machine, pa, n, kind, field):
    return pa, max(1, n - 1), kind


def and_a_byte(machine, pa, n, kind, field):
    return pa, n + 1, kind


VIOLATORS = [
    at_another_place("HIO-Context-06", "one_space", "all PEs share one address space", lambda place: Place(0, 0, 0)),
    at_another_place("HIO-D5-03", "one_sip", "PEs of all SIPs share memory", lambda place: place._replace(sip=0)),
    at_another_place("HIO-D5-04", "one_cube", "PEs of all cubes share memory", lambda place: place._replace(cube=0)),
    at_another_place("HIO-D5-05", "one_pe", "PEs of a cube share memory", lambda place: place._replace(pe=0)),
    *(any_tag(f"HIO-{section}-{first + number:02}", member, what)
        for what, section, first in (("write", "D5", 3), ("read", "D6", 3), ("shard", "D7", 19), ("binary", "D7", 9))
        for number, member in enumerate(("sip", "cube", "pe"))),
    read_as("HIO-D5-23", "absent_is_hbm", "a write without dst_mem_kind is one to HBM",
        lambda value: value.get("msg_type") == "MemoryWrite" and value.setdefault("dst_mem_kind", "HBM") and None),
    *(requiring(clause, f"{memory.lower()}_ignored", f"{memory} is any memory",
        lambda machine, pa, n, kind, field, memory=memory: (pa, n, "AUTO" if kind == memory else kind))
        for clause, memory in (("HIO-D5-27", "HBM"), ("HIO-D5-28", "TCM"))),
    requiring("HIO-D5-06", "end_not_checked", "the last byte may lie outside", less_a_byte),
    requiring("HIO-D5-06", "last_byte_refused", "the last byte is refused", and_a_byte),
    requiring("HIO-D6-06", "end_of_reads_not_checked", "reads may end outside", less_a_byte),
    requiring("HIO-D6-06", "last_byte_not_read", "the last byte is not read", and_a_byte),
    changed("HIO-D3-04", "one_order", "completions always have the order of requests",
        ("host_io.endpoint.Endpoint.drain",
        lambda self, choices: [self.complete(request) for request in self.waiting])),
    writing("HIO-D5-24", "label_obeyed", "a write with the label skip writes one byte",
        lambda write: replace(write, nbytes=1) if write.debug_label == "skip" else write),
    writing("HIO-D5-01", "mebibyte_written", "writes the first mebibyte and no more",
        lambda write: replace(write, nbytes=min(write.nbytes, 1 << 20))),
    clearing("HIO-D6-13", "sink_clears", "a read into host_sink clears memory", "host_sink"),
    clearing("HIO-D6-14", "discard_clears", "a read that is dropped clears memory", "discard"),
    bringing("HIO-D6-13", "empty_sink", "brings no bytes", lambda read, sunk: None),
    bringing("HIO-D6-14", "discard_brings", "brings bytes that are dropped",
        lambda read, sunk: sunk if sunk is not None else bytes(min(64, read.nbytes))),
    bringing("HIO-D6-07", "one_byte_less", "brings one byte less", lambda read, sunk: sunk and sunk[:-1]),
    bringing("HIO-D6-01", "mebibyte_brought", "brings the first mebibyte and no more",
        lambda read, sunk: sunk and sunk[: 1 << 20]),
    bringing("HIO-D6-13", "other_end", "brings the last byte first", lambda read, sunk: sunk and sunk[::-1]),
    bringing("HIO-D6-10", "label_drops", "drops what a read with the label discard brings",
        lambda read, sunk: None if read.debug_label == "discard" else sunk),
    read_as("HIO-D6-09", "discard_by_default", "a read without dst_kind is dropped",
        lambda value: value.get("msg_type") == "MemoryRead" and value.get("dst_kind") is None
        and {**value, "dst_kind": "discard"}),
]  # fmt: skip
