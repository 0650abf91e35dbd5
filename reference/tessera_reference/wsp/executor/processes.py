"""The body of a process as steps, which return the place of the next, BLOCKED or DONE (sections 2, 3, 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..errors import RunError
from ..kernels import bound
from ..statements import (
    Body,
    Close,
    Cond,
    Consume,
    Expression,
    Load,
    Receive,
    Repeat,
    RunKernel,
    Scope,
    Send,
    Statement,
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
    ProcessState,
    ScopeState,
)

# The steps that statements become: functions of a process that return the place of the next, BLOCKED or DONE.
#
# A step that has blocked is executed again when the process goes on, unless it has moved `pc` past itself.


BLOCKED, DONE = -1, -2
Step: TypeAlias = Callable[[ProcessState], int]


class Steps:
    """Makes steps for a machine; `here` is the place of a step, after which the next one stands."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def value(self, expression: Expression) -> Callable[[], int]:
        """The value of an expression, when it is called."""
        return compiled(expression, self.machine.symbols, self.machine.slots)

    def send(self, here: int, channel: int, value: Expression) -> Step:
        """Send a token; the process goes on when it is sent."""
        machine, state, evaluate = self.machine, self.machine.channels[channel], self.value(value)
        name = machine.package.channels[channel].name

        def step(process: ProcessState) -> int:
            if channel in process.closed:
                raise RunError("SEND_AFTER_CLOSE", f"{process.name} has closed {name}")
            if state.send((PROCESS, process.index), evaluate()):
                return here + 1
            machine.wait(process, CHANNEL_FULL_WAIT, name)
            process.pc = here + 1
            return BLOCKED

        return step

    def take(self, here: int, channel: int, into: int, at_end: int | None) -> Step:
        """Take a token into a slot; go on at `at_end` where the channel is closed and empty, an error without one."""
        machine, state, slots = self.machine, self.machine.channels[channel], self.machine.slots
        name = machine.package.channels[channel].name

        def step(process: ProcessState) -> int:
            token = process.delivered
            if token is None:
                token = state.take((PROCESS, process.index))
                if token is None:
                    machine.wait(process, CHANNEL_EMPTY_WAIT, name)
                    return BLOCKED
            process.delivered = None
            if token != CLOSED:
                slots[into] = token
                if machine.observed is not None:
                    machine.observed.arrivals.append((process.index, channel, token))
                return here + 1
            if at_end is None:
                raise RunError("RECEIVE_AFTER_CLOSE", f"{name} is closed and empty")
            return at_end

        return step

    def close(self, here: int, channel: int) -> Step:
        """The last act on a channel."""

        def step(process: ProcessState) -> int:
            self.machine.close(process, channel)
            return here + 1

        return step

    def task(self, here: int, site: CallSite, key: Expression | None) -> Step:
        """Issue a task, when all that it needs is free; its operands are those of the first attempt."""
        machine, scalars = self.machine, site.scalars
        evaluate = None if key is None else self.value(key)

        def step(process: ProcessState) -> int:
            pending = process.pending
            if pending is None:
                if process.closed and not process.closed.isdisjoint(site.signals):
                    raise RunError("SEND_AFTER_CLOSE", f"a task of {process.name} signals a channel that it has closed")
                pending = (0 if evaluate is None else evaluate(), [each() for each in scalars])
            reason = machine.issue(process, site, *pending)
            if reason is None:
                process.pending = None
                if process.waiting is not None:
                    machine.end_wait(process)
                return here + 1
            process.pending = pending
            machine.stall(process, reason, RESOURCE_OF[reason])
            return BLOCKED

        return step

    def await_tensors(self, here: int, reads: Sequence[int], writes: Sequence[int], operands: Sequence[Any]) -> Step:
        """Evaluate operands, then wait for the tasks in flight that tensors depend on (AMB-WSP-47)."""
        machine = self.machine

        def step(process: ProcessState) -> int:
            process.pending = [each() for each in operands]
            tasks = list(machine.tensor_map.dependencies(reads, writes).values())
            if not tasks:
                return here + 1
            machine.await_tasks(process, tasks)
            machine.wait(process, TASK_WAIT, "tasks")
            process.pc = here + 1
            return BLOCKED

        return step

    def elapse(self, here: int, cycles: int) -> Step:
        """Let the cycles of a kernel pass."""
        agenda = self.machine.agenda

        def step(process: ProcessState) -> int:
            if not cycles:
                return here + 1
            agenda.after(cycles, PROCESS_GOES_ON, process.index)
            process.pc = here + 1
            return BLOCKED

        return step

    def run(self, here: int, site: CallSite) -> Step:
        """Apply a kernel to its tensors, at its end."""
        machine = self.machine

        def step(process: ProcessState) -> int:
            site.effect(process.pending)
            process.pending = None
            machine.count_kernel(site)
            if machine.observed is not None:
                machine.observed.kernels.append((process.index, site.kernel, site.cycles))
            return here + 1

        return step

    def load(self, here: int, slot: int, tensor: int) -> Step:
        """An element as u64 (AMB-WSP-13)."""
        machine, stated = self.machine, self.machine.package.tensors[tensor]

        def step(process: ProcessState) -> int:
            (element,) = process.pending
            process.pending = None
            if element >= stated.count:
                raise RunError("ELEMENT_OUT_OF_RANGE", f"{stated.name} has {stated.count} elements, and no {element}")
            machine.slots[slot] = _as_u64(machine.tensors[tensor][element].item(), f"{stated.name}[{element}]")
            return here + 1

        return step

    def wait(self, here: int) -> Step:
        """Until the tasks that the process issued are complete."""
        machine = self.machine

        def step(process: ProcessState) -> int:
            own = [each for each in machine.tasks.values() if each.process is process] if process.in_flight else []
            if not own:
                return here + 1
            machine.await_tasks(process, own)
            machine.wait(process, TASK_WAIT, "tasks")
            process.pc = here + 1
            return BLOCKED

        return step

    def branch(self, here: int, when: Expression, otherwise: int) -> Step:
        """Go on here where the value is not 0, else there."""
        evaluate = self.value(when)

        def step(process: ProcessState) -> int:
            return here + 1 if evaluate() else otherwise

        return step

    def jump(self, to: int) -> Step:
        """Go on there."""

        def step(process: ProcessState) -> int:
            return to

        return step

    def begin_repeat(self, here: int, count: Expression) -> Step:
        """Evaluate the count."""
        evaluate = self.value(count)

        def step(process: ProcessState) -> int:
            process.loops.append([0, evaluate()])
            return here + 1

        return step

    def next_round(self, here: int, index: int | None, at_end: int) -> Step:
        """One more round, or the end."""
        slots = self.machine.slots

        def step(process: ProcessState) -> int:
            loop = process.loops[-1]
            done, count = loop
            if done == count:
                process.loops.pop()
                return at_end
            loop[0] = done + 1
            if index is not None:
                slots[index] = done
            return here + 1

        return step

    def begin_scope(self, here: int) -> Step:
        """Outputs are held from here."""

        def step(process: ProcessState) -> int:
            process.scopes.append(ScopeState())
            return here + 1

        return step

    def end_scope(self, here: int) -> Step:
        """Free the resources of complete tasks of the scope; no barrier (AMB-WSP-56)."""
        machine = self.machine

        def step(process: ProcessState) -> int:
            scope = process.scopes.pop()
            scope.open = False
            if scope.slots:
                machine.resources.free(scope.slots, scope.entries, scope.heap)
                machine.freed()
            return here + 1

        return step

    def end(self) -> Step:
        """The process ends, and closes what it produces."""

        def step(process: ProcessState) -> int:
            for channel in process.produces:
                self.machine.close(process, channel)
            process.done = True
            return DONE

        return step


