"""The executor: processes as generators, a run of a package, and its result (sections 1.2, 2, 3, 4, 6.2 and 7.1).

At each instant, in this order and until nothing moves: kernels of tasks end, by task number. Tokens and closes become
visible, by channel. Processes whose kernel ends continue. Each process that can go on runs, by index, until it blocks
or its time must pass. Idle workers, by index, start the first task that is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np

from ..mesh.engine import Engine, FirstCome, Mailbox, Seeded
from . import statements
from .deadlock import AMPLE, explained
from .errors import ArgumentRefused, RunError
from .forms import U64
from .machine import (
    CLOSED,
    KERNEL_ENDS,
    PROCESS,
    PROCESS_GOES_ON,
    RESOURCE_OF,
    Agenda,
    Machine,
    Place,
    ProcessState,
    ScopeState,
    TaskState,
    path_of,
)
from .package import CallSite, Package, settings
from .statements import Body, Expression, Values

Waits: TypeAlias = Generator[None, None, None]
"""A process that goes on; it yields where it waits, and is resumed when its reason to wait may have ended."""
SPINS_IN_A_RUN = 200


class Spinning(Exception):
    """A process takes steps without end and without progress."""


class Left(Exception):
    """An execution has taken the steps after which its caller leaves it."""


class Processes:
    """Executes the processes of a machine, and counts their steps: statements, and turns of loops.

    `most` steps end the run; after `enough` of them it is left.
    """

    def __init__(self, machine: Machine, most: int, enough: int | None) -> None:
        self.machine, self.most, self.enough = machine, most, enough
        self.values = Values(machine.symbols, machine.slots)
        self.spin = max(1, most // SPINS_IN_A_RUN)
        self.steps = 0

    def begin_turn(self) -> None:
        """A process goes on at an instant."""
        self._of_turn, self._progress = 0, -1

    def step(self) -> None:
        """Count a step. Raise `RunError` at the bound, `Spinning` after two 200ths of it without progress, `Left`."""
        if self.steps == self.most:
            raise RunError("STEP_LIMIT", f"the run has taken {self.most} steps")
        if self._of_turn == self.spin:
            progress = self.machine.progress()
            if progress == self._progress:
                raise Spinning
            self._of_turn, self._progress = 0, progress
        if self.steps == self.enough:
            raise Left
        self._of_turn += 1
        self.steps += 1

    def whole(self, process: ProcessState, body: Body) -> Waits:
        """A process from its first statement to its end, which closes the channels that it produces."""
        yield from self.body(process, body, (None, "body"))
        process.place = (None, "end")
        self.end(process)
        process.done = True

    def body(self, process: ProcessState, body: Body, outer: Place) -> Waits:
        """Execute the statements of a body, in their order."""
        machine, slots = self.machine, self.machine.slots
        for number, statement in enumerate(body):
            process.place = here = (outer, number)
            self.step()
            match statement:
                case statements.Task():
                    yield from self.task(process, statement)
                case statements.Send(channel, value):
                    if not self.send(process, channel, value):
                        yield
                case statements.Receive(channel, into):
                    if not (yield from self.take(process, channel, into)):
                        self.refuse_end(channel)
                case statements.Consume(channel, into, inner):
                    while (yield from self.take(process, channel, into)):
                        yield from self.body(process, inner, (here, "body"))
                        process.place = here
                        self.step()
                case statements.Close(channel):
                    machine.close(process, channel)
                case statements.Scope(inner):
                    if not process.without_scopes:
                        process.scopes.append(self.begin_scope(process))
                    yield from self.body(process, inner, (here, "body"))
                    if not process.without_scopes:
                        self.end_scope(process)
                case statements.Cond(when, then, otherwise):
                    if self.decide(when):
                        yield from self.body(process, then, (here, "then"))
                    else:
                        yield from self.body(process, otherwise, (here, "otherwise"))
                case statements.Repeat(count, inner, index):
                    for turn in range(self.value(count)):
                        process.place = here
                        self.step()
                        if index is not None:
                            slots[index] = turn
                        yield from self.body(process, inner, (here, "body"))
                case statements.Load(slot, tensor, element):
                    place = self.value(element)
                    yield from self.await_tensors(process, (tensor,), ())
                    self.load(slot, tensor, place)
                case statements.Wait():
                    own = [task for task in machine.tasks.values() if task.process is process]
                    yield from self.await_tasks(process, own)
                case statements.RunKernel():
                    yield from self.run(process, machine.package.site(statement))

    def send(self, process: ProcessState, channel: int, value: Expression) -> bool:
        """Return True if the token is sent; else the process goes on when it is."""
        machine, name = self.machine, self.machine.package.csp.channels[channel].name
        if channel in process.closed:
            raise RunError("SEND_AFTER_CLOSE", f"{process.name} has closed {name}")
        if machine.channels[channel].send((PROCESS, process.index), self.value(value)):
            return True
        machine.wait(process, "CHANNEL_FULL_WAIT", name)
        return False

    def take(self, process: ProcessState, channel: int, into: int) -> Generator[None, None, bool]:
        """Take a token into a slot. Return False where the channel is closed and empty."""
        machine = self.machine
        token = machine.channels[channel].take((PROCESS, process.index))
        if token is None:
            machine.wait(process, "CHANNEL_EMPTY_WAIT", machine.package.csp.channels[channel].name)
            yield
            token = process.delivered
        if token == CLOSED:
            return False
        machine.slots[into] = token
        machine.observe("arrival", process.index, channel, token)
        return True

    def refuse_end(self, channel: int) -> None:
        """Raise `RunError` for a receive from a channel that is closed and empty."""
        raise RunError("RECEIVE_AFTER_CLOSE", f"{self.machine.package.csp.channels[channel].name} is closed and empty")

    def task(self, process: ProcessState, task: statements.Task) -> Waits:
        """Issue a task, when all that it needs is free; its operands are those of the first attempt."""
        machine, site = self.machine, self.machine.package.site(task)
        if process.closed and not process.closed.isdisjoint(site.signals):
            raise RunError("SEND_AFTER_CLOSE", f"a task of {process.name} signals a channel that it has closed")
        key, scalars = self.key(task), [self.value(scalar) for scalar in site.scalars]
        while (reason := machine.issue(process, site, key, scalars)) is not None:
            machine.stall(process, reason, RESOURCE_OF[reason])
            yield
        process.time = machine.agenda.now

    def key(self, task: statements.Task) -> int:
        """Return the key by which policies place a task."""
        return 0 if task.key is None else self.value(task.key)

    def run(self, process: ProcessState, site: CallSite) -> Waits:
        """Execute a kernel in the time of the process; it changes its tensors at its end."""
        scalars = [self.value(scalar) for scalar in site.scalars]
        yield from self.await_tensors(process, site.reads, site.writes)
        yield from self.elapse(process, site.cycles)
        self.machine.apply(site, scalars)
        self.machine.observe("kernel", process.index, site.kernel, site.cycles)

    def elapse(self, process: ProcessState, cycles: int) -> Waits:
        """Let the cycles of a kernel pass."""
        if cycles:
            self.machine.agenda.after(cycles, PROCESS_GOES_ON, process.index)
            yield

    def await_tensors(self, process: ProcessState, reads: Sequence[int], writes: Sequence[int]) -> Waits:
        """Wait for the tasks in flight that tensors depend on (AMB-WSP-47)."""
        yield from self.await_tasks(process, self.machine.tensor_map.dependencies(reads, writes).values())

    def await_tasks(self, process: ProcessState, tasks: Iterable[TaskState]) -> Waits:
        """Wait until these tasks are complete."""
        for task in tasks:
            task.watchers.append(process)
            process.awaited += 1
        if process.awaited:
            self.machine.wait(process, "TASK_WAIT", "tasks")
            yield

    def load(self, slot: int, tensor: int, element: int) -> None:
        """Load an element of a tensor into a slot, as u64 (AMB-WSP-13)."""
        stated = self.machine.package.tensors[tensor]
        if element >= stated.count:
            raise RunError("ELEMENT_OUT_OF_RANGE", f"{stated.name} has {stated.count} elements, and no {element}")
        value = self.machine.tensors[tensor][element].item()
        self.machine.slots[slot] = _as_u64(value, f"{stated.name}[{element}]")

    def decide(self, when: Expression) -> bool:
        """Return True if a `cond` takes its first body."""
        return self.value(when) != 0

    def begin_scope(self, process: ProcessState) -> ScopeState:
        """Return a scope that holds the outputs of tasks from here."""
        return ScopeState()

    def end_scope(self, process: ProcessState) -> None:
        """Free what complete tasks of the scope hold; no barrier (AMB-WSP-56)."""
        scope = process.scopes.pop()
        scope.open = False
        if scope.held:
            self.machine.resources.free(scope.held)
            self.machine.freed()

    def end(self, process: ProcessState) -> None:
        """Close the channels that a process produces."""
        for channel in process.produces:
            self.machine.close(process, channel)

    def value(self, expression: Expression) -> int:
        """Return the value of an expression now."""
        return expression.value(self.values)


def _as_u64(value: bool | int | float, place: str) -> int:
    if isinstance(value, float) and not (0 <= value < 2.0**64 and value.is_integer()):
        raise RunError("SLOT_VALUE", f"{place} is {value:.17g}, expected a whole number from 0 below 2^64")
    return int(value) & U64


# A run of a package: instant by instant or to its end, which is completion, an error or a deadlock.

MOST_STEPS = 100_000_000
"""The steps of statements that a run may take, where its caller names no other bound (AMB-WSP-80)."""


class Inputs(TypedDict, total=False):
    """The inputs of a run, by name; what is left out is as the package has it.

    `resources` are settings as `package.py` names them, and `seed` is for the choices of a host. After `max_steps` a
    run ends with STEP_LIMIT; a process that takes a 200th of them twice in a row without progress spins, which is a
    deadlock (section 3.3).
    """

    symbols: Mapping[str, int]
    tensors: Mapping[str, bytes]
    resources: Mapping[str, int]
    seed: int | None
    max_steps: int


class Run:
    """A run that has not begun; `outcome` is running, completed, error or deadlock.

    After `enough` steps its caller leaves it. Raises `ArgumentRefused` for inputs that do not fit.
    """

    agenda: type[Agenda] = Agenda

    def __init__(self, package: Package, enough: int | None = None, **inputs: Unpack[Inputs]) -> None:
        symbols, tensors, settings, max_steps = checked(package, inputs)
        self._inputs = inputs
        self.machine = Machine(package, symbols, tensors, settings, self.agenda(inputs.get("seed")))
        self.outcome = "running"
        self.error: RunError | None = None
        self._instants = 0
        self._schedule = self._scheduled()
        self._result: dict[str, Any] | None = None
        self._processes = Processes(self.machine, max_steps, enough)
        for process, stated in zip(self.machine.processes, package.csp.processes, strict=True):
            process.execution = self._processes.whole(process, stated.body)

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
        self.machine.observed = []
        return self.machine.observed

    def state(self) -> dict[str, Any]:
        """Return outcome, statistics, steps and progress; an error; what waits where it runs on or is a deadlock."""
        machine = self.machine
        state: dict[str, Any] = {"outcome": self.outcome, "statistics": machine.statistics()}
        state |= {"steps": self._processes.steps, "progress": machine.progress()}
        if self.error is not None:
            error = {name: getattr(self.error, name) for name in ("code", "process", "statement")}
            state["error"] = error | {"time": machine.agenda.now, "message": self.error.problem}
        if self.outcome in ("running", "deadlock"):
            state["waiting"] = machine.waiting_state()
        return state

    def result(self) -> dict[str, Any]:
        """The result as `schemas/wsp_result.schema.json` has it; a run that has not ended has one too."""
        if self._result is not None:
            return self._result
        result = explained(self.machine.package, self.state(), self._trial)
        self._result = None if self.outcome == "running" else result
        return result

    def _trial(self, knobs: Mapping[str, int], enough: int) -> dict[str, Any]:
        """Return the state of another execution with other settings, which is left after some steps."""
        inputs: Inputs = {**self._inputs, "resources": {**self._inputs.get("resources", {}), **knobs}}
        return Run(self.machine.package, enough, **inputs).finish().state()

    def _execute(self, instants: int | None) -> None:
        """Execute so many instants from the beginning, or all."""
        with np.errstate(all="ignore"):
            for _ in self._schedule:
                if self._instants == instants:
                    return

    def _scheduled(self) -> Iterator[int]:
        """Handle instant after instant, until no event is due later; yield the time of the next one before it."""
        agenda, processes = self.machine.agenda, self.machine.processes
        while self.outcome == "running":
            self._attempt(self._instant)
            self._instants += 1
            if self.outcome == "running" and agenda.events:
                time = agenda.events[0][0]
                yield time
                agenda.now = time
            elif self.outcome == "running":
                done = not self.machine.tasks and all(process.done for process in processes)
                self.outcome = "completed" if done else "deadlock"

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do something that may end the run."""
        try:
            action()
        except RunError as error:
            self.outcome, self.error = "error", error
        except Spinning:
            self.outcome = "deadlock"

    def _instant(self) -> None:
        """Let events happen, processes go on and idle workers start tasks, until nothing moves at this instant."""
        machine, moves = self.machine, True
        while moves:
            for kind, number in machine.agenda.due():
                machine.happen(kind, number)
            self._expand()
            machine.start_tasks()
            moves = machine.agenda.is_due() or any(process.runnable for process in machine.processes)

    def _expand(self) -> None:
        """Each process that can go on does, in the order of their indices."""
        for process in self.machine.processes:
            if process.runnable:
                self._go_on(process)

    def _go_on(self, process: ProcessState) -> None:
        """Execute statements until the process waits; its time is when it last did something."""
        process.runnable = False
        machine = self.machine
        if process.waiting is None:
            process.time = machine.agenda.now
        self._processes.begin_turn()
        try:
            next(process.execution, None)
        except Spinning:
            process.time, machine.spinning = machine.agenda.now, process.name
            raise
        except RunError as error:
            process.time = machine.agenda.now
            if not error.process:
                error.process, error.statement = process.name, path_of(process.place)
            raise


