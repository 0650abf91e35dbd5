"""Timeouts that are missed, too early, or reported wrongly, and low-latency launches (spec 6, 19.A)."""

from unittest import mock

from tessera_conformance.strength import Around, violates
from tessera_reference.abi.status import LaunchFlag
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime.streams import Work

from .changes import broken, only_if

WAIT = Work.wait_for


async def slow_for_ever(self, duration):
    machine = self.stream.mesh.machine
    await machine.engine.sleep(machine.lasting(duration))


async def hangs_for_ever(self, *of):
    """Wait as if there were no timeout."""
    with mock.patch.object(self.stream.mesh.context, "timeout", None):
        await WAIT(self, *of)


async def collectives_for_ever(self, *of):
    await (WAIT if self.kind == "launch" else hangs_for_ever)(self, *of)


@violates("RT-19.A-09", "sets the timeout of every context")
class AllContexts(ReferenceAdapter):
    last = 0

    def runtime_tessxSetTimeout(self, *, context, nanoseconds):  # noqa: N802
        for handle, _ in self.runtime.handles.live("context"):
            super().runtime_tessxSetTimeout(context=handle, nanoseconds=nanoseconds)
        self.last = nanoseconds
        return {}

    def runtime_tessInit(self, **others):  # noqa: N802
        answer = super().runtime_tessInit(**others)
        super().runtime_tessxSetTimeout(context=answer["context"], nanoseconds=self.last)
        return answer

    def session_reset(self):
        self.last = 0
        return super().session_reset()


TIMEOUTS = [
    broken("RT-19.A-09", "slow_for_ever", "lets slow work finish", "runtime.streams.Work.spend", slow_for_ever),
    broken("RT-19.A-09", "collectives_for_ever", "knows no timeout of collectives", "runtime.streams.Work.wait_for",
        collectives_for_ever),
    broken("RT-19.A-09", "once", "forgets the timeout after the first that comes", "runtime.streams.Work.timed_out",
        Around(lambda usual: lambda work, after:
            setattr(work.stream.mesh.context, "timeout", None) or usual(work, after))),
    broken("RT-06-14", "LOW_LATENCY", "forgets launches that ask for low latency", "runtime.calls.queue_launch",
        only_if(lambda state, work: not work.flags & LaunchFlag.TESS_LAUNCH_LOW_LATENCY)),
]  # fmt: skip
