"""From a program, which names things, to a package, which numbers them (section 7.2), held to what its target can do.

A program has the members of a package without ids, hash, ABI and target. Ids are places in order of first mention, so
that equal names have equal ids in every build of a program (AMB-WSP-17).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from . import policies
from .errors import ProgramRefused, UnsupportedDirective
from .json_form import BodyReader, member, members, name, objects
from .kernels import read_kernel
from .package import (
    Channel,
    Directive,
    Package,
    Process,
    Schedule,
    check_acyclic,
    check_calls,
    read_channel,
    read_policy,
    read_resources,
    read_symbol,
    read_task_window,
    read_tensor,
    stream_graph,
    text,
    used_csp_features,
    used_predicates,
)
from .targets import Target

UNITS, MODES = ("tasks", "bytes"), ("stall", "abort", "benchmark")
DEFAULT_POLICY = {"id": "round_robin", "parameters": {"workers": 1}}
DEFAULT_WINDOW = {"size": 64}
Read = TypeVar("Read")


class _Names:
    """The ids of names; slots are declared by being mentioned."""

    def __init__(self) -> None:
        self.ids: dict[str, dict[str, int]] = {
            kind: {} for kind in ("kernel", "channel", "process", "slot", "symbol", "tensor")
        }

    def declare(self, kind: str, called: str, path: str) -> None:
        if called in self.ids[kind]:
            raise ProgramRefused(path, f"there are two {kind}s {called}")
        self.ids[kind][called] = len(self.ids[kind])

    def resolve(self, kind: str, value: Any, path: str) -> int:
        known = self.ids[kind]
        if isinstance(value, str) and value in known:
            return known[value]
        if kind != "slot":
            raise ProgramRefused(path, f"is {value!r:.120}, expected a declared {kind}")
        return known.setdefault(name(value, path), len(known))


def compile_program(program: Any, target: Target) -> tuple[Package, list[str]]:
    """The package of a program, and what is said of directives that are diagnosed, each once (AMB-WSP-26).

    Raises `ProgramRefused`, and `UnsupportedDirective` for what the target does not support.
    """
    stated = members(program, "", ("name",), ("kernels", "schedule", "csp", "slots", "symbols", "tensors"))
    csp = members(stated.get("csp", {}), "/csp", (), ("channels", "processes"))
    names = _Names()
    kernels = _listed(stated.get("kernels", []), "/kernels", "kernel", names, read_kernel)
    channels = _listed(csp.get("channels", []), "/csp/channels", "channel", names, _channel)
    payloads = [channel for channel in csp.get("channels", []) if channel.get("payload", "token") != "token"]
    symbols = _listed(stated.get("symbols", []), "/symbols", "symbol", names, read_symbol)
    tensors = _listed(stated.get("tensors", []), "/tensors", "tensor", names, read_tensor)
    _listed(stated.get("slots", []), "/slots", "slot", names, _slot)
    reader = BodyReader(names.resolve)
    processes = _listed(
        csp.get("processes", []), "/csp/processes", "process", names, lambda value, path: _process(value, path, reader)
    )
    schedule, used = _schedule(stated.get("schedule", {}), reader, target)
    slots = tuple(names.ids["slot"])
    called = name(stated["name"], "/name")
    package = Package(
        called,
        target.name,
        target.phase,
        tuple(kernels),
        schedule,
        tuple(channels),
        tuple(processes),
        slots,
        tuple(symbols),
        tuple(tensors),
    )
    check_calls(package, "/csp/processes")
    features = [*used_csp_features(package), *(["payload_channels"] if payloads else [])]
    ignored = [
        *_ignored(target, used, target.state),
        *_ignored(target, features, lambda each: target.csp.get(each, "unsupported")),
        *_ignored(target, used_predicates(package), lambda each: target.predicates.get(each, "unsupported")),
    ]
    if target.name == "aie":
        check_acyclic(package)
        package = replace(package, stream_graph=stream_graph(package))
    return package, ignored


def _ignored(target: Target, used: Collection[str], state: Callable[[str], str]) -> list[str]:
    """Return the diagnostics of the target, each once. Raises `UnsupportedDirective`."""
    for feature in used:
        if state(feature) == "unsupported":
            raise UnsupportedDirective(target.name, feature)
    return [
        f"target {target.name} ignores {feature}" for feature in dict.fromkeys(used) if state(feature) == "diagnosed"
    ]


def _listed(
    value: Any, path: str, kind: str, names: _Names, read: Callable[[Mapping[str, Any], str], Read]
) -> Sequence[Read]:
    found = []
    for place, each in enumerate(objects(value, path)):
        found.append(read(each, f"{path}/{place}"))
        names.declare(kind, each["name"], f"{path}/{place}/name")
    return found


def _channel(value: Mapping[str, Any], path: str) -> Channel:
    """A channel; what travels in it is a `token` where nothing is said, else a `tensor` (AMB-WSP-35)."""
    member(value.get("payload", "token"), f"{path}/payload", ("token", "tensor"))
    return read_channel({name: each for name, each in value.items() if name != "payload"}, path)


def _slot(value: Mapping[str, Any], path: str) -> str:
    return name(members(value, path, ("name",))["name"], f"{path}/name")


def _process(value: Mapping[str, Any], path: str, reader: BodyReader) -> Process:
    stated = members(value, path, ("name", "body"))
    return Process(name(stated["name"], f"{path}/name"), reader.body(stated["body"], f"{path}/body"))


def _schedule(value: Any, reader: BodyReader, target: Target) -> tuple[Schedule, list[str]]:
    path = "/schedule"
    stated = members(value, path, (), ("policy", "task_window", "resources", "directives"))
    policy = read_policy(stated.get("policy", DEFAULT_POLICY), f"{path}/policy", reader)
    policies.check(policy.id, policy.parameters, f"{path}/policy")
    window = read_task_window(stated.get("task_window", DEFAULT_WINDOW), f"{path}/task_window", UNITS, MODES)
    resources = stated.get("resources", {})
    sizes = read_resources(resources, f"{path}/resources")
    used = [f"dispatch.{policy.id}", f"task_window.unit.{window.unit}", f"task_window.mode.{window.mode}"]
    directives: list[Directive] = []
    for place, each in enumerate(objects(stated.get("directives", []), f"{path}/directives")):
        at = f"{path}/directives/{place}"
        further = members(each, at, ("name", "value"))
        called = name(further["name"], f"{at}/name")
        directives.append(Directive(called, text(further["value"], f"{at}/value"), target.state(called)))
    used += [f"resources.{resource}" for resource in resources] + [directive.name for directive in directives]
    return Schedule(policy, window, sizes, tuple(directives), target.directives), used
