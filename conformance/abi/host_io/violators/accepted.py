"""Sound requests that are refused (D2, D3, D5 to D7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera_conformance.strength import Violation

from .message_changes import Message, refusing

ABSENT = object()


def patterns(message: Message) -> Message:
    """Return the pattern of a write, or {}."""
    return message.get("pattern") or {}


def scalars(message: Message) -> list[Message]:
    """Return the scalars of a launch."""
    return [argument for argument in message.get("args", ()) if argument["arg_kind"] == "scalar"]


def tensors(message: Message) -> list[list[Message]]:
    """Return the shards of each tensor of a launch."""
    return [
        argument["tensor_pa_map"]["shards"] for argument in message.get("args", ()) if argument["arg_kind"] == "tensor"
    ]


def unlisted(clause: str, member: str, value: str, of: Callable[[Message], Any]) -> Violation:
    """Return a violation that refuses a value that the document lists."""
    return refusing(clause, f"no_{value}_{member}", f"refuses {member} {value}", lambda message: value == of(message))


def top(member: str) -> Callable[[Message], Any]:
    """Return a getter of a member of the request itself."""
    return lambda message: message.get(member)


LISTED = [
    *(
        unlisted(clause, "msg_type", value, top("msg_type"))
        for clause, value in {
            "HIO-D2-02": "MemoryWrite",
            "HIO-D2-03": "MemoryRead",
            "HIO-D2-04": "KernelLaunch",
        }.items()
    ),
    unlisted("HIO-D5-09", "src_kind", "pattern", top("src_kind")),
    *(
        unlisted(f"HIO-D5-{number}", "pattern_kind", value, lambda message: patterns(message).get("pattern_kind"))
        for number, value in enumerate(("zero", "fill_u8", "fill_u16", "fill_u32", "fill_fp16", "fill_fp32"), 13)
    ),
    *(
        unlisted(f"HIO-D5-{number}", "dst_mem_kind", value, top("dst_mem_kind"))
        for number, value in enumerate(("HBM", "TCM", "AUTO"), 27)
    ),
    unlisted("HIO-D6-14", "dst_kind", "discard", top("dst_kind")),
    unlisted("HIO-D7-43", "failure_policy", "fail_fast", top("failure_policy")),
    unlisted("HIO-D7-44", "failure_policy", "collect_all", top("failure_policy")),
]


NULL_PATTERN = refusing(
    "HIO-D5-10", "null_pattern", "refuses a pattern of null", lambda message: message.get("pattern", ()) is None
)

OPTIONAL = {
    "timestamp_tag": "HIO-D3-08",
    "dst_mem_kind": "HIO-D5-22",
    "dst_kind": "HIO-D6-08",
    "grid": "HIO-D7-28",
    "meta": "HIO-D7-29",
    "failure_policy": "HIO-D7-30",
}
LABELS = {"MemoryWrite": "HIO-D5-24", "MemoryRead": "HIO-D6-10", "KernelLaunch": "HIO-D7-32"}
WITH = {"dst_mem_kind": "MemoryWrite", "dst_kind": "MemoryRead"}
"""The request of a member that only one type has; a launch for the others, a write for the tag."""
STATES: Mapping[str, Callable[[Any], bool]] = {
    "absent": lambda value: value is ABSENT,
    "null": lambda value: value is None,
    "given": lambda value: value is not ABSENT and value is not None,
}


def demanding(clause: str, member: str, message_type: str, state: str) -> Violation:
    """Return a violation that refuses an optional member if it is absent, null, or present."""

    def when(message: Message) -> bool:
        return message["msg_type"] == message_type and STATES[state](message.get(member, ABSENT))

    return refusing(clause, f"{member}_{state}_{message_type}", f"refuses {member} when it is {state}", when)


PERMISSIONS = [
    *(
        demanding(
            clause, member, WITH.get(member, "MemoryWrite" if member == "timestamp_tag" else "KernelLaunch"), state
        )
        for member, clause in OPTIONAL.items()
        for state in STATES
        if state != "null" or member in ("timestamp_tag", "grid", "meta")  # others may refuse null (AMB-HIO-37)
    ),
    *(demanding(clause, "debug_label", message, state) for message, clause in LABELS.items() for state in STATES),
]


def refusing_values(clause: str, name: str, description: str, kind: str, refused: Callable[[Any], object]) -> Violation:
    """Return a violation that refuses some values of one kind of pattern."""

    def when(message: Message) -> object:
        return patterns(message).get("pattern_kind") == kind and refused(patterns(message).get("value"))

    return refusing(clause, name, description, when)


VALUES = [
    refusing_values("HIO-D5-15", "signed_u16", "takes u16 below 65,535", "fill_u16", lambda value: value > 65534),
    refusing_values("HIO-D5-16", "signed_u32", "takes u32 up to 2 to the 31", "fill_u32", lambda value: value > 2**31),
    refusing_values("HIO-D2-06", "no_initialization", "refuses ones of fp32", "fill_fp32", lambda value: True),
    refusing_values("HIO-D5-21", "zero_without_a_value", "wants a value beside zero", "zero",
        lambda value: value is None),
    refusing_values("HIO-D5-21", "zero_of_a_byte", "wants a byte beside zero", "zero",
        lambda value: not 0 <= (value or 0) < 256),
    refusing("HIO-D5-19", "no_negative_values", "refuses negative values",
        lambda message: patterns(message).get("pattern_kind") != "zero" and (patterns(message).get("value") or 0) < 0),
]  # fmt: skip


LAUNCHES = [
    refusing("HIO-D7-41", "no_fp32_scalars", "refuses scalars of fp32",
        lambda message: any(scalar["dtype"] == "fp32" for scalar in scalars(message))),
    refusing("HIO-D7-04", "tensors_first", "refuses a tensor behind a scalar",
        lambda message: [argument["arg_kind"] for argument in message.get("args", ())] == ["scalar", "tensor"]),
    refusing("HIO-D7-17", "one_tensor", "refuses a second tensor", lambda message: len(tensors(message)) > 1),
    refusing("HIO-D7-18", "shards_in_order", "refuses shards out of order",
        lambda message: any(tensor[0]["offset_bytes"] for tensor in tensors(message))),
    refusing("HIO-D7-48", "no_scalars", "refuses scalar arguments", scalars),
    refusing("HIO-D7-37", "builtin_at_a_place", "looks at the place of a builtin",
        lambda message: message.get("kernel_ref", {}).get("deploy_sip", 0) > 1),
    refusing("HIO-D2-08", "small_launches", "refuses a launch with both sorts of arguments",
        lambda message: tensors(message) and scalars(message)),
    refusing("HIO-D6-13", "aligned_reads", "wants aligned reads into the sink",
        lambda message: message.get("dst_kind") == "host_sink" and message["src_pa"] % 64),
    refusing("HIO-D3-07", "one_device", "takes requests for the first device alone",
        lambda message: message["target_device"] != "sip:0"),
]  # fmt: skip
