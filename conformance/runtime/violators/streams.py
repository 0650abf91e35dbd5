"""Streams and events that are created or destroyed wrongly (runtime specification, 4.3)."""

from __future__ import annotations

from typing import Any
from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import replaced
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import CopyWork, Stream, Work

from .changes import INVALID, Answer, BuildsOnce, Call, Given, answering, null, refusing


def one_a_mesh(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    for handle, mesh in adapter.runtime.handles.live("mesh"):
        if handle == given["mesh"] and mesh.streams:
            return {"stream": next(iter(mesh.streams))}
    return call(**given)


def queued_by_few(self: Stream, work: Work) -> None:
    if not isinstance(work, LaunchWork | CopyWork) or list(self.mesh.streams).index(self.handle) < 32:
        ENQUEUE(self, work)


ENQUEUE = Stream.enqueue
CREATED = [
    replaced("RT-04.3-11", "drops the work of the streams of a mesh behind the 32nd", BuildsOnce,
        ("runtime.streams.Stream.enqueue", queued_by_few), name="few_streams"),
    answering("RT-04.3-11", "one_a_mesh", "has one stream a mesh", "tessStreamCreate", one_a_mesh),
    answering("RT-04.3-11", "null_stream", "gives a stream that is NULL", "tessStreamCreate", null("stream")),
    refusing("RT-04.3-11", "few_priorities", "knows priorities from -5 to 5", "tessStreamCreate",
        lambda given: abs(given["priority"]) > 5, INVALID),
    *(
        refusing("RT-04.3-11", f"refused_by_{function}", f"{function} refuses a new stream", function, status=INVALID)
        for function in ("tessEventRecord", "tessBroadcast", "tessAllReduce")
    ),
]  # fmt: skip


def unfinished(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    with mock.patch.object(Stream, "drain", return_value=None):
        return call(**given)


def all_of_the_mesh(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    of = [mesh for _, mesh in adapter.runtime.handles.live("mesh") if given["stream"] in mesh.streams]
    answer = call(**given)
    for handle in [handle for mesh in of for handle in mesh.streams]:
        call(stream=handle)
    return answer


DESTROYED = [
    answering("RT-04.3-12", "all_of_the_mesh", "destroys the other streams too", "tessStreamDestroy", all_of_the_mesh),
]


def one_of_64_events(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    live = adapter.runtime.handles.live("event")
    return {"event": live[0][0]} if len(live) >= 64 else call(**given)


def unless(recorded: bool) -> Answer:
    """Return a call that refuses recorded events or, with False, those that were never recorded."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        for handle, event in adapter.runtime.handles.live("event"):
            if handle == given["event"] and (event.last is not None) == recorded:
                raise Refusal(INVALID, "call", "the event was recorded" if recorded else "it was never recorded")
        return call(**given)

    return answer


def with_a_mesh(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    if not adapter.runtime.handles.live("mesh"):
        raise Refusal("TESS_ERR_NOT_INITIALIZED", "call", "tessEventCreate: no mesh")
    return call(**given)


def all_events(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    for handle, _ in adapter.runtime.handles.live("event"):
        call(event=handle)
    return answer


EVENTS = [
    answering("RT-04.3-13", "few_events", "gives an old event where there are 64", "tessEventCreate", one_of_64_events),
    answering("RT-04.3-13", "with_a_mesh", "creates events only where there is a mesh", "tessEventCreate", with_a_mesh),
    answering("RT-04.3-13", "recorded_once", "records an event once", "tessEventRecord", unless(True)),
    answering("RT-04.3-14", "all_events", "destroys the other events too", "tessEventDestroy", all_events),
]
