"""Processes as generators, which execute statements and yield where they wait (sections 2, 3 and 4)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..errors import RunError
from ..kernels import bound
from ..package import Package
from ..statements import (
    Body,
    Close,
    Cond,
    Consume,
    Evaluate,
    Expression,
    Load,
    Receive,
    Repeat,
    RunKernel,
    Scope,
    Send,
    Task,
    TensorArgument,
    Wait,
    compiled,
)
from .machine import (
    CHANNEL_EMPTY_WAIT,
    CHANNEL_FULL_WAIT,
    CLOSED,
    PROCESS,
    PROCESS_GOES_ON,
    RESOURCE_OF,
    TASK_WAIT,
    CallSite,
    Machine,
    Place,
    ProcessState,
    ScopeState,
    TaskState,
)

Waits: TypeAlias = Generator[None, None, None]
"""A process that goes on; it yields where it waits, and is resumed when its reason to wait may be gone."""
SPINS_IN_A_RUN = 200


class Spinning(Exception):
    """A process takes steps without end and without progress."""


class Left(Exception):
    """An execution has taken the steps after which its caller leaves it."""


class StepCount:
    """The steps of a run: statements, and turns of loops. `most` end it; after `enough` of them it is left."""

    def __init__(self, machine: Machine, most: int, enough: int | None) -> None:
        self.machine = machine
        self.most = most
        self.enough = most + 1 if enough is None else enough
        self.taken = 0
        self.begin_turn()

    def begin_turn(self) -> None:
        """A process goes on at an instant."""
        self._progress = -1
        self._turn_ends = self.taken + max(1, self.most // SPINS_IN_A_RUN)
        self._next_check = min(self._turn_ends, self.most, self.enough)

    def add(self) -> None:
        """Count a step. Raise `RunError` at the bound, `Spinning` after two 200ths of it without progress."""
        if self.taken == self._next_check:
            self._check()
        self.taken += 1

    def _check(self) -> None:
        if self.taken == self.most:
            raise RunError("STEP_LIMIT", f"the run has taken {self.most} steps")
        if self.taken == self._turn_ends:
            progress = self.machine.progress()
            if progress == self._progress:
                raise Spinning
            self._progress, self._turn_ends = progress, self.taken + max(1, self.most // SPINS_IN_A_RUN)
        if self.taken == self.enough:
            raise Left
        self._next_check = min(self._turn_ends, self.most, self.enough)


class Processes:
    """Executes the processes of a machine."""

    def __init__(self, machine: Machine, forms: CallForms, steps: StepCount) -> None:
        self.machine = machine
        self.steps = steps
        self._forms = forms
        self._sites: dict[int, CallSite] = {}
        self._effects: dict[tuple[int, ...], Any] = {}
        self._evaluators: dict[int, Evaluate] = {}

    def whole(self, process: ProcessState, body: Body) -> Waits:
        """A process from its first statement to its end, which closes the channels that it produces."""
        yield from self.body(process, body, (None, "body"))
        process.place = (None, "end")
        self.end(process)
        process.done = True

    def body(self, process: ProcessState, statements: Body, outer: Place) -> Waits:
        """Execute the statements of a body, in their order."""
        machine, slots = self.machine, self.machine.slots
        for number, statement in enumerate(statements):
            process.place = here = (outer, number)
            self.steps.add()
            match statement:
                case Task():
                    yield from self.task(process, statement)
                case Send(channel, value):
                    if not self.send(process, channel, value):
                        yield
                case Receive(channel, into):
                    if not (yield from self.take(process, channel, into)):
                        self.refuse_end(channel)
                case Consume(channel, into, body):
                    while (yield from self.take(process, channel, into)):
                        yield from self.body(process, body, (here, "body"))
                        process.place = here
                        self.steps.add()
                case Close(channel):
                    machine.close(process, channel)
                case Scope(body):
                    if not process.without_scopes:
                        process.scopes.append(self.begin_scope(process))
                    yield from self.body(process, body, (here, "body"))
                    if not process.without_scopes:
                        self.end_scope(process)
                case Cond(when, then, otherwise):
                    if self.decide(when):
                        yield from self.body(process, then, (here, "then"))
                    else:
                        yield from self.body(process, otherwise, (here, "otherwise"))
                case Repeat(count, body, index):
                    for turn in range(self.value(count)):
                        process.place = here
                        self.steps.add()
                        if index is not None:
                            slots[index] = turn
                        yield from self.body(process, body, (here, "body"))
                case Load(slot, tensor, element):
                    place = self.value(element)
                    yield from self.await_tensors(process, (tensor,), ())
                    self.load(slot, tensor, place)
                case Wait():
                    if process.in_flight:
                        own = [task for task in machine.tasks.values() if task.process is process]
                        yield from self.await_tasks(process, own)
                case RunKernel():
                    yield from self.run(process, self.site(statement))

    def send(self, process: ProcessState, channel: int, value: Expression) -> bool:
        """Return True if the token is sent; else the process goes on when it is."""
        machine, name = self.machine, self.machine.package.channels[channel].name
        if channel in process.closed:
            raise RunError("SEND_AFTER_CLOSE", f"{process.name} has closed {name}")
        if machine.channels[channel].send((PROCESS, process.index), self.value(value)):
            return True
        machine.wait(process, CHANNEL_FULL_WAIT, name)
        return False

    def take(self, process: ProcessState, channel: int, into: int) -> Generator[None, None, bool]:
        """Take a token into a slot. Return False where the channel is closed and empty."""
        machine = self.machine
        token = machine.channels[channel].take((PROCESS, process.index))
        if token is None:
            machine.wait(process, CHANNEL_EMPTY_WAIT, machine.package.channels[channel].name)
            yield
            token = process.delivered
        if token == CLOSED:
            return False
        assert token is not None
        machine.slots[into] = token
        machine.observe("arrival", process.index, channel, token)
        return True

    def refuse_end(self, channel: int) -> None:
        """Raise `RunError` for a receive from a channel that is closed and empty."""
        raise RunError("RECEIVE_AFTER_CLOSE", f"{self.machine.package.channels[channel].name} is closed and empty")

    def task(self, process: ProcessState, task: Task) -> Waits:
        """Issue a task, when all that it needs is free; its operands are those of the first attempt."""
        machine, site = self.machine, self.site(task)
        if process.closed and not process.closed.isdisjoint(site.signals):
            raise RunError("SEND_AFTER_CLOSE", f"a task of {process.name} signals a channel that it has closed")
        key, scalars = self.key(task), [evaluate() for evaluate in site.scalars]
        while (reason := machine.issue(process, site, key, scalars)) is not None:
            machine.stall(process, reason, RESOURCE_OF[reason])
            yield
        machine.end_wait(process)
        process.time = machine.agenda.now

    def key(self, task: Task) -> int:
        """Return the key by which policies place a task."""
        return 0 if task.key is None else self.value(task.key)

    def run(self, process: ProcessState, site: CallSite) -> Waits:
        """Execute a kernel in the time of the process; it changes its tensors at its end."""
        scalars = [evaluate() for evaluate in site.scalars]
        yield from self.await_tensors(process, site.reads, site.writes)
        yield from self.elapse(process, site.cycles)
        site.effect(scalars)
        self.machine.count_kernel(site)
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
            self.machine.wait(process, TASK_WAIT, "tasks")
            yield

    def load(self, slot: int, tensor: int, element: int) -> None:
        """Bring an element of a tensor into a slot, as u64 (AMB-WSP-13)."""
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
        if scope.slots:
            self.machine.resources.free(scope.slots, scope.entries, scope.heap)
            self.machine.freed()

    def end(self, process: ProcessState) -> None:
        """Close the channels that a process produces."""
        for channel in process.produces:
            self.machine.close(process, channel)

    def site(self, call: RunKernel | Task) -> CallSite:
        """Return the call of a statement, which is made when it is first executed."""
        site = self._sites.get(id(call))
        if site is None:
            site = self._sites[id(call)] = self._new_site(call)
        return site

    def _new_site(self, call: RunKernel | Task) -> CallSite:
        package = self.machine.package
        form = self._forms.get(id(call))
        if form is None:
            form = self._forms[id(call)] = CallForm.of(package, call)
        effect = call.kernel, *form.tensors.values()
        if effect not in self._effects:
            memory = {name: self.machine.tensors[each] for name, each in form.tensors.items()}
            self._effects[effect] = bound(package.kernels[call.kernel], memory)
        waits, signals = (call.waits, call.signals) if isinstance(call, Task) else ((), ())
        scalars = tuple(map(self.evaluator, form.scalars))
        return CallSite(
            call.kernel, form.cycles, self._effects[effect], scalars, form.reads, form.writes, form.heap, waits, signals
        )

    def value(self, expression: Expression) -> int:
        """Return the value of an expression now."""
        return self.evaluator(expression)()

    def evaluator(self, expression: Expression) -> Evaluate:
        """Return the function that evaluates an expression of the package, which is made once."""
        evaluate = self._evaluators.get(id(expression))
        if evaluate is None:
            evaluate = compiled(expression, self.machine.symbols, self.machine.slots)
            self._evaluators[id(expression)] = evaluate
        return evaluate


def _as_u64(value: bool | int | float, place: str) -> int:
    if isinstance(value, float) and not (0 <= value < 2.0**64 and value.is_integer()):
        raise RunError("SLOT_VALUE", f"{place} is {value!r}, expected a whole number from 0 below 2^64")
    return int(value) & ((1 << 64) - 1)


class CallForm(NamedTuple):
    """The part of a call that is the same in every execution of a package: all but values and memory."""

    call: RunKernel | Task
    tensors: Mapping[str, int]
    scalars: Sequence[Expression]
    cycles: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    heap: int

    @classmethod
    def of(cls, package: Package, call: RunKernel | Task) -> CallForm:
        """Return the form of a call of a package."""
        kernel = package.kernels[call.kernel]
        arguments = dict(zip(kernel.parameters, call.arguments, strict=True))
        tensors = {name: each.tensor for name, each in arguments.items() if isinstance(each, TensorArgument)}
        writes = tuple(dict.fromkeys(tensors[name] for name in kernel.written))
        return cls(
            call,
            tensors,
            [argument for argument in arguments.values() if not isinstance(argument, TensorArgument)],
            kernel.cycles([package.tensors[tensor].count for tensor in tensors.values()]),
            tuple(dict.fromkeys(tensor for tensor in tensors.values() if tensor not in writes)),
            writes,
            sum(package.tensors[write].nbytes for write in writes),
        )


CallForms: TypeAlias = dict[int, CallForm]
"""The forms of the calls of a package, by the identity of the statement, which the form holds.

A run shares them with the trials of its package: a search for mitigations executes a package a dozen times.
"""
