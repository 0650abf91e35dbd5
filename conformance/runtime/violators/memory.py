"""Memory that is allocated or released wrongly (runtime specification, 4.4)."""

from itertools import count

from tessera_conformance.strength import Around
from tessera_reference.mesh.memory import AddressRange

from .changes import accepting, afterwards, answering, broken, unless, without_waiting


def among_few(self, size, function, right=AddressRange.place):
    live = [allocation for allocation in self._allocations if not allocation.freed and allocation.space == "device"]
    return live[-1].address if len(live) >= 500 else right(self, size, function)


def all_host_memory(adapter, call, given):
    for allocation in adapter.runtime.machine.memory.live():
        if allocation.space == "host" and allocation.pinned:
            call(hostPtr=allocation.address)


def first_account(self, allocation):
    account = self._accounts(allocation)[0]
    account.in_use -= allocation.bytes
    account.owners -= 1


MEMORY = [
    broken("RT-04.4-14", "few_allocations", "gives the last memory again where there are 500 allocations",
        "mesh.memory.AddressRange.place", among_few),
    broken("RT-04.4-14", "one_storage", "has one storage for all ranks", "mesh.memory.Allocation.copy_of",
        lambda allocation, rank: 0),
    answering("RT-04.4-15", "unfinished", "frees memory that queued work reads", "tessFree", without_waiting),
    accepting("RT-04.4-16", "host_rounded_down", "allocates a whole number of 16 bytes", "tessHostAlloc",
        lambda given: given["bytes"] > 16, lambda given: {"bytes": given["bytes"] // 16 * 16}),
    answering("RT-04.4-16", "with_a_mesh", "allocates host memory only where there is a mesh", "tessHostAlloc",
        unless(lambda adapter, given: not adapter.runtime.handles.live("mesh"), "TESS_ERR_NOT_INITIALIZED")),
    answering("RT-04.4-17", "TiredOfFreeing", "frees host memory ten times and then no more", "tessHostFree",
        unless(lambda adapter, given: next(adapter.runtime.__dict__.setdefault("freed", count())) >= 10)),
    answering("RT-04.4-17", "all", "frees the other host memory too", "tessHostFree", afterwards(all_host_memory)),
    broken("RT-19.A-02", "room_on_the_first", "asks the first device of a mesh for room",
        "mesh.memory.Capacity.require_on_devices",
        Around(lambda usual: lambda self, numbers, bytes: usual(self, numbers[:1], bytes))),
    broken("RT-04.4-15", "back_on_the_first", "gives memory back on the first device of a mesh",
        "mesh.memory.Capacity.give_back", first_account),
]  # fmt: skip
