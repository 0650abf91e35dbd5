"""Sizes beyond any machine's memory, and releases of unallocated memory (runtime specification, 4.4 and 19.A)."""

from tessera_conformance.adapter import Refusal

from .changes import INVALID, UNSUPPORTED, accepting, answering, unless

ROUNDED_TO = 64


def rounded(given):
    """Return the size rounded up in 64 bits, where the largest overflow to 0, and 0 becomes the least size."""
    return {"bytes": (given["bytes"] + ROUNDED_TO - 1) // ROUNDED_TO * ROUNDED_TO % (1 << 64) or ROUNDED_TO}


def always(adapter, call, given):
    """Release known memory, and report the same success for unknown memory."""
    try:
        return call(**given)
    except Refusal:
        if given.get("devPtr", given.get("hostPtr")) and given.get("mesh", 1):
            return {}
        raise


def whole(name):
    """Return a call that releases the allocation that contains an address."""

    def answer(adapter, call, given):
        for allocation in adapter.runtime.machine.memory.live():
            if allocation.address <= given[name] < allocation.address + allocation.bytes:
                return call(**(given | {name: allocation.address}))
        return call(**given)

    return answer


def of_any_mesh(adapter, call, given):
    """Release memory of another mesh, and still refuse."""
    for allocation in adapter.runtime.machine.memory.live():
        if allocation.address == given["devPtr"] and allocation.owner not in (0, given["mesh"]):
            call(**(given | {"mesh": allocation.owner}))
            raise Refusal(INVALID, "call", "memory of another mesh")
    return call(**given)


def of_another_mesh(adapter, given):
    """True if memory belongs to another mesh."""
    owners = {allocation.address: allocation.owner for allocation in adapter.runtime.machine.memory.live()}
    return owners.get(given["devPtr"], 0) not in (0, given["mesh"])


VIOLATORS = [
    *(accepting("RT-19.A-02", name, "gives 64 bytes for SIZE_MAX", function,
        lambda given: given["bytes"] > (1 << 64) - ROUNDED_TO, rounded)
        for name, function in (("rounding_overflows", "tessMalloc"), ("host_rounding_overflows", "tessHostAlloc"))),
    accepting("RT-07-04", "signed_sizes", "takes sizes for signed", "tessMalloc", lambda given: True,
        lambda given: {"bytes": ROUNDED_TO if given["bytes"] >= 1 << 63 else given["bytes"]}),
    answering("RT-04.4-15", "frees_for_any_mesh", "frees what it refuses to free", "tessFree", of_any_mesh),
    answering("RT-19.A-01", "cannot_free", "cannot free memory of another mesh", "tessFree",
        unless(of_another_mesh, UNSUPPORTED)),
    answering("RT-07-02", "frees_anything", "reports that it has freed what it never gave", "tessFree", always),
    answering("RT-19.A-01", "frees_by_any_address", "frees by any address within", "tessFree", whole("devPtr")),
    answering("RT-19.A-01", "frees_host_by_any_address", "frees by any address within", "tessHostFree",
        whole("hostPtr")),
]  # fmt: skip
