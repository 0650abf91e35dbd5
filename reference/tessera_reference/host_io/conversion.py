"""From a frame's object to a typed message and back (D3 to D7; AMB-HIO-18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeAlias

from .errors import ErrorCode, RequestFailed
from .messages import (
    KernelLaunch,
    KernelRef,
    MemoryRead,
    MemoryWrite,
    Pattern,
    ScalarArgument,
    TensorArgument,
    TensorPAMap,
    TensorShard,
)
from .schema_checks import require_form
from .validator import require_agreement

__all__ = ["Request", "request_of", "value_of"]

Request: TypeAlias = MemoryWrite | MemoryRead | KernelLaunch
MESSAGES: Mapping[str, type[Request]] = {
    "MemoryWrite": MemoryWrite,
    "MemoryRead": MemoryRead,
    "KernelLaunch": KernelLaunch,
}
DEFINITIONS = {"MemoryWrite": "memory_write", "MemoryRead": "memory_read", "KernelLaunch": "kernel_launch"}
"""The part of the schema, by message."""


def request_of(value: Mapping[str, Any], *, fast: bool = True) -> Request:
    """The request of an object that has the form of one and whose members agree.

    Raises `RequestFailed` with INVALID_MESSAGE: the path of the member, what is wrong, the clause.
    """
    kind = value.get("msg_type")
    if not isinstance(kind, str) or kind not in MESSAGES:
        known = ", ".join(MESSAGES)
        given = "is missing" if "msg_type" not in value else f"is {kind!r:.100}, expected one of {known}"
        raise RequestFailed(ErrorCode.INVALID_MESSAGE, given, "msg_type", "HIO-D2-01")
    require_form(DEFINITIONS[kind], value, fast=fast)
    members = {name: member for name, member in value.items() if name != "msg_type" and member is not None}
    if kind == "MemoryWrite" and "pattern" in members:
        members["pattern"] = Pattern(**members["pattern"])
    if kind == "KernelLaunch":
        members["kernel_ref"] = KernelRef(**members["kernel_ref"])
        members["args"] = tuple(map(_argument, members["args"]))
    request = MESSAGES[kind](**members)
    require_agreement(request)
    return request


def _argument(value: Mapping[str, Any]) -> TensorArgument | ScalarArgument:
    if value["arg_kind"] == "scalar":
        return ScalarArgument(value["dtype"], value["value"])
    shards = tuple(TensorShard(**each) for each in value["tensor_pa_map"]["shards"])
    return TensorArgument(TensorPAMap(shards))


def value_of(message: Any) -> dict[str, Any]:
    """The object of a message, for a frame; optional members that have their default are left out."""
    kind = {name: getattr(message, name) for name in ("msg_type", "arg_kind") if hasattr(message, name)}
    members = {each.name: getattr(message, each.name) for each in fields(message)}
    usual = {each.name: each.default for each in fields(message)}
    kept = {name: member for name, member in members.items() if usual[name] is MISSING or member != usual[name]}
    return kind | {name: _plain(member) for name, member in kept.items()}


def _plain(member: Any) -> Any:
    if is_dataclass(member):
        return value_of(member)
    return [_plain(each) for each in member] if isinstance(member, tuple) else member
