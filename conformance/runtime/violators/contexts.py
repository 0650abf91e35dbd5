"""Wrong contexts and versions (runtime specification, 4.1)."""

from __future__ import annotations

from itertools import count
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import violates

from .changes import (
    INVALID,
    UNSUPPORTED,
    Answer,
    BuildsOnce,
    Call,
    Given,
    answering,
    refusing,
    restating,
    without_waiting,
)

ROOM = 64
"""The number of objects that a runtime can make which never reuses the place of an ended one."""
NOT_INITIALIZED = "TESS_ERR_NOT_INITIALIZED"


def unknown(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    return {"context": call(**given)["context"] + 1000}


def leaking(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    adapter.runtime.machine.memory.release = lambda owner: ()
    answer = call(**given)
    del adapter.runtime.machine.memory.release
    return answer


def ending_all(kind: str) -> Answer:
    """Return a call that ends the handles of a kind with any context."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        result = call(**given)
        for handle, _ in adapter.runtime.handles.live(kind):
            adapter.runtime.handles.end(handle)
        return result

    return answer


CONTEXTS = [
    *(
        answering(
            "RT-04.1-20", f"ends_every_{kind}", f"ends every {kind} with a context", "tessShutdown", ending_all(kind)
        )
        for kind in ("module", "kernel", "profiler")
    ),
    *(
        refusing("RT-04.1-19", f"refused_by_{function}", f"{function} refuses a live context", function, status=INVALID)
        for function in ("tessProfilerStart", "tessModuleLoad", "tessMeshCreate", "tessSetNumericsPolicy")
    ),
    answering("RT-04.1-20", "leaks", "keeps the memory of a context that ends", "tessShutdown", leaking),
    answering("RT-04.1-20", "unfinished", "leaves queued work undone when a context ends", "tessShutdown",
        without_waiting),
]  # fmt: skip


def version(**other: int) -> Any:
    return lambda adapter, call, given: call(**given) | other


VERSIONS = [
    answering("RT-04.1-21", "negative_patch", "has a negative patch number", "tessGetVersion", version(patch=-1)),
]


INITIALIZED = [
    restating("RT-19.A-03", "other_status", "calls it invalid that tessInit is missing", "tessEventCreate",
        NOT_INITIALIZED, INVALID),
    *(
        restating(
            "RT-19.A-03",
            f"{function}_unsupported",
            f"{function} calls NULL unsupported",
            function,
            NOT_INITIALIZED,
            UNSUPPORTED,
        )
        for function in ("tessShutdown", "tessMeshDestroy")
    ),
    *(
        restating(
            "RT-19.A-03",
            f"{function}_without",
            f"{function} succeeds without a context or mesh",
            function,
            NOT_INITIALIZED,
            "",
        )
        for function in ("tessStreamCreate", "tessMalloc", "tessModuleLoad")
    ),
]  # fmt: skip


@violates("RT-19.A-03", "takes NULL for the first live context")
class DefaultContext(BuildsOnce):
    def runtime_tessMeshCreate(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        context = arguments["context"] or self.runtime.handles.live("context")[0][0]
        return super().runtime_tessMeshCreate(**(arguments | {"context": context}))


def never_reused(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    made = adapter.runtime.__dict__.setdefault("made", count())
    if next(made) >= ROOM:
        raise Refusal("TESS_ERR_OUT_OF_MEMORY", "call", f"room for {ROOM}")
    return call(**given)


POOLS = [
    answering(
        clause, f"room_for_{ROOM}_{kind}", f"has room for {ROOM} {kind}, ended ones included", function, never_reused
    )
    for clause, kind, function in (
        ("RT-04.1-20", "contexts", "tessInit"),
        ("RT-04.2-05", "meshes", "tessMeshCreate"),
        ("RT-04.3-12", "streams", "tessStreamCreate"),
        ("RT-04.3-14", "events", "tessEventCreate"),
        ("RT-04.4-15", "allocations", "tessMalloc"),
        ("RT-04.5-15", "modules", "tessModuleLoad"),
    )
]
