"""Ids, frames, types and devices that are read wrongly (D2, D3, Verification)."""

from __future__ import annotations

from collections.abc import Callable

from tessera_conformance.strength import Violation
from tessera_reference.host_io import endpoint
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.frames import InvalidFrame

from .message_changes import Message, changed, read_as, refusing

_ids_of = endpoint.ids_of
_read = endpoint._read
_exchange = Endpoint.exchange


def reading_ids(clause: str, name: str, description: str, change: Callable[[Message], Message]) -> Violation:
    """Return a violation that reads ids from another message."""
    return changed(clause, name, description, ("host_io.endpoint.ids_of", lambda value: _ids_of(change(dict(value)))))


def defaulted(member: str) -> Callable[[Message], Message]:
    """Return a change that gives a missing id a default."""
    return lambda value: value | {member: "none"} if value.get(member) is None else value


def as_text(member: str) -> Callable[[Message], Message]:
    """Return a change that converts an id of another type to a text."""
    return lambda value: value | {member: str(value[member])} if value.get(member) is not None else value


def empty_for_others(member: str) -> Callable[[Message], Message]:
    """Return a change that replaces a false id by a space."""
    return lambda value: value | {member: " "} if not value.get(member) else value


def found_anyway(frame: str | bytes) -> Message:
    try:
        return _read(frame)
    except InvalidFrame:
        return {"correlation_id": "unknown", "request_id": "unknown"}


def last_read(frame: str | bytes, last: dict[str, Message] = {}) -> Message:  # noqa: B006 - what was read last is kept
    try:
        last["message"] = _read(frame)
    except InvalidFrame:
        return {name: last.get("message", {}).get(name, "none") for name in ("correlation_id", "request_id")}
    return last["message"]


def first_of_a_list(frame: str | bytes) -> Message:
    text = str(frame).strip()
    return _read(text[1:-1] if text.startswith("[{") else frame)


READING = [
    *(
        violation
        for clause, member in {"HIO-D3-02": "correlation_id", "HIO-D3-05": "request_id"}.items()
        for violation in (
            reading_ids(clause, f"default_{member}", f"has a default for {member}", defaulted(member)),
            reading_ids(clause, f"text_of_{member}", f"makes {member} a text", as_text(member)),
            reading_ids(
                clause, f"empty_{member}", f"takes a space for what is empty as {member}", empty_for_others(member)
            ),
        )
    ),
    *(
        reading_ids(clause, f"default_{member}_in_{kind}", f"has a default for {member}", defaulted(member))
        for clause, member, kind in (
            ("HIO-D5-02", "correlation_id", "writes"),
            ("HIO-D6-02", "request_id", "reads"),
            ("HIO-D7-02", "correlation_id", "launches"),
            ("HIO-Verification-01", "request_id", "requests"),
        )
    ),
    changed("HIO-D3-02", "unreadable_frames", "answers what it cannot read", ("host_io.endpoint._read", found_anyway)),
    changed("HIO-D3-11", "last_ids", "answers what it cannot read with the last ids",
        ("host_io.endpoint._read", last_read)),
    changed("HIO-D3-05", "lists_of_requests", "takes lists of requests", ("host_io.endpoint._read", first_of_a_list)),
    refusing("HIO-D3-05", "short_request_ids", "refuses request ids of 256 characters",
        lambda message: len(message["request_id"]) > 255),
    refusing("HIO-D3-02", "ascii_correlation_ids", "refuses correlation ids beyond ASCII",
        lambda message: not message["correlation_id"].isascii()),
]  # fmt: skip


def device(change: Callable[[str], str]) -> Callable[[Message], None]:
    def within(message: Message) -> None:
        if isinstance(message.get("target_device"), str):
            message["target_device"] = change(message["target_device"])

    return within


DEVICES = [
    read_as("HIO-D3-07", "stripped_devices", "strips names of devices", device(lambda name: name.strip() or "x")),
]


def by_members(message: Message) -> None:
    marks = {"dst_pa": "MemoryWrite", "src_pa": "MemoryRead", "kernel_ref": "KernelLaunch"}
    if isinstance(message.get("msg_type"), str):
        message["msg_type"] = next((name for mark, name in marks.items() if mark in message), message["msg_type"])


def near_types(message: Message) -> None:
    names = {name.lower(): name for name in ("MemoryWrite", "MemoryRead", "KernelLaunch")}
    if isinstance(message.get("msg_type"), str):
        message["msg_type"] = names.get(message["msg_type"].strip().lower(), message["msg_type"])


def copies(message: Message) -> None:
    if message.get("msg_type") == "MemoryCopy" and {"dst_pa", "src_pa"} <= set(message):
        message["msg_type"] = "MemoryRead"
        foreign = {"dst_kind", "dst_sip", "dst_cube", "dst_pe", "dst_pa", "src_kind", "pattern", "dst_mem_kind"}
        for name in foreign | {"kernel_ref", "args", "grid", "meta", "failure_policy"}:
            message.pop(name, None)


TYPES = [
    read_as("HIO-D2-01", "memory_copies", "takes a fourth type, MemoryCopy, with members of its own", copies),
    read_as("HIO-D3-01", "types_by_members", "tells types by their members", by_members),
    read_as("HIO-D2-01", "types_of_any_case", "compares types without case", near_types),
]
