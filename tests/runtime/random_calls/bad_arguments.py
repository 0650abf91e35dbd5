"""Illegal values for each kind of argument, and the status that a call must answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.runtime.launches import LaunchConfig

from .choices import Choose, pick
from .live_objects import World

__all__ = ["bad_handle", "bad_pointer", "bad_value"]

INVALID = frozenset({Status.TESS_ERR_INVALID_VALUE})
UNINITIALIZED = frozenset({Status.TESS_ERR_NOT_INITIALIZED})

WRONG_TYPES: Sequence[Any] = (None, "8", 1.5, True, b"8", [], {}, float("nan"), object())
NO_BYTES: Sequence[Any] = (None, 1.5, "text", object(), [1, 2], True)

VALUES: Mapping[str, Sequence[Any]] = {
    "int": (*WRONG_TYPES, 2**31, -(2**31) - 1, 10**400),
    "size": (*WRONG_TYPES, -1, 2**64, 10**400),
    "memory kind": (*WRONG_TYPES, 0, 2, -1),
    "copy kind": (*WRONG_TYPES, 3, -1, 2**32),
    "dtype": (*WRONG_TYPES, 0, 14, -1, 2**70),
    "operator": (*WRONG_TYPES, 3, -1),
    "axis": (None, "", "zz", "DP", 5, b"dp", [], 1.0),
    "rank": (*WRONG_TYPES, -1, 8, 2**40),
    "ids": (None, 5, 1.5, "01", b"\0\1", {0: 1}, object()),
    "axes": (None, 5, "dp", {"dp": 1}, (1, 1, 1, 1), MeshAxes(tp=2**31 - 1)),
    "config": (
        None,
        5,
        "x",
        {},
        *(LaunchConfig(each) for each in ((0, 1, 1), (1, 1), None, (1.0, 1, 1), (1, 1, 2**31), "abc", (1, True, 1))),
        *(LaunchConfig((1, 1, 1), each) for each in ((-1, 1, 1), None, (1, 1, 2**40), [])),
        *(LaunchConfig((1, 1, 1), shmemBytes=each) for each in (-1, 2**64, None, 0.0)),
        *(LaunchConfig((1, 1, 1), flags=each) for each in (16, 2**31, 2**32, -1, None, True, "1")),
    ),
    "argument bytes": (*NO_BYTES, 0, 7, 2**60, b""),
    "image": (*NO_BYTES, 0, 7, 2**60, b"", b"\x7fELF", bytes(4096)),
    "name": (None, "", "nope", 5, b"fill", "\0", [], 1.0, "fill "),
    "policy": (None, 5, "strict", {}, {"deterministic": 1}, []),
    "path": (None, 0, "", "/no/such/directory/trace.json", 5, "\0", "/", 1.5, [], object()),
    "faults": (
        None,
        "x",
        5,
        {},
        [None],
        [{}],
        ["kernel_trap"],
        [{"kind": "flood"}],
        [{"kind": []}],
        [{"kind": "kernel_trap", "nth": -1}],
        [{"kind": "kernel_trap", "kernel": 5}],
        [{"kind": "kernel_hang", "rank": "0"}],
        [{"kind": "kernel_slow", "nanoseconds": 2**64}],
        [{"kind": "link_down"}],
        [{"kind": "link_down", "ranks": [1]}],
        [{"kind": "link_down", "ranks": [0, -1]}],
        [{"kind": "out_of_memory", "colour": 1}],
    ),
    "descriptor": (None, 5, {}, "pairwise"),
    "module policy": (None, 5, {}, True),
    "collective": (None, "", "gather", 5, [], b"all_reduce"),
    "algorithm": ("star", "", 5, [], b"ring", True),
    "source": (None, "", "default", 5, []),
    "schedule": (None, "", "random", 5, [], {}),
    "data": (None, 5, 1.5, "text", object(), [1]),
    "memory": (None, 5, 1.5, "text", object(), [1]),
}
"""By kind of argument. All of them are TESS_ERR_INVALID_VALUE."""


def bad_value(choose: Choose, kind: str) -> Any:
    """A value that no argument of a kind may have."""
    return pick(choose, VALUES[kind])


def bad_handle(choose: Choose, kind: str, world: World) -> tuple[Any, frozenset[Status]]:
    """A handle that is none of a kind, and what it is answered with (AMB-RT-38)."""
    live = [handle for other, held in world.kinds().items() if other != kind for handle in held]
    same = list(world.kinds()[kind])
    numbers = [0, -1, 10**6, 2**70, *live, *world.dead]
    others = [
        None,
        True,
        "1",
        b"1",
        [],
        {},
        float("nan"),
        *(float(each) for each in same),
        *(str(each) for each in same),
    ]
    value: Any = pick(choose, numbers + others)
    if kind not in ("context", "mesh"):
        return value, INVALID
    if type(value) is int and (value in live or world.dead.get(value, kind) != kind):
        return value, INVALID
    return value, UNINITIALIZED


def bad_pointer(choose: Choose, world: World, device: bool) -> Any:
    """What is no pointer to any byte of the space that is wanted."""
    other = [each.address for each in world.blocks if each.of_device != device and each.size]
    freed = [each.address for each in world.freed if each.size]
    ends = [each.address + each.size + 1 for each in world.blocks]
    before = [each.address - 1 for each in world.blocks]
    return pick(
        choose, [None, 0, -1, 1, 2**63, 2**64, 10**400, "p", 1.5, True, b"", [], *other, *freed, *ends, *before]
    )
