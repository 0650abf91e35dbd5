"""Launches, and the effects of the endpoint's built-in kernels on memory (D7; AMB-HIO-57)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from .elements import EXACT, element, number_of
from .memory import MemoryHost, order_of
from .messages import Message, Place, deploy, scalar, shard, tensor

__all__ = [
    "EFFECTS",
    "Part",
    "built_in",
    "filling",
    "fills",
    "from_pattern",
    "has_built_in",
    "of_one_sip",
    "parts",
    "run",
    "working",
]

Given: TypeAlias = bytes | int | Decimal
"""A shard's bytes, or the value of a scalar."""


class Part(NamedTuple):
    """The place of one shard: its PE, its address, and its start in the tensor."""

    place: Place
    pa: int
    nbytes: int
    offset: int = 0


class Effect(NamedTuple):
    """The parameters of a built-in kernel, and the function from the bytes of shards to the bytes that it writes."""

    parameters: Sequence[str]
    target: int
    """The tensor that the kernel writes."""
    made: Callable[[Sequence[Given]], bytes]


def parts(*arguments: Part) -> Message:
    """Return a tensor argument of these shards."""
    return tensor(*(shard(part.place, part.pa, part.nbytes, part.offset) for part in arguments))


def built_in(host: MemoryHost, name: str, *args: Message, **members: Any) -> Message:
    """Return the launch of a built-in kernel, on the device of its first shard."""
    return host.launch(host.builtin(name), args, **{"target_device": device_of(host, args), **members})


def filling(host: MemoryHost, value: int, *arguments: Part, **members: Any) -> Message:
    """Return the launch of `fill`: every i32 of some shards becomes a number."""
    return built_in(host, "fill", parts(*arguments), scalar("i32", value), **members)


def fills(host: MemoryHost) -> bool:
    """True if the endpoint describes the built-in kernel `fill`, whose effect memory shows."""
    return has_built_in(host, "fill")


def working(host: MemoryHost, value: int, *arguments: Part, **members: Any) -> Message:
    """Return a launch on these shards: of `fill`, or of a binary that a pattern writes at 1,024 in the first PE."""
    if fills(host):
        return filling(host, value, *arguments, **members)
    host.deploy()
    place, pa = host.machine.places[0], host.base + 1024
    host.done(host.fill(place, pa, 64))
    return from_pattern(host, place, pa, 64, parts(*arguments), **members)


def from_pattern(host: MemoryHost, place: Place, pa: int, nbytes: int, *args: Message, **members: Any) -> Message:
    """Return the launch of a kernel whose binary is at an address of a PE; `host.fill` deploys it."""
    kernel = {"name": "pattern", "kind": "deployed", "deploy_pa": pa, **deploy(place), "nbytes_code": nbytes}
    return host.launch(kernel, args, **{"target_device": device_of(host, args, place), **members})


def device_of(host: MemoryHost, args: Sequence[Message], other: Place | None = None) -> str:
    """Return the device of the first shard; without shards, of another PE."""
    for argument in args:
        if argument["arg_kind"] == "tensor":
            sip = argument["tensor_pa_map"]["shards"][0]["sip"]
            return host.machine.devices.get(sip) or host.machine.device(host.machine.places[0])
    return host.machine.device(other or host.machine.places[0])


def run(host: MemoryHost, name: str, *args: Message, **members: Any) -> None:
    """Launch a built-in kernel with success; a case presumes that the endpoint describes it."""
    parameters = EFFECTS[name].parameters
    described = has_built_in(host, name)
    host.check.given(
        described, f"the endpoint has the built-in kernel {name}({', '.join(parameters)})", host.machine.builtins
    )
    host.done(built_in(host, name, *args, **members))


def has_built_in(host: MemoryHost, name: str) -> bool:
    """True if the endpoint describes this built-in kernel, whose effect memory shows."""
    return [*host.machine.builtins.get(name, ())] == [*EFFECTS[name].parameters]


def judge_pairing(host: MemoryHost) -> None:
    """End the case if shards are paired in the order of their lists (AMB-HIO-57): a copy of two shows it."""
    if not has_built_in(host, "copy"):
        return
    place = host.machine.places[0]
    data = [Part(place, host.base + 16 * number, 16, 16 * number) for number in range(2)]
    copies = [Part(place, host.base + 32 + 16 * number, 16, 16 * number) for number in range(2)]
    host.done(*(host.fill(place, part.pa, 16, value=1 + number) for number, part in enumerate(data)))
    run(host, "copy", parts(*reversed(data)), parts(*copies))
    listed = host.bytes_of(place, copies[0].pa, 32) == bytes([2] * 16 + [1] * 16)
    host.check.reading("AMB-HIO-57", "by the order of the list", listed)


def of_one_sip(host: MemoryHost, number: int) -> list[Place]:
    """Return up to `number` PEs of the first SIP, in order: a launch over several SIPs is not asserted (AMB-HIO-45)."""
    ordered = sorted(host.machine.places, key=order_of)
    return [shard for shard in ordered if shard["sip"] == ordered[0]["sip"]][:number]


def _elements(data: Given) -> list[Decimal]:
    assert isinstance(data, bytes)
    return [number_of("fill_fp32", data[at : at + 4]) for at in range(0, len(data), 4)]


def _copied(given: Sequence[Given]) -> bytes:
    source = given[0]
    assert isinstance(source, bytes)
    return source


def _filled(given: Sequence[Given]) -> bytes:
    target, value = given
    assert isinstance(target, bytes)
    return element("fill_u32", int(Decimal(str(value))) % 2**32) * (len(target) // 4)


def _added(given: Sequence[Given]) -> bytes:
    pairs = zip(_elements(given[0]), _elements(given[1]), strict=True)
    return b"".join(element("fill_fp32", EXACT.add(one, two)) for one, two in pairs)


def _scaled(given: Sequence[Given]) -> bytes:
    target, value = given
    assert not isinstance(value, bytes)
    factor = number_of("fill_fp32", element("fill_fp32", value))
    return b"".join(element("fill_fp32", EXACT.multiply(number, factor)) for number in _elements(target))


EFFECTS: Mapping[str, Effect] = {
    "copy": Effect(("tensor", "tensor"), 1, _copied),
    "fill": Effect(("tensor", "i32"), 0, _filled),
    "add_fp32": Effect(("tensor", "tensor", "tensor"), 2, _added),
    "scale_fp32": Effect(("tensor", "fp32"), 0, _scaled),
}
"""Effects by name. Sums and products are exact and rounded once; elements are finite."""
