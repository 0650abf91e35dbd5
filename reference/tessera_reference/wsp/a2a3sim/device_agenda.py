"""What the AICPU waits for: its timers, and what the cores report. Kernels run on the cores, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...mesh.engine import Engine, Mailbox
from ..executor.agenda import KERNEL_ENDS, Agenda
from ..executor.states import WorkerState

__all__ = ["DeviceAgenda"]


class DeviceAgenda(Agenda):
    """Events come from the engine; those of one instant are handled in the order of their kinds and numbers.

    `core_of` tells on which core a task runs.
    """

    def __init__(self, engine: Engine, core_of: Callable[[int], int]) -> None:
        super().__init__()
        self.engine = engine
        self.core_of = core_of
        self.outstanding = 0
        self._arrived: list[tuple[int, int]] = []
        self._doorbell = Mailbox(engine, "the doorbell of the AICPU")
        self._work: list[Mailbox] = []

    def add_cores(self, workers: Sequence[WorkerState]) -> None:
        """An AICore for each worker, which runs the kernels that it is given."""
        for each in workers:
            self._work.append(Mailbox(self.engine, f"core {each.index}"))
            self.engine.spawn(f"core {each.index}", self._core(self._work[each.index]))

    def after(self, cycles: int, kind: int, number: int) -> None:
        """A kernel starts on its core, or a timer of the AICPU is set. Raises `RunError`."""
        time = self.time_after(cycles)
        self.outstanding += 1
        if kind == KERNEL_ENDS:
            self._work[self.core_of(number)].put((cycles, number))
        else:
            self.engine.call_at(time, lambda: self._arrive(kind, number))

    async def next_instant(self) -> None:
        """Until something arrives, and all else of that instant has."""
        await self._doorbell
        await self.everything_due()

    async def everything_due(self) -> None:
        """Until the cores have done what they do at this instant."""
        await self.engine.sleep(0)
        self.now = self.engine.now

    def due(self) -> Sequence[tuple[int, int]]:
        """The kinds and numbers of what has arrived, in order."""
        found = sorted(self._arrived)
        self._arrived.clear()
        self._doorbell.work.clear()
        self.outstanding -= len(found)
        return found

    def is_settled(self) -> bool:
        """Whether nothing is left to do at this instant."""
        return not self._arrived and not self.has_runnable()

    def _arrive(self, kind: int, number: int) -> None:
        self._arrived.append((kind, number))
        self._doorbell.put(None)

    async def _core(self, work: Mailbox) -> None:
        while True:
            cycles, task = await work
            if cycles:
                await self.engine.sleep(cycles)
            self._arrive(KERNEL_ENDS, task)
