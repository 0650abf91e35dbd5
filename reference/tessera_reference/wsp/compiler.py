"""From a program, which names things, to a package, which numbers them (section 7.2), held to what its target can do.

A program has the members of a package without ids, hash, ABI and target. Ids are places in order of first mention, so
that equal names have equal ids in every build of a program (AMB-WSP-17).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from .errors import UnsupportedDirective
from .json_form import BodyReader, member, members, name, objects, record
from .package import (
    Channel,
    Package,
    Schedule,
    Tables,
    check_acyclic,
    read_channel,
    read_directive,
    read_policy,
    read_resources,
    read_tables,
    read_task_window,
    stream_graph,
    uses,
)
from .targets import Target

UNITS, MODES = ("tasks", "bytes"), ("stall", "abort", "benchmark")
DEFAULT_POLICY = {"id": "round_robin", "parameters": {"workers": 1}}
DEFAULT_WINDOW = {"size": 64}
NOTHING: Mapping[str, Any] = {"kernels": [], "schedule": {}, "csp": {}, "slots": [], "symbols": [], "tensors": []}
"""The parts of a program that may be left out."""


def compile_program(program: Any, target: Target) -> tuple[Package, list[str]]:
    """The package of a program, and what is said of directives that are diagnosed, each once (AMB-WSP-26).

    Raises `ProgramRefused`, and `UnsupportedDirective` for what the target does not support.
    """
    stated = {**NOTHING, **members(program, "", ("name",), tuple(NOTHING))}
    csp = {"channels": [], "processes": [], **members(stated["csp"], "/csp", (), ("channels", "processes"))}
    stated |= {"csp": csp, "target": target.name, "phase": target.phase}
    package = read_tables(stated, Tables(), _channel, _slot, partial(_schedule, target))
    used = list(uses(package, list(stated["schedule"].get("resources", {}))))
    if any(channel.get("payload", "token") != "token" for channel in csp["channels"]):
        used.append(("csp", "payload_channels", "/csp/channels"))
    ignored: dict[str, None] = {}
    for table, feature, _ in used:
        state = target.state_of(table, feature)
        if state == "unsupported":
            raise UnsupportedDirective(target.name, feature)
        if state == "diagnosed":
            ignored[f"target {target.name} ignores {feature}"] = None
    if target.name == "aie":
        check_acyclic(package)
        package = replace(package, stream_graph=stream_graph(package))
    return package, list(ignored)


def _channel(value: Mapping[str, Any], path: str) -> Channel:
    """A channel; what travels in it is a `token` where nothing is said, else a `tensor` (AMB-WSP-35)."""
    member(value.get("payload", "token"), f"{path}/payload", ("token", "tensor"))
    return read_channel({name: each for name, each in value.items() if name != "payload"}, path)


def _slot(value: Mapping[str, Any], path: str) -> str:
    return str(record(value, path, {"name": name})["name"])


def _schedule(target: Target, value: Any, reader: BodyReader) -> Schedule:
    path = "/schedule"
    stated = members(value, path, (), ("policy", "task_window", "resources", "directives"))
    return Schedule(
        read_policy(stated.get("policy", DEFAULT_POLICY), f"{path}/policy", reader),
        read_task_window(stated.get("task_window", DEFAULT_WINDOW), f"{path}/task_window", UNITS, MODES),
        read_resources(stated.get("resources", {}), f"{path}/resources"),
        tuple(
            read_directive(each, f"{path}/directives/{place}", target.state)
            for place, each in enumerate(objects(stated.get("directives", []), f"{path}/directives"))
        ),
        target.directives,
    )
