"""Small programs of every rule, which the executor and the native artifact run alike; deadlocks are `deadlocks.py`."""

from __future__ import annotations

import math
from collections.abc import Callable

from tessera_reference.wsp.builder import Channel, Kernel, Program, TaskWindow

__all__ = ["CORPUS"]

CORPUS: dict[str, Callable[[Program], None]] = {}
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
LARGE = (1 << 64) - 1


def rule(build: Callable[[Program], None]) -> Callable[[Program], None]:
    CORPUS[build.__name__] = build
    return build


def costly(program: Program, cycles: int = 3) -> Kernel:
    """A kernel that adds one."""
    return program.kernel("k", cycles=cycles, x="tensor").add("x", "x", 1)


@rule
def nothing(program: Program) -> None:
    pass


@rule
def two_producers_two_consumers(program: Program) -> None:
    c = program.channel("c", capacity=2, latency=3)
    for name, count in (("a", 4), ("b", 5)):
        with program.process(name), program.repeat(count, index=f"i{name}") as i:
            program.send(c, i)
    for name in ("d", "e"):
        with program.process(name), program.consume(c, into=f"x{name}"):
            pass


@rule
def rendezvous_with_and_without_latency(program: Program) -> None:
    channels = [program.channel("c", capacity=0), program.channel("d", capacity=0, latency=7)]
    with program.process("a"):
        for each in channels:
            for value in (5, 6):
                program.send(each, value)
    with program.process("b"):
        for each in channels:
            with program.consume(each, into="x"):
                pass


@rule
def tokens_left_over_and_a_channel_without_producers(program: Program) -> None:
    c, nobody = program.channel("c", capacity=3), program.channel("nobody")
    with program.process("a"):
        program.send(c, 1)
        program.send(c, 2)
        program.close(c)
        with program.consume(nobody, into="x"):
            pass


def ends_with_error(close: bool, latency: int) -> Callable[[Program], None]:
    def build(program: Program) -> None:
        c = program.channel("c", latency=latency)
        with program.process("a"):
            program.close(c)
            if close:
                program.send(c, 1)
        with program.process("b"):
            program.receive(c, into="x")

    return build


for _latency in (0, 4):
    CORPUS[f"send_after_close_{_latency}"] = ends_with_error(True, _latency)
    CORPUS[f"receive_after_close_{_latency}"] = ends_with_error(False, _latency)


@rule
def signal_after_close(program: Program) -> None:
    c, x = program.channel("c"), program.tensor("x", "i8", 3)
    with program.process("a"):
        program.close(c)
        program.task(costly(program), x, signals=[c])


@rule
def task_waits_at_a_closed_channel(program: Program) -> None:
    c, x = program.channel("c", latency=2), program.tensor("x", "i8", 3)
    with program.process("a"):
        program.task(costly(program), x, waits=[c, c])
    with program.process("b"):
        program.send(c, 1)


@rule
def close_after_the_last_signal(program: Program) -> None:
    c, x = program.channel("c"), program.tensor("x", "i8", 3)
    kernel = costly(program)
    program.dispatch("round_robin", workers=2)
    with program.process("a"):
        for _ in range(5):
            program.task(kernel, x, signals=[c, c])
        program.close(c)
    with program.process("b"), program.consume(c, into="number") as number:
        program.load("seen", x, number % 3)


@rule
def readers_and_writers(program: Program) -> None:
    x, y = program.tensor("x", "u16", 5), program.tensor("y", "u16", 5)
    write, copy = costly(program, 4), program.kernel("copy", cycles=2, x="tensor", y="tensor").copy("y", "x")
    program.dispatch("round_robin", workers=3)
    program.resources(deplist_pool=2)
    with program.process("a"), program.repeat(3):
        program.task(write, x)
        program.task(copy, x, y)
        program.task(copy, x, y)
        program.task(write, y)
        program.run(copy, y, x)
    with program.process("b"):
        program.load("early", x, 2)
        program.run(write, y)
        program.wait()
        program.load("late", y, 4)


