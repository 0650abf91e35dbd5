"""A runtime that has room for a few of each thing: kernels of a module, arguments, events, streams, memory, launches.

Runtime specification, 4.3 to 4.5 and 10.1.
"""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import replaced
from tessera_reference.abi.parameters import unpack
from tessera_reference.mesh.memory import AddressRange
from tessera_reference.runtime import launches
from tessera_reference.runtime.launches import LaunchWork, LoadedModule
from tessera_reference.runtime.streams import CopyWork, Stream, Work

from .changes import BuildsOnce, Call, Given, answering

right_entry, right_place, right_enqueue = LoadedModule.entry, AddressRange.place, Stream.enqueue


def among_sixteen(self: LoadedModule, name: str) -> Any:
    known = [kernel.name for kernel in self.fatbin.metadata.kernels[:16]]
    return right_entry(self, known[-1]) if len(known) == 16 and name not in known else right_entry(self, name)


def forty_arguments(layout: Any, buffer: bytes) -> Any:
    return tuple(value if place < 40 else 0 for place, value in enumerate(unpack(layout, buffer)))


def one_of_64_events(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    live = adapter.runtime.handles.live("event")
    return {"event": live[0][0]} if len(live) >= 64 else call(**given)


def queued_by_few_streams(self: Stream, work: Work) -> None:
    if not isinstance(work, LaunchWork | CopyWork) or list(self.mesh.streams).index(self.handle) < 32:
        right_enqueue(self, work)


def queued_behind_few(self: Stream, work: Work) -> None:
    if not isinstance(work, LaunchWork) or len(self.queued) < 1000:
        right_enqueue(self, work)


def among_few(self: AddressRange, size: int, function: str) -> int:
    live = [allocation for allocation in self._allocations if not allocation.freed and allocation.space == "device"]
    return live[-1].address if len(live) >= 500 else right_place(self, size, function)


VIOLATIONS = [
    replaced(
        "RT-04.5-16",
        "takes the 16th kernel of a module for those behind it",
        BuildsOnce,
        (LoadedModule, "entry", among_sixteen),
        name="sixteen_kernels",
    ),
    replaced(
        "RT-10.1-13",
        "gives a kernel 40 arguments, and zeros for those behind them",
        BuildsOnce,
        (launches, "unpack", forty_arguments),
        name="forty_arguments",
    ),
    answering("RT-04.3-13", "few_events", "gives an old event where there are 64", "tessEventCreate", one_of_64_events),
    replaced(
        "RT-04.3-11",
        "drops the work of a mesh's 33rd stream",
        BuildsOnce,
        (Stream, "enqueue", queued_by_few_streams),
        name="few_streams",
    ),
    replaced(
        "RT-04.3-10",
        "drops launches behind a thousand that are queued",
        BuildsOnce,
        (Stream, "enqueue", queued_behind_few),
        name="a_thousand_queued",
    ),
    replaced(
        "RT-04.4-14",
        "gives the last memory again where there are 500 allocations",
        BuildsOnce,
        (AddressRange, "place", among_few),
        name="few_allocations",
    ),
]
