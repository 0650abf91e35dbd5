"""Writes and reads that reach another place, another memory or nothing, or at another time (D5, D6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Branch, Journey, Machine, Place
from tessera_reference.host_io.messages import MemoryRead, MemoryWrite

from .message_changes import changed, read_as

_space = Machine.space
_require = Machine.require
_write = Endpoint._write
_read = Endpoint._read
TCM = 1 << 32

# Places


def at_another_place(clause: str, name: str, description: str, change: Callable[[Place], Place]) -> Violation:
    """Return a violation that uses another PE's memory; `change` gives that PE."""
    return changed(
        clause,
        name,
        description,
        ("host_io.machine.Machine.space", lambda self, place: _space(self, change(Place(*place)))),
    )


PLACES = [
    at_another_place("HIO-Context-06", "one_space", "all PEs share one address space", lambda place: Place(0, 0, 0)),
    at_another_place("HIO-D5-03", "one_sip", "PEs of all SIPs share memory", lambda place: place._replace(sip=0)),
    at_another_place("HIO-D5-04", "one_cube", "PEs of all cubes share memory", lambda place: place._replace(cube=0)),
    at_another_place("HIO-D5-05", "one_pe", "PEs of a cube share memory", lambda place: place._replace(pe=0)),
]


def writing(clause: str, name: str, description: str, change: Callable[[MemoryWrite], MemoryWrite]) -> Violation:
    """Return a violation that changes writes."""
    return changed(
        clause,
        name,
        description,
        ("host_io.endpoint.Endpoint._write", lambda self, write, pair: _write(self, change(write), pair)),
    )


def reading(clause: str, name: str, description: str, change: Callable[[MemoryRead], MemoryRead]) -> Violation:
    """Return a violation that changes reads."""
    return changed(
        clause, name, description, ("host_io.endpoint.Endpoint._read", lambda self, read: _read(self, change(read)))
    )


def decoded(self: Endpoint, write: MemoryWrite, pair: Any) -> Any:
    places = list(self.machine.places())
    place = places[(write.dst_pa >> 12) % len(places)]
    return _write(self, replace(write, dst_sip=place.sip, dst_cube=place.cube, dst_pe=place.pe), pair)


