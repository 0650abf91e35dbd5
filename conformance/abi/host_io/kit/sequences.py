"""Requests that succeed, requests that fail for different causes, and sequences of both (D4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .exchange import Host
from .messages import ABSENT, Message, scalar

__all__ = ["failing", "mixed", "succeeding"]


def succeeding(host: Host) -> Mapping[str, Message]:
    """A sound request of each type, by a name."""
    kernel = host.deploy()
    return {
        "write": host.write(),
        "zeros": host.write(pattern={"pattern_kind": "zero"}),
        "read": host.read(),
        "discarded read": host.read(dst_kind="discard"),
        "launch": host.launch(kernel, host.arguments(["tensor", "i32"])),
        "launch without arguments": host.launch(kernel),
    }


def failing(host: Host) -> Mapping[str, Message]:
    """A request for each cause for which one is refused, by the cause."""
    machine = host.machine
    unknown = f"{machine.device(machine.places[0])} unknown"
    far = {"sip": 2**31 - 1, "cube": 0, "pe": 0}
    end = max(each.base + each.bytes for each in machine.memories)
    kernel = host.deploy()
    return {
        "unknown type": host.write(msg_type="MemoryCopy"),
        "missing member": host.write(nbytes=ABSENT),
        "mistyped member": host.read(nbytes="64"),
        "no bytes": host.read(nbytes=0),
        "value out of range": host.write(pattern={"pattern_kind": "fill_u8", "value": 256}),
        "part of an element": host.write(nbytes=3, pattern={"pattern_kind": "fill_u16", "value": 1}),
        "unknown device": host.write(target_device=unknown),
        "unknown place to write": host.write(**{f"dst_{name}": value for name, value in far.items()}),
        "unknown place to read": host.read(**{f"src_{name}": value for name, value in far.items()}),
        "address behind memory": host.write(dst_pa=end),
        "bytes across the end": host.read(src_pa=end - 63),
        "unknown builtin": host.launch(host.builtin("unknown kernel")),
        "unknown dtype": host.launch(kernel, [scalar("fp64", 1)]),
        "embedded source": host.launch({**kernel, "source": "kernel k() { }"}),
    }


def mixed(host: Host, rounds: int = 3) -> Sequence[Message]:
    """Requests of both sorts between one another, each several times and under an id of its own."""
    requests = [*succeeding(host).values(), *failing(host).values()]
    step = 7  # a prime that does not divide their number, so that every turn has each of them once
    return [host.another(requests[(step * place) % len(requests)]) for place in range(rounds * len(requests))]