@rule
def a_write_waits_for_a_long_read(program: Program) -> None:
    x, y = program.tensor("x", "u16", 5, [9, 8, 7, 6, 5]), program.tensor("y", "u16", 5)
    copy = program.kernel("copy", cycles=20, x="tensor", y="tensor").copy("y", "x")
    program.dispatch("round_robin", workers=2)
    with program.process("a"):
        program.task(copy, x, y)
        program.task(costly(program, 1), x)


@rule
def ready_earlier_goes_before_a_smaller_number(program: Program) -> None:
    go, done = program.channel("go"), program.channel("done", capacity=3)
    kernel = costly(program, 10)
    x = [program.tensor(f"x{each}", "i8", 1) for each in range(3)]
    with program.process("a"):
        program.task(kernel, x[0], signals=[done])
        program.task(kernel, x[1], waits=[go], signals=[done])
        program.task(kernel, x[2], signals=[done])
    with program.process("b"):
        program.run(program.kernel("pause", cycles=5))
        program.send(go)
    with program.process("c"):
        for each in ("first", "second", "third"):
            program.receive(done, into=each)


def dispatched(policy: str) -> Callable[[Program], None]:
    def build(program: Program) -> None:
        x = [program.tensor(f"x{each}", "i32", 2) for each in range(3)]
        kernel = costly(program, 5)
        further = {"worker": (program.symbol("base", 2) + 1) % 3} if policy == "expression" else {}
        program.dispatch(policy, 3, **further)
        program.task_window(TaskWindow(4))
        program.resources(ready_queue=1)
        with program.process("a"), program.repeat(7, index="i") as i:
            for each in x:
                program.task(kernel, each, key=i * 977 + 5)

    return build


for _policy in ("round_robin", "affinity", "hash", "expression"):
    CORPUS[f"dispatch_{_policy}"] = dispatched(_policy)


@rule
def worker_out_of_range(program: Program) -> None:
    x = program.tensor("x", "i8", 1)
    program.dispatch("expression", 2, worker=program.symbol("worker", 2))
    with program.process("a"):
        program.task(costly(program), x)


def bounded(**sizes: int) -> Callable[[Program], None]:
    def build(program: Program) -> None:
        x, y = program.tensor("x", "i64", 2), program.tensor("y", "i64", 3)
        both = program.kernel("both", cycles=3, x="tensor", y="tensor").add("x", "x", 2).iota("y", 5)
        one = costly(program)
        program.resources(**sizes)
        for name in ("a", "b"):
            with program.process(name), program.repeat(3), program.scope():
                program.task(both, x, y)
                with program.scope():
                    program.task(one, x)
                program.task(one, y)

    return build


for _name, _size in (("tensormap_pool", 4), ("deplist_pool", 2), ("heap_arena", 90), ("ready_queue", 2)):
    CORPUS[f"bounded_{_name}"] = bounded(**{_name: _size})


@rule
def window_of_three_in_two_scopes(program: Program) -> None:
    bounded()(program)
    program.task_window(TaskWindow(6))


