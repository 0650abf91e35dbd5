"""Reading a package: what is unknown, truncated, altered, incomplete or without meaning is refused (section 7.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from ..ir.documents import read_json
from .errors import STATES, PackageRefused, ProgramRefused, UnsupportedDirective
from .json_form import BodyReader, member, members, name, objects, record, whole
from .package import (
    ABI,
    FORMAT,
    MOST_UNITS,
    RESOURCES,
    Package,
    Schedule,
    Tables,
    check_acyclic,
    content_hash,
    read_channel,
    read_directive,
    read_policy,
    read_resources,
    read_tables,
    read_task_window,
    stream_graph,
    text,
    uses,
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
STATED = {"kernel": ("executor", "entry"), "channel": ("capacity", "latency"), "symbol": ("width", "default", "update")}
"""The members of an entry that a program may leave out."""


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
    members(stated["csp"], "/csp", ("channels", "processes"))
    package = read_tables(stated, _Numbered(), read_channel, _slot, _schedule)
    _check_target(package)
    streams = stream_graph(package) if package.target == "aie" else None
    if stated.get("stream_graph") != streams:
        raise ProgramRefused("/stream_graph", f"is not that of the processes of a package for {package.target}")
    return replace(package, stream_graph=streams)


class _Numbered(Tables):
    """Tables whose ids count from 0; a package has no defaults, so that all of their members are there."""

    def entry(self, kind: str, place: int, stated: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """The members of an entry without its id."""
        whole(stated.get("id"), f"{path}/id", place, place)
        for field in STATED.get(kind, ()):
            if field not in stated:
                raise ProgramRefused(f"{path}/{field}", "is missing")
        if kind == "kernel" and "cycles" in stated:
            members(stated["cycles"], f"{path}/cycles", ("fixed", "per_element"))
        return {field: each for field, each in stated.items() if field != "id"}

    def resolve(self, kind: str, value: Any, path: str) -> int:
        """An id as it stands."""
        count = len(self.ids[kind])
        if type(value) is not int or not 0 <= value < count:
            raise ProgramRefused(path, f"is {value!r:.60}, expected the id of one of {count} {kind}s")
        return value


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
    for table, feature, path in uses(package):
        if owner.state_of(table, feature) == "unsupported":
            raise ProgramRefused(path, f"uses {feature}, which {owner.name} does not support")
    if owner.name == "aie":
        try:
            check_acyclic(package)
        except UnsupportedDirective as problem:
            raise ProgramRefused("/csp/processes", str(problem)) from None


def _check_state(owner: Target, path: str, directive: str, state: str) -> None:
    if state != owner.state(directive):
        raise ProgramRefused(path, f"is {state}, and {directive} is {owner.state(directive)} on {owner.name}")


def _slot(value: Mapping[str, Any], path: str) -> str:
    return str(record(value, path, {"name": name, "width": partial(whole, least=64, most=64)})["name"])


def _schedule(value: Any, reader: BodyReader) -> Schedule:
    path = "/schedule"
    stated = members(value, path, ("policy", "task_window", "resources", "directives", "capabilities"))
    members(stated["resources"], f"{path}/resources", tuple(RESOURCES))
    members(stated["task_window"], f"{path}/task_window", ("size", "unit", "mode"))
    capabilities = stated["capabilities"]
    if not isinstance(capabilities, dict):
        raise ProgramRefused(f"{path}/capabilities", "is no object")
    for directive, state in capabilities.items():
        member(state, f"{path}/capabilities/{directive}", STATES)
    return Schedule(
        read_policy(stated["policy"], f"{path}/policy", reader),
        read_task_window(stated["task_window"], f"{path}/task_window", MOST_UNITS),
        read_resources(stated["resources"], f"{path}/resources"),
        tuple(
            read_directive(each, f"{path}/directives/{place}")
            for place, each in enumerate(objects(stated["directives"], f"{path}/directives"))
        ),
        {text(each, f"{path}/capabilities"): state for each, state in capabilities.items()},
    )
