"""The executor: processes as generators, a run of a package, and its result (sections 1.2, 2, 3, 4, 6.2 and 7.1).

At each instant, in this order and until nothing moves: kernels of tasks end, by task number. Tokens and closes become
visible, by channel. Processes whose kernel ends continue. Each process that can go on runs, by index, until it blocks
or its time must pass. Idle workers, by index, start the first task that is ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heappop
from typing import Any, TypeAlias, Unpack

import numpy as np

from ..mesh.engine import Engine, FirstCome, Mailbox, Seeded
from . import statements
from .deadlock import AMPLE, explained
from .errors import RunError
from .forms import U64
from .machine import CLOSED, KERNEL_ENDS, PROCESS, PROCESS_GOES_ON, Machine, ProcessState, TaskState
from .package import CallSite, Inputs, Package
from .statements import Body, Expression

Waits: TypeAlias = Generator[None, None, None]
"""A process that goes on; it yields where it waits, and is resumed when its reason to wait may have ended."""


class Spinning(Exception):
    """A process takes steps without end and without progress."""


class Left(Exception):
    """An execution has taken the steps after which its caller leaves it."""


class Processes(Machine):
    """A machine that executes its processes, and counts their steps: statements, and turns of loops."""

    enough: int | None = None
    """The steps after which the run is left."""
    steps = 0
    _of_turn, _progress = 0, -1
    """The steps of a turn since its progress was looked at, and what it was."""

    def count_step(self) -> None:
        """Count a step. Raise `RunError` at the bound, `Spinning` after two 200ths of it without progress, `Left`."""
        if self.steps == self.most:
            raise RunError("STEP_LIMIT", f"the run has taken {self.most} steps")
        if self._of_turn == self.spin:
            progress = self.progress()
            if progress == self._progress:
                raise Spinning
            self._of_turn, self._progress = 0, progress
        if self.steps == self.enough:
            raise Left
        self._of_turn += 1
        self.steps += 1

    def whole(self, process: ProcessState, body: Body) -> Waits:
        """A process from its first statement to its end, which closes the channels that it produces."""
        yield from self.body(process, body, "body")
        process.statement = "end"
        for channel in process.produces:
            self.close(process, channel)
        process.done = True

    def body(self, process: ProcessState, body: Body, path: str) -> Waits:
        """Execute the statements of a body, in their order."""
        for number, statement in enumerate(body):
            process.statement = here = f"{path}/{number}"
            self.count_step()
            match statement:
                case statements.Task():
                    yield from self.task(process, statement)
                case statements.Send(channel, value):
                    if not self.send(process, channel, value):
                        yield
                case statements.Receive(channel, into):
                    if not (yield from self.take(process, channel, into)):
                        problem = f"{self.channels[channel].name} is closed and empty"
                        raise RunError("RECEIVE_AFTER_CLOSE", problem)
                case statements.Consume(channel, into, inner):
                    while (yield from self.take(process, channel, into)):
                        yield from self.body(process, inner, f"{here}/body")
                        process.statement = here
                        self.count_step()
                case statements.Close(channel):
                    self.close(process, channel)
                case statements.Scope(inner):
                    if not process.without_scopes:
                        process.scopes.append(Counter())
                    yield from self.body(process, inner, f"{here}/body")
                    if not process.without_scopes:
                        self.end_scope(process)
                case statements.Cond(when, then, otherwise):
                    if self.value(when):
                        yield from self.body(process, then, f"{here}/then")
                    else:
                        yield from self.body(process, otherwise, f"{here}/otherwise")
                case statements.Repeat(count, inner, index):
                    for turn in range(self.value(count)):
                        process.statement = here
                        self.count_step()
                        if index is not None:
                            self.slots[index] = turn
                        yield from self.body(process, inner, f"{here}/body")
                case statements.Load(slot, tensor, element):
                    place = self.value(element)
                    yield from self.await_tensors(process, (tensor,), ())
                    self.load(slot, tensor, place)
                case statements.Wait():
                    own = [task for task in self.tasks.values() if task.process is process]
                    yield from self.await_tasks(process, own)
                case statements.RunKernel():
                    yield from self.run(process, self.package.site(statement))

    def send(self, process: ProcessState, channel: int, value: Expression) -> bool:
        """Return True if the token is sent; else the process goes on when it is."""
        name = self.channels[channel].name
        if channel in process.closed:
            raise RunError("SEND_AFTER_CLOSE", f"{process.name} has closed {name}")
        if self.channels[channel].send((PROCESS, process.index), self.value(value)):
            return True
        self.wait(process, "CHANNEL_FULL_WAIT", name)
        return False

    def take(self, process: ProcessState, channel: int, into: int) -> Generator[None, None, bool]:
        """Take a token into a slot. Return False where the channel is closed and empty."""
        token = self.channels[channel].take((PROCESS, process.index))
        if token is None:
            self.wait(process, "CHANNEL_EMPTY_WAIT", self.channels[channel].name)
            yield
            token = process.delivered
        if token == CLOSED:
            return False
        self.slots[into] = token
        self.record("arrival", process.index, channel, token)
        return True

    def task(self, process: ProcessState, task: statements.Task) -> Waits:
        """Issue a task, when all that it needs is free; its operands are those of the first attempt."""
        site = self.package.site(task)
        if process.closed and not process.closed.isdisjoint(site.signals):
            raise RunError("SEND_AFTER_CLOSE", f"a task of {process.name} signals a channel that it has closed")
        key = 0 if task.key is None else self.value(task.key)
        scalars = [self.value(scalar) for scalar in site.scalars]
        while (reason := self.issue(process, site, key, scalars)) is not None:
            self.stall(process, reason)
            yield
        process.time = self.now

    def run(self, process: ProcessState, site: CallSite) -> Waits:
        """Execute a kernel in the time of the process; it changes its tensors at its end."""
        scalars = [self.value(scalar) for scalar in site.scalars]
        yield from self.await_tensors(process, site.reads, site.writes)
        if site.cycles:
            self.after(site.cycles, PROCESS_GOES_ON, process.index)
            yield
        self.apply(site, scalars)
        self.record("kernel", process.index, site.kernel, site.cycles)

    def await_tensors(self, process: ProcessState, reads: Sequence[int], writes: Sequence[int]) -> Waits:
        """Wait for the tasks in flight that tensors depend on (AMB-WSP-47)."""
        yield from self.await_tasks(process, self.tensor_map.dependencies(reads, writes).values())

    def await_tasks(self, process: ProcessState, tasks: Iterable[TaskState]) -> Waits:
        """Wait until these tasks are complete."""
        for task in tasks:
            task.dependents.append(process)
            process.missing += 1
        if process.missing:
            self.wait(process, "TASK_WAIT", "tasks")
            yield

    def load(self, slot: int, tensor: int, element: int) -> None:
        """Load an element of a tensor into a slot, as u64 (AMB-WSP-13)."""
        stated = self.package.tensors[tensor]
        if element >= stated.count:
            raise RunError("ELEMENT_OUT_OF_RANGE", f"{stated.name} has {stated.count} elements, and no {element}")
        self.slots[slot] = _as_u64(self.tensors[tensor][element].item(), f"{stated.name}[{element}]")

    def end_scope(self, process: ProcessState) -> None:
        """Free what complete tasks of the scope hold; no barrier (AMB-WSP-56)."""
        scope = process.scopes.pop()
        if scope:
            self.resources.free(scope)
            self.freed()

    def value(self, expression: Expression) -> int:
        """Return the value of an expression now."""
        return expression.value(self.values)


def _as_u64(value: bool | int | float, place: str) -> int:
    if isinstance(value, float) and not (0 <= value < 2.0**64 and value.is_integer()):
        raise RunError("SLOT_VALUE", f"{place} is no whole number from 0 below 2^64")
    return int(value) & U64


# A run of a package: instant by instant or to its end, which is completion, an error or a deadlock.


class Run(Processes):
    """A run that has not begun; `outcome` is running, completed, error or deadlock.

    After `enough` steps its caller leaves it. Raises `ArgumentRefused` for inputs that do not fit.
    """

    error: RunError | None = None
    _result: dict[str, Any] | None = None

    def __init__(self, package: Package, enough: int | None = None, **inputs: Unpack[Inputs]) -> None:
        super().__init__(package, inputs)
        self.enough = enough
        self.outcome = "running"
        self._inputs = inputs
        self._instants = 0
        self._schedule = self._scheduled()
        for process, stated in zip(self.processes, package.csp.processes, strict=True):
            process.execution = self.whole(process, stated.body)

    def step(self) -> bool:
        """All that happens at the next instant; False when the run has ended."""
        self._execute(self._instants + 1)
        return self.outcome == "running"

    def finish(self) -> Run:
        """Run to the end, or until it is left."""
        with suppress(Left):
            self._execute(None)
        return self

    def observe(self) -> list[list[Any]]:
        """Return the list to which arrivals, kernels and tasks are added as they happen."""
        self.events = []
        return self.events

    def state(self) -> dict[str, Any]:
        """Return the state of all parts, with the outcome, steps, progress and an error."""
        state = {"outcome": self.outcome, "steps": self.steps, "progress": self.progress(), **super().state()}
        if self.error is not None:
            error = {name: getattr(self.error, name) for name in ("code", "process", "statement")}
            state["error"] = error | {"time": self.now, "message": self.error.problem}
        return state

    def result(self) -> dict[str, Any]:
        """The result as `schemas/wsp_result.schema.json` has it; a run that has not ended has one too."""
        result = self._result or explained(self.package, self.state(), self._trial)
        if self.outcome != "running":
            self._result = result  # a deadlock takes many trials to explain
        return result

    def _trial(self, knobs: Mapping[str, int], enough: int) -> dict[str, Any]:
        """Return the state of another execution with other settings, which is left after some steps."""
        inputs: Inputs = {**self._inputs, "resources": {**self._inputs.get("resources", {}), **knobs}}
        return Run(self.package, enough, **inputs).finish().state()

    def _execute(self, instants: int | None) -> None:
        """Execute so many instants from the beginning, or all."""
        with np.errstate(all="ignore"):
            for _ in self._schedule:
                if self._instants == instants:
                    return

    def _scheduled(self) -> Iterator[int]:
        """Handle instant after instant, until no event is due later; yield the time of the next one before it."""
        try:
            self._instant()
            while self.agenda:
                time = self.agenda[0][0]
                yield time
                self.now = time
                self._instant()
            done = not self.tasks and all(process.done for process in self.processes)
            self.outcome = "completed" if done else "deadlock"
        except RunError as error:
            self.outcome, self.error = "error", error
        except Spinning:
            self.outcome = "deadlock"

    def _instant(self) -> None:
        """Let events happen, processes go on and idle workers start tasks, until nothing moves at this instant."""
        moves = True
        while moves:
            while self.is_due():
                self.happen(*heappop(self.agenda)[1:])
            self._expand()
            self.start_tasks()
            moves = self.is_due() or any(process.runnable for process in self.processes)
        self._instants += 1

    def _expand(self) -> None:
        """Each process that can go on does, in the order of their indices."""
        for process in self.processes:
            if process.runnable:
                self._go_on(process)

    def _go_on(self, process: ProcessState) -> None:
        """Execute statements until the process waits; its time is when it last did something."""
        process.runnable = False
        if process.waiting is None:
            process.time = self.now
        self._of_turn, self._progress = 0, -1
        try:
            next(process.execution, None)
        except Spinning:
            process.time, self.spinning = self.now, process.name
            raise
        except RunError as error:
            process.time = self.now
            if not error.process:
                error.process, error.statement = process.name, process.statement
            raise


# The runs of packages, by target, and that on the simulated device (sections 6.2, 7.1).
#
# Phase 2: the host runtime launches the AICPU, which expands the processes step by step into bounded buffers and
# gives kernels to the cores; channels, windows and pools hold it back as on cpu_sim. Phase 1: the host runs the
# processes to their end, which makes the whole task graph before a task starts: the sizes of window and pools, which
# are recorded alone, hold nothing back, so that this takes the part of the first instant before kernels.


class DeviceRun(Run):
    """A `Run` by processes of the virtual-time engine, which the host launches: AICPU, and an AICore for each worker.

    A kernel ends when its core reports it. A seed decides in which order the processes of the engine go on, which
    changes no result.
    """

    def __init__(self, package: Package, enough: int | None = None, **inputs: Unpack[Inputs]) -> None:
        super().__init__(package, enough, **inputs)
        seed = inputs.get("seed")
        self.engine = Engine(FirstCome() if seed is None else Seeded(seed))
        self._reports = Mailbox(self.engine, "the AICPU")
        self._work = [Mailbox(self.engine, f"core {worker.index}") for worker in self.workers]
        if package.phase == 1:
            self.resources.sizes = dict.fromkeys(self.resources.sizes, AMPLE)

    def after(self, cycles: int, kind: int, number: int) -> None:
        """Start a kernel on its core, or set a timer of the AICPU."""
        super().after(cycles, kind, number)
        if kind == KERNEL_ENDS and cycles:
            self._work[self.tasks[number].worker.index].put(self.now + cycles)

    def _execute(self, instants: int | None) -> None:
        engine = self.engine
        if self.outcome == "running" and not self._instants:
            for work in self._work:
                engine.spawn(work.name, self._core(work))
            engine.spawn("AICPU", self._aicpu())
        with np.errstate(all="ignore"):
            engine.run(until=lambda: self.outcome != "running" or self._instants == instants)
        if self.outcome != "running":
            engine.close()

    async def _aicpu(self) -> None:
        """Handle instants; at each, the cores report the kernels that end before all else happens."""
        for instant in self._schedule:
            await self.engine.sleep_until(instant)
            for time, kind, _ in self.agenda:
                if kind == KERNEL_ENDS and time == instant:
                    await self._reports

    async def _core(self, work: Mailbox) -> None:
        while True:
            await self.engine.sleep_until(await work)
            self._reports.put(None)


RUNS: Mapping[str, type[Run]] = {
    "cpu_sim": Run,
    "pto_runtime_a2a3sim": DeviceRun,
    "pto_runtime_a2a3sim_host_graph": DeviceRun,
}
