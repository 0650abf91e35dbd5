"""Deadlocks of tasks that wait and signal, and those in which one follows upon another."""

from __future__ import annotations

from tessera_reference.wsp.builder import Program, TaskWindow

from .corpus import EMPTY, FULL, TASK, adder, channel, deadlock, receives, sends


@deadlock([EMPTY, TASK])
def waits_for_a_task_that_needs_its_token(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    c = program.channel("c")
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.wait()
        program.send(c)


@deadlock([EMPTY, TASK])
def loads_what_a_waiting_task_writes(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    c = program.channel("c")
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.send(c, program.load("v", x))


@deadlock([EMPTY, TASK])
def runs_on_what_a_waiting_task_writes(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    c = program.channel("c")
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.run(kernel, x)
        program.send(c)


@deadlock([FULL, TASK], channel("c", 2))
def waits_for_tasks_that_signal_it(program: Program) -> None:
    kernel, tensors = adder(program, 2)
    c = program.channel("c")
    with program.process("p"):
        for each in tensors:
            program.task(kernel, each, signals=[c])
        program.wait()
        receives(program, c, 2)


@deadlock([FULL, TASK], channel("c", 1))
def waits_for_a_task_that_signals_a_rendezvous(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    c = program.channel("c", capacity=0)
    with program.process("p"):
        program.task(kernel, x, signals=[c])
        program.wait()
        program.receive(c, "v")


@deadlock([FULL, TASK, EMPTY], channel("full", 2))
def a_signalling_task_keeps_its_worker(program: Program) -> None:
    """The task that would signal `done` stands behind one that cannot signal `full`, on the one worker."""
    kernel, tensors = adder(program, 3)
    full, done = program.channel("full"), program.channel("done")
    with program.process("p"):
        program.task(kernel, tensors[0], signals=[full])
        program.task(kernel, tensors[1], signals=[full])
        program.task(kernel, tensors[2], signals=[done])
        program.receive(done, "v")
        receives(program, full, 2)


@deadlock([FULL], channel("c", 2) | channel("d", 3))
def two_channels_apart(program: Program) -> None:
    for process, name, count in (("p", "c", 2), ("q", "d", 3)):
        each = program.channel(name)
        with program.process(process):
            sends(program, each, count)
            receives(program, each, count)


@deadlock([FULL], channel("c", 2) | {"task_window": 3})
def a_window_after_a_channel(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    c = program.channel("c")
    program.task_window(TaskWindow(2))
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)
        with program.scope():
            for each in tensors:
                program.task(kernel, each)


@deadlock(["TENSORMAP_POOL_FULL"], {"heap_arena": 8, "tensormap_pool": 2}, {"scope.p": 1})
def a_pool_behind_a_pool(program: Program) -> None:
    kernel, _ = adder(program, 0)
    program.resources(heap_arena=4, tensormap_pool=1)
    with program.process("p"), program.scope():
        for name in "xy":
            program.task(kernel, program.tensor(name, "i32", 1))


@deadlock([EMPTY, FULL])
def one_with_a_cure_and_one_without(program: Program) -> None:
    c, d = program.channel("c"), program.channel("d")
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)
    with program.process("q"):
        program.receive(d, "w")
        program.send(d)
