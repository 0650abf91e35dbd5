"""Launched reductions whose order depends on their length, on other streams, or on a later policy (spec 4.7, 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.compilation.executables import Executable
from tessera_reference.numerics.array import Array
from tessera_reference.runtime.contexts import Context
from tessera_reference.runtime.launches import LaunchWork

from .changes import BuildsOnce

EXECUTED = LaunchWork._executed
Arguments = Mapping[str, Array]


def reduces(executable: Executable) -> bool:
    """True if a kernel reads an operand of two dimensions with more than 32 terms."""
    shapes = [parameter.shape for parameter in executable.entry.parameters if parameter.shape and not parameter.written]
    return any(len(shape) == 2 and terms(shape) > 32 for shape in shapes)


def terms(shape: tuple[int | str, ...]) -> int:
    """Return the longest extent of an operand."""
    return max((extent for extent in shape if isinstance(extent, int)), default=0)


def backwards(executable: Executable, arguments: Arguments) -> dict[str, Array]:
    """Return the operands with their terms from the last to the first."""
    turned = dict(arguments)
    for parameter in executable.entry.parameters:
        array = arguments[parameter.name]
        if parameter.type == "ptr" and not parameter.written and array.rank == 2:
            values = array.values[:, ::-1] if array.shape[1] > array.shape[0] else array.values[::-1]
            turned[parameter.name] = Array(array.dtype, values)
    return turned


def reordered(clause: str, name: str, description: str, when: Callable[[LaunchWork, Executable], bool]) -> Violation:
    """Return a violation whose launches add from the last term to the first under a condition."""

    def executed(self: LaunchWork, executable: Executable, rank: int, arguments: Arguments) -> Mapping[str, Array]:
        if reduces(executable) and when(self, executable):
            arguments = backwards(executable, arguments)
        return EXECUTED(self, executable, rank, arguments)

    return replaced(clause, description, BuildsOnce, ("runtime.launches.LaunchWork._executed", executed), name=name)


def others_queued(work: LaunchWork, executable: Executable) -> bool:
    return any(stream.queued for stream in work.stream.mesh.streams.values() if stream is not work.stream)


def is_long(executable: Executable, least: int) -> bool:
    """True if an operand has more terms than that."""
    return any(parameter.shape and terms(parameter.shape) > least for parameter in executable.entry.parameters)


def context_of(work: LaunchWork) -> Context:
    """Return the context of work."""
    return work.stream.mesh.context


LAST: list[NumericsPolicy] = []
"""The policy that was set last, on whatever context."""


def remembering(self: Context, name: str, value: Any) -> None:
    object.__setattr__(self, name, value)
    if name == "policy":
        LAST[:] = [value or NumericsPolicy()]


def by_the_last(self: LaunchWork, executable: Executable, rank: int, arguments: Arguments) -> Mapping[str, Array]:
    if reduces(executable) and not LAST[0].deterministic:
        arguments = backwards(executable, arguments)
    return EXECUTED(self, executable, rank, arguments)


VIOLATIONS = [
    reordered("RT-06-04", "others_queued", "adds in another order while another stream has work", others_queued),
    reordered("RT-06-04", "very_long", "adds more than 512 terms in another order",
              lambda work, executable: is_long(executable, 512)),
    reordered("RT-04.7-10", "fast_math_at_execution", "adds as fast math allows if it does when a launch runs",
              lambda work, executable: bool(context_of(work).policy.allowFastMath)),
    reordered("RT-06-09", "flag_lost_to_a_later_policy", "lets a later policy take back the flag of a launch",
              lambda work, executable: bool(work.flags & 1) and not context_of(work).policy.deterministic
              and bool(context_of(work).policy.allowFastMath) and not work.policy.allowFastMath),
    replaced("RT-04.7-07", "keeps the pointer to a policy, behind which that of another context lies later",
        BuildsOnce, ("runtime.contexts.Context.__setattr__", remembering),
        ("runtime.launches.LaunchWork._executed", by_the_last), name="pointer_kept"),
]  # fmt: skip
