"""Sound requests of the three types, made from an endpoint's description (Host - IO_CPU document, D3, D5 to D7).

A request is the object of its frame. Every builder takes the members that differ from the usual ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

__all__ = [
    "ABSENT",
    "CORRELATION",
    "SCALARS",
    "Machine",
    "Memory",
    "Message",
    "Messages",
    "Place",
    "changed",
    "deploy",
    "scalar",
    "shard",
    "tensor",
]

Message: TypeAlias = dict[str, Any]
Place: TypeAlias = Mapping[str, int]
"""`sip`, `cube` and `pe`."""

CORRELATION = "case"
"""The usual correlation id."""


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"  # for descriptions of checks: an address would make each report another


ABSENT = _Absent()
"""The value of a member that is left out."""


@dataclass(frozen=True)
class Memory:
    """A memory of every PE: HBM or TCM, its first address, its bytes. Cases use its first 4,096."""

    kind: str
    base: int
    bytes: int


@dataclass(frozen=True)
class Machine:
    """The answer of `host_io.describe`: an endpoint's description of itself."""

    devices: Mapping[int, str]
    """The names that `target_device` takes, by SIP."""
    places: Sequence[Place]
    memories: Sequence[Memory]
    builtins: Mapping[str, Sequence[str]]
    """The parameters of each built-in kernel: `tensor`, or the dtype of a scalar."""
    queue_depth: int | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Machine:
        """Read the answer of `host_io.describe`."""
        return cls(
            {device["sip"]: device["name"] for device in answer["devices"]},
            answer["places"],
            [Memory(**memory) for memory in answer["memories"]],
            {builtin["name"]: builtin["parameters"] for builtin in answer["builtins"]},
            answer.get("queue_depth"),
        )

    def device(self, place: Place) -> str:
        """Return the device of a PE."""
        return self.devices[place["sip"]]

    @property
    def end(self) -> int:
        """The address behind all memories."""
        return max(memory.base + memory.bytes for memory in self.memories)

    def neighbours(self) -> Sequence[Place]:
        """Return the PEs of the first one's SIP: a request for several of them has one target device (AMB-HIO-45)."""
        return [place for place in self.places if place["sip"] == self.places[0]["sip"]]

    def memory(self, kind: str) -> Memory | None:
        """Return the memory of a kind, or None."""
        return next((memory for memory in self.memories if memory.kind == kind), None)


class Messages:
    """Builds requests, each with a request id of its own. Without `place` a request is for the first PE."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._numbers = count()

    def another(self, message: Message) -> Message:
        """Return the same request with a new request id."""
        return deepcopy(message) | {"request_id": f"request {next(self._numbers)}"}

    def write(self, place: Place | None = None, **members: Any) -> Message:
        """Return a MemoryWrite: 64 bytes of 0x05 at address 192 of the first memory."""
        place = place or self.machine.places[0]
        usual = {
            **self._envelope("MemoryWrite", place),
            **{f"dst_{name}": place[name] for name in ("sip", "cube", "pe")},
            "dst_pa": self.machine.memories[0].base + 192,
            "nbytes": 64,
            "src_kind": "pattern",
            "pattern": {"pattern_kind": "fill_u8", "value": 5},
        }
        return given(usual, members)

    def read(self, place: Place | None = None, **members: Any) -> Message:
        """Return a MemoryRead: 64 bytes from address 192 of the first memory."""
        place = place or self.machine.places[0]
        usual = {
            **self._envelope("MemoryRead", place),
            **{f"src_{name}": place[name] for name in ("sip", "cube", "pe")},
            "src_pa": self.machine.memories[0].base + 192,
            "nbytes": 64,
        }
        return given(usual, members)

    def launch(self, kernel: Message, args: Sequence[Message] = (), **members: Any) -> Message:
        """Return a KernelLaunch on the device of the first PE."""
        usual = {
            **self._envelope("KernelLaunch", self.machine.places[0]),
            "kernel_ref": kernel,
            "args": [*args],
        }
        return given(usual, members)

    def builtin(self, name: str, **members: Any) -> Message:
        """Return the KernelRef of a built-in kernel, which has no binary and whose place is ignored (AMB-HIO-40)."""
        usual = {"name": name, "kind": "builtin", "deploy_pa": None, **deploy(self.machine.places[0]), "nbytes_code": 0}
        return given(usual, members)

    def binary(self, place: Place | None = None, **members: Any) -> Message:
        """The KernelRef of a binary of 256 bytes at address 2,048 of the first memory; `Host.deploy` writes it."""
        place = place or self.machine.places[0]
        pa = self.machine.memories[0].base + 2048
        usual = {"name": "anything", "kind": "deployed", "deploy_pa": pa, **deploy(place), "nbytes_code": 256}
        return given(usual, members)

    def arguments(self, parameters: Sequence[str], place: Place | None = None) -> list[Message]:
        """Return arguments for these parameters: tensors of one shard of 64 bytes each, and scalars."""
        place = place or self.machine.places[0]
        base = self.machine.memories[0].base
        return [
            tensor(shard(place, base + 64 * number, 64))
            if parameter == "tensor"
            else scalar(parameter, SCALARS[parameter])
            for number, parameter in enumerate(parameters)
        ]

    def _envelope(self, msg_type: str, place: Place) -> Message:
        ids = {"correlation_id": CORRELATION, "request_id": f"request {next(self._numbers)}"}
        return {"msg_type": msg_type, **ids, "target_device": self.machine.device(place)}


SCALARS: Mapping[str, int | float | bool] = {"i32": -7, "i64": 2**40, "fp16": 0.5, "fp32": -2.5, "bool": True}
"""A value of each dtype."""


def tensor(*shards: Message) -> Message:
    """Return a tensor argument."""
    return {"arg_kind": "tensor", "tensor_pa_map": {"shards": list(shards)}}


def shard(place: Place, pa: int, nbytes: int, offset_bytes: int = 0, **members: Any) -> Message:
    """Return a part of a tensor."""
    return given({**place, "pa": pa, "nbytes": nbytes, "offset_bytes": offset_bytes}, members)


def scalar(dtype: str, value: Any, **members: Any) -> Message:
    """Return a scalar argument."""
    return given({"arg_kind": "scalar", "dtype": dtype, "value": value}, members)


def deploy(place: Place) -> Message:
    """Return the three members of a KernelRef that name a PE."""
    return {f"deploy_{name}": place[name] for name in ("sip", "cube", "pe")}


def given(usual: Message, members: Mapping[str, Any]) -> Message:
    """Return the usual members with some others; one that is `ABSENT` is left out."""
    return {name: value for name, value in {**usual, **members}.items() if value is not ABSENT}


def changed(message: Message, path: Sequence[str | int], value: Any) -> Message:
    """Return a copy in which the member at a path has another value, or is left out."""
    copy = deepcopy(message)
    part: Any = copy
    for key in path[:-1]:
        part = part[key]
    if value is ABSENT:
        part.pop(path[-1], None)
    else:
        part[path[-1]] = deepcopy(value)
    return copy