def checked(package: Package, inputs: Inputs) -> tuple[list[int], list[bytes], dict[str, int], int]:
    """Return the symbols, tensors and settings of a run, and its bound. Raise `ArgumentRefused` for what is unfit."""
    max_steps = inputs.get("max_steps", MOST_STEPS)
    if max_steps < 1:
        raise ArgumentRefused("max_steps", f"is {max_steps}, expected 1 or more")
    stated = settings(package, inputs.get("resources", {}))
    return _symbols(package, inputs.get("symbols", {})), _tensors(package, inputs.get("tensors", {})), stated, max_steps


def _symbols(package: Package, values: Mapping[str, int]) -> list[int]:
    symbols = {symbol.name: symbol for symbol in package.symbols}
    for name, value in values.items():
        if name not in symbols:
            raise ArgumentRefused(f"symbol {name}"[:120], f"the package has {', '.join(symbols) or 'no symbols'}")
        if not 0 <= value < 1 << symbols[name].width:
            raise ArgumentRefused(f"symbol {name}", f"{value} does not fit its {symbols[name].width} bits")
    return [values.get(symbol.name, symbol.default) for symbol in package.symbols]


def _tensors(package: Package, data_of: Mapping[str, bytes]) -> list[bytes]:
    tensors = {buffer.name: buffer for buffer in package.tensors}
    for name, data in data_of.items():
        if name not in tensors:
            raise ArgumentRefused(f"tensor {name}"[:120], f"the package has {', '.join(tensors) or 'no tensors'}")
        if problem := tensors[name].problem_of(data):
            raise ArgumentRefused(f"tensor {name}", problem)
    return [data_of.get(buffer.name, buffer.initial or bytes(buffer.nbytes)) for buffer in package.tensors]


