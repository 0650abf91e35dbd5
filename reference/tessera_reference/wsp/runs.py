"""The runs of packages, by target, and that on the simulated device (sections 6.2, 7.1).

Phase 2: the host runtime launches the AICPU, which expands the processes step by step into bounded buffers and gives
kernels to the cores; channels, windows and pools hold it back as on cpu_sim. Phase 1: the host runs the processes to
their end, which makes the whole task graph, and launches the AICPU then; nothing holds the host back, and the sizes of
window and pools are recorded alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..mesh.engine import Engine, Mailbox
from .artifact.build import NativeRun
from .deadlock import AMPLE
from .errors import DeviceNeeded
from .executor.machine import KERNEL_ENDS, Agenda, Machine
from .executor.run import MOST_STEPS, Run
from .package import Package


class DeviceAgenda(Agenda):
    """Events of the device: its timers, and what the cores report, which run the kernels in virtual time."""

    def add_cores(self, machine: Machine) -> None:
        """Add an AICore for each worker, which runs the kernels that it is given."""
        self._tasks = machine.tasks
        self._work = [Mailbox(self.engine, f"core {worker.index}") for worker in machine.workers]
        for mailbox in self._work:
            self.engine.spawn(mailbox.name, self._core(mailbox))

    def set_timer(self, time: int, kind: int, number: int) -> None:
        """Start a kernel on its core, or set a timer of the AICPU."""
        if kind == KERNEL_ENDS:
            self._work[self._tasks[number].worker.index].put((time, number))
        else:
            super().set_timer(time, kind, number)

    async def _core(self, work: Mailbox) -> None:
        while True:
            time, task = await work
            if time > self.engine.now:
                await self.engine.sleep_until(time)
            self.arrive(KERNEL_ENDS, task)


class DeviceRun(Run):
    """A `Run` by processes of the engine: the host, the AICPU, and the cores."""

    agenda = DeviceAgenda

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.machine.package.phase == 1:
            self.machine.resources.sizes = dict.fromkeys(self.machine.resources.sizes, AMPLE)

    def _launch(self, engine: Engine) -> None:
        engine.spawn("host", self._host(engine))

    async def _host(self, engine: Engine) -> None:
        """The host runtime: in phase 1 it builds the graph of tasks; then it launches cores and AICPU."""
        machine = self.machine
        if machine.package.phase == 1:
            self._attempt(self._expand)
        assert isinstance(machine.agenda, DeviceAgenda)
        machine.agenda.add_cores(machine)
        engine.spawn("AICPU", self._schedule())


RUNS: Mapping[str, type[Run]] = {
    "cpu_sim": Run,
    "pto_runtime_a2a3sim": DeviceRun,
    "pto_runtime_a2a3sim_host_graph": DeviceRun,
}


def prepared(
    package: Package,
    symbols: Mapping[str, int] | None = None,
    tensors: Mapping[str, bytes] | None = None,
    resources: Mapping[str, int] | None = None,
    seed: int | None = None,
    max_steps: int = MOST_STEPS,
    native: bool = False,
) -> Run | NativeRun:
    """A run that has not begun, of a package for cpu_sim by its native program where that is asked for.

    Raises `DeviceNeeded` for a target that is not simulated, `ArgumentRefused`, `NoCompiler` and `BuildFailed`.
    """
    if package.target not in RUNS:
        raise DeviceNeeded(package.target)
    if native and package.target == "cpu_sim":
        return NativeRun(package, symbols, tensors, resources, seed, max_steps)
    return RUNS[package.target](package, symbols, tensors, resources, seed, max_steps=max_steps)
