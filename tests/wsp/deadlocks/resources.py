"""Deadlocks of windows, pools and queues, held by tasks and scopes."""

from __future__ import annotations

from tessera_reference.wsp.builder import Program, TaskWindow

from .corpus import EMPTY, TASK, adder, deadlock, sends


@deadlock(["TASK_RING_FULL", EMPTY], {"task_window": 2})
def window_against_a_channel(program: Program) -> None:
    kernel, (x, y) = adder(program, 2)
    c = program.channel("c")
    program.task_window(TaskWindow(1))
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.task(kernel, y, signals=[c])


@deadlock(["TASK_RING_FULL", EMPTY], {"task_window": 5})
def window_against_a_channel_by_far(program: Program) -> None:
    kernel, tensors = adder(program, 5)
    c = program.channel("c", capacity=5)
    program.task_window(TaskWindow(2))
    with program.process("p"):
        for each in tensors:
            program.task(kernel, each, waits=[c])
        sends(program, c, 5)


@deadlock(["TASK_RING_FULL", EMPTY], {"task_window": 3})
def two_processes_share_a_window(program: Program) -> None:
    kernel, tensors = adder(program, 6)
    a, b = program.channel("a", capacity=2), program.channel("b", capacity=2)
    program.task_window(TaskWindow(2))
    for place, name, waited, sent in ((0, "p", a, b), (3, "q", b, a)):
        with program.process(name):
            program.task(kernel, tensors[place], waits=[waited])
            program.task(kernel, tensors[place + 1], waits=[waited])
            program.task(kernel, tensors[place + 2])
            sends(program, sent, 2)


@deadlock(["TASK_RING_FULL"], {"task_window": 3}, {"scope.p": 1})
def a_scope_holds_the_window(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.task_window(TaskWindow(2))
    with program.process("p"), program.scope():
        for each in tensors:
            program.task(kernel, each)


@deadlock(["TASK_RING_FULL"], {"task_window": 3}, {"scope.p": 1})
def nested_scopes_hold_the_window(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.task_window(TaskWindow(2))
    with program.process("p"), program.scope():
        program.task(kernel, tensors[0])
        with program.scope():
            program.task(kernel, tensors[1])
            program.task(kernel, tensors[2])


@deadlock(["TASK_RING_FULL"], {"task_window": 3}, {"scope.p": 1})
def a_scope_holds_the_window_though_it_waits(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.task_window(TaskWindow(2))
    with program.process("p"), program.scope():
        for each in tensors:
            program.task(kernel, each)
            program.wait()


@deadlock(["TASK_RING_FULL"], {"task_window": 12}, {"scope.p": 1})
def a_scope_in_a_loop_holds_the_window(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    program.task_window(TaskWindow(3))
    with program.process("p"), program.scope(), program.repeat(12):
        program.task(kernel, x)


@deadlock(["TASK_RING_FULL"], {"task_window": 5})
def two_scopes_hold_the_window(program: Program) -> None:
    """Each needs three slots and takes them in turn: with four, each has two; one scope alone needs more than two."""
    kernel, tensors = adder(program, 6)
    program.task_window(TaskWindow(2))
    for place, name in enumerate("pq"):
        with program.process(name), program.scope():
            for each in tensors[3 * place : 3 * place + 3]:
                program.task(kernel, each)
                program.wait()


@deadlock(["HEAP_ARENA_FULL"], {"heap_arena": 12}, {"scope.p": 1})
def a_scope_holds_the_heap(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.resources(heap_arena=8)
    with program.process("p"), program.scope():
        for each in tensors:
            program.task(kernel, each)


@deadlock(["HEAP_ARENA_FULL"], {"heap_arena": 12})
def an_output_is_larger_than_the_heap(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    large = program.tensor("large", "i32", 3)
    program.resources(heap_arena=8)
    with program.process("p"):
        program.task(kernel, x)
        program.task(kernel, large)


@deadlock(["TENSORMAP_POOL_FULL"], {"tensormap_pool": 2}, {"scope.p": 1})
def a_scope_holds_the_tensormap(program: Program) -> None:
    kernel, tensors = adder(program, 2)
    program.resources(tensormap_pool=1)
    with program.process("p"), program.scope():
        for each in tensors:
            program.task(kernel, each)


@deadlock(["TENSORMAP_POOL_FULL"], {"tensormap_pool": 3})
def a_task_has_more_outputs_than_the_tensormap(program: Program) -> None:
    kernel = program.kernel("k", cycles=3, x="tensor", y="tensor", z="tensor").fill("x", 1).fill("y", 2).fill("z", 3)
    program.resources(tensormap_pool=2)
    with program.process("p"):
        program.task(kernel, *(program.tensor(name, "u8", 2) for name in "xyz"))


@deadlock(["DEPLIST_POOL_FULL", EMPTY], {"deplist_pool": 2})
def more_dependencies_than_the_deplist(program: Program) -> None:
    kernel, (x, y, z) = adder(program, 3)
    total = program.kernel("total", z="tensor", x="tensor", y="tensor").add("z", "x", "y")
    c = program.channel("c", capacity=2)
    program.resources(deplist_pool=1)
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.task(kernel, y, waits=[c])
        program.task(total, z, x, y)
        sends(program, c, 2)


@deadlock(["DEPLIST_POOL_FULL", EMPTY, TASK], {"deplist_pool": 3})
def waiting_tasks_hold_the_deplist(program: Program) -> None:
    kernel, (x,) = adder(program, 1)
    c = program.channel("c")
    program.resources(deplist_pool=2)
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        for _ in range(3):
            program.task(kernel, x)
        program.send(c)


@deadlock(["READY_QUEUE_FULL", EMPTY], {"ready_queue": 2})
def a_waiting_task_holds_the_ready_queue(program: Program) -> None:
    kernel, (x, y) = adder(program, 2)
    c = program.channel("c")
    program.resources(ready_queue=1)
    with program.process("p"):
        program.task(kernel, x, waits=[c])
        program.task(kernel, y)
        program.send(c)


@deadlock(["READY_QUEUE_FULL", EMPTY], {"ready_queue": 3})
def the_ready_queue_of_one_of_two_workers(program: Program) -> None:
    kernel, tensors = adder(program, 5)
    c = program.channel("c", capacity=2)
    program.dispatch("affinity", workers=2)
    program.resources(ready_queue=2)
    with program.process("p"):
        for key, each in zip((1, 0, 1, 1), tensors, strict=False):
            program.task(kernel, each, key=key, waits=[c] if key else [])
        sends(program, c, 3)
