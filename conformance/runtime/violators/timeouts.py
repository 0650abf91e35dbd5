"""Timeouts that are missed, too early, or reported wrongly, and low-latency launches (spec 6, 19.A)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.abi.status import Failure, LaunchFlag, Status
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.state import State
from tessera_reference.runtime.streams import Stream, Work

from .changes import INVALID, refusing

TIMED_OUT, SPEND, WAIT, QUEUE, FAIL = Work.timed_out, Work.spend, Work.wait_for, calls.queue_launch, Stream.fail


def working(name: str, description: str, attribute: str, value: Any) -> Violation:
    """Return a violation that replaces one method of work."""
    return replaced("RT-19.A-09", description, make, (Work, attribute, value), name=name)


def failed(self: Work, timeout: int) -> Failure:
    return Failure(Status.TESS_ERR_LAUNCH_FAILED, self.function, str(TIMED_OUT(self, timeout)), "work that ends")


async def slow_for_ever(self: Work, duration: int) -> None:
    machine = self.stream.mesh.machine
    await machine.engine.sleep(machine.lasting(duration))


async def at_a_tenth(self: Work, duration: int) -> None:
    await SPEND(self, duration if self.stream.mesh.context.timeout is None else 1_000_000 * duration)


async def hangs_for_ever(self: Work, signal: Any, turn: int, given_up: Any) -> None:
    """Wait as if there were no timeout."""
    context = self.stream.mesh.context
    kept, context.timeout = context.timeout, None
    try:
        await WAIT(self, signal, turn, given_up)
    finally:
        context.timeout = kept


async def collectives_for_ever(self: Work, signal: Any, turn: int, given_up: Any) -> None:
    await (WAIT if self.kind == "launch" else hangs_for_ever)(self, signal, turn, given_up)


async def launches_for_ever(self: Work, signal: Any, turn: int, given_up: Any) -> None:
    await (hangs_for_ever if self.kind == "launch" else WAIT)(self, signal, turn, given_up)


async def once(self: Work, signal: Any, turn: int, given_up: Any) -> None:
    context = self.stream.mesh.context
    try:
        await WAIT(self, signal, turn, given_up)
    finally:
        context.timeout = None


def everywhere(self: Stream, failure: Failure, number: int, rank: int) -> None:
    for stream in self.mesh.streams.values() if failure.status is Status.TESS_ERR_TIMEOUT else (self,):
        FAIL(stream, failure, number, rank)


@violates("RT-19.A-09", "sets the timeout of every context")
class AllContexts(ReferenceAdapter):
    last = 0

    def runtime_tessxSetTimeout(self, *, context: Any, nanoseconds: Any) -> dict[str, Any]:  # noqa: N802
        for handle, _ in self.runtime.handles.live("context"):
            super().runtime_tessxSetTimeout(context=handle, nanoseconds=nanoseconds)
        self.last = nanoseconds
        return {}

    def runtime_tessInit(self, **others: Any) -> dict[str, Any]:  # noqa: N802
        answer = super().runtime_tessInit(**others)
        super().runtime_tessxSetTimeout(context=answer["context"], nanoseconds=self.last)
        return answer

    def session_reset(self) -> dict[str, Any]:
        self.last = 0
        return super().session_reset()


TIMEOUTS = [
    working("slow_for_ever", "lets slow work finish", "spend", slow_for_ever),
    working("collectives_for_ever", "knows no timeout of collectives", "wait_for", collectives_for_ever),
    working("once", "forgets the timeout after the first that comes", "wait_for", once),
]


# Low latency


def dropped(state: State, work: LaunchWork) -> None:
    if not work.flags & LaunchFlag.TESS_LAUNCH_LOW_LATENCY:
        QUEUE(state, work)


LOW_LATENCY_REFUSED = refusing(
    "RT-06-14",
    "LowLatencyRefused",
    "refuses launches that ask for low latency",
    "tessLaunch",
    lambda given: bool(given["cfg"]["flags"] & LaunchFlag.TESS_LAUNCH_LOW_LATENCY),
    INVALID,
)
LOW_LATENCY = replaced(
    "RT-06-14", "forgets launches that ask for low latency", make, ("runtime.calls.queue_launch", dropped)
)
