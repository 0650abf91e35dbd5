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


@deadlock([EMPTY])
def three_receive_first(program: Program) -> None:
    ring = [program.channel(f"c{place}", capacity=2) for place in range(3)]
    for place in range(3):
        with program.process(f"p{place}"):
            program.receive(ring[place], f"v{place}")
            program.send(ring[(place + 1) % 3])


@deadlock([EMPTY])
def consumers_in_a_ring(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"), program.consume(a, "v") as v:
        program.send(b, v)
    with program.process("q"), program.consume(b, "w") as w:
        program.send(a, w)


@deadlock([EMPTY])
def receives_from_itself_before_it_sends(program: Program) -> None:
    c = program.channel("c", capacity=5)
    with program.process("p"):
        program.receive(c, "v")
        program.send(c)


@deadlock([FULL], channel("c", 2))
def sends_twice_to_itself(program: Program) -> None:
    c = program.channel("c")
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)


@deadlock([FULL], channel("c", 2))
def sends_twice_to_itself_with_latency(program: Program) -> None:
    c = program.channel("c", latency=5)
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)


@deadlock([FULL], channel("c", 7))
def sends_as_many_as_a_symbol_says(program: Program) -> None:
    c, n = program.channel("c", capacity=3), program.symbol("n", default=7)
    with program.process("p"):
        with program.repeat(n):
            program.send(c)
        with program.repeat(n):
            program.receive(c, "v")


@deadlock([FULL], channel("a", 2), channel("b", 2))
def both_send_before_they_receive(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    for name, out, back in (("p", a, b), ("q", b, a)):
        with program.process(name):
            sends(program, out, 2)
            program.receive(back, f"{name}0")
            program.receive(back, f"{name}1")


@deadlock([FULL], channel("c0", 2), channel("c1", 2), channel("c2", 2))
def three_send_before_they_receive(program: Program) -> None:
    ring = [program.channel(f"c{place}") for place in range(3)]
    for place in range(3):
        with program.process(f"p{place}"):
            sends(program, ring[place], 2)
            receives(program, ring[place - 1], 2)


@deadlock([FULL, EMPTY], channel("a", 2))
def full_against_empty(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        sends(program, a, 2)
        program.send(b)
    with program.process("q"):
        program.receive(b, "v")
        receives(program, a, 2)


@deadlock([FULL, EMPTY], channel("a", 5))
def full_against_empty_by_far(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        sends(program, a, 5)
        program.send(b)
    with program.process("q"):
        program.receive(b, "v")
        receives(program, a, 5)


@deadlock([FULL], channel("a", 2), channel("b", 2))
def a_round_trip_of_four_tokens(program: Program) -> None:
    """One token in b, one in the hand of q, one in a, and the fourth has no place."""
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        sends(program, a, 4)
        program.close(a)
        with program.consume(b, "v"):
            pass
    with program.process("q"), program.consume(a, "w") as w:
        program.send(b, w)


@deadlock([FULL], channel("c", 1))
def a_rendezvous_with_itself(program: Program) -> None:
    c = program.channel("c", capacity=0)
    with program.process("p"):
        program.send(c)
        program.receive(c, "v")


@deadlock([FULL, EMPTY], channel("a", 1))
def two_rendezvous_in_another_order(program: Program) -> None:
    a, b = program.channel("a", capacity=0), program.channel("b", capacity=0)
    with program.process("p"):
        program.send(a)
        program.send(b)
    with program.process("q"):
        program.receive(b, "v")
        program.receive(a, "w")


@deadlock([FULL], channel("a", 1), channel("b", 1))
def two_rendezvous_across(program: Program) -> None:
    a, b = program.channel("a", capacity=0), program.channel("b", capacity=0)
    for name, out, back in (("p", a, b), ("q", b, a)):
        with program.process(name):
            program.send(out)
            program.receive(back, name)


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


@deadlock(["TASK_RING_FULL", EMPTY], {"task_window": 5})
def window_against_a_channel_by_far(program: Program) -> None:
    kernel, tensors = adder(program, 5)
    c = program.channel("c", capacity=5)
    program.task_window(TaskWindow(2))
    with program.process("p"):
        for tensor in tensors:
            program.task(kernel, tensor, waits=[c])
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


@deadlock(["TASK_RING_FULL"], {"task_window": 3}, {"scope.p": 1})
def a_scope_holds_the_window_though_it_waits(program: Program) -> None:
    kernel, tensors = adder(program, 3)
    program.task_window(TaskWindow(2))
    with program.process("p"), program.scope():
        for tensor in tensors:
            program.task(kernel, tensor)
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
            for tensor in tensors[3 * place : 3 * place + 3]:
                program.task(kernel, tensor)
                program.wait()


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


@deadlock(["TENSORMAP_POOL_FULL"], {"tensormap_pool": 2}, {"scope.p": 1})
def a_scope_holds_the_tensormap(program: Program) -> None:
    kernel, tensors = adder(program, 2)
    program.resources(tensormap_pool=1)
    with program.process("p"), program.scope():
        for tensor in tensors:
            program.task(kernel, tensor)


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
        for tensor in tensors:
            program.task(kernel, tensor, signals=[c])
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
            for tensor in tensors:
                program.task(kernel, tensor)


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
