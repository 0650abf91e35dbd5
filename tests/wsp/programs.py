"""A corpus of WSP programs with every feature of the runtime, and random programs by seed, as forms of JSON."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tessera_reference.wsp.builder import Kernel, Program, TaskWindow

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


def dispatched(policy: str) -> Callable[[Program], None]:
    def build(program: Program) -> None:
        x = [program.tensor(f"x{index}", "i32", 2) for index in range(3)]
        kernel = costly(program, 5)
        further = {"worker": (program.symbol("base", 2) + 1) % 3} if policy == "expression" else {}
        program.dispatch(policy, 3, **further)
        program.task_window(TaskWindow(4))
        program.resources(ready_queue=1)
        with program.process("a"), program.repeat(7, index="i") as i:
            for argument in x:
                program.task(kernel, argument, key=i * 977 + 5)

    return build


for _policy in ("round_robin", "affinity", "hash", "expression"):
    CORPUS[f"dispatch_{_policy}"] = dispatched(_policy)


@rule
def worker_out_of_range(program: Program) -> None:
    x = program.tensor("x", "i8", 1)
    program.dispatch("expression", 2, worker=program.symbol("worker", 2))
    with program.process("a"):
        program.task(costly(program), x)


@rule
def token_beyond_the_last_time(program: Program) -> None:
    most, count = (1 << 32) - 1, 1 << 16
    x, c = program.tensor("x", "u8", count), program.channel("c", latency=most)
    kernel = program.kernel("k", per_element=most, x="tensor")
    with program.process("a"):
        with program.repeat(((1 << 63) - 1) // (most * count)):
            program.run(kernel, x)
        program.send(c, 1)
    with program.process("b"):
        program.receive(c, into="y")


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
                for part in parts[1:]:
                    total = total * 31 + part
                program.send(c, total)
    with program.process("b"), program.consume(c, into="x") as x:
        program.load("z", program.tensor("t", "u8", 1, [3]), x.select(0, 0))


def arithmetic_of(dtype: str) -> Callable[[Program], None]:
    def build(program: Program) -> None:
        floats = [0.0, -0.0, 1.5, -2.25, 3e38, -3e38, 1e-45, math.inf, -math.inf, math.nan, 16777216.0, 0.1]
        integers = [0, 1, 2, 100, 127, 3, 5, 7, 11, 64, 120, 126]
        plain = dtype in ("bool",)
        values = floats if dtype.startswith("fp") else [integer % 2 for integer in integers] if plain else integers
        turned = [values[1], values[0], *values[7:], *values[2:7]]
        if dtype[0] == "i":
            turned = [-number - 1 for number in turned]
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
    tensors = [program.tensor(integer, integer, 2, [1, 127]) for integer in INTEGERS]
    tensors += [
        program.tensor(f"negative_{integer}", integer, 2, [-1, -128]) for integer in INTEGERS if integer[0] == "i"
    ]
    tensors += [program.tensor(name, name, 2, [-0.0, 2.0**23 + 1]) for name in ("fp32", "fp64")]
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


Form = dict[str, Any]
BINARY = ("add", "sub", "mul", "and", "or", "xor", "shl", "shr", "eq", "ne", "lt", "le", "gt", "ge", "min", "max")
NUMBERS = (0, 1, 2, 3, 5, 7, 63, 64, 255, 1 << 31, (1 << 53) + 1, (1 << 63) + 3, (1 << 64) - 1)
RANDOM_FLOATS = (
    0.0,
    -0.0,
    1.0,
    2.5,
    -3.0,
    7.0,
    1e-40,
    1e30,
    float("inf"),
    float("-inf"),
    float("nan"),
    2.0**64,
    16777217.0,
)
SLOTS = ("x", "y", "z")
SYMBOLS = ("m", "n")
DEEPEST = 3


def program(seed: int) -> Form:
    """The program of a seed."""
    return _Maker(random.Random(seed)).program(f"p{seed}")


class _Maker:
    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.channels = source.randint(1, 4)
        self.tensors: list[Form] = []
        self.kernels: list[Form] = []
        self.calls: list[tuple[str, list[str | None]]] = []
        for group in range(source.choice((1, 1, 2))):
            self._group(f"g{group}")

    def program(self, name: str) -> Form:
        source = self.source
        processes = [{"name": f"p{index}", "body": self._body(0, -1)} for index in range(source.randint(1, 4))]
        return {
            "name": name,
            "kernels": self.kernels,
            "schedule": self._schedule(),
            "csp": {
                "channels": [
                    {"name": f"c{index}", "capacity": source.choice((0, 1, 1, 2, 3)), "latency": self._few()}
                    for index in range(self.channels)
                ],
                "processes": processes,
            },
            "slots": [{"name": slot} for slot in SLOTS],
            "symbols": [{"name": symbol, "width": 8, "default": source.choice((0, 1, 3, 200))} for symbol in SYMBOLS],
            "tensors": self.tensors,
        }

    def _few(self) -> int:
        return self.source.choice((0, 0, 0, 1, 2, 5))

    def _schedule(self) -> Form:
        source = self.source
        workers = source.randint(1, 3)
        policy = source.choice(("round_robin", "affinity", "hash", "expression"))
        parameters: Form = {"workers": workers}
        if policy == "expression":
            inputs = {"op": "add", "operands": [{"input": "task"}, {"input": "key"}]}
            within = {"op": "mod", "operands": [inputs, {"constant": workers}]}
            parameters["worker"] = within if source.random() < 0.9 else {"input": "key"}
        schedule = {
            "policy": {"id": policy, "parameters": parameters},
            "task_window": {"size": source.choice((1, 2, 3, 8, 64))},
        }
        sizes = {"tensormap_pool": (1, 2, 8), "deplist_pool": (1, 2, 8), "heap_arena": (40, 100), "ready_queue": (1, 2)}
        tight = [size for size in sizes if source.random() < 0.3]
        return schedule | {"resources": {resource: source.choice(sizes[resource]) for resource in tight}}

    def _group(self, name: str) -> None:
        """Tensors of one dtype, and kernels over them."""
        source = self.source
        dtype = source.choice((*INTEGERS, "fp32", "fp64", "bool"))
        names = [f"{name}t{index}" for index in range(3)]
        count = source.choice((1, 2, 5, 7))
        self.tensors += [self._tensor(tensor_name, dtype, count) for tensor_name in names]
        self.tensors.append(self._tensor(f"{name}one", dtype, 1))
        for index in range(source.randint(1, 2)):
            self._kernel(f"{name}k{index}", dtype, names)
        if dtype != "bool":
            instruction = {"op": "sum", "destination": "a", "operands": [{"parameter": "b"}]}
            self._add_kernel(f"{name}sum", {"a": "tensor", "b": "tensor"}, [instruction])
            self.calls.append((f"{name}sum", [f"{name}one", source.choice(names)]))

    def _tensor(self, name: str, dtype: str, count: int) -> Form:
        source = self.source
        tensor: Form = {"name": name, "dtype": dtype, "count": count}
        if source.random() < 0.3:
            return tensor
        if dtype in ("fp32", "fp64"):
            form = "<f" if dtype == "fp32" else "<d"
            data = b"".join(struct.pack(form, source.choice(RANDOM_FLOATS)) for _ in range(count))
        elif dtype == "bool":
            data = bytes(source.randint(0, 1) for _ in range(count))
        else:
            data = source.randbytes(count * int(dtype[1:]) // 8)
        return tensor | {"initial": data.hex()}

    def _kernel(self, name: str, dtype: str, tensors: Sequence[str]) -> None:
        source = self.source
        parameters = {"a": "tensor", "b": "tensor", "s": "scalar"}
        operations = ("fill", "copy", "min", "max") if dtype == "bool" else ()
        operations = operations or ("fill", "iota", "copy", "add", "sub", "mul", "min", "max")
        instructions = [self._instruction(source.choice(operations)) for _ in range(source.randint(0, 3))]
        self._add_kernel(name, parameters, instructions)
        for _ in range(2):
            self.calls.append((name, [source.choice(tensors), source.choice(tensors), None]))

    def _instruction(self, op: str) -> Form:
        source = self.source
        scalars = [{"parameter": "s"}, {"constant": source.choice(NUMBERS)}]
        tensors = [{"parameter": "a"}, {"parameter": "b"}]
        if op in ("fill", "iota"):
            operands = [source.choice(scalars)]
        elif op == "copy":
            operands = [source.choice(tensors)]
        else:
            operands = [source.choice(tensors + scalars) for _ in range(2)]
        return {"op": op, "destination": source.choice("ab"), "operands": operands}

    def _add_kernel(self, name: str, parameters: dict[str, str], instructions: list[Form]) -> None:
        payload = {
            "form": "wsp-kernel",
            "parameters": [{"name": parameter, "kind": kind} for parameter, kind in parameters.items()],
            "instructions": instructions,
        }
        cycles = {"fixed": self._few(), "per_element": self.source.choice((0, 0, 1))}
        self.kernels.append({"name": name, "payload": payload, "cycles": cycles})

    def _expression(self, depth: int = 0) -> Form:
        source = self.source
        kind = source.random()
        if depth == 2 or kind < 0.5:
            slot, symbol = {"slot": source.choice(SLOTS)}, {"symbol": source.choice(SYMBOLS)}
            return source.choice(({"constant": source.choice(NUMBERS)}, slot, symbol))
        if kind < 0.9:
            op, arity = source.choice(BINARY), 2
        elif kind < 0.95:
            op, arity = source.choice((("not", 1), ("select", 3)))
        else:
            return self._quotient(depth)
        return {"op": op, "operands": [self._expression(depth + 1) for _ in range(arity)]}

    def _quotient(self, depth: int) -> Form:
        divisor = {"constant": self.source.choice((1, 3, 10))} if self.source.random() < 0.9 else self._expression(2)
        return {"op": self.source.choice(("div", "mod")), "operands": [self._expression(depth + 1), divisor]}

    def _body(self, depth: int, above: int) -> list[Form]:
        """Statements; within a body that consumes, those that send do so above its channel."""
        most = 5 if depth == 0 else 2
        return [self._statement(depth, above) for _ in range(self.source.randint(1, most))]

    def _statement(self, depth: int, above: int) -> Form:
        source = self.source
        nested = ("consume", "consume", "scope", "cond", "repeat") if depth < DEEPEST else ()
        simple = ("send", "send", "task", "task", "task", "run", "load", "wait")
        op = source.choice((*simple, *nested)) if source.random() < 0.95 else source.choice(("close", "receive"))
        channel, slot = f"c{source.randrange(self.channels)}", source.choice(SLOTS)
        upper = [f"c{higher}" for higher in range(above + 1, self.channels)]
        if op in ("send", "close") and upper:
            if op == "close":
                return {"op": op, "channel": upper[-1]}
            return {"op": op, "channel": source.choice(upper), "value": self._expression()}
        if op == "receive":
            return {"op": op, "channel": channel, "into": slot}
        if op == "load":
            tensor = source.choice(self.tensors)
            return {"op": op, "slot": slot, "tensor": tensor["name"], "element": self._element(tensor["count"])}
        if op == "wait":
            return {"op": op}
        if op == "consume" and upper:
            number = source.randrange(above + 1, self.channels)
            return {"op": op, "channel": f"c{number}", "into": slot, "body": self._body(depth + 1, number)}
        if op == "scope":
            return {"op": op, "body": self._body(depth + 1, above)}
        if op == "cond":
            then, otherwise = self._body(depth + 1, above), self._body(depth + 1, above)
            return {"op": op, "when": self._expression(), "then": then, "otherwise": otherwise}
        if op == "repeat":
            count = {"op": "mod", "operands": [self._expression(), {"constant": 4}]}
            index = {"index": slot} if source.random() < 0.5 else {}
            return {"op": op, "count": count, "body": self._body(depth + 1, above), **index}
        return self._call("run" if op == "run" else "task", upper)

    def _element(self, count: int) -> Form:
        if self.source.random() < 0.98:
            return {"op": "mod", "operands": [self._expression(), {"constant": count}]}
        return {"constant": count}

    def _call(self, op: str, upper: Sequence[str]) -> Form:
        source = self.source
        kernel, tensors = source.choice(self.calls)
        arguments = [self._expression() if tensor is None else {"tensor": tensor} for tensor in tensors]
        call: Form = {"op": op, "kernel": kernel, "arguments": arguments}
        if op == "run":
            return call
        if source.random() < 0.5:
            call["key"] = self._expression()
        if source.random() < 0.1:
            call["waits"] = [f"c{source.randrange(self.channels)}" for _ in range(source.randint(1, 2))]
        if upper and source.random() < 0.3:
            call["signals"] = [source.choice(upper) for _ in range(source.randint(1, 2))]
        return call
