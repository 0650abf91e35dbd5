"""Submission: a call queues work on a stream, or adds it to the capture that the stream is in (runtime spec 6)."""

from __future__ import annotations

from .capture import capture_of
from .state import State
from .work import Work

__all__ = ["submit"]


def submit(state: State, work: Work, *, captured: bool = True) -> None:
    """Queue work; unless `captured` is False, work of a stream that is captured becomes a node instead."""
    state.log.note("trace", f"{work.function}: {work.name} on stream {work.stream.handle}")
    capture = capture_of(state.captures, work.stream) if captured else None
    if capture is None:
        work.stream.enqueue(work)
    else:
        capture.add(work)
