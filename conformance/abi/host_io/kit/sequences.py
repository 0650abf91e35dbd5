"""Requests that succeed, requests that fail for different causes, and sequences of both (D4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .exchange import Host
from .messages import ABSENT, Message, scalar

__all__ = ["ACCEPTED_BY", "FAILING", "FAR", "SUCCEEDING", "mixed"]

FAR = 2**31 - 1
"""A SIP that no machine has."""

SUCCEEDING: Mapping[str, Callable[[Host], Message]] = {
    "write": lambda host: host.write(),
    "zeros": lambda host: host.write(pattern={"pattern_kind": "zero"}),
    "read": lambda host: host.read(),
    "discarded read": lambda host: host.read(dst_kind="discard"),
    "launch": lambda host: host.launch(host.deploy(), host.arguments(["tensor", "i32"])),
    "launch with a tensor": lambda host: host.launch(host.deploy(), host.arguments(["tensor"])),
}
"""A sound request of each type, by a name."""


FAILING: Mapping[str, Callable[[Host], Message]] = {
    "unknown type": lambda host: host.write(msg_type="MemoryCopy"),
    "missing member": lambda host: host.write(nbytes=ABSENT),
    "mistyped member": lambda host: host.read(nbytes="64"),
    "no bytes": lambda host: host.read(nbytes=0),
    "value out of range": lambda host: host.write(pattern={"pattern_kind": "fill_u8", "value": 256}),
    "part of an element": lambda host: host.write(nbytes=3, pattern={"pattern_kind": "fill_u16", "value": 1}),
    "unknown device": lambda host: host.write(target_device=f"{host.machine.device(host.machine.places[0])} unknown"),
    "unknown place to write": lambda host: host.write(dst_sip=FAR),
    "unknown place to read": lambda host: host.read(src_sip=FAR),
    "address behind memory": lambda host: host.write(dst_pa=host.machine.end),
    "bytes across the end": lambda host: host.read(src_pa=host.machine.end - 63),
    "unknown builtin": lambda host: host.launch(host.builtin("unknown kernel")),
    "unknown dtype": lambda host: host.launch(host.deploy(), [*host.arguments(["tensor"]), scalar("fp64", 1)]),
    "embedded source": lambda host: host.launch(
        {**host.deploy(), "source": "kernel k() { }"}, host.arguments(["tensor"])
    ),
}
"""A request for each cause of a refusal, by the cause."""

ACCEPTED_BY: Mapping[str, tuple[str, str]] = {
    "no bytes": ("AMB-HIO-20", "zero bytes complete at once"),
    "value out of range": ("AMB-HIO-06", "wrap"),
    "part of an element": ("AMB-HIO-05", "truncate the last element"),
    "embedded source": ("AMB-HIO-21", "a receiver passes over what it does not know"),
}
"""The interpretation and its alternative that accept such a request, for some causes."""


def mixed(host: Host, rounds: int = 3) -> Sequence[Message]:
    """Return requests of both sorts in turn, each several times and under an id of its own."""
    requests = [build(host) for build in (*SUCCEEDING.values(), *FAILING.values())]
    step = 7  # a prime that does not divide their number, so that every turn has each of them once
    return [host.another(requests[(step * place) % len(requests)]) for place in range(rounds * len(requests))]
