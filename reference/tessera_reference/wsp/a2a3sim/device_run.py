"""A run on the simulated device, in the phase of its package (sections 6.2, 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...mesh.engine import Engine, FirstCome, Mailbox, Seeded
from ..deadlock import AMPLE
from ..executor.machine import KERNEL_ENDS, Agenda, WorkerState
from ..executor.run import MOST_STEPS, Run
from ..package import Package

# What the AICPU waits for: its timers, and what the cores report. Kernels run on the cores, in virtual time.


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
        for worker in workers:
            self._work.append(Mailbox(self.engine, f"core {worker.index}"))
            self.engine.spawn(f"core {worker.index}", self._core(self._work[worker.index]))

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
        """True if nothing is left to do at this instant."""
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


# A run on the simulated device, in the phase of its package (section 7.1).
#
# Phase 2: the host runtime launches the AICPU, which expands the processes step by step into bounded buffers and
# gives kernels to the cores; channels, windows and pools hold it back as on cpu_sim. Phase 1: the host runs the
# processes to their end, which makes the whole task graph, and launches the AICPU then; nothing holds the host back,
# and the sizes of window and pools are recorded alone.


class DeviceRun(Run):
    """A `Run` whose engine makes its choices by a seed."""

    def __init__(
        self,
        package: Package,
        symbols: Mapping[str, int] | None = None,
        tensors: Mapping[str, bytes] | None = None,
        resources: Mapping[str, int] | None = None,
        seed: int | None = None,
        max_steps: int = MOST_STEPS,
    ) -> None:
        self._engine = Engine(FirstCome() if seed is None else Seeded(seed))
        self._device = DeviceAgenda(self._engine, self._core_of)
        self._instants = 0
        super().__init__(package, symbols, tensors, resources, agenda=self._device, max_steps=max_steps)
        if package.phase == 1:
            self.machine.resources.sizes = dict.fromkeys(self.machine.resources.sizes, AMPLE)

    def _step(self) -> None:
        """One instant of the AICPU."""
        if not self._instants:
            self._engine.spawn("host", self._host())
        before = self._instants
        self._engine.run(until=lambda: self._instants > before)

    def _core_of(self, task: int) -> int:
        return self.machine.tasks[task].worker.index

    async def _host(self) -> None:
        """The host runtime: in phase 1 it builds the graph of tasks; then it launches cores and AICPU."""
        if self.machine.package.phase == 1:
            self._attempt(self._expand)
        self._device.add_cores(self.machine.workers)
        self._engine.spawn("AICPU", self._aicpu())

    async def _aicpu(self) -> None:
        """The scheduler: instant by instant, until nothing is outstanding."""
        while self.outcome == "running":
            self._attempt(self._pass)
            await self._device.everything_due()
            while self.outcome == "running" and not self._device.is_settled():
                self._attempt(self._pass)
                await self._device.everything_due()
            if self.outcome == "running" and not self._device.outstanding:
                self._end()
            self._instants += 1
            if self.outcome == "running":
                await self._device.next_instant()
        self._instants += 1
