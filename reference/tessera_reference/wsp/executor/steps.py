"""The steps that statements become: functions of a process that return the place of the next, BLOCKED or DONE.

A step that has blocked is executed again when the process goes on, unless it has moved `pc` past itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..errors import RunError
from ..expressions import Expression, compiled
from .agenda import PROCESS_GOES_ON
from .channels import CLOSED, PROCESS
from .machine import Machine
from .stalls import CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT, RESOURCE_OF, TASK_WAIT
from .states import CallSite, ProcessState, ScopeState

__all__ = ["BLOCKED", "DONE", "Step", "Steps"]

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
        """What a kernel does to its tensors, at its end."""
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
        """What complete tasks of the scope held is free; no barrier (AMB-WSP-56)."""
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