def any_tag(clause: str, member: str, what: str) -> Violation:
    """Return a violation that takes a tag that is too large as the largest."""

    def nearest(machine: Machine, place: Place) -> Place:
        most = getattr(machine.size, f"{member}s") - 1
        return Place(*place)._replace(**{member: min(getattr(place, member), most)})

    def require(self: Machine, place: Place, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
        _require(self, nearest(self, place), pa, nbytes, kind, field)

    return changed(
        clause,
        f"any_{member}_of_a_{what}",
        f"the {member} of a {what} may be too large",
        ("host_io.machine.Machine.require", require),
        ("host_io.machine.Machine.space", lambda self, place: _space(self, nearest(self, place))),
    )


UNKNOWN = [
    any_tag(f"HIO-{section}-{first + number:02}", member, what)
    for what, section, first in (("write", "D5", 3), ("read", "D6", 3), ("shard", "D7", 19), ("binary", "D7", 9))
    for number, member in enumerate(("sip", "cube", "pe"))
]

# Memories


def requiring(
    clause: str, name: str, description: str, change: Callable[[int, int, str], tuple[int, int, str]]
) -> Violation:
    """Return a violation that requires other bytes, or another kind, to lie within a memory."""

    def require(self: Machine, place: Place, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
        _require(self, place, *change(pa, nbytes, kind), field)

    return changed(clause, name, description, ("host_io.machine.Machine.require", require))


def any_range(self: Machine, place: Place, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
    """Require the place alone for addresses within twice the TCM."""
    if pa + nbytes <= 2 * TCM:
        _require(self, place, 0, 1, "AUTO", field)
    else:
        _require(self, place, pa, nbytes, kind, field)


MEMORIES = [
    read_as("HIO-D5-23", "absent_is_hbm", "a write without dst_mem_kind is one to HBM",
        lambda value: value.get("msg_type") == "MemoryWrite" and value.setdefault("dst_mem_kind", "HBM") and None),
    requiring("HIO-D5-27", "hbm_ignored", "HBM is any memory",
        lambda pa, n, kind: (pa, n, "AUTO" if kind == "HBM" else kind)),
    requiring("HIO-D5-28", "tcm_ignored", "TCM is any memory",
        lambda pa, n, kind: (pa, n, "AUTO" if kind == "TCM" else kind)),
    requiring("HIO-D5-06", "end_not_checked", "the last byte may lie outside",
        lambda pa, n, kind: (pa, max(1, n - 1), kind)),
    requiring("HIO-D5-06", "last_byte_refused", "the last byte is refused", lambda pa, n, kind: (pa, n + 1, kind)),
    requiring("HIO-D6-06", "end_of_reads_not_checked", "reads may end outside",
        lambda pa, n, kind: (pa, max(1, n - 1), kind)),
    requiring("HIO-D6-06", "last_byte_not_read", "the last byte is not read", lambda pa, n, kind: (pa, n + 1, kind)),
    changed("HIO-D5-07", "any_range", "any bytes are accepted", ("host_io.machine.Machine.require", any_range)),
]  # fmt: skip

# Refusals, failures and labels


def first_and_then_refused(self: Endpoint, write: MemoryWrite, pair: Any) -> Any:
    right = replace(write, dst_mem_kind="AUTO")
    answer = _write(self, right, pair)
    self.machine.require(Place(write.dst_sip, write.dst_cube, write.dst_pe), write.dst_pa, 1, write.dst_mem_kind)
    return answer


def written_and_failed(self: Endpoint, write: MemoryWrite, pair: Any) -> Any:
    place = Place(write.dst_sip, write.dst_cube, write.dst_pe)
    failing, self.machine.failing = self.machine.failing, frozenset()
    answer = _write(self, write, pair)
    self.machine.failing = failing
    if place in failing:
        return Journey(branches=(Branch(place, None),)), RequestFailed(ErrorCode.PE_FAULT, "failed")
    return answer


_run = Endpoint._run


def unknown_device_written(self: Endpoint, request: Any, pair: Any, characters: int) -> Any:
    if request.target_device not in self.machine.devices() and isinstance(request, MemoryWrite):
        self._write(request, pair)
    return _run(self, request, pair, characters)


ORDER = [
    changed("HIO-D5-22", "before_refusal", "writes before it refuses the kind",
        ("host_io.endpoint.Endpoint._write", first_and_then_refused)),
    changed("HIO-D5-01", "failed_and_wrote", "a PE that fails has written before",
        ("host_io.endpoint.Endpoint._write", written_and_failed)),
    changed("HIO-D5-02", "wrong_device_written", "writes although the device is unknown",
        ("host_io.endpoint.Endpoint._run", unknown_device_written)),
    changed("HIO-D3-04", "one_order", "completions always have the order of requests",
        ("host_io.endpoint.Endpoint.drain",
        lambda self, choices: [self.complete(request) for request in self.waiting])),
    writing("HIO-D5-24", "label_obeyed", "a write with the label skip writes one byte",
        lambda write: replace(write, nbytes=1) if write.debug_label == "skip" else write),
    writing("HIO-D5-01", "mebibyte_written", "writes the first mebibyte and no more",
        lambda write: replace(write, nbytes=min(write.nbytes, 1 << 20))),
]  # fmt: skip

# Buffers of the host


_buffer = Endpoint._buffer


# Reads


def clearing(kind: str) -> Callable[..., Any]:
    """Return a read of a kind that clears what it read."""

    def read(self: Endpoint, message: MemoryRead) -> Any:
        answer = _read(self, message)
        if message.dst_kind == kind:
            place = Place(message.src_sip, message.src_cube, message.src_pe)
            self.machine.space(place).write(message.src_pa, bytes(min(message.nbytes, 65536)))
        return answer

    return read


def bringing(change: Callable[[MemoryRead, bytes | None], bytes | None]) -> Callable[..., Any]:
    """Return a read that returns other bytes."""

    def read(self: Endpoint, message: MemoryRead) -> Any:
        journey, failure, sunk = _read(self, message)
        return journey, failure, change(message, sunk)

    return read


READS = [
    changed("HIO-D6-13", "sink_clears", "a read into host_sink clears memory",
        ("host_io.endpoint.Endpoint._read", clearing("host_sink"))),
    changed("HIO-D6-14", "discard_clears", "a read that is dropped clears memory",
        ("host_io.endpoint.Endpoint._read", clearing("discard"))),
    changed("HIO-D6-13", "empty_sink", "brings no bytes",
        ("host_io.endpoint.Endpoint._read", bringing(lambda read, sunk: None))),
    changed("HIO-D6-14", "discard_brings", "brings bytes that are dropped", ("host_io.endpoint.Endpoint._read",
        bringing(lambda read, sunk: sunk if sunk is not None else bytes(min(64, read.nbytes))))),
    changed("HIO-D6-07", "one_byte_less", "brings one byte less",
        ("host_io.endpoint.Endpoint._read", bringing(lambda read, sunk: sunk and sunk[:-1]))),
    changed("HIO-D6-01", "mebibyte_brought", "brings the first mebibyte and no more",
        ("host_io.endpoint.Endpoint._read", bringing(lambda read, sunk: sunk and sunk[: 1 << 20]))),
    changed("HIO-D6-13", "other_end", "brings the last byte first",
        ("host_io.endpoint.Endpoint._read", bringing(lambda read, sunk: sunk and sunk[::-1]))),
    changed("HIO-D6-10", "label_drops", "drops what a read with the label discard brings",
        ("host_io.endpoint.Endpoint._read",
        bringing(lambda read, sunk: None if read.debug_label == "discard" else sunk))),
    read_as(
        "HIO-D6-09",
        "discard_by_default",
        "a read without dst_kind is dropped",
        lambda value: (
            value.get("msg_type") == "MemoryRead" and value.get("dst_kind") is None and {**value, "dst_kind": "discard"}
        ),
    ),
]  # fmt: skip
