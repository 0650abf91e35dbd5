"""Wrong contexts and versions (runtime specification, 4.1)."""

from itertools import count

from .changes import INVALID, UNSUPPORTED, afterwards, answering, refusing, restating, unless, without_waiting

ROOM = 64
"""The number of objects that a runtime can make which never reuses the place of an ended one."""
NOT_INITIALIZED = "TESS_ERR_NOT_INITIALIZED"


def leaking(adapter, call, given):
    adapter.runtime.machine.memory.release = lambda owner: ()
    answer = call(**given)
    del adapter.runtime.machine.memory.release
    return answer


def ending(kind):
    """Return a call that ends the handles of a kind with any context."""
    return afterwards(lambda adapter, call, given: [
        adapter.runtime.handles.end(handle) for handle, _ in adapter.runtime.handles.live(kind)])  # fmt: skip


def full(adapter, given):
    """True if as many objects were made before."""
    return next(adapter.runtime.__dict__.setdefault("made", count())) >= ROOM


VIOLATORS = [
    *(answering(clause, f"room_for_{ROOM}_{kind}", f"has room for {ROOM} {kind}, ended ones included", function,
            unless(full, "TESS_ERR_OUT_OF_MEMORY"))
        for clause, kind, function in (
            ("RT-04.1-20", "contexts", "tessInit"),
            ("RT-04.2-05", "meshes", "tessMeshCreate"),
            ("RT-04.3-12", "streams", "tessStreamCreate"),
            ("RT-04.3-14", "events", "tessEventCreate"),
            ("RT-04.4-15", "allocations", "tessMalloc"),
            ("RT-04.5-15", "modules", "tessModuleLoad"),
        )),
    *(answering("RT-04.1-20", f"ends_every_{kind}", f"ends every {kind} with a context", "tessShutdown",
        ending(kind)) for kind in ("module", "kernel", "profiler")),
    *(refusing("RT-04.1-19", f"refused_by_{function}", f"{function} refuses a live context", function, status=INVALID)
        for function in ("tessProfilerStart", "tessModuleLoad", "tessMeshCreate", "tessSetNumericsPolicy")),
    answering("RT-04.1-20", "leaks", "keeps the memory of a context that ends", "tessShutdown", leaking),
    answering("RT-04.1-20", "unfinished", "leaves queued work undone when a context ends", "tessShutdown",
        without_waiting),
    answering("RT-19.A-03", "without_a_place", "is initialized by a tessInit that is refused", "tessInit",
        lambda adapter, call, given: call(**(given | {"null": ()})) and call(**given) if given.get("null") else call()),
    answering("RT-04.1-21", "negative_patch", "has a negative patch number", "tessGetVersion",
        lambda adapter, call, given: call(**given) | {"patch": -1}),
    restating("RT-19.A-03", "other_status", "calls it invalid that tessInit is missing", "tessEventCreate",
        NOT_INITIALIZED, INVALID),
    *(restating("RT-19.A-03", f"{function}_unsupported", f"{function} calls NULL unsupported", function,
        NOT_INITIALIZED, UNSUPPORTED) for function in ("tessShutdown", "tessMeshDestroy")),
    *(restating("RT-19.A-03", f"{function}_without", f"{function} succeeds without a context or mesh", function,
        NOT_INITIALIZED, "") for function in ("tessStreamCreate", "tessMalloc", "tessModuleLoad")),
    answering("RT-19.A-03", "DefaultContext", "takes NULL for the first live context", "tessMeshCreate",
        lambda adapter, call, given: call(
            **(given | {"context": given["context"] or adapter.runtime.handles.live("context")[0][0]}))),
]  # fmt: skip
