"""Streams and events that are created or destroyed wrongly (runtime specification, 4.3)."""

from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import CopyWork

from .changes import INVALID, afterwards, answering, broken, each, only_if, refusing, unless


def one_a_mesh(adapter, call, given):
    for handle, mesh in adapter.runtime.handles.live("mesh"):
        if handle == given["mesh"] and mesh.streams:
            return {"stream": next(iter(mesh.streams))}
    return call(**given)


def all_of_the_mesh(adapter, call, given):
    of = [mesh for _, mesh in adapter.runtime.handles.live("mesh") if given["stream"] in mesh.streams]
    answer = call(**given)
    for handle in [handle for mesh in of for handle in mesh.streams]:
        call(stream=handle)
    return answer


def one_of_64_events(adapter, call, given):
    live = adapter.runtime.handles.live("event")
    return {"event": live[0][0]} if len(live) >= 64 else call(**given)


def recorded(adapter, given):
    """True if the event was recorded before."""
    events = dict(adapter.runtime.handles.live("event"))
    return given["event"] in events and events[given["event"]].last is not None


VIOLATORS = [
    broken("RT-04.3-11", "few_streams", "drops the work of the streams of a mesh behind the 32nd",
        "runtime.streams.Stream.enqueue", only_if(lambda stream, work: not isinstance(work, LaunchWork | CopyWork)
        or list(stream.mesh.streams).index(stream.handle) < 32)),
    answering("RT-04.3-11", "one_a_mesh", "has one stream a mesh", "tessStreamCreate", one_a_mesh),
    refusing("RT-04.3-11", "few_priorities", "knows priorities from -5 to 5", "tessStreamCreate",
        lambda given: abs(given["priority"]) > 5, INVALID),
    *(refusing("RT-04.3-11", f"refused_by_{function}", f"{function} refuses a new stream", function, status=INVALID)
        for function in ("tessEventRecord", "tessBroadcast", "tessAllReduce")),
    answering("RT-04.3-12", "all_of_the_mesh", "destroys the other streams too", "tessStreamDestroy", all_of_the_mesh),
    answering("RT-04.3-13", "few_events", "gives an old event where there are 64", "tessEventCreate", one_of_64_events),
    answering("RT-04.3-13", "with_a_mesh", "creates events only where there is a mesh", "tessEventCreate",
        unless(lambda adapter, given: not adapter.runtime.handles.live("mesh"), "TESS_ERR_NOT_INITIALIZED")),
    answering("RT-04.3-13", "recorded_once", "records an event once", "tessEventRecord", unless(recorded)),
    answering("RT-04.3-14", "all_events", "destroys the other events too", "tessEventDestroy",
        afterwards(each("event", lambda call, handle, event: call(event=handle)))),
]  # fmt: skip
