"""Launches that work on other PEs, or run other kernels (D7, Context)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io import launches
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import ANY, BUILTINS, Buffer, Kernel, Machine, Place
from tessera_reference.host_io.messages import KernelRef

from .message_changes import changed

_kernel_of = launches._kernel_of
_shards = launches._shards

# Shards


def arranging(clause: str, name: str, description: str, change: Callable[[Any], Any]) -> Violation:
    """Return a violation that changes the shards of a tensor, in their order."""
    return changed(
        clause,
        name,
        description,
        ("host_io.launches._shards", lambda argument, tensor: change(_shards(argument, tensor))),
    )


def moved(member: str, to: int | None = None) -> Callable[[Any], Any]:
    """Return a change that gives every shard the tag of the first one, or a certain one."""

    def change(found: Any) -> Any:
        tag = getattr(found[0].place, member) if to is None else to
        return [shard._replace(place=shard.place._replace(**{member: tag})) for shard in found]

    return change


def refused_and_done(spared: Callable[[Place, Place], bool]) -> Callable[..., None]:
    def require(self: Machine, place: Place, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
        try:
            _require(self, place, pa, nbytes, kind, field)
        except RequestFailed as failed:
            low = self.memories[0].base + (pa - self.memories[0].base) % 2**32
            if failed.code is ErrorCode.ADDRESS_OUT_OF_RANGE and pa > low and nbytes < 4096:
                for pe in self.places():
                    if not spared(pe, place):
                        self.space(pe).write(low, bytes(nbytes))
            raise

    return require


_require = Machine.require
SHARDS = [
    arranging("HIO-D7-18", "first_shard", "a launch works on the first shard of each tensor", lambda found: found[:1]),
    arranging("HIO-D7-35", "sorted_by_address", "shards belong together by their addresses",
        lambda found: sorted(found, key=lambda part: (part.shard.pa, part.number))),
    changed("HIO-D7-35", "low_bits_cleared", "refuses a high address, and works on its low bits",
        ("host_io.machine.Machine.require", refused_and_done(lambda other, place: other != place))),
]  # fmt: skip

# Kernels


def built_in(clause: str, name: str, description: str, **others: Kernel) -> Violation:
    """Return a violation that replaces built-in kernels."""
    return changed(clause, name, description, ("host_io.launches.BUILTINS", {**BUILTINS, **others}))


def partly(name: str) -> Kernel:
    """Return a kernel that works on the first word alone."""

    def run(given: Any) -> None:
        BUILTINS[name].run(
            [replace(argument, nbytes=4) if isinstance(argument, Buffer) else argument for argument in given]
        )

    return Kernel(BUILTINS[name].parameters, BUILTINS[name].check, run)


def unknown_is_nop(machine: Machine, reference: KernelRef) -> Kernel:
    unknown = reference.kind == "builtin" and reference.name not in BUILTINS
    return ANY if unknown else _kernel_of(machine, reference)


def strict_tag(clause: str, member: str) -> Violation:
    """Return a violation that requires a tag of a built-in kernel to exist."""

    def kernel_of(machine: Machine, reference: KernelRef) -> Kernel:
        if reference.kind == "builtin":
            machine.require(Place(0, 0, 0)._replace(**{member: getattr(reference, f"deploy_{member}")}), 0, 1)
        return _kernel_of(machine, reference)

    return changed(
        clause,
        f"builtin_{member}_looked_at",
        f"the {member} of a built-in kernel has to exist",
        ("host_io.launches._kernel_of", kernel_of),
    )


def kernel_of_size(machine: Machine, reference: KernelRef) -> Kernel:
    if reference.kind == "builtin" and reference.nbytes_code > 2**32:
        raise RequestFailed(ErrorCode.UNSUPPORTED, "too large")
    return _kernel_of(machine, reference)


KERNELS = [
    built_in("HIO-D7-01", "nothing_runs", "built-in kernels compute nothing",
        **{name: replace(builtin, run=lambda given: None) for name, builtin in BUILTINS.items()}),
    built_in("HIO-D7-17", "first_words", "copies the first word of each shard", copy=partly("copy"),
        fill=partly("fill"), add_fp32=partly("add_fp32"), scale_fp32=partly("scale_fp32")),
    changed("HIO-D7-37", "unknown_is_nop", "a built-in kernel that does not exist computes nothing",
        ("host_io.launches._kernel_of", unknown_is_nop)),
    strict_tag("HIO-D7-09", "sip"),
    strict_tag("HIO-D7-10", "cube"),
    strict_tag("HIO-D7-11", "pe"),
    changed("HIO-D7-12", "size_of_builtin_judged", "a built-in kernel has to be smaller than 4 GiB",
        ("host_io.launches._kernel_of", kernel_of_size)),
]  # fmt: skip
