"""Errors reported by the wrong call, twice, or not at all, and partial work of failing calls (runtime spec, 7)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_reference.abi.status import Failure, Status

from .changes import INVALID, Call, Given, answering, refusing, restating

OUT_OF_MEMORY = "TESS_ERR_OUT_OF_MEMORY"
GRID = {"grid": [1, 1, 1], "block": [0, 0, 0], "shmemBytes": 0, "flags": 0}

# Refused calls that act


def mended(**instead: Any) -> Any:
    """Return a call that acts with valid arguments, and still reports the error."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        try:
            return call(**given)
        except Refusal as refusal:
            if refusal.outcome.code == INVALID:
                try:
                    call(**(given | instead))
                except Refusal:
                    raise refusal from None
            raise

    return answer


def alternating(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Fail the call after a failed one."""
    refused = getattr(adapter, "refused_before", False)
    try:
        answer = call(**given)
        adapter.refused_before = False
    except Refusal:
        adapter.refused_before = True
        raise
    if refused:
        raise Refusal(INVALID, "call", "as before")
    return answer


HALF_DONE = [
    answering("RT-07-02", "launched", "runs a launch that it refuses", "tessLaunch", mended(cfg=GRID)),
    answering("RT-07-02", "copied", "moves what it refuses to copy", "tessMemcpyAsync", mended(kind=2)),
    answering("RT-07-02", "reduced", "reduces what it refuses to", "tessAllReduce", mended(op=0, dtype=9, axis="dp")),
    answering("RT-07-02", "as_before", "keeps failing once it has failed", "tessKernelGet", alternating),
    answering("RT-07-02", "memory_as_before", "keeps failing once it has failed", "tessMalloc", alternating),
    *(
        restating("RT-07-02", f"{function}_ok", f"{function} reports success when it fails", function, INVALID, "")
        for function in ("tessLaunch", "tessMemcpyAsync", "tessAllReduce")
    ),
    *(
        refusing("RT-07-02", f"{function}_fails", f"{function} reports failure when it succeeds", function)
        for function in ("tessStreamDestroy", "tessHostFree", "tessReduceScatter")
    ),
]

# The call that reports an error


def later(adapter: Any, given: Given, status: Status) -> None:
    """Queue an error for the synchronization of a stream."""
    for _, mesh in adapter.runtime.handles.live("mesh"):
        for handle, stream in mesh.streams.items():
            if handle == given.get("stream", handle):
                stream.fail(Failure(status, "tessStreamSynchronize", "an error of before", "none"), 0, 0)


def deferred(code: str, twice: bool = False) -> Any:
    """Return a call that reports a refusal at the synchronization, instead of at the call or in addition."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        try:
            return call(**given)
        except Refusal as refusal:
            if refusal.outcome.code != code:
                raise
            later(adapter, given, Status[code])
            if twice:
                raise
            return {}

    return answer


DEFERRED = [
    *(
        answering(
            "RT-07-03", f"{function}_later", f"{function} leaves invalid values for later", function, deferred(INVALID)
        )
        for function in ("tessLaunch", "tessMemcpyAsync", "tessAllReduce", "tessBroadcast", "tessEventRecord")
    ),
    *(
        answering(
            "RT-07-03",
            f"{function}_twice",
            f"{function} tells of invalid values at once and later",
            function,
            deferred(INVALID, twice=True),
        )
        for function in ("tessLaunch", "tessMemcpyAsync", "tessAllGather", "tessStreamWaitEvent")
    ),
]


def twice(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    try:
        return call(**given)
    except Refusal as refusal:
        if "an error of before" not in refusal.outcome.message:
            later(adapter, given, Status.TESS_ERR_LAUNCH_FAILED)
        raise


def everywhere(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    for _, mesh in adapter.runtime.handles.live("mesh"):
        for handle, stream in mesh.streams.items():
            if handle != given["stream"] and (stream.queued or stream.error):
                call(stream=handle)
    return answer


def invalid_hides(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    try:
        return call(**given)
    except Refusal:
        for _, mesh in adapter.runtime.handles.live("mesh"):
            mesh.drain()
            for stream in mesh.streams.values():
                stream.failures = {}
        raise


FAILED = [
    answering("RT-07-07", "invalid_hides", "forgets failed launches when a call is refused", "tessMalloc",
        invalid_hides),
]  # fmt: skip


# The text of the last failure


def text(change: Any) -> Any:
    """Return a call with another text."""
    return lambda adapter, call, given: {"text": change(call(**given)["text"])}


def cleared(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    adapter.runtime.last_error = ""
    return answer


TEXTS = [
    answering("RT-07-03", "cleared", "forgets a failure when a call succeeds", "tessMalloc", cleared),
]
