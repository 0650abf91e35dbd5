"""Flags that are refused, ignored or kept, launches that are not deterministic, a failing sample program.

Runtime specification, 4.7, 6 and 18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin import KernelEntry
from tessera_reference.abi.status import LaunchFlag
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.matmul import matmul
from tessera_reference.runtime import calls
from tessera_reference.runtime.contexts import Context
from tessera_reference.runtime.launches import LaunchWork

from .changes import INVALID, UNSUPPORTED, BuildsOnce, Call, Given, answering, refusing
from .order import broken

LAUNCH = "tessLaunch"


# Flags


def flag_of(given: Given, flag: LaunchFlag) -> bool:
    """True if a launch has a flag."""
    return bool(given["cfg"]["flags"] & flag)


def lowest(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    flags = given["cfg"]["flags"]
    return call(
        **(given | {"cfg": given["cfg"] | {"flags": 1 << flags.bit_length() >> 1 if 0 < flags < 16 else flags}})
    )


def many(given: Given) -> bool:
    """True if there are several flags."""
    return given["cfg"]["flags"].bit_count() > 1


FLAGS = [
    *(
        refusing(
            clause,
            f"no_{flag.name.lower()}",
            f"takes {flag.name} for an invalid value",
            LAUNCH,
            lambda given, flag=flag: flag_of(given, flag),
            INVALID,
        )
        for clause, flag in (
            ("RT-06-16", LaunchFlag.TESS_LAUNCH_CAPTURE),
            ("RT-06-17", LaunchFlag.TESS_LAUNCH_PERSISTENT),
            ("RT-06-18", LaunchFlag.TESS_LAUNCH_LOW_LATENCY),
        )
    ),
    refusing("RT-06-19", "no_combination", "supports no combination", LAUNCH, many, UNSUPPORTED),
    answering("RT-06-19", "last_flag", "heeds one flag of several", LAUNCH, lowest),
]


# Determinism


def governing(change: Callable[..., Any]) -> tuple[Any, str, Any]:
    """Return a substitution in which another policy governs launches."""
    right = Context.governing

    def policy(self: Context, module: Any = None, deterministic_launch: bool = False) -> Any:
        return change(right, self, module, deterministic_launch)

    return ("runtime.contexts.Context.governing", policy)


def sticking(right: Any, self: Context, module: Any, flag: bool) -> Any:
    policy = right(self, module, flag)
    if flag:
        self.policy = policy
    return policy


NUMBERS = count()


def varying(bound: Callable[[LaunchWork], bool]) -> tuple[Any, str, Any]:
    """Return a substitution whose numbers differ by a bit between launches, unless a launch must be deterministic."""
    right = LaunchWork._executed

    def executed(self: LaunchWork, *arguments: Any) -> Mapping[str, Array]:
        written: Mapping[str, Array] = right(self, *arguments)
        if bound(self) or next(NUMBERS) % 2:
            return written
        return {name: nudged(array) for name, array in written.items()}

    return ("runtime.launches.LaunchWork._executed", executed)


def nudged(array: Array) -> Array:
    """Return an array with the last bit of a float first element flipped."""
    data = bytes(array.to_bits())
    if array.dtype.kind != "float" or not data:
        return array
    return Array.from_bits(array.dtype, array.shape, bytes([data[0] ^ 1]) + data[1:])


def varies(clause: str, name: str, description: str, bound: Callable[[LaunchWork], bool]) -> Violation:
    """Return a violation in which launches without that obligation have other bits every time."""
    return replaced(clause, description, BuildsOnce, varying(bound), name=name)


def products_backwards(
    self: LaunchWork, executable: Any, rank: int, arguments: Mapping[str, Array], right: Any = LaunchWork._executed
) -> Mapping[str, Array]:
    written: dict[str, Array] = dict(right(self, executable, rank, arguments))
    given = [argument for name, argument in arguments.items() if name not in written]
    shapes = [array.shape for array in (*given, *written.values())]
    if len(given) == 2 and shapes[-1:] == [(*shapes[0][:-1], shapes[1][-1])] and len(shapes[0]) == 2:
        a, b = given
        reversed_a, reversed_b = Array(a.dtype, a.values[:, ::-1]), Array(b.dtype, b.values[::-1])
        written = dict.fromkeys(written, matmul(reversed_a, reversed_b))
    return written


DETERMINISM = [
    broken("RT-06-04", "products_backwards", "adds the terms of a launched product from the last to the first",
        LaunchWork, "_executed", products_backwards),
    replaced("RT-06-09", "keeps to the flag afterwards", BuildsOnce, governing(sticking), name="sticking"),
    varies("RT-04.7-10", "bound_by_flag", "is deterministic under the flag only",
        lambda work: bool(work.flags & LaunchFlag.TESS_LAUNCH_DETERMINISTIC)),
    varies("RT-06-04", "never_bound", "has other bits on every run", lambda work: False),
    varies("RT-03-01", "bound_when_stable", "is deterministic where reductions are stable only",
        lambda work: bool(work.stream.mesh.context.policy and work.stream.mesh.context.policy.stableReductions)),
]  # fmt: skip


# The sample


def extents_backwards(entry: KernelEntry, scalars: Mapping[str, Array], right: Any = calls.extents_of) -> Any:
    found = right(entry, scalars)
    return dict(zip(found, reversed(list(found.values())), strict=True)) if len(found) > 1 else found


SAMPLE = [
    broken("RT-18-01", "extents_backwards", "takes extents in the opposite order", calls, "extents_of",
        extents_backwards),
]  # fmt: skip