def _as_u64(value: bool | int | float, place: str) -> int:
    if isinstance(value, float) and not (0 <= value < 2.0**64 and value.is_integer()):
        raise RunError("SLOT_VALUE", f"{place} is {value!r}, expected a whole number from 0 below 2^64")
    return int(value) & ((1 << 64) - 1)


# From the body of a process to its steps (`steps.py`), one list without nesting.


class CallForm(NamedTuple):
    """The part of a call that is the same in every execution of a package: all but values and memory."""

    call: RunKernel | Task
    tensors: Mapping[str, int]
    scalars: Sequence[Expression]
    cycles: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    heap: int


CallForms: TypeAlias = dict[int, CallForm]
"""The forms of the calls of a package, by the identity of the statement, which the form holds.

They belong to one run and to the trials that it makes of its package: a search for mitigations executes a package a
dozen times, and making the code anew was half of its time.
"""


class Code:
    """The steps of a process, and the path of the statement of each; `scopes`: whether scopes begin and end."""

    def __init__(self, machine: Machine, body: Body, forms: CallForms, scopes: bool = True) -> None:
        self.machine = machine
        self.forms = forms
        self.scopes = scopes
        self.make = Steps(machine)
        self.steps: list[Step] = []
        self.statements: list[str] = []
        self._effects: dict[tuple[Any, ...], Any] = {}
        self._body(body, "body")
        self._add("end", self.make.end())

    @property
    def here(self) -> int:
        """The place of the next step."""
        return len(self.steps)

    def _add(self, path: str, step: Step) -> int:
        self.steps.append(step)
        self.statements.append(path)
        return len(self.steps) - 1

    def _body(self, body: Body, path: str) -> None:
        for place, each in enumerate(body):
            self._statement(each, f"{path}/{place}")

    def _statement(self, statement: Statement, path: str) -> None:
        make, here = self.make, self.here
        match statement:
            case Send(channel, value):
                self._add(path, make.send(here, channel, value))
            case Receive(channel, into):
                self._add(path, make.take(here, channel, into, None))
            case Consume(channel, into, body):
                self._loop(path, body, lambda at_end: make.take(here, channel, into, at_end))
            case Close(channel):
                self._add(path, make.close(here, channel))
            case Scope(body) if self.scopes:
                self._add(path, make.begin_scope(here))
                self._body(body, f"{path}/body")
                self._add(path, make.end_scope(self.here))
            case Scope(body):
                self._body(body, f"{path}/body")
            case Cond():
                self._cond(statement, path)
            case Repeat(count, body, index):
                self._add(path, make.begin_repeat(here, count))
                self._loop(path, body, lambda at_end: make.next_round(here + 1, index, at_end))
            case Load(slot, tensor, element):
                self._add(path, make.await_tensors(here, (tensor,), (), (make.value(element),)))
                self._add(path, make.load(self.here, slot, tensor))
            case Wait():
                self._add(path, make.wait(here))
            case RunKernel():
                site = self._site(statement, path)
                self._add(path, make.await_tensors(here, site.reads, site.writes, site.scalars))
                self._add(path, make.elapse(self.here, site.cycles))
                self._add(path, make.run(self.here, site))
            case Task():
                self._add(path, make.task(here, self._site(statement, path), statement.key))

    def _loop(self, path: str, body: Body, head: Any) -> None:
        """A step that is made when its end is known, the body, and the way back."""
        place = self._add(path, self.make.jump(0))
        self._body(body, f"{path}/body")
        self._add(path, self.make.jump(place))
        self.steps[place] = head(self.here)

    def _cond(self, cond: Cond, path: str) -> None:
        branch = self._add(path, self.make.jump(0))
        self._body(cond.then, f"{path}/then")
        skip = self._add(path, self.make.jump(0))
        self.steps[branch] = self.make.branch(branch, cond.when, self.here)
        self._body(cond.otherwise, f"{path}/otherwise")
        self.steps[skip] = self.make.jump(self.here)

    def _form(self, call: RunKernel | Task) -> CallForm:
        package = self.machine.package
        kernel = package.kernels[call.kernel]
        given = dict(zip(kernel.parameters, call.arguments, strict=True))
        tensors = {name: each.tensor for name, each in given.items() if isinstance(each, TensorArgument)}
        writes = tuple(dict.fromkeys(tensors[name] for name in kernel.written))
        return CallForm(
            call,
            tensors,
            [each for each in given.values() if not isinstance(each, TensorArgument)],
            kernel.cycles([package.tensors[each].count for each in tensors.values()]),
            tuple(dict.fromkeys(each for each in tensors.values() if each not in writes)),
            writes,
            sum(package.tensors[each].nbytes for each in writes),
        )

    def _site(self, call: RunKernel | Task, path: str) -> CallSite:
        form = self.forms.get(id(call))
        if form is None:
            form = self.forms[id(call)] = self._form(call)
        effect = call.kernel, *form.tensors.values()
        if effect not in self._effects:
            memory = {name: self.machine.tensors[each] for name, each in form.tensors.items()}
            self._effects[effect] = bound(self.machine.package.kernels[call.kernel], memory)
        waits, signals = (call.waits, call.signals) if isinstance(call, Task) else ((), ())
        return CallSite(
            call.kernel,
            form.cycles,
            self._effects[effect],
            tuple([self.make.value(each) for each in form.scalars]),
            form.reads,
            form.writes,
            form.heap,
            path,
            waits,
            signals,
        )