@rule
def every_operator(program: Program) -> None:
    values = (0, 1, 7, 63, 64, 1 << 63, LARGE)
    c = program.channel("c")
    with program.process("a"):
        for a in values:
            for b in values:
                x, y = program.symbol(f"a{a}_{b}", a), program.symbol(f"b{a}_{b}", b)
                parts = [x + y, x - y, x * y, x & y, x | y, x ^ y, x << y, x >> y, x.eq(y), x.ne(y), x.lt(y)]
                parts += [x.le(y), x.gt(y), x.ge(y), x.min(y), x.max(y), ~x, y.select(x // y, 5), y.select(x % y, 9)]
                total = parts[0]
                for each in parts[1:]:
                    total = total * 31 + each
                program.send(c, total)
    with program.process("b"), program.consume(c, into="x") as x:
        program.load("z", program.tensor("t", "u8", 1, [3]), x.select(0, 0))


@rule
def the_first_division_by_zero_is_reported(program: Program) -> None:
    zero = program.symbol("zero")
    c = program.channel("c")
    with program.process("a"):
        program.send(c, (zero + 4) // zero + (zero + 5) % zero)


@rule
def the_last_time(program: Program) -> None:
    kernel = program.kernel("long", cycles=(1 << 32) - 1, per_element=(1 << 32) - 1, x="tensor")
    x = program.tensor("x", "u8", 1 << 24)
    with program.process("a"), program.repeat(1 << 10):
        program.run(kernel, x)


def arithmetic_of(dtype: str) -> Callable[[Program], None]:
    def build(program: Program) -> None:
        floats = [0.0, -0.0, 1.5, -2.25, 3e38, -3e38, 1e-45, math.inf, -math.inf, math.nan, 16777216.0, 0.1]
        integers = [0, 1, 2, 100, 127, 3, 5, 7, 11, 64, 120, 126]
        plain = dtype in ("bool",)
        values = floats if dtype.startswith("fp") else [each % 2 for each in integers] if plain else integers
        turned = [values[1], values[0], *values[7:], *values[2:7]]
        if dtype[0] == "i":
            turned = [-each - 1 for each in turned]
        a, b = program.tensor("a", dtype, 12, values), program.tensor("b", dtype, 12, turned)
        operations = ("min", "max") if plain else ("add", "sub", "mul", "min", "max")
        with program.process("p"):
            for op in operations:
                for scalar in ("tensor", "scalar"):
                    out = program.tensor(f"{op}_{scalar}", dtype, 12)
                    kernel = program.kernel(f"{op}_{scalar}", d="tensor", a="tensor", b=scalar)
                    getattr(kernel, op)("d", "a", "b")
                    program.task(kernel, out, a, b if scalar == "tensor" else LARGE - 6)
            fill = program.kernel("fill", d="tensor", s="scalar").fill("d", "s")
            program.run(fill, program.tensor("f", dtype, 3), LARGE)
            if not plain:
                iota = program.kernel("iota", d="tensor", s="scalar").iota("d", "s")
                program.run(iota, program.tensor("i", dtype, 300), 16777215)
                total = program.kernel("sum", d="tensor", a="tensor").sum("d", "a")
                program.run(total, program.tensor("total", dtype, 1), b)

    return build


for _dtype in (*INTEGERS, "fp32", "fp64", "bool"):
    CORPUS[f"arithmetic_{_dtype}"] = arithmetic_of(_dtype)


@rule
def elements_into_slots(program: Program) -> None:
    tensors = [program.tensor(each, each, 2, [1, 127]) for each in INTEGERS]
    tensors += [program.tensor(f"negative_{each}", each, 2, [-1, -128]) for each in INTEGERS if each[0] == "i"]
    tensors += [program.tensor(each, each, 2, [-0.0, 2.0**23 + 1]) for each in ("fp32", "fp64")]
    with program.process("a"):
        for tensor in tensors:
            for element in (0, 1):
                program.load(f"{tensor.name}_{element}", tensor, element)


def refused_element(value: float, dtype: str) -> Callable[[Program], None]:
    def build(program: Program) -> None:
        with program.process("a"):
            program.load("x", program.tensor("t", dtype, 2, [0, value]), 1)

    return build


FLOATS = (0.5, -1.0, 2.0**64, 1e16, 0.1, 1e-5, 1.25e-4, 123456.75, 5e-324, 1.7e308, math.nan, math.inf, -math.inf)
for _place, _value in enumerate(FLOATS):
    CORPUS[f"slot_value_fp64_{_place}"] = refused_element(_value, "fp64")
    if abs(_value) < 1e38 or not math.isfinite(_value):
        CORPUS[f"slot_value_fp32_{_place}"] = refused_element(_value, "fp32")


@rule
def element_out_of_range(program: Program) -> None:
    with program.process("a"):
        program.load("x", program.tensor("t", "u8", 2), LARGE)


@rule
def nested_control(program: Program) -> None:
    c: Channel = program.channel("c", capacity=2)
    bound = program.symbol("bound", 4)
    with program.process("a"), program.repeat(bound, index="i") as i:
        with program.cond(i % 2), program.repeat(i, index="j") as j:
            program.send(c, i * 10 + j)
        with program.otherwise():
            program.send(c, i)
    with program.process("b"), program.consume(c, into="x") as x, program.cond(x.gt(20)):
        program.run(costly(program), program.tensor("t", "i16", 2))
