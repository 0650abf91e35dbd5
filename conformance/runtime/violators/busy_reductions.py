"""Launched reductions whose order depends on their length, on other streams, or on a later policy (spec 4.7, 6)."""

from tessera_conformance.strength import Around, replaced
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.numerics.array import Array

from .changes import BuildsOnce


def extents_of(executable, written=True):
    """Return the rank and the longest extent of each tensor of a kernel, or of each that it reads."""
    shapes = [each.shape for each in executable.entry.parameters if each.shape and (written or not each.written)]
    return [(len(shape), max((extent for extent in shape if isinstance(extent, int)), default=0)) for shape in shapes]


def reduces(executable):
    """True if a kernel reads an operand of two dimensions with more than 32 terms."""
    return any(rank == 2 and terms > 32 for rank, terms in extents_of(executable, written=False))


def backwards(executable, arguments):
    """Return the operands with their terms from the last to the first."""
    turned = dict(arguments)
    for parameter in executable.entry.parameters:
        array = arguments[parameter.name]
        if parameter.type == "ptr" and not parameter.written and array.rank == 2:
            values = array.values[:, ::-1] if array.shape[1] > array.shape[0] else array.values[::-1]
            turned[parameter.name] = Array(array.dtype, values)
    return turned


def reordered(clause, name, description, when, *more):
    """Return a violation whose launches add from the last term to the first under a condition."""
    executed = Around(lambda usual: lambda self, executable, rank, arguments: usual(self, executable, rank,
        backwards(executable, arguments) if reduces(executable) and when(self, executable) else arguments))  # fmt: skip
    return replaced(
        clause, description, BuildsOnce, ("runtime.launches.LaunchWork._executed", executed), *more, name=name
    )


def context_of(work):
    return work.stream.mesh.context


LAST = []
"""The policy that was set last, on whatever context."""


def remembering(self, name, value):
    object.__setattr__(self, name, value)
    if name == "policy":
        LAST[:] = [value or NumericsPolicy()]


VIOLATIONS = [
    reordered("RT-06-04", "others_queued", "adds in another order while another stream has work",
        lambda work, executable: any(
            stream.queued for stream in work.stream.mesh.streams.values() if stream is not work.stream)),
    reordered("RT-06-04", "very_long", "adds more than 512 terms in another order",
        lambda work, executable: any(terms > 512 for _, terms in extents_of(executable))),
    reordered("RT-04.7-10", "fast_math_at_execution", "adds as fast math allows if it does when a launch runs",
        lambda work, executable: context_of(work).policy.allowFastMath),
    reordered("RT-06-09", "flag_lost_to_a_later_policy", "lets a later policy take back the flag of a launch",
        lambda work, executable: work.flags & 1 and not context_of(work).policy.deterministic
        and context_of(work).policy.allowFastMath and not work.policy.allowFastMath),
    reordered("RT-04.7-07", "pointer_kept",
        "keeps the pointer to a policy, behind which that of another context lies later",
        lambda work, executable: not LAST[0].deterministic, ("runtime.contexts.Context.__setattr__", remembering)),
]  # fmt: skip