# The runs of packages, by target, and that on the simulated device (sections 6.2, 7.1).
#
# Phase 2: the host runtime launches the AICPU, which expands the processes step by step into bounded buffers and
# gives kernels to the cores; channels, windows and pools hold it back as on cpu_sim. Phase 1: the host runs the
# processes to their end, which makes the whole task graph, and launches the AICPU then; nothing holds the host back,
# and the sizes of window and pools are recorded alone.


class DeviceAgenda(Agenda):
    """Events of the AICPU; a kernel ends when its core, a process of the virtual-time engine, reports it.

    A seed decides in which order the processes of the engine go on, which changes no result.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self.engine = Engine(FirstCome() if seed is None else Seeded(seed))

    def add_cores(self, machine: Machine) -> None:
        """Add an AICore for each worker, which runs the kernels that it is given."""
        self._tasks = machine.tasks
        self._reports = Mailbox(self.engine, "the AICPU")
        self._work = [Mailbox(self.engine, f"core {worker.index}") for worker in machine.workers]
        for mailbox in self._work:
            self.engine.spawn(mailbox.name, self._core(mailbox))

    def after(self, cycles: int, kind: int, number: int) -> None:
        """Start a kernel on its core, or set a timer of the AICPU."""
        super().after(cycles, kind, number)
        if kind == KERNEL_ENDS and cycles:
            self._work[self._tasks[number].worker.index].put(self.now + cycles)

    async def reach(self, instant: int) -> None:
        """Wait until the instant of the first event, and until the cores have reported the kernels that end then."""
        await self.engine.sleep_until(instant)
        for time, kind, _ in self.events:
            if kind == KERNEL_ENDS and time == instant:
                await self._reports

    async def _core(self, work: Mailbox) -> None:
        while True:
            await self.engine.sleep_until(await work)
            self._reports.put(None)


class DeviceRun(Run):
    """A `Run` by processes of the engine: the host, the AICPU, and the cores."""

    agenda = DeviceAgenda

    def __init__(self, package: Package, enough: int | None = None, **inputs: Unpack[Inputs]) -> None:
        super().__init__(package, enough, **inputs)
        assert isinstance(self.machine.agenda, DeviceAgenda)
        self._agenda = self.machine.agenda
        if package.phase == 1:
            self.machine.resources.sizes = dict.fromkeys(self.machine.resources.sizes, AMPLE)

    def _execute(self, instants: int | None) -> None:
        engine = self._agenda.engine
        if self.outcome == "running" and not self._instants:
            engine.spawn("host", self._host())
        with np.errstate(all="ignore"):
            engine.run(until=lambda: self.outcome != "running" or self._instants == instants)
        if self.outcome != "running":
            engine.close()

    async def _host(self) -> None:
        """The host runtime: in phase 1 it builds the graph of tasks; then it launches cores and AICPU."""
        if self.machine.package.phase == 1:
            self._attempt(self._expand)
        self._agenda.add_cores(self.machine)
        self._agenda.engine.spawn("AICPU", self._aicpu())

    async def _aicpu(self) -> None:
        for instant in self._schedule:
            await self._agenda.reach(instant)


RUNS: Mapping[str, type[Run]] = {
    "cpu_sim": Run,
    "pto_runtime_a2a3sim": DeviceRun,
    "pto_runtime_a2a3sim_host_graph": DeviceRun,
}
