"""Ids, frames, types and devices that are read wrongly (D2, D3, Verification)."""

from tessera_reference.host_io.frames import InvalidFrame

from ....ir.violators.changes import breaks, wrapped
from .message_changes import read_as, refusing

READ_FRAME = "host_io.endpoint._read"


def reading_ids(clause, name, description, member, change):
    place = "host_io.endpoint.ids_of"
    return wrapped(clause, name, description, place, lambda usual, value: usual(change(dict(value), member)))


def defaulted(value, member):
    return value | {member: "none"} if value.get(member) is None else value


def as_text(value, member):
    return value | {member: str(value[member])} if value.get(member) is not None else value


@breaks("HIO-D3-02", "answers what it cannot read", READ_FRAME)
def unreadable_frames(usual, frame):
    try:
        return usual(frame)
    except InvalidFrame:
        return {"correlation_id": "unknown", "request_id": "unknown"}


@breaks("HIO-D3-11", "answers what it cannot read with the last ids", READ_FRAME)
def last_ids(usual, frame, last={}):  # noqa: B006 - what was read last is kept
    try:
        last["message"] = usual(frame)
    except InvalidFrame:
        return {name: last.get("message", {}).get(name, "none") for name in ("correlation_id", "request_id")}
    return last["message"]


@breaks("HIO-D3-05", "takes lists of requests", READ_FRAME)
def lists_of_requests(usual, frame):
    text = str(frame).strip()
    return usual(text[1:-1] if text.startswith("[{") else frame)


READING = [
    *(reading_ids(clause, f"{name}_{member}", f"{description} {member}{rest}", member, change)
        for clause, member in {"HIO-D3-02": "correlation_id", "HIO-D3-05": "request_id"}.items()
        for name, description, rest, change in (
            ("default", "has a default for", "", defaulted),
            ("text_of", "makes", " a text", as_text),
            ("empty", "takes a space for what is empty as", "",
                lambda value, member: value if value.get(member) else value | {member: " "}),
        )),
    *(reading_ids(clause, f"default_{member}_in_{kind}", f"has a default for {member}", member, defaulted)
        for clause, member, kind in (
            ("HIO-D5-02", "correlation_id", "writes"),
            ("HIO-D6-02", "request_id", "reads"),
            ("HIO-D7-02", "correlation_id", "launches"),
            ("HIO-Verification-01", "request_id", "requests"),
        )),
    refusing("HIO-D3-05", "short_request_ids", "refuses request ids of 256 characters",
        lambda message: len(message["request_id"]) > 255),
    refusing("HIO-D3-02", "ascii_correlation_ids", "refuses correlation ids beyond ASCII",
        lambda message: not message["correlation_id"].isascii()),
]  # fmt: skip


@breaks("HIO-D3-07", "strips names of devices", read_as)
def stripped_devices(message):
    if isinstance(message.get("target_device"), str):
        message["target_device"] = message["target_device"].strip() or "x"


@breaks("HIO-D3-01", "tells types by their members", read_as)
def types_by_members(message):
    marks = {"dst_pa": "MemoryWrite", "src_pa": "MemoryRead", "kernel_ref": "KernelLaunch"}
    if isinstance(message.get("msg_type"), str):
        message["msg_type"] = next((name for mark, name in marks.items() if mark in message), message["msg_type"])


@breaks("HIO-D2-01", "compares types without case", read_as)
def types_of_any_case(message):
    names = {name.lower(): name for name in ("MemoryWrite", "MemoryRead", "KernelLaunch")}
    if isinstance(message.get("msg_type"), str):
        message["msg_type"] = names.get(message["msg_type"].strip().lower(), message["msg_type"])


@breaks("HIO-D2-01", "takes a fourth type, MemoryCopy, with members of its own", read_as)
def memory_copies(message):
    if message.get("msg_type") == "MemoryCopy" and {"dst_pa", "src_pa"} <= set(message):
        message["msg_type"] = "MemoryRead"
        foreign = {"dst_kind", "dst_sip", "dst_cube", "dst_pe", "dst_pa", "src_kind", "pattern", "dst_mem_kind"}
        for name in foreign | {"kernel_ref", "args", "grid", "meta", "failure_policy"}:
            message.pop(name, None)
