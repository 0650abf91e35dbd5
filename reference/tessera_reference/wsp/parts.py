"""The parts of a program that read the same in a program and in a package: channels, symbols, tensors, the schedule.

Every function raises `ProgramRefused`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..numerics.failure import shown
from .capability_states import STATES
from .errors import ProgramRefused
from .json_form import BodyReader, member, members, name, whole
from .kernels import DTYPES
from .package import RESOURCES, Channel, Directive, Policy, Symbol, TaskWindow, Tensor

__all__ = [
    "MOST_UNITS",
    "read_channel",
    "read_directive",
    "read_policy",
    "read_resources",
    "read_symbol",
    "read_task_window",
    "read_tensor",
    "text",
]

MOST = (1 << 32) - 1
"""The largest capacity, latency and resource."""
MOST_ELEMENTS = 1 << 24
MOST_UNITS = ("tasks",)
HEX = re.compile(r"(?:[0-9a-f]{2})*")


def text(value: Any, path: str) -> str:
    """A text that JSON can carry as UTF-8, of at most 1000 characters."""
    if not isinstance(value, str) or len(value) > 1000 or not value.isprintable():
        raise ProgramRefused(path, f"is {shown(value)}, expected a text of printable characters")
    return value


def read_channel(value: Mapping[str, Any], path: str) -> Channel:
    """A channel; capacity 1 and latency 0 where left out (WSP-02.2-06, WSP-02.2-08)."""
    stated = members(value, path, ("name",), ("id", "capacity", "latency"))
    return Channel(
        name(stated["name"], f"{path}/name"),
        whole(stated.get("capacity", 1), f"{path}/capacity", 0, MOST),
        whole(stated.get("latency", 0), f"{path}/latency", 0, MOST),
    )


def read_symbol(value: Mapping[str, Any], path: str) -> Symbol:
    """A symbol, of 64 bits and 0 where left out."""
    stated = members(value, path, ("name",), ("id", "width", "default", "update"))
    width = whole(stated.get("width", 64), f"{path}/width", 1, 64)
    member(stated.get("update", "between-runs"), f"{path}/update", ("between-runs",))
    default = whole(stated.get("default", 0), f"{path}/default", 0, (1 << width) - 1)
    return Symbol(name(stated["name"], f"{path}/name"), width, default)


def read_tensor(value: Mapping[str, Any], path: str) -> Tensor:
    """A tensor, of zeros where nothing is said."""
    stated = members(value, path, ("name", "dtype", "count"), ("id", "initial"))
    tensor = Tensor(
        name(stated["name"], f"{path}/name"),
        member(stated["dtype"], f"{path}/dtype", tuple(DTYPES)),
        whole(stated["count"], f"{path}/count", 1, MOST_ELEMENTS),
    )
    if "initial" not in stated:
        return tensor
    given = stated["initial"]
    if not isinstance(given, str) or not HEX.fullmatch(given) or len(given) != 2 * tensor.nbytes:
        raise ProgramRefused(f"{path}/initial", f"is no text of {tensor.nbytes} bytes in lower-case hexadecimal digits")
    initial = bytes.fromhex(given)
    if tensor.dtype == "bool" and initial.strip(b"\0\1"):
        raise ProgramRefused(f"{path}/initial", "has a byte that is no bool, expected 00 or 01")
    return Tensor(tensor.name, tensor.dtype, tensor.count, initial)


def read_policy(value: Any, path: str, reader: BodyReader) -> Policy:
    """A dispatch policy; a parameter is a number or an expression."""
    stated = members(value, path, ("id", "parameters"))
    parameters = stated["parameters"]
    if not isinstance(parameters, dict):
        raise ProgramRefused(f"{path}/parameters", "is no object")
    return Policy(
        name(stated["id"], f"{path}/id"),
        {
            name(called, f"{path}/parameters"): reader.expression(each, f"{path}/parameters/{called}")
            if isinstance(each, dict)
            else whole(each, f"{path}/parameters/{called}", 0, MOST)
            for called, each in parameters.items()
        },
    )


def read_task_window(value: Any, path: str, units: tuple[str, ...], modes: tuple[str, ...] = ("stall",)) -> TaskWindow:
    """The window: at least one slot (AMB-WSP-25)."""
    stated = members(value, path, ("size",), ("unit", "mode"))
    return TaskWindow(
        whole(stated["size"], f"{path}/size", 1, MOST),
        member(stated.get("unit", "tasks"), f"{path}/unit", units),
        member(stated.get("mode", "stall"), f"{path}/mode", modes),
    )


def read_resources(value: Any, path: str) -> Mapping[str, int]:
    """The sizes of the resources beside the ring; the default of each that is left out."""
    stated = members(value, path, (), tuple(RESOURCES))
    return {each: whole(stated.get(each, size), f"{path}/{each}", 1, MOST) for each, size in RESOURCES.items()}


def read_directive(value: Mapping[str, Any], path: str) -> Directive:
    """A further directive of a package, with its state."""
    stated = members(value, path, ("name", "value", "state"))
    return Directive(
        name(stated["name"], f"{path}/name"),
        text(stated["value"], f"{path}/value"),
        member(stated["state"], f"{path}/state", STATES),
    )
