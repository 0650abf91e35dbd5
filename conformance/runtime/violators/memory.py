"""Memory that is allocated or released wrongly (runtime specification, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import replaced, violates
from tessera_reference.mesh.memory import AddressRange, Allocation, Capacity

from .changes import INVALID, BuildsOnce, Call, Given, accepting, answering, without_waiting


def whole_pages(given: Given) -> dict[str, Any]:
    """Round the size down to a multiple of 16."""
    return {"bytes": given["bytes"] // 16 * 16}


def among_few(self: AddressRange, size: int, function: str) -> int:
    live = [allocation for allocation in self._allocations if not allocation.freed and allocation.space == "device"]
    return live[-1].address if len(live) >= 500 else PLACE(self, size, function)


PLACE = AddressRange.place
ALLOCATED = [
    replaced("RT-04.4-14", "gives the last memory again where there are 500 allocations", BuildsOnce,
        ("mesh.memory.AddressRange.place", among_few), name="few_allocations"),
    replaced("RT-04.4-14", "has one storage for all ranks", BuildsOnce,
        ("mesh.memory.Allocation.copy_of", lambda allocation, rank: 0), name="one_storage"),
]  # fmt: skip


def leaking(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    with mock.patch.object(Capacity, "give_back", return_value=None):
        return call(**given)


FREED = [
    answering("RT-04.4-15", "unfinished", "frees memory that queued work reads", "tessFree", without_waiting),
]


def with_a_mesh(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    if not adapter.runtime.handles.live("mesh"):
        raise Refusal("TESS_ERR_NOT_INITIALIZED", "call", "tessHostAlloc: no mesh")
    return call(**given)


HOST = [
    accepting("RT-04.4-16", "host_rounded_down", "allocates a whole number of 16 bytes", "tessHostAlloc",
        lambda given: given["bytes"] > 16, whole_pages),
    answering("RT-04.4-16", "with_a_mesh", "allocates host memory only where there is a mesh", "tessHostAlloc",
        with_a_mesh),
]  # fmt: skip


def all_host_memory(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    for allocation in [
        candidate
        for candidate in adapter.runtime.machine.memory.live()
        if candidate.space == "host" and candidate.pinned
    ]:
        call(hostPtr=allocation.address)
    return answer


@violates("RT-04.4-17", "frees host memory ten times and then no more")
class TiredOfFreeing(BuildsOnce):
    freed = 0

    def runtime_tessHostFree(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        self.freed += 1
        if self.freed > 10:
            raise Refusal(INVALID, "call", "tessHostFree: enough")
        return super().runtime_tessHostFree(**arguments)

    def session_reset(self) -> dict[str, Any]:
        self.freed = 0
        return super().session_reset()


HOST_FREED = [
    answering("RT-04.4-17", "all", "frees the other host memory too", "tessHostFree", all_host_memory),
]


# Several devices


def first_device(self: Capacity, numbers: Sequence[int], bytes: int) -> None:
    ROOM(self, numbers[:1], bytes)


def first_account(self: Capacity, allocation: Allocation) -> None:
    account = self._accounts(allocation)[0]
    account.in_use -= allocation.bytes
    account.owners -= 1


ROOM = Capacity.require_on_devices
DEVICES = [
    replaced("RT-19.A-02", "asks the first device of a mesh for room", BuildsOnce,
             ("mesh.memory.Capacity.require_on_devices", first_device), name="room_on_the_first"),
    replaced("RT-04.4-15", "gives memory back on the first device of a mesh", BuildsOnce,
             ("mesh.memory.Capacity.give_back", first_account), name="back_on_the_first"),
]  # fmt: skip
