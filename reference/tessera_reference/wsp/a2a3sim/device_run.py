"""A run on the simulated device, in the phase of its package (section 7.1).

Phase 2: the host runtime launches the AICPU, which expands the processes step by step into bounded buffers and gives
kernels to the cores; channels, windows and pools hold it back as on cpu_sim. Phase 1: the host runs the processes to
their end, which makes the whole task graph, and launches the AICPU then; nothing holds the host back, and the sizes of
window and pools are recorded alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...mesh.choice_policies import FirstCome, Seeded
from ...mesh.engine import Engine
from ..errors import RunError
from ..executor.run import Run
from ..mitigations import AMPLE
from ..package import Package
from .device_agenda import DeviceAgenda

__all__ = ["DeviceRun"]


class DeviceRun(Run):
    """As `Run`; a seed makes the choices of the engine."""

    def __init__(
        self,
        package: Package,
        symbols: Mapping[str, int] | None = None,
        tensors: Mapping[str, bytes] | None = None,
        resources: Mapping[str, int] | None = None,
        seed: int | None = None,
    ) -> None:
        self._engine = Engine(FirstCome() if seed is None else Seeded(seed))
        self._device = DeviceAgenda(self._engine, self._core_of)
        self._instants = 0
        super().__init__(package, symbols, tensors, resources, agenda=self._device)
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

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except RunError as error:
            self.outcome, self.error = "error", error
