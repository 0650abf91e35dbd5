"""Errors reported by the wrong call, twice, or not at all, and partial work of failing calls (runtime spec, 7)."""

from contextlib import suppress

from tessera_conformance.adapter import Refusal
from tessera_reference.abi.status import Failure, Status

from .changes import INVALID, afterwards, answering, refusing, restating

GRID = {"grid": [1, 1, 1], "block": [0, 0, 0], "shmemBytes": 0, "flags": 0}


def mended(**instead):
    """Return a call that acts with valid arguments, and still reports the error."""

    def answer(adapter, call, given):
        try:
            return call(**given)
        except Refusal as refusal:
            with suppress(Refusal):
                call(**(given | (instead if refusal.outcome.code == INVALID else {})))
            raise

    return answer


def alternating(adapter, call, given):
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


def deferred(twice=False):
    """Return a call that reports invalid values at the synchronization, instead of at the call or in addition."""

    def answer(adapter, call, given):
        try:
            return call(**given)
        except Refusal as refusal:
            if refusal.outcome.code != INVALID:
                raise
            failure = Failure(Status[INVALID], "tessStreamSynchronize", "an error of before", "none")
            for _, mesh in adapter.runtime.handles.live("mesh"):
                for handle, stream in mesh.streams.items():
                    if handle == given.get("stream", handle):
                        stream.fail(failure, 0, 0)
            if twice:
                raise
            return {}

    return answer


def invalid_hides(adapter, call, given):
    try:
        return call(**given)
    except Refusal:
        for _, mesh in adapter.runtime.handles.live("mesh"):
            mesh.drain()
            for stream in mesh.streams.values():
                stream.failures = {}
        raise


VIOLATORS = [
    answering("RT-07-02", "launched", "runs a launch that it refuses", "tessLaunch", mended(cfg=GRID)),
    answering("RT-07-02", "copied", "moves what it refuses to copy", "tessMemcpyAsync", mended(kind=2)),
    answering("RT-07-02", "reduced", "reduces what it refuses to", "tessAllReduce", mended(op=0, dtype=9, axis="dp")),
    answering("RT-07-02", "as_before", "keeps failing once it has failed", "tessKernelGet", alternating),
    answering("RT-07-02", "memory_as_before", "keeps failing once it has failed", "tessMalloc", alternating),
    *(restating("RT-07-02", f"{function}_ok", f"{function} reports success when it fails", function, INVALID, "")
        for function in ("tessLaunch", "tessMemcpyAsync", "tessAllReduce")),
    *(refusing("RT-07-02", f"{function}_fails", f"{function} reports failure when it succeeds", function)
        for function in ("tessStreamDestroy", "tessHostFree", "tessReduceScatter")),
    *(answering("RT-07-03", f"{function}_later", f"{function} leaves invalid values for later", function, deferred())
        for function in ("tessLaunch", "tessMemcpyAsync", "tessAllReduce", "tessBroadcast", "tessEventRecord")),
    *(answering("RT-07-03", f"{function}_twice", f"{function} tells of invalid values at once and later", function,
        deferred(twice=True))
        for function in ("tessLaunch", "tessMemcpyAsync", "tessAllGather", "tessStreamWaitEvent")),
    answering("RT-07-07", "invalid_hides", "forgets failed launches when a call is refused", "tessMalloc",
        invalid_hides),
    answering("RT-07-03", "cleared", "forgets a failure when a call succeeds", "tessMalloc",
        afterwards(lambda adapter, call, given: setattr(adapter.runtime, "last_error", ""))),
]  # fmt: skip
