"""A corpus of deadlocks of every kind, each with its cures, worked out by hand.

A cure is the set of settings that the run needs at least; no cure says that only another program helps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tessera_reference.wsp.builder import Channel, Kernel, Program, TaskWindow, Tensor

Cure = Mapping[str, int]


@dataclass(frozen=True)
class Deadlock:
    """A program that deadlocks, why its processes and tasks wait, and its cures."""

    build: Callable[[Program], None]
    reasons: frozenset[str]
    cures: Sequence[Cure]

    @property
    def program(self) -> Program:
        """The program, built anew."""
        program = Program(self.build.__name__)
        self.build(program)
        return program


DEADLOCKS: dict[str, Deadlock] = {}
EMPTY, FULL, TASK = "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT", "TASK_WAIT"


def deadlock(reasons: Sequence[str], *cures: Cure) -> Callable[[Callable[[Program], None]], Callable[[Program], None]]:
    """Add a program to the corpus."""

    def add(build: Callable[[Program], None]) -> Callable[[Program], None]:
        DEADLOCKS[build.__name__] = Deadlock(build, frozenset(reasons), cures)
        return build

    return add


def channel(name: str, capacity: int) -> Cure:
    """The setting of a channel."""
    return {f"channel.{name}.capacity": capacity}


def adder(program: Program, tensors: int) -> tuple[Kernel, Sequence[Tensor]]:
    """A kernel of 10 cycles that adds 1 to a tensor, and tensors of 4 bytes."""
    kernel = program.kernel("k", cycles=10, x="tensor").add("x", "x", 1)
    return kernel, [program.tensor(f"x{place}", "i32", 1) for place in range(tensors)]


def sends(program: Program, channel: Channel, count: int) -> None:
    """Several tokens."""
    for value in range(count):
        program.send(channel, value)


def receives(program: Program, channel: Channel, count: int) -> None:
    """Several tokens."""
    for _ in range(count):
        program.receive(channel, "v")


@deadlock([EMPTY])
def both_receive_first(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        program.receive(a, "v")
        program.send(b)
    with program.process("q"):
        program.receive(b, "w")
        program.send(a)


@deadlock([FULL], channel("c", 2))
def sends_twice_to_itself(program: Program) -> None:
    c = program.channel("c")
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)


@deadlock([FULL, EMPTY], channel("a", 2))
def full_against_empty(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        sends(program, a, 2)
        program.send(b)
    with program.process("q"):
        program.receive(b, "v")
        receives(program, a, 2)


@deadlock([FULL, EMPTY])
def with_room_it_ends_in_an_error(program: Program) -> None:
    """With a second place in c, p closes d, from which q receives."""
    c, d = program.channel("c"), program.channel("d")
    with program.process("p"):
        sends(program, c, 2)
        program.close(d)
    with program.process("q"):
        program.receive(d, "v")
        receives(program, c, 2)


@deadlock([FULL], channel("c", 2))
def long_after_the_deadlock_it_goes_on(program: Program) -> None:
    c = program.channel("c")
    with program.process("p"):
        sends(program, c, 2)
        with program.repeat(1 << 62):
            program.receive(c, "v")
            program.send(c)


@deadlock(["TASK_RING_FULL", EMPTY], {"task_window": 2})
def window_against_a_channel(program: Program) -> None:
    kernel, (x, y) = adder(program, 2)
    c = program.channel("c")
    program.task_window(TaskWindow(1))
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.task(kernel, y, signals=[c])


@deadlock(["TASK_RING_FULL"], {"task_window": 3}, {"scope.p": 1})
def a_scope_holds_the_window(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.task_window(TaskWindow(2))
    with program.process("p"), program.scope():
        for tensor in tensors:
            program.task(kernel, tensor)


@deadlock(["TASK_RING_FULL"], {"task_window": 3}, {"scope.p": 1})
def nested_scopes_hold_the_window(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.task_window(TaskWindow(2))
    with program.process("p"), program.scope():
        program.task(kernel, tensors[0])
        with program.scope():
            program.task(kernel, tensors[1])
            program.task(kernel, tensors[2])


@deadlock(["HEAP_ARENA_FULL"], {"heap_arena": 12}, {"scope.p": 1})
def a_scope_holds_the_heap(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.resources(heap_arena=8)
    with program.process("p"), program.scope():
        for tensor in tensors:
            program.task(kernel, tensor)


@deadlock(["HEAP_ARENA_FULL"], {"heap_arena": 12})
def an_output_is_larger_than_the_heap(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    large = program.tensor("large", "i32", 3)
    program.resources(heap_arena=8)
    with program.process("p"):
        program.task(kernel, x)
        program.task(kernel, large)


@deadlock([EMPTY, TASK])
def waits_for_a_task_that_needs_its_token(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    c = program.channel("c")
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.wait()
        program.send(c)


@deadlock([FULL, TASK], channel("c", 2))
def waits_for_tasks_that_signal_it(program: Program) -> None:
    kernel, tensors = adder(program, 2)
    c = program.channel("c")
    with program.process("p"):
        for tensor in tensors:
            program.task(kernel, tensor, signals=[c])
        program.wait()
        receives(program, c, 2)


@deadlock([EMPTY, FULL])
def one_with_a_cure_and_one_without(program: Program) -> None:
    c, d = program.channel("c"), program.channel("d")
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)
    with program.process("q"):
        program.receive(d, "w")
        program.send(d)
