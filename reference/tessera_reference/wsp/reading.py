"""Reading a package: what is unknown, truncated, altered, incomplete or without meaning is refused (section 7.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from ..ir.documents import read_json
from . import policies
from .errors import STATES, PackageRefused, ProgramRefused, UnsupportedDirective
from .json_form import BodyReader, member, members, name, objects, whole
from .kernels import read_kernel
from .package import (
    ABI,
    FORMAT,
    MOST_UNITS,
    RESOURCES,
    Package,
    Process,
    Schedule,
    check_acyclic,
    check_calls,
    content_hash,
    read_channel,
    read_directive,
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
from .targets import NAMES, Target, target

PAYLOADS = {
    "kernels": "kernel registry",
    "schedule": "schedule payload",
    "csp": "CSP payload",
    "slots": "slots schema",
    "symbols": "symbols schema",
    "tensors": "tensors",
}
REQUIRED = ("format", "name", "target", "phase", *PAYLOADS, "hash")
Read = TypeVar("Read")


def load(data: bytes) -> Package:
    """The typed program of a package. Raises `PackageRefused`."""
    try:
        return _package(_document(data))
    except ProgramRefused as problem:
        raise PackageRefused("INVALID", str(problem)) from None
    except RecursionError:
        raise PackageRefused("MALFORMED", "it is nested too deeply") from None


def _document(data: bytes) -> Mapping[str, Any]:
    try:
        found = read_json(data, object_pairs_hook=_distinct, parse_constant=_no_number)
    except ValueError as error:
        raise _unreadable(data, error) from None
    if not isinstance(found, dict):
        raise PackageRefused("MALFORMED", "it is no JSON object")
    abi = found.get("wsp_runtime_abi")
    if abi != ABI:
        stated = "names no wsp_runtime_abi" if abi is None else f"is of wsp_runtime_abi {abi!r:.60}"
        raise PackageRefused("UNKNOWN_ABI", f"it {stated}, and this runtime loads {ABI!r}")
    if not data.endswith(b"\n"):
        raise PackageRefused("TRUNCATED", "it does not end with a line feed")
    for field in REQUIRED:
        if field not in found:
            raise PackageRefused("MISSING_PAYLOAD", f"it has no {PAYLOADS.get(field, field)} (member {field})")
    try:
        stated, actual = found["hash"], content_hash(found)
    except UnicodeEncodeError:
        raise PackageRefused("MALFORMED", "a text of it holds half of a surrogate pair") from None
    if stated != actual:
        raise PackageRefused("ALTERED", f"its hash is {stated!r:.80}, and its content has {actual}")
    return found


def _unreadable(data: bytes, error: ValueError) -> PackageRefused:
    if not data.endswith(b"}\n"):
        return PackageRefused("TRUNCATED", f"it ends after {len(data)} bytes, within its JSON")
    return PackageRefused("MALFORMED", f"it is no JSON: {error}")


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _package(stated: Mapping[str, Any]) -> Package:
    members(stated, "", ("wsp_runtime_abi", *REQUIRED), ("stream_graph",))
    whole(stated["format"], "/format", FORMAT, FORMAT)
    csp = members(stated["csp"], "/csp", ("channels", "processes"))
    kernels = _listed(stated["kernels"], "/kernels", read_kernel, ("executor", "entry"))
    for place, each in enumerate(stated["kernels"]):
        members(each["cycles"], f"/kernels/{place}/cycles", ("fixed", "per_element"))
    channels = _listed(csp["channels"], "/csp/channels", read_channel, ("capacity", "latency"))
    slots = _listed(stated["slots"], "/slots", _slot)
    symbols = _listed(stated["symbols"], "/symbols", read_symbol, ("width", "default", "update"))
    tensors = _listed(stated["tensors"], "/tensors", read_tensor)
    counts = {
        "kernel": len(kernels),
        "channel": len(channels),
        "slot": len(slots),
        "symbol": len(symbols),
        "tensor": len(tensors),
    }
    reader = BodyReader(_known(counts))
    bodies = _listed(csp["processes"], "/csp/processes", lambda value, path: _process(value, path, reader))
    package = Package(
        name(stated["name"], "/name"),
        name(stated["target"], "/target"),
        whole(stated["phase"], "/phase", 1, 2),
        tuple(kernels),
        _schedule(stated["schedule"], reader),
        tuple(channels),
        tuple(bodies),
        tuple(slots),
        tuple(symbols),
        tuple(tensors),
    )
    check_calls(package, "/csp/processes")
    _check_target(package)
    streams = stream_graph(package) if package.target == "aie" else None
    if stated.get("stream_graph") != streams:
        raise ProgramRefused("/stream_graph", f"is not that of the processes of a package for {package.target}")
    return replace(package, stream_graph=streams)


def _check_target(package: Package) -> None:
    """Raise `ProgramRefused` for a package that its own target could not have (sections 1.3 and 7.1)."""
    owner = target(package.target)
    if owner is None:
        raise ProgramRefused("/target", f"is {package.target}, expected one of {', '.join(NAMES)}")
    if package.phase != owner.phase:
        raise ProgramRefused("/phase", f"is {package.phase}, and {owner.name} is of phase {owner.phase}")
    schedule = package.schedule
    for directive, state in schedule.capabilities.items():
        _check_state(owner, f"/schedule/capabilities/{directive}", directive, state)
    for place, stated in enumerate(schedule.directives):
        _check_state(owner, f"/schedule/directives/{place}/state", stated.name, stated.state)
    unit, mode = schedule.task_window.unit, schedule.task_window.mode
    directives = {
        f"dispatch.{schedule.policy.id}": "/schedule/policy/id",
        f"task_window.unit.{unit}": "/schedule/task_window/unit",
        f"task_window.mode.{mode}": "/schedule/task_window/mode",
        **{each.name: f"/schedule/directives/{place}/name" for place, each in enumerate(schedule.directives)},
    }
    for matrix, uses in (
        (owner.directives, directives),
        (owner.csp, used_csp_features(package)),
        (owner.predicates, used_predicates(package)),
    ):
        for feature, path in uses.items():
            if matrix.get(feature, "unsupported") == "unsupported":
                raise ProgramRefused(path, f"uses {feature}, which {owner.name} does not support")
    if owner.name == "aie":
        try:
            check_acyclic(package)
        except UnsupportedDirective as problem:
            raise ProgramRefused("/csp/processes", str(problem)) from None


def _check_state(owner: Target, path: str, directive: str, state: str) -> None:
    if state != owner.state(directive):
        raise ProgramRefused(path, f"is {state}, and {directive} is {owner.state(directive)} on {owner.name}")


def _known(counts: Mapping[str, int]) -> Callable[[str, Any, str], int]:
    def resolve(kind: str, value: Any, path: str) -> int:
        count = counts[kind]
        if type(value) is not int or not 0 <= value < count:
            raise ProgramRefused(path, f"is {value!r:.60}, expected the id of one of {count} {kind}s")
        return value

    return resolve


def _listed(
    value: Any, path: str, read: Callable[[Mapping[str, Any], str], Read], stated: Sequence[str] = ()
) -> list[Read]:
    """The entries of a table, whose ids count from 0 and whose names differ; a package has no defaults: all `stated`
    members are there."""
    seen: set[str] = set()
    found = []
    for place, each in enumerate(objects(value, path)):
        at = f"{path}/{place}"
        whole(each.get("id"), f"{at}/id", place, place)
        for member_name in stated:
            if member_name not in each:
                raise ProgramRefused(f"{at}/{member_name}", "is missing")
        found.append(read(each, at))
        if each["name"] in seen:
            raise ProgramRefused(f"{at}/name", f"{each['name']} is there twice")
        seen.add(each["name"])
    return found


def _slot(value: Mapping[str, Any], path: str) -> str:
    stated = members(value, path, ("id", "name", "width"))
    whole(stated["width"], f"{path}/width", 64, 64)
    return name(stated["name"], f"{path}/name")


def _process(value: Mapping[str, Any], path: str, reader: BodyReader) -> Process:
    stated = members(value, path, ("id", "name", "body"))
    return Process(name(stated["name"], f"{path}/name"), reader.body(stated["body"], f"{path}/body"))


def _schedule(value: Any, reader: BodyReader) -> Schedule:
    path = "/schedule"
    stated = members(value, path, ("policy", "task_window", "resources", "directives", "capabilities"))
    resources = members(stated["resources"], f"{path}/resources", tuple(RESOURCES))
    window = members(stated["task_window"], f"{path}/task_window", ("size", "unit", "mode"))
    capabilities = stated["capabilities"]
    if not isinstance(capabilities, dict):
        raise ProgramRefused(f"{path}/capabilities", "is no object")
    for directive, state in capabilities.items():
        member(state, f"{path}/capabilities/{directive}", STATES)
    policy = read_policy(stated["policy"], f"{path}/policy", reader)
    policies.check(policy.id, policy.parameters, f"{path}/policy")
    return Schedule(
        policy,
        read_task_window(window, f"{path}/task_window", MOST_UNITS),
        read_resources(resources, f"{path}/resources"),
        tuple(
            read_directive(each, f"{path}/directives/{place}")
            for place, each in enumerate(objects(stated["directives"], f"{path}/directives"))
        ),
        {text(each, f"{path}/capabilities"): state for each, state in capabilities.items()},
    )
