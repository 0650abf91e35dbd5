"""Endpoints that follow a listed alternative: they are judged by their messages, and nothing counts against them.

Each rewrites requests before the reference reads them: what it takes becomes a sound request, and what it refuses one
of no type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tessera_conformance.strength import Variant, altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.host_io import endpoint, launches
from tessera_reference.host_io.bridge import Bridge
from tessera_reference.host_io.endpoint import Endpoint, launch
from tessera_reference.host_io.frames import Request, element_bytes
from tessera_reference.host_io.machine import Kernel, Machine, Place
from tessera_reference.host_io.messages import KernelLaunch, MemoryWrite

from ....ir.variants.features import Without
from ..kit.memory import frame_of

HOST_IO = ("abi/host-io/*",)
Message = dict[str, Any]
Rewrite = Callable[[Message], Message]
WIDTHS = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4, "fill_fp16": 2, "fill_fp32": 4}
INTEGERS = {"i32": 32, "i64": 64}
"""The bits of each dtype of whole numbers."""
MEMBERS: Mapping[str, tuple[str, ...]] = {
    "": (
        *("msg_type", "correlation_id", "request_id", "target_device", "timestamp_tag", "debug_label", "src_kind"),
        *("pattern", "dst_mem_kind", "dst_kind", "kernel_ref", "args", "grid", "meta", "failure_policy", "nbytes"),
        *(f"{side}_{name}" for side in ("src", "dst") for name in ("sip", "cube", "pe", "pa")),
    ),
    "pattern": ("pattern_kind", "value"),
    "kernel_ref": ("name", "kind", "deploy_pa", "deploy_sip", "deploy_cube", "deploy_pe", "nbytes_code"),
    "args": ("arg_kind", "tensor_pa_map", "dtype", "value"),
    "tensor_pa_map": ("shards",),
    "shards": ("sip", "cube", "pe", "pa", "nbytes", "offset_bytes"),
}


class MessagesAlone(Without):
    """An endpoint of which nothing is seen but its messages and its memory."""

    absent = frozenset(
        {"endpoint-control", "fault-injection", "hop-trace", "host-buffer-ref", "host-runtime-bridge", "delivery-order"}
    )


def follows(interpretation: str, name: str, description: str, rewrite: Rewrite) -> Variant:
    """A variant that rewrites what it is sent."""
    original = MessagesAlone.host_io_exchange

    def exchange(self: MessagesAlone, *, frames: Sequence[str], **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = original(self, frames=[rewritten(frame, rewrite) for frame in frames], **options)
        return found

    substitution = (MessagesAlone, "host_io_exchange", exchange)
    return altered(interpretation, description, HOST_IO, MessagesAlone, substitution, name=name)


def rewritten(frame: str, rewrite: Rewrite) -> str:
    """The frame of the rewritten message; one that is no object stays as it is."""
    try:
        message = json.loads(frame, parse_float=Decimal)
    except ValueError:
        return frame
    return frame_of(rewrite(message)) if isinstance(message, dict) else frame


def refused(message: Message) -> Message:
    """A request that is refused in its place."""
    return message | {"msg_type": "none"}


def short(message: Message) -> Message:
    """Texts of more than 1,000 characters are refused."""
    texts = (message.get("debug_label"), message.get("timestamp_tag"))
    return refused(message) if any(isinstance(text, str) and len(text) > 1000 for text in texts) else message


def empty(message: Message) -> Message:
    """A request that does nothing in its place: a byte is read and dropped."""
    if message.get("msg_type") == "KernelLaunch":
        return message
    place = {
        f"src_{name}": message.get(f"dst_{name}", message.get(f"src_{name}")) for name in ("sip", "cube", "pe", "pa")
    }
    kept = {name: message.get(name) for name in ("correlation_id", "request_id", "target_device")}
    return {"msg_type": "MemoryRead", **kept, **place, "nbytes": 1, "dst_kind": "discard"}


def pattern_of(message: Message) -> Mapping[str, Any]:
    """The pattern of a write, or none."""
    pattern = message.get("pattern")
    return pattern if isinstance(pattern, dict) else {}


def truncated(message: Message) -> Message:
    """The last element is left out where it is not whole."""
    width, count = WIDTHS.get(str(pattern_of(message).get("pattern_kind")), 1), message.get("nbytes")
    if type(count) is not int or count <= 0 or count % width == 0:
        return message
    return message | {"nbytes": count // width * width} if count >= width else empty(message)


def wrapped(message: Message) -> Message:
    """Whole numbers are taken modulo the range."""
    pattern = pattern_of(message)
    kind, value = str(pattern.get("pattern_kind")), pattern.get("value")
    if not kind.startswith("fill_u") or kind not in WIDTHS or type(value) is not int:
        return message
    return message | {"pattern": {**pattern, "value": value % 256 ** WIDTHS[kind]}}


def wrapped_scalars(message: Message) -> Message:
    """Whole numbers of i32 and i64 are taken modulo the range."""
    if message.get("msg_type") != "KernelLaunch" or not isinstance(message.get("args"), list):
        return message

    def wrapped_argument(argument: Any) -> Any:
        bits = INTEGERS.get(str(argument.get("dtype"))) if isinstance(argument, dict) else None
        if bits is None or type(argument.get("value")) is not int:
            return argument
        half = 2 ** (bits - 1)
        return argument | {"value": (argument["value"] + half) % 2**bits - half}

    return message | {"args": list(map(wrapped_argument, message["args"]))}


def unchecked_scalars(message: Message) -> Message:
    """Numbers of i32 and i64 are left to the kernel, whatever they are."""
    if message.get("msg_type") != "KernelLaunch" or not isinstance(message.get("args"), list):
        return message

    def unchecked_argument(argument: Any) -> Any:
        bits = INTEGERS.get(str(argument.get("dtype"))) if isinstance(argument, dict) else None
        value = argument.get("value") if bits else None
        if bits is None or isinstance(value, bool) or not isinstance(value, int | Decimal):
            return argument
        fits = value == int(value) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
        return argument if fits else argument | {"value": 0}

    return message | {"args": list(map(unchecked_argument, message["args"]))}


def zero_done(message: Message) -> Message:
    """Zero bytes are read and written at once; a shard or a binary of none is one of a byte."""
    if message.get("nbytes") == 0 and type(message["nbytes"]) is int:
        return empty(message)

    def byte_for_none(name: str, value: Any) -> Any:
        return 1 if name in ("nbytes", "nbytes_code") and type(value) is int and value == 0 else value

    return dict(walked(message, byte_for_none))


def walked(value: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """A message whose numbers and truth values are changed, by the names of their members."""
    if isinstance(value, dict):
        return {key: walked(member, change, key) for key, member in value.items()}
    if isinstance(value, list):
        return [walked(element, change, name) for element in value]
    return change(name, value) if isinstance(value, int | Decimal) else value


WHOLE = ("nbytes", "code", "bytes", "pa", "sip", "cube", "pe", "value")


def counted(message: Message) -> Message:
    """True and false are 1 and 0, and for a bool any number is a truth value."""
    numbers = walked(
        message, lambda name, value: int(value) if name.split("_")[-1] in WHOLE and isinstance(value, bool) else value
    )
    for argument in numbers.get("args") or [] if isinstance(numbers.get("args"), list) else []:
        if (
            isinstance(argument, dict)
            and argument.get("dtype") == "bool"
            and isinstance(argument.get("value"), int | Decimal)
        ):
            argument["value"] = bool(argument["value"])
    return dict(numbers)


def known(value: Any, part: str = "") -> Any:
    """The members that the document names."""
    if isinstance(value, list):
        return [known(element, part) for element in value]
    if not isinstance(value, dict) or part in ("grid", "meta"):
        return value
    return {name: known(member, name) for name, member in value.items() if name in MEMBERS.get(part, (name,))}


def bounded(message: Message) -> Message:
    """Offsets and sizes of binaries are taken whatever they are."""
    return dict(
        walked(
            message,
            lambda name, value: (
                min(value, 4096) if name in ("offset_bytes", "nbytes_code") and type(value) is int else value
            ),
        )
    )


def maps_of(argument: Any) -> Iterator[Message]:
    """The map of an argument that is a tensor."""
    if isinstance(argument, dict) and isinstance(argument.get("tensor_pa_map"), dict):
        yield argument["tensor_pa_map"]


def tensors(message: Message) -> Iterator[Message]:
    """The maps of the tensors of a launch."""
    args = message.get("args")
    for argument in args if isinstance(args, list) else []:
        yield from maps_of(argument)


def shards(message: Message) -> Iterator[Message]:
    """The shards of a launch."""
    for one in tensors(message):
        found = one.get("shards")
        yield from (shard for shard in found if isinstance(shard, dict)) if isinstance(found, list) else ()


def without_empty(message: Message) -> Message:
    """Tensors without shards are passed over."""
    args = message.get("args")
    if not isinstance(args, list):
        return message
    empty_maps = [tensor for tensor in tensors(message) if tensor.get("shards") == []]
    return message | {
        "args": [
            argument
            for argument in args
            if not (isinstance(argument, dict) and argument.get("tensor_pa_map") in empty_maps)
        ]
    }


NEVER_NULL = ("dst_mem_kind", "dst_kind", "failure_policy")
OPTIONAL = {
    "MemoryWrite": ("timestamp_tag", "dst_mem_kind", "debug_label"),
    "MemoryRead": ("timestamp_tag", "dst_kind", "debug_label"),
    "KernelLaunch": ("timestamp_tag", "grid", "meta", "failure_policy", "debug_label"),
}


def null_refused(message: Message) -> Message:
    """A member to whose type the document does not add None is absent or has a value."""
    return refused(message) if any(name in message and message[name] is None for name in NEVER_NULL) else message


TYPES: Mapping[str, type] = {"grid": dict, "meta": dict}


def ignored(message: Message) -> Message:
    """An optional member of another type counts as absent."""
    names = OPTIONAL.get(str(message.get("msg_type")), ())
    wrong = {name for name in names if not isinstance(message.get(name), TYPES.get(name, str))}
    return {name: value for name, value in message.items() if name not in wrong}


def aligned(message: Message) -> Message:
    """An element lies at a multiple of its size; reads and shards at one of four."""
    width = WIDTHS.get(str(pattern_of(message).get("pattern_kind")), 1)
    places = [(message.get("dst_pa"), width)]
    places += [(shard.get("pa"), 4) for shard in shards(message)]
    odd = any(type(pa) is int and pa % step for pa, step in places)
    return refused(message) if odd else message


def with_tensors(message: Message) -> Message:
    """A launch has a tensor."""
    launch = message.get("msg_type") == "KernelLaunch" and isinstance(message.get("args"), list)
    return refused(message) if launch and not any(tensors(message)) else message


def by_axes(message: Message) -> Message:
    """A grid has x, y and z."""
    grid = message.get("grid")
    return refused(message) if isinstance(grid, dict) and {*grid} != {*"xyz"} else message


def binaries_alone(message: Message) -> Message:
    """A pattern is no binary."""
    kernel = message.get("kernel_ref")
    return refused(message) if isinstance(kernel, dict) and kernel.get("kind") == "deployed" else message


def kind_wins(message: Message) -> Message:
    """The kind of memory says which it is, whatever the address."""
    kind, pa = message.get("dst_mem_kind"), message.get("dst_pa")
    if kind not in ("HBM", "TCM") or type(pa) is not int or not 0 <= pa < 1 << 33:
        return message
    return message | {"dst_pa": pa % (1 << 32) + (kind == "TCM") * (1 << 32)}


def through_fp64(message: Message) -> Message:
    """Numbers that are written with digits behind a point are read as fp64."""
    return dict(walked(message, lambda _, value: Decimal(float(value)) if is_fraction(value) else value))


def is_fraction(value: Any) -> bool:
    """True if a number is written with digits behind a point."""
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    return isinstance(exponent, int) and exponent < 0


WRITE = Endpoint._write


def turned(endpoint: Endpoint, write: MemoryWrite, pair: Any) -> Any:
    """Repeat an element that begins at multiples of its size."""
    answer = WRITE(endpoint, write, pair)
    if write.pattern is not None and answer[1] is None:
        one = element_bytes(write.pattern)
        data = bytes(one[address % len(one)] for address in range(write.dst_pa, write.dst_pa + write.nbytes))
        endpoint.machine.space(Place(write.dst_sip, write.dst_cube, write.dst_pe)).write(write.dst_pa, data)
    return answer


TURNED = altered(
    "AMB-HIO-35",
    "begins the elements of a fill at multiples of their size",
    HOST_IO,
    MessagesAlone,
    (Endpoint, "_write", turned),
    name="turned_elements",
)
LAUNCH, TASKS = launch, launches._tasks


def at_once(machine: Machine, request: KernelLaunch) -> Any:
    """Begin every shard before one fails."""
    return LAUNCH(machine, replace(request, failure_policy="collect_all"))


def as_listed(kernel: Kernel, request: KernelLaunch, tensors: Any) -> Any:
    """The tasks of a launch in the order of its shards."""
    return sorted(TASKS(kernel, request, tensors), key=lambda task: task[0].number)


IN_TIME = [
    altered("AMB-HIO-49", description, HOST_IO, ReferenceAdapter, change, name=name)
    for name, description, change in (
        ("at_once", "begins all shards of a launch at once", (endpoint, "launch", at_once)),
        ("as_listed", "begins shards one after another as they are listed", (launches, "_tasks", as_listed)),
    )
]
SEND = Bridge._send
LABEL = "layer 17 of the encoder/attention/forward, called for the third time in the training step 4211 of run 8"


def with_labels(host: Bridge, requests: Sequence[Request], buffers: Any = None) -> Any:
    """Send requests with long labels."""
    return SEND(host, [replace(request, debug_label=LABEL) for request in requests], buffers)


def wait_for_room(endpoint: Endpoint, pair: Any) -> None:
    """Require unused ids: a host that sends more than the queue holds waits until it is read."""
    size = endpoint.machine.size
    endpoint.machine.size = replace(size, queue_depth=max(size.queue_depth, len(endpoint.waiting) + 1))
    try:
        REQUIRE_ROOM(endpoint, pair)
    finally:
        endpoint.machine.size = size


REQUIRE_ROOM = Endpoint._require_room
WAITS = altered(
    "AMB-HIO-50",
    "lets the host wait where the queue is full",
    HOST_IO,
    ReferenceAdapter,
    (Endpoint, "_require_room", wait_for_room),
    name="host_waits",
)
LABELS = altered(
    "AMB-HIO-67",
    "labels requests by long texts of words",
    ("abi/host-io/bridge/*",),
    ReferenceAdapter,
    (Bridge, "_send", with_labels),
    name="long_labels",
)
READINGS = [
    follows("AMB-HIO-05", "truncates", "leaves out an element that is not whole", truncated),
    follows("AMB-HIO-06", "wraps", "takes whole numbers of fills modulo their range", wrapped),
    follows("AMB-HIO-69", "wraps_scalars", "takes whole numbers of i32 and i64 modulo their range", wrapped_scalars),
    follows("AMB-HIO-69", "unchecked_scalars", "leaves the numbers of i32 and i64 to the kernel", unchecked_scalars),
    follows("AMB-HIO-08", "empty_tensors", "takes tensors without shards", without_empty),
    follows("AMB-HIO-68", "short_texts", "takes texts of 1,000 characters and no more", short),
    follows("AMB-HIO-14", "counts_truth", "takes true for 1, and 1 for true", counted),
    follows("AMB-HIO-20", "nothing_at_once", "completes zero bytes at once", zero_done),
    follows("AMB-HIO-21", "passes_over", "passes over members that it does not know", known),
    follows("AMB-HIO-23", "three_axes", "takes grids of x, y and z alone", by_axes),
    follows("AMB-HIO-34", "no_bounds", "takes offsets and sizes of any number", bounded),
    follows("AMB-HIO-36", "fp64_between", "reads numbers with a fraction as fp64", through_fp64),
    follows("AMB-HIO-37", "null_refused", "refuses null for an optional member", null_refused),
    follows("AMB-HIO-37", "types_ignored", "passes over optional members of another type", ignored),
    follows("AMB-HIO-38", "aligned", "wants addresses that are aligned to the element", aligned),
    follows("AMB-HIO-42", "tensors_needed", "refuses launches without a tensor", with_tensors),
    follows("AMB-HIO-46", "kind_wins", "takes the memory that the kind names", kind_wins),
    follows("AMB-HIO-56", "binaries_alone", "refuses kernels that a pattern wrote", binaries_alone),
]


def answering(
    interpretation: str, name: str, description: str, change: Callable[[list[Message]], list[Message]]
) -> Variant:
    """A variant whose responses are changed."""
    original = MessagesAlone.host_io_exchange

    def exchange(self: MessagesAlone, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = original(self, **arguments)
        answers = change([json.loads(answer) for answer in found["answers"]])
        return found | {"answers": [json.dumps(answer) for answer in answers]}

    return altered(
        interpretation, description, HOST_IO, MessagesAlone, (MessagesAlone, "host_io_exchange", exchange), name=name
    )


def timed(answers: list[Message]) -> list[Message]:
    """Every response says how long it took."""
    return [answer | {"ns": 5} for answer in answers]


def both_failed(answers: list[Message]) -> list[Message]:
    """Every request fails whose pair of ids another one has that is unanswered."""
    pairs = [(answer.get("correlation_id"), answer.get("request_id")) for answer in answers]
    failed = {"completion": {"ok": False, "error_code": "TWICE", "error_message": None}}
    return [
        answer | (failed if "completion" in answer and pairs.count(pair) > 1 else {})
        for answer, pair in zip(answers, pairs, strict=True)
    ]


ANSWERS = [
    answering("AMB-HIO-53", "says_how_long", "tells in a response how long it took", timed),
    answering("AMB-HIO-51", "both_fail", "lets both requests with a pair fail", both_failed),
]
