"""Sound requests that are refused (D2, D3, D5 to D7)."""

from .message_changes import refusing

ABSENT = object()


def patterns(message):
    return message.get("pattern") or {}


def scalars(message):
    return [argument for argument in message.get("args", ()) if argument["arg_kind"] == "scalar"]


def tensors(message):
    """Return the shards of each tensor of a launch."""
    given = [argument for argument in message.get("args", ()) if argument["arg_kind"] == "tensor"]
    return [argument["tensor_pa_map"]["shards"] for argument in given]


def unlisted(section, first, member, *values):
    """Return violations that refuse values that the document lists, with numbers of clauses from the first."""

    def refused(number, value):
        def when(message):
            return value == (patterns(message) if member == "pattern_kind" else message).get(member)

        return refusing(f"HIO-{section}-{number:02}", f"no_{value}_{member}", f"refuses {member} {value}", when)

    return [refused(number, value) for number, value in enumerate(values, first)]


PATTERNS = ("zero", "fill_u8", "fill_u16", "fill_u32", "fill_fp16", "fill_fp32")

OPTIONAL = [
    ("timestamp_tag", "HIO-D3-08", "MemoryWrite"),
    ("dst_mem_kind", "HIO-D5-22", "MemoryWrite"),
    ("dst_kind", "HIO-D6-08", "MemoryRead"),
    ("grid", "HIO-D7-28", "KernelLaunch"),
    ("meta", "HIO-D7-29", "KernelLaunch"),
    ("failure_policy", "HIO-D7-30", "KernelLaunch"),
    ("debug_label", "HIO-D5-24", "MemoryWrite"),
    ("debug_label", "HIO-D6-10", "MemoryRead"),
    ("debug_label", "HIO-D7-32", "KernelLaunch"),
]
STATES = {
    "absent": lambda value: value is ABSENT,
    "null": lambda value: value is None,
    "given": lambda value: value is not ABSENT and value is not None,
}


def demanding(clause, member, message_type, state):
    """Return a violation that refuses an optional member if it is absent, null, or present."""

    def when(message):
        return message["msg_type"] == message_type and STATES[state](message.get(member, ABSENT))

    return refusing(clause, f"{member}_{state}_{message_type}", f"refuses {member} when it is {state}", when)


def refusing_values(clause, name, description, kind, refused):
    def when(message):
        return patterns(message).get("pattern_kind") == kind and refused(patterns(message).get("value"))

    return refusing(clause, name, description, when)


VIOLATORS = [
    *unlisted("D2", 2, "msg_type", "MemoryWrite", "MemoryRead", "KernelLaunch"),
    *unlisted("D5", 9, "src_kind", "pattern"),
    *unlisted("D5", 13, "pattern_kind", *PATTERNS),
    *unlisted("D5", 27, "dst_mem_kind", "HBM", "TCM", "AUTO"),
    *unlisted("D6", 14, "dst_kind", "discard"),
    *unlisted("D7", 43, "failure_policy", "fail_fast", "collect_all"),
    refusing("HIO-D5-10", "null_pattern", "refuses a pattern of null",
        lambda message: message.get("pattern", ()) is None),
    *(demanding(clause, member, message_type, state)
        for member, clause, message_type in OPTIONAL
        for state in STATES
        if state != "null"
        or member in ("timestamp_tag", "grid", "meta", "debug_label")  # others may refuse it (AMB-HIO-37)
    ),
    refusing_values("HIO-D5-15", "signed_u16", "takes u16 below 65,535", "fill_u16", lambda value: value > 65534),
    refusing_values("HIO-D5-16", "signed_u32", "takes u32 up to 2 to the 31", "fill_u32", lambda value: value > 2**31),
    refusing_values("HIO-D2-06", "no_initialization", "refuses ones of fp32", "fill_fp32", lambda value: True),
    refusing_values("HIO-D5-21", "zero_without_a_value", "wants a value beside zero", "zero",
        lambda value: value is None),
    refusing_values("HIO-D5-21", "zero_of_a_byte", "wants a byte beside zero", "zero",
        lambda value: not 0 <= (value or 0) < 256),
    refusing("HIO-D5-19", "no_negative_values", "refuses negative values",
        lambda message: patterns(message).get("pattern_kind") != "zero" and (patterns(message).get("value") or 0) < 0),
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
