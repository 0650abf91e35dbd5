"""Launches that work on other PEs, or run other kernels (D7, Context)."""

from dataclasses import replace

from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import ANY, BUILTINS, Buffer, Kernel, Place

from ....ir.violators.changes import breaks, changed, wrapped
from .message_changes import REQUIRE

KERNEL_OF = "host_io.launches._kernel_of"


def arranging(clause, name, description, change):
    place = "host_io.launches._shards"
    return wrapped(clause, name, description, place, lambda usual, *tensor: change(usual(*tensor)))


@breaks("HIO-D7-35", "refuses a high address, and works on its low bits", REQUIRE)
def low_bits_cleared(usual, self, place, pa, nbytes, *others, **named):
    try:
        usual(self, place, pa, nbytes, *others, **named)
    except RequestFailed as failed:
        low = self.memories[0].base + (pa - self.memories[0].base) % 2**32
        if failed.code is ErrorCode.ADDRESS_OUT_OF_RANGE and pa > low and nbytes < 4096:
            for pe in self.places():
                if pe == place:
                    self.space(pe).write(low, bytes(nbytes))
        raise


def built_in(clause, name, description, **others):
    return changed(clause, name, description, ("host_io.launches.BUILTINS", {**BUILTINS, **others}))


def partly(name):
    """Return a kernel that works on the first word alone."""

    def run(given):
        first = [replace(argument, nbytes=4) if isinstance(argument, Buffer) else argument for argument in given]
        BUILTINS[name].run(first)

    return Kernel(BUILTINS[name].parameters, BUILTINS[name].check, run)


@breaks("HIO-D7-37", "a built-in kernel that does not exist computes nothing", KERNEL_OF)
def unknown_is_nop(usual, machine, reference):
    unknown = reference.kind == "builtin" and reference.name not in BUILTINS
    return ANY if unknown else usual(machine, reference)


def strict_tag(clause, member):
    """Return a violation that requires a tag of a built-in kernel to exist."""

    def kernel_of(usual, machine, reference):
        if reference.kind == "builtin":
            machine.require(Place(0, 0, 0)._replace(**{member: getattr(reference, f"deploy_{member}")}), 0, 1)
        return usual(machine, reference)

    description = f"the {member} of a built-in kernel has to exist"
    return wrapped(clause, f"builtin_{member}_looked_at", description, KERNEL_OF, kernel_of)


@breaks("HIO-D7-12", "a built-in kernel has to be smaller than 4 GiB", KERNEL_OF)
def size_of_builtin_judged(usual, machine, reference):
    if reference.kind == "builtin" and reference.nbytes_code > 2**32:
        raise RequestFailed(ErrorCode.UNSUPPORTED, "too large")
    return usual(machine, reference)


VIOLATORS = [
    arranging("HIO-D7-18", "first_shard", "a launch works on the first shard of each tensor", lambda found: found[:1]),
    arranging("HIO-D7-18", "first_256", "a launch works on 256 shards at most", lambda found: found[:256]),
    arranging("HIO-D7-35", "sorted_by_address", "shards belong together by their addresses",
        lambda found: sorted(found, key=lambda part: (part.shard.pa, part.number))),
    built_in("HIO-D7-01", "nothing_runs", "built-in kernels compute nothing",
        **{name: replace(builtin, run=lambda given: None) for name, builtin in BUILTINS.items()}),
    built_in("HIO-D7-17", "first_words", "copies the first word of each shard", copy=partly("copy"),
        fill=partly("fill"), add_fp32=partly("add_fp32"), scale_fp32=partly("scale_fp32")),
    strict_tag("HIO-D7-09", "sip"),
    strict_tag("HIO-D7-10", "cube"),
    strict_tag("HIO-D7-11", "pe"),
]  # fmt: skip
